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
 * Runs the signals of one stream in order, one at a time, as Reactive Streams requires (rules 1.3 and 2.7). If a signal
 * throws an exception, the next signal runs nevertheless. After {@link #MAX_SIGNALS_AT_ONCE} (128) signals in a row,
 * other work can run, so that a busy stream does not keep a thread. Thread-safe.
 */
public final class SerialExecutor implements Executor, Runnable {
    private static final int IDLE = 0;

    /** State while this object waits for a thread of an executor. */
    private static final int AWAITED = 1;

    private static final int RUNNING = 2;

    /** Maximum number of signals that a thread runs before other work of the executor can run. */
    private static final int MAX_SIGNALS_AT_ONCE = 128;

    private static final AtomicIntegerFieldUpdater<SerialExecutor> STATE =
            AtomicIntegerFieldUpdater.newUpdater(SerialExecutor.class, "state");

    private final @Nullable Executor executor;

    /**
     * Executor that runs the remaining signals after one thread has run {@link #MAX_SIGNALS_AT_ONCE} (128) signals in a
     * row.
     */
    private final Executor rest;

    /**
     * The signals that have not run. Any thread adds signals, and the thread that has set the state to RUNNING takes
     * them.
     */
    private final Queue<Runnable> signals = new ConcurrentLinkedQueue<>();

    /**
     * One of the states above. Two kinds of changes are made by compare-and-set:
     *
     * <ul>
     *   <li>A change from IDLE. Any thread can make it.
     *   <li>A change to RUNNING. The thread that will run the signals makes it.
     * </ul>
     *
     * <p>A thread goes on only if its compare-and-set succeeds. So one thread at a time runs signals. The thread that
     * has run the signals stores IDLE before it looks for further signals. {@link #execute} adds a signal before it
     * reads the state. In another order, a signal could stay in the queue, with no thread to run it. Tested by
     * {@code SerialRace}.
     */
    private volatile int state = IDLE;

    public SerialExecutor(Executor executor) {
        this(executor, executor);
    }

    /**
     * Creates an executor for the signals of one stream.
     *
     * @param executor runs the signals; null if the signals run on the threads that call {@link #execute}
     * @param rest runs the remaining signals after one thread has run {@link #MAX_SIGNALS_AT_ONCE} (128) signals in a
     *     row
     */
    public SerialExecutor(@Nullable Executor executor, Executor rest) {
        this.executor = executor;
        this.rest = rest;
    }

    /**
     * Runs a signal after all earlier signals. If this method throws an exception, the signal has usually not run. A
     * signal that has not run can still be in the queue. When the next signal is passed to this method, the signal in
     * the queue runs first.
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
            // the field is assigned directly, because no method can be called when the stack is exhausted
            state = IDLE;
            throw e;
        }
    }

    /**
     * Runs {@code last} after all signals that are running or waiting. If there are none, or if the executor throws an
     * exception, {@code last} runs on the calling thread, so {@code last} has to be quick. After such an exception,
     * {@code last} can still be in the queue, and then runs a second time before the next signal.
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

    /** Runs this object on the executor {@code to}, or on the calling thread if {@code to} is null or has ended. */
    private void handOver(@Nullable Executor to) {
        if (to == null) {
            run();
            return;
        }
        try {
            to.execute(this);
        } catch (RejectedExecutionException stopped) {
            // The executor has ended, for example a client's event loop. The signals that still wait run on this thread
            // instead: they only end the stream and are quick.
            run();
        }
    }

    /**
     * Runs the signals that are waiting. An executor calls this method once for each time that it has accepted this
     * object. An executor that threw an exception can call this method too.
     */
    @Override
    public void run() {
        if (!STATE.compareAndSet(this, AWAITED, RUNNING)) {
            return;
        }
        boolean runs = true;
        try {
            int left = MAX_SIGNALS_AT_ONCE;
            do {
                runs = true;
                for (Runnable signal = signals.poll(); signal != null; signal = signals.poll()) {
                    run(signal);
                    if (--left <= 0 && !signals.isEmpty()) {
                        if (isHandedOn()) {
                            runs = false;
                            return;
                        }
                        left = MAX_SIGNALS_AT_ONCE;
                    }
                }
                runs = false;
                state = IDLE;
                // Another thread can have added a signal while the state was RUNNING. In that state, execute() only
                // adds the signal, so this thread has to run it.
            } while (!signals.isEmpty() && STATE.compareAndSet(this, IDLE, RUNNING));
        } finally {
            if (runs) {
                state = IDLE;
            }
        }
    }

    /**
     * Hands the remaining signals over to the executor {@link #rest}. Returns false if the executor has not taken them,
     * so that the calling thread has to run them.
     */
    private boolean isHandedOn() {
        state = AWAITED;
        try {
            handOver(rest);
            return true;
        } catch (Throwable e) {
            // before throwing, the executor can have accepted this object, and a thread can be running it
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
