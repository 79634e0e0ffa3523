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
 * Runs the signals of one stream one after the other and in their order (Reactive Streams, rules 1.3 and 2.7). They run
 * on the executor that this object is given, for example that of a method's handlers; without an executor, each signal
 * runs on the thread that hands it over. Thread-safe: any thread may hand signals over. If a signal throws, the next
 * one runs all the same. A stream that always has more signals does not keep a thread: after {@code AT_ONCE} signals
 * the remaining ones have to wait behind other work.
 */
public final class SerialExecutor implements Executor, Runnable {
    private static final int IDLE = 0;

    /** State: this object has been handed to {@code executor} or {@code rest}, and has not begun to run. */
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
     * Hands over a signal. It runs after all signals that were handed over before it. If this method throws, the signal
     * has not run. It may have been queued all the same, and then it runs before the next signal.
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
            // this is a store and not a call, since no method can be called if the stack is exhausted
            state = IDLE;
            throw e;
        }
    }

    /**
     * Runs {@code last} once no signal runs or waits. If no signal runs or waits now, {@code last} runs on the calling
     * thread. Otherwise it is handed over like a signal. If the handing over fails, {@code last} runs on the calling
     * thread, and may run a second time before the next signal. {@code last} has to be quick.
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
            // the handlers' threads have ended, so this thread runs the remaining signals: they only end the stream,
            // and are quick
            run();
        }
    }

    /**
     * Runs the waiting signals. The executor calls this method once for each time that this object was handed to it. An
     * executor may take this object and throw an exception nevertheless. In that case it may call this method once
     * more.
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
                // The queue is checked once more. A thread that added a signal meanwhile may have seen this object
                // running, and then has not handed it to an executor.
            } while (!signals.isEmpty() && STATE.compareAndSet(this, IDLE, RUNNING));
        } finally {
            if (runs) {
                state = IDLE;
            }
        }
    }

    /**
     * Hands this object to {@code rest}. Returns false if {@code rest} does not take it: the calling thread then has to
     * run the remaining signals.
     */
    private boolean isHandedOn() {
        state = AWAITED;
        try {
            handOver(rest);
            return true;
        } catch (Throwable e) {
            // the executor may have taken this object before it threw the exception, and may already be running it
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
