package dev.rpcx;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * Finds out whether the machine stands still. A thread ticks every 5 ms, and the result is the largest gap between two
 * of its ticks.
 */
public final class StandStill implements AutoCloseable {
    private static final long TICK_NANOS = 5_000_000;

    private volatile long lastTick = System.nanoTime();
    private volatile long largestNanos;
    private volatile boolean isClosed;

    public StandStill() {
        Thread ticker = new Thread(this::tick, "stand-still");
        ticker.setDaemon(true);
        ticker.start();
    }

    private void tick() {
        while (!isClosed) {
            LockSupport.parkNanos(TICK_NANOS);
            long now = System.nanoTime();
            largestNanos = Math.max(largestNanos, now - lastTick);
            lastTick = now;
        }
    }

    /** Returns whether the machine has stood still for so long at least once until now, or is doing so now. */
    public boolean was(Duration time) {
        long sinceTick = System.nanoTime() - lastTick;
        return Math.max(largestNanos, sinceTick) >= time.toNanos();
    }

    @Override
    public void close() {
        isClosed = true;
    }
}
