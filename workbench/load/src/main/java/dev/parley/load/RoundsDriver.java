package dev.parley.load;

import dev.parley.model.Load;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A stretch is a round: a new pool of threads, a latch of as many requests as are handed to it; timed from before the
 * pool is made until the latch opens. Source: zhang, pseudocode of the client-side testing program.
 */
final class RoundsDriver implements Driver {
    private final Load.Rounds load;
    private final Caller caller;
    private final Clock clock;
    private final int requestsEach;
    private volatile long doneNs;
    private volatile Thread round = new Thread(() -> {});

    RoundsDriver(Load.Rounds load, Target target, Clock clock) {
        this.load = load;
        this.caller = new Caller(target, load.use(), new Occupancy(), clock);
        this.requestsEach = target.requests();
        this.clock = clock;
    }

    @Override
    public void begin(Stretch stretch) {
        doneNs = 0;
        stretch.outcomes.due((long) load.requests() * requestsEach);
        stretch.beganNs = clock.nowNs();
        round = Thread.ofPlatform().name("round").daemon().start(() -> round(stretch.outcomes));
    }

    private void round(Outcomes outcomes) {
        AtomicInteger notBegun = new AtomicInteger(load.requests());
        ExecutorService pool = Executors.newFixedThreadPool(
                load.threads(), Thread.ofPlatform().name("round-", 1).daemon().factory());
        try {
            CountDownLatch latch = new CountDownLatch(load.requests());
            for (int i = 0; i < load.requests(); i++) {
                pool.execute(() -> {
                    notBegun.decrementAndGet();
                    try {
                        caller.callOnce((int) Thread.currentThread().threadId(), outcomes);
                    } catch (InterruptedException cut) {
                        Thread.currentThread().interrupt();
                    } finally {
                        latch.countDown();
                    }
                });
            }
            latch.await();
            doneNs = clock.nowNs();
            pool.shutdown();
        } catch (InterruptedException cut) {
            pool.shutdownNow();
            outcomes.notSent((long) notBegun.get() * requestsEach);
        }
    }

    @Override
    public boolean isDone() {
        return doneNs != 0;
    }

    @Override
    public long doneNs() {
        return doneNs;
    }

    @Override
    public int inFlight() {
        return caller.inFlight();
    }

    /** Cuts the round: what has not begun is not sent. */
    @Override
    public void stop() {
        round.interrupt();
    }

    @Override
    public boolean isIdle() {
        return caller.inFlight() == 0 && !round.isAlive();
    }

    @Override
    public void close() {
        round.interrupt();
    }
}
