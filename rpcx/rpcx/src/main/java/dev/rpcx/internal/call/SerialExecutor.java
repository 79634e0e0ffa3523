package dev.rpcx.internal.call;

import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.io.LoopThread;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Runs the signals of one stream one after the other, in order, wherever they belong, such as where a method's handlers
 * run (Reactive Streams, rules 1.3 and 2.7). Any thread may hand signals over. A signal that throws does not keep the
 * next from running. No thread is kept while signals come again and again: after {@code AT_ONCE} of them the rest has
 * its turn behind other work.
 */
public final class SerialExecutor implements Executor, Runnable {
    private static final int IDLE = 0;

    /** This object has been handed to {@code executor} or {@code rest}, and has not begun to run. */
    private static final int AWAITED = 1;

    private static final int RUNNING = 2;

    /** Number of signals that one stream runs before other work of its executor has its turn. */
    private static final int AT_ONCE = 128;

    private static final AtomicIntegerFieldUpdater<SerialExecutor> STATE =
            AtomicIntegerFieldUpdater.newUpdater(SerialExecutor.class, "state");

    private final @Nullable Executor executor;

    /** Runs the remaining signals once a thread has run {@link #AT_ONCE}. */
    private final Executor rest;

    private final Queue<Runnable> signals = new ConcurrentLinkedQueue<>();

    private volatile int state = IDLE;

    public SerialExecutor(Executor executor) {
        this(executor, executor);
    }

    /**
     * @param executor runs the signals; null for the thread that hands a signal over
     * @param rest runs the remaining signals when signals have come again and again for a while
     */
    public SerialExecutor(@Nullable Executor executor, Executor rest) {
        this.executor = executor;
        this.rest = rest;
    }

    /** Hands a signal over. An exception means that it has not run: if it is queued, it runs before the next signal. */
    @Override
    public void execute(Runnable signal) {
        signals.add(signal);
        if (state != IDLE || !STATE.compareAndSet(this, IDLE, AWAITED)) {
            return;
        }
        try {
            handOver(executor);
        } catch (Throwable e) {
            // a store and no call: where the stack is at its end nothing can be called
            state = IDLE;
            throw e;
        }
    }

    /**
     * Runs {@code last} once no signal runs or waits. It runs on this thread if that is so now, or if it cannot be
     * handed over; in the latter case it may run again, before the next signal. It has to be quick.
     */
    void atEnd(Runnable last) {
        if (state == IDLE && signals.isEmpty()) {
            last.run();
            return;
        }
        try {
            execute(last);
        } catch (Throwable noThread) {
            last.run();
        }
    }

    /** Hands this object to {@code to}, or runs it on this thread if {@code to} is null. */
    private void handOver(@Nullable Executor to) {
        if (to == null) {
            run();
            return;
        }
        try {
            to.execute(this);
        } catch (RejectedExecutionException stopped) {
            // the handlers' threads have ended: the remaining signals only end the stream, and are quick
            run();
        }
    }

    /**
     * Runs the signals that wait. Called once for each time that this object was handed to its executor, and at most
     * once more, by an executor that took it and threw all the same.
     */
    @Override
    public void run() {
        if (!STATE.compareAndSet(this, AWAITED, RUNNING)) {
            return;
        }
        boolean runs = true;
        try {
            int left = AT_ONCE;
            do {
                runs = true;
                for (Runnable signal = signals.poll(); signal != null; signal = signals.poll()) {
                    run(signal);
                    if (--left <= 0 && !signals.isEmpty()) {
                        if (isHandedOn()) {
                            runs = false;
                            return;
                        }
                        left = AT_ONCE;
                    }
                }
                runs = false;
                state = IDLE;
                // the queue is looked at once more: a thread that added a signal meanwhile may have seen this one
                // running
            } while (!signals.isEmpty() && STATE.compareAndSet(this, IDLE, RUNNING));
        } finally {
            if (runs) {
                state = IDLE;
            }
        }
    }

    /** @return false if {@code rest} does not take this object, so the remaining signals are run here */
    private boolean isHandedOn() {
        state = AWAITED;
        try {
            handOver(rest);
            return true;
        } catch (Throwable e) {
            // an executor that took this object and threw all the same may run it already
            return !STATE.compareAndSet(this, AWAITED, RUNNING);
        }
    }

    private static void run(Runnable signal) {
        try {
            signal.run();
        } catch (Throwable t) {
            CallbackFailures.log(t);
        } finally {
            LoopThread.forgetInterrupt();
        }
    }
}
