package dev.rpcx;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Runs the signals of one stream one after the other, in order, wherever a method's handlers run (Reactive Streams,
 * rules 1.3 and 2.7). Any thread may hand signals over. A signal that throws does not keep the next from running. No
 * thread is kept while signals come again and again: after some of them the rest has its turn behind what others want.
 */
final class Serial implements Executor, Runnable {
    private static final int IDLE = 0;

    /** Handed to its place. */
    private static final int AWAITED = 1;

    private static final int RUNNING = 2;

    /** Signals that one stream has run before others have their turn of its place. */
    private static final int AT_ONCE = 128;

    private static final AtomicIntegerFieldUpdater<Serial> STATE =
            AtomicIntegerFieldUpdater.newUpdater(Serial.class, "state");

    private final @Nullable Executor place;

    /** Where the rest runs once a thread has run {@link #AT_ONCE}. */
    private final Executor rest;

    private final Queue<Runnable> signals = new ConcurrentLinkedQueue<>();

    private volatile int state = IDLE;

    Serial(Executor place) {
        this(place, place);
    }

    /**
     * @param place null for whoever gives a signal
     * @param rest where what comes again and again runs after a while
     */
    Serial(@Nullable Executor place, Executor rest) {
        this.place = place;
        this.rest = rest;
    }

    /** What it throws means that the signal has not run: it comes before the next one. */
    @Override
    public void execute(Runnable signal) {
        signals.add(signal);
        if (state != IDLE || !STATE.compareAndSet(this, IDLE, AWAITED)) {
            return;
        }
        try {
            handOver(place);
        } catch (Throwable e) {
            // by a store: where the stack is at its end nothing can be called
            state = IDLE;
            throw e;
        }
    }

    /** Runs this once no signal runs or waits; here, where that is so or nothing else can be done. It has to be quick. */
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

    /** Gives what is awaited to this place. */
    private void handOver(@Nullable Executor to) {
        if (to == null) {
            run();
            return;
        }
        try {
            to.execute(this);
        } catch (RejectedExecutionException stopped) {
            // the handlers' threads have ended: what is left only ends the stream, and is quick
            run();
        }
    }

    /**
     * Once for each time that it was handed to its place, and at most once more: by a place that took it and threw all
     * the same.
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
                // once more: who added meanwhile may have seen it run
            } while (!signals.isEmpty() && STATE.compareAndSet(this, IDLE, RUNNING));
        } finally {
            if (runs) {
                state = IDLE;
            }
        }
    }

    /** @return false if the place takes it no more, so that the rest is run here */
    private boolean isHandedOn() {
        state = AWAITED;
        try {
            handOver(rest);
            return true;
        } catch (Throwable e) {
            // whoever took it and threw all the same may run it already
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
