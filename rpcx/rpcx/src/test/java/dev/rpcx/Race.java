package dev.rpcx;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Starts threads that wait at a barrier and then run at the same time, and waits for them. */
final class Race {
    private Race() {}

    private static final class Racer extends Thread {
        private final Runnable task;
        private final CyclicBarrier begin;
        private final AtomicReference<@Nullable Throwable> failed;

        Racer(Runnable task, CyclicBarrier begin, AtomicReference<@Nullable Throwable> failed) {
            this.task = task;
            this.begin = begin;
            this.failed = failed;
        }

        @Override
        public void run() {
            try {
                begin.await();
                task.run();
            } catch (Throwable t) {
                failed.compareAndSet(null, t);
            }
        }
    }

    /** @throws AssertionError what one of them threw */
    static void together(Runnable... all) {
        AtomicReference<@Nullable Throwable> failed = new AtomicReference<>();
        CyclicBarrier begin = new CyclicBarrier(all.length);
        List<Thread> threads = new ArrayList<>();
        for (Runnable each : all) {
            Thread thread = new Racer(each, begin, failed);
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
        if (failed.get() != null) {
            throw new AssertionError(failed.get());
        }
    }

    static void expect(boolean isTrue, String what) {
        if (!isTrue) {
            throw new AssertionError(what);
        }
    }
}
