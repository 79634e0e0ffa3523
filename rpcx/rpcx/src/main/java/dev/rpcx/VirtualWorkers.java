package dev.rpcx;

import java.lang.invoke.MethodHandle;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Virtual threads of one event loop that wait for the next call instead of ending: starting one costs some 500 bytes, waking one nothing.
 * A call never waits for a worker: if none is idle a new one starts.
 *
 * <p>Idle workers form a stack that any worker pushes to and only the event loop takes from. One taker is what keeps it right without
 * counters: between its look at the top and its exchange nobody else can take that top away.
 */
final class VirtualWorkers {
    /** Beyond this many idle ones a worker ends: a burst must not stay in memory. */
    private static final int MAX_IDLE = 256;

    private final MethodHandle startVirtual;
    private final AtomicReference<@Nullable Worker> idle = new AtomicReference<>();
    private final AtomicInteger idleCount = new AtomicInteger();
    private volatile boolean closed;

    VirtualWorkers(MethodHandle startVirtual) {
        this.startVirtual = startVirtual;
    }

    /** On the event loop. */
    void run(Runnable task) {
        Worker worker = take();
        if (worker == null) {
            start(new Worker(task));
        } else {
            worker.wake(task);
        }
    }

    private void start(Worker worker) {
        try {
            Thread started = (Thread) startVirtual.invokeExact((Runnable) worker);
            assert started != null;
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable t) {
            throw new IllegalStateException(t);
        }
    }

    private @Nullable Worker take() {
        while (true) {
            Worker top = idle.get();
            if (top == null) {
                return null;
            }
            if (idle.compareAndSet(top, top.below)) {
                idleCount.decrementAndGet();
                return top;
            }
        }
    }

    /** Ends the idle workers, and the others when their calls end. After the event loop has ended. */
    void close() {
        closed = true;
        for (Worker worker = idle.get(); worker != null; worker = worker.below) {
            LockSupport.unpark(worker.thread);
        }
    }

    private final class Worker implements Runnable {
        private volatile @Nullable Runnable task;
        private @Nullable Worker below;
        private @Nullable Thread thread;

        Worker(Runnable first) {
            task = first;
        }

        void wake(Runnable next) {
            task = next;
            LockSupport.unpark(thread);
        }

        @Override
        public void run() {
            thread = Thread.currentThread();
            while (true) {
                Runnable next = task;
                if (next != null) {
                    task = null;
                    next.run();
                    if (idleCount.incrementAndGet() > MAX_IDLE) {
                        idleCount.decrementAndGet();
                        return;
                    }
                    push();
                } else if (closed) {
                    return;
                } else {
                    LockSupport.park(this);
                }
            }
        }

        private void push() {
            while (true) {
                Worker top = idle.get();
                below = top;
                if (idle.compareAndSet(top, this)) {
                    return;
                }
            }
        }
    }
}
