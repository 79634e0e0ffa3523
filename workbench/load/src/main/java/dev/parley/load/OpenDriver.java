package dev.parley.load;

import dev.parley.model.Load;
import dev.parley.spi.CallException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

/**
 * One pacer sends requests when they are due, whether or not earlier ones were answered. Catch-up policy: what is late is sent at once, in
 * order, and its lateness recorded; what cannot be sent because too many are in flight is counted as not sent and never sent later.
 */
final class OpenDriver implements Driver {
    private record Part(Outcomes outcomes, Schedule schedule) {}

    private final Load.Open load;
    private final Target target;
    private final Clock clock;
    private final long seed;
    private final int inFlightMost;
    private final AtomicInteger inFlight = new AtomicInteger();
    private final AtomicLong index = new AtomicLong();
    private final SynchronousQueue<Part> next = new SynchronousQueue<>();
    private final Thread pacer;
    private volatile boolean isStopped;
    private volatile boolean isPacing;

    OpenDriver(Load.Open load, Target target, Clock clock, long seed, int inFlightMost) {
        this.load = load;
        this.target = target;
        this.clock = clock;
        this.seed = seed;
        this.inFlightMost = inFlightMost;
        this.pacer = Thread.ofPlatform().name("pacer").daemon().start(this::pace);
    }

    /** Begins a phase of {@code lengthNs}: a warm-up of unknown length is given the most it may take, and cut short by the next phase. */
    @Override
    public void phase(Outcomes outcomes, long lengthNs) {
        isPacing = true;
        isStopped = true; // ends the part under way
        try {
            next.put(new Part(outcomes, Schedule.of(load, lengthNs, seed)));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void pace() {
        try {
            while (true) {
                Part part = next.take();
                isStopped = false;
                long startNs = clock.nowNs();
                for (int i = 0; i < part.schedule().count() && !isStopped; i++) {
                    long dueNs = startNs + part.schedule().offsetNs(i);
                    clock.awaitNs(dueNs);
                    if (!isStopped) {
                        send(part.outcomes(), dueNs);
                    }
                }
                isPacing = false;
            }
        } catch (InterruptedException closed) {
            isPacing = false;
        }
    }

    private void send(Outcomes outcomes, long dueNs) {
        if (inFlight.incrementAndGet() > inFlightMost) {
            inFlight.decrementAndGet();
            outcomes.notSent();
            return;
        }
        long sentNs = clock.nowNs();
        outcomes.sent(dueNs, sentNs);
        try {
            target.send(index.getAndIncrement()).whenComplete((isRight, failure) -> {
                long nowNs = clock.nowNs();
                if (failure != null) {
                    outcomes.failed(CallException.of(failure), dueNs, nowNs);
                } else {
                    outcomes.answered(isRight, dueNs, sentNs, nowNs);
                }
                inFlight.decrementAndGet();
            });
        } catch (RuntimeException e) {
            outcomes.failed(e, dueNs, clock.nowNs());
            inFlight.decrementAndGet();
        }
    }

    @Override
    public int inFlight() {
        return inFlight.get();
    }

    /** The schedule ends by itself; what is due is still sent. */
    @Override
    public void stop() {}

    @Override
    public BooleanSupplier isIdle() {
        return () -> !isPacing && inFlight.get() == 0;
    }

    @Override
    public void close() {
        isStopped = true;
        pacer.interrupt();
    }
}
