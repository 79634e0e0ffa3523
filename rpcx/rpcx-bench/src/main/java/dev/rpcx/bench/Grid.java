package dev.rpcx.bench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Test program of zhang, section "Performance experiment method". It runs ten rounds. Each round makes a fixed pool of
 * {@code threads} within the round, submits {@code requests} to it, and waits for a latch. The first round is dropped,
 * as the paper drops it.
 */
final class Grid {
    static final int ROUNDS = 10;

    private Grid() {}

    /** Returns the mean number of requests per second over rounds 2 to 10; negative if a reply was wrong or missing. */
    static double run(Peer.Caller caller, int threads, int requests) throws InterruptedException {
        double sum = 0;
        for (int round = 0; round < ROUNDS; round++) {
            AtomicInteger wrong = new AtomicInteger();
            long begin = System.nanoTime();
            ExecutorService pool = Executors.newFixedThreadPool(threads);
            CountDownLatch latch = new CountDownLatch(requests);
            for (int i = 0; i < requests; i++) {
                pool.execute(() -> {
                    try {
                        if (!caller.hello("HelloWorld").equals("HelloWorld")) {
                            wrong.incrementAndGet();
                        }
                    } catch (Exception e) {
                        wrong.incrementAndGet();
                    } finally {
                        latch.countDown();
                    }
                });
            }
            latch.await();
            long elapsed = System.nanoTime() - begin;
            pool.shutdown();
            if (wrong.get() > 0) {
                return -wrong.get();
            }
            if (round > 0) {
                sum += requests * 1e9 / elapsed;
            }
        }
        return sum / (ROUNDS - 1);
    }
}
