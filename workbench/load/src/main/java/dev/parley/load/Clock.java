package dev.parley.load;

import java.util.concurrent.locks.LockSupport;

/** The one monotonic clock of a trial. Tests turn it as they like. */
interface Clock {
    /** Nanoseconds from a fixed but arbitrary moment. */
    long nowNs();

    /** Returns at {@code dueNs} or a little later, at once if it is past. */
    void awaitNs(long dueNs) throws InterruptedException;

    /** Returns some 100 µs after {@code dueNs}, at once if it is past, and costs nothing meanwhile. */
    void restNs(long dueNs) throws InterruptedException;

    /** The machine's clock. Parks until shortly before, then spins: a park alone wakes 50 to 100 µs late on Linux. */
    Clock SYSTEM = new Clock() {
        private static final long SPIN_NS = 100_000;

        @Override
        public long nowNs() {
            return System.nanoTime();
        }

        @Override
        public void awaitNs(long dueNs) throws InterruptedException {
            restNs(dueNs - SPIN_NS);
            while (dueNs - nowNs() > 0) {
                Thread.onSpinWait();
            }
        }

        @Override
        public void restNs(long dueNs) throws InterruptedException {
            for (long left = dueNs - nowNs(); left > 0; left = dueNs - nowNs()) {
                LockSupport.parkNanos(left);
                if (Thread.interrupted()) {
                    throw new InterruptedException();
                }
            }
        }
    };
}
