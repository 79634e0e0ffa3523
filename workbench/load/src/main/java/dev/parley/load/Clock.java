package dev.parley.load;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/** The one monotonic clock of a trial. Tests turn it as they like. */
interface Clock {
    /** Nanoseconds from a fixed but arbitrary moment. */
    long nowNs();

    /** Returns at {@code dueNs} or a little later, at once if it is past. */
    void awaitNs(long dueNs) throws InterruptedException;

    /** Returns some 100 µs after {@code dueNs}, at once if it is past, and costs nothing meanwhile. */
    void restNs(long dueNs) throws InterruptedException;

    /**
     * Told once by a thread that is going to wait often and must not wake late. On Linux its timers are exact, and as root it is a real-time
     * thread: it stands for a client that has a core of its own, and would else wait some milliseconds behind a service's compiler.
     */
    default void sharpen() {}

    /** The machine's clock. Parks until shortly before, then spins: a park alone wakes late. */
    Clock SYSTEM = new Clock() {
        /** Linux lets a thread's timers fire up to 50 µs late, to wake for several at once; waking itself takes some more. */
        private static final long BLUNT_NS = 100_000;
        /** Waking alone. */
        private static final long SHARP_NS = 30_000;

        private volatile long spinNs = BLUNT_NS;

        /** Source: proc_pid_timerslack_ns(5), chrt(1), sched(7). A thread's own id is known to Java from /proc alone. */
        @Override
        public void sharpen() {
            try {
                Path me = Files.readSymbolicLink(Path.of("/proc/thread-self"));
                Files.writeString(Path.of("/proc").resolve(me.getFileName()).resolve("timerslack_ns"), "1");
                spinNs = SHARP_NS;
                new ProcessBuilder(
                                "chrt", "--rr", "--pid", "1", me.getFileName().toString())
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start()
                        .waitFor();
            } catch (IOException | UnsupportedOperationException | SecurityException elsewhere) {
                // it spins for longer, and waits for a core like any thread
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public long nowNs() {
            return System.nanoTime();
        }

        @Override
        public void awaitNs(long dueNs) throws InterruptedException {
            restNs(dueNs - spinNs);
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
