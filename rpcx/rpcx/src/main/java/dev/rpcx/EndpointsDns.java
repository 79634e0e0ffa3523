package dev.rpcx;

import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Asks again and again. One daemon thread a watch: an answer may block for seconds. */
final class EndpointsDns implements Endpoints {
    /** A new instance has traffic within 5 s: half of that for the record's own way into DNS. */
    static final Duration STANDARD_REFRESH = Duration.ofSeconds(2);

    private static final Duration MIN_REFRESH = Duration.ofMillis(100);
    private static final Duration MAX_REFRESH = Duration.ofHours(1);

    private final DnsQuestion question;
    private final long refreshNanos;

    EndpointsDns(DnsQuestion question, Duration refresh) {
        if (refresh.compareTo(MIN_REFRESH) < 0 || refresh.compareTo(MAX_REFRESH) > 0) {
            throw new IllegalArgumentException("refresh: " + refresh + " (expected: 100 ms to 1 h)");
        }
        this.question = question;
        this.refreshNanos = refresh.toNanos();
    }

    @Override
    public Watch watch(Listener listener) {
        ScheduledExecutorService asking = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "rpcx-dns");
            thread.setDaemon(true);
            return thread;
        });
        asking.scheduleWithFixedDelay(() -> ask(listener), 0, refreshNanos, TimeUnit.NANOSECONDS);
        return asking::shutdownNow;
    }

    private void ask(Listener listener) {
        try {
            listener.found(question.ask());
        } catch (Exception e) {
            listener.failed(e);
        }
    }
}
