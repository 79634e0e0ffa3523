package dev.parley.load;

import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Trials by the real clock, of which a test expects what a machine that stands still for some tenths of a second does
 * not give: a trial during which it did so is made again.
 */
final class Undisturbed {
    private static final long LOOK_NANOS = 1_000_000;
    private static final long MAX_PAUSE_NANOS = 50_000_000;
    private static final int MAX_TRIES = 5;

    private Undisturbed() {}

    /**
     * Runs the trial until a thread beside it has not waited longer than 50 ms for a processor.
     *
     * @return what came of that try, or of the fifth: a test on a machine that is too busy fails all the same
     */
    static <T> T run(Callable<T> trial) throws Exception {
        T result = null;
        for (int tries = 0; tries < MAX_TRIES; tries++) {
            AtomicLong longestNanos = new AtomicLong();
            AtomicBoolean isOver = new AtomicBoolean();
            Thread watch = Thread.ofPlatform().daemon().start(() -> {
                for (long last = System.nanoTime(); !isOver.get(); ) {
                    LockSupport.parkNanos(LOOK_NANOS);
                    long now = System.nanoTime();
                    longestNanos.accumulateAndGet(now - last, Math::max);
                    last = now;
                }
            });
            try {
                result = trial.call();
            } finally {
                isOver.set(true);
                watch.join();
            }
            if (longestNanos.get() <= MAX_PAUSE_NANOS) {
                break;
            }
        }
        return result;
    }
}
