package dev.rpcx;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Runs the signals of one stream one after the other, in order, wherever a method's handlers run (Reactive Streams, rules 1.3 and 2.7). Any
 * thread may hand signals over. A signal that throws does not keep the next from running.
 */
final class Serial implements Executor, Runnable {
    private final Executor place;
    private final Queue<Runnable> signals = new ConcurrentLinkedQueue<>();
    private final AtomicInteger waiting = new AtomicInteger();

    /** @param place {@code Runnable::run} for whoever gives a signal */
    Serial(Executor place) {
        this.place = place;
    }

    @Override
    public void execute(Runnable signal) {
        signals.add(signal);
        if (waiting.getAndIncrement() > 0) {
            return;
        }
        try {
            place.execute(this);
        } catch (RejectedExecutionException stopped) {
            // the handlers' threads have ended: what is left only ends the stream, and is quick
            run();
        }
    }

    @Override
    public void run() {
        do {
            Runnable signal = signals.poll();
            try {
                if (signal != null) {
                    signal.run();
                }
            } catch (Throwable t) {
                Threads.report(t);
            }
        } while (waiting.decrementAndGet() > 0);
    }
}
