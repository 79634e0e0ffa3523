package dev.parley.load;

/** Time that a test turns, and that goes on to whatever is waited for. */
final class HandClock implements Clock {
    volatile long nowNs = 1_000_000;

    @Override
    public long nowNs() {
        return nowNs;
    }

    @Override
    public void awaitNs(long dueNs) {
        nowNs = Math.max(nowNs, dueNs);
    }

    @Override
    public void restNs(long dueNs) {
        awaitNs(dueNs);
    }
}
