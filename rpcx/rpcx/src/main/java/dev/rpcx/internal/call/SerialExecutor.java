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
 * Runs the signals of one stream one after the other, in order (Reactive Streams, rules 1.3 and 2.7). They run on the
 * given executor; without one, each runs on the thread that hands it over. If a signal throws, the next one runs all
 * the same. After {@code AT_ONCE} signals the remaining ones wait behind other work, so that a busy stream does not
 * keep a thread. Thread-safe.
 */
public final class SerialExecutor implements Executor, Runnable {
    private static final int IDLE = 0;

    /** State: handed to {@code executor} or {@code rest}, not running yet. */
    private static final int AWAITED = 1;

    private static final int RUNNING = 2;

    /** Number of signals of one stream that run before other work of the executor has its turn. */
    private static final int AT_ONCE = 128;

    private static final AtomicIntegerFieldUpdater<SerialExecutor> STATE =
            AtomicIntegerFieldUpdater.newUpdater(SerialExecutor.class, "state");

    private final @Nullable Executor executor;

    /** Runs the remaining signals after a thread has run {@link #AT_ONCE} signals. */
    private final Executor rest;

    private final Queue<Runnable> signals = new ConcurrentLinkedQueue<>();

    private volatile int state = IDLE;

    public SerialExecutor(Executor executor) {
        this(executor, executor);
    }

    /**
     * Creates an executor for the signals of one stream.
     *
     * @param executor runs the signals; null if each signal is run by the thread that hands it over
     * @param rest runs the remaining signals after {@link #AT_ONCE} signals
     */
    public SerialExecutor(@Nullable Executor executor, Executor rest) {
        this.executor = executor;
        this.rest = rest;
    }

    /**
     * Runs a signal after all earlier ones. If this method throws, the signal has not run, but it may still run before
     * the next signal.
     */
    @Override
    public void execute(Runnable signal) {
        signals.add(signal);
        if (state != IDLE || !STATE.compareAndSet(this, IDLE, AWAITED)) {
            return;
        }
        try {
            handOver(executor);
        } catch (Throwable e) {
            // a store, since no method can be called if the stack is exhausted
            state = IDLE;
            throw e;
        }
    }

    /**
     * Runs {@code last} once no signal runs or waits: on the calling thread if that is so now, otherwise like a signal.
     * If it cannot be handed over, {@code last} runs on the calling thread, and may run again before the next signal.
     * {@code last} has to be quick.
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

    /** Hands this object to {@code to}, or runs it on the calling thread if {@code to} is null. */
    private void handOver(@Nullable Executor to) {
        if (to == null) {
            run();
            return;
        }
        try {
            to.execute(this);
        } catch (RejectedExecutionException stopped) {
            // the handlers' threads have ended: the remaining signals only end the stream and are quick
            run();
        }
    }

    /**
     * Runs the waiting signals. Called by the executor once for each time that this object was handed to it, and
     * perhaps once more if the executor threw.
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
                // A thread that has just added a signal may have seen this object running, and so has not handed it
                // over.
            } while (!signals.isEmpty() && STATE.compareAndSet(this, IDLE, RUNNING));
        } finally {
            if (runs) {
                state = IDLE;
            }
        }
    }

    /** Hands this object to {@code rest}. Returns false if the calling thread has to run the remaining signals. */
    private boolean isHandedOn() {
        state = AWAITED;
        try {
            handOver(rest);
            return true;
        } catch (Throwable e) {
            // the executor may have taken this object before it threw, and may be running it
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
