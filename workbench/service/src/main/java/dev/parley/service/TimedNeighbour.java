package dev.parley.service;

import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;

/**
 * A neighbour whose calls are timed on this service's clock. Calls that fail are counted and not timed: a refused connection is fast, and
 * would make a hop look better than it is.
 */
final class TimedNeighbour implements Neighbour {
    /** Three digits, as every histogram of the workbench. */
    private static final int DIGITS = 3;

    private final Neighbour neighbour;
    private final Recorder recorder = new Recorder(DIGITS);
    /** All calls since the process began, for the metrics; {@link #recorder}'s part is added when it is read. Guarded by this. */
    private final Histogram total = new Histogram(DIGITS);
    /** Calls since the last reset. Guarded by this. */
    private final Histogram sinceReset = new Histogram(DIGITS);

    private final LongAdder failures = new LongAdder();

    TimedNeighbour(Neighbour neighbour) {
        this.neighbour = neighbour;
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        long begin = System.nanoTime();
        try {
            R reply = neighbour.call(operation, request, timeout);
            recorder.recordValue(System.nanoTime() - begin);
            return reply;
        } catch (RuntimeException e) {
            failures.increment();
            throw e;
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        long begin = System.nanoTime();
        return neighbour.send(operation, request, timeout).whenComplete((reply, failure) -> {
            if (failure == null) {
                recorder.recordValue(System.nanoTime() - begin);
            } else {
                failures.increment();
            }
        });
    }

    /** Calls since the last {@link #reset}. */
    synchronized Histogram sinceReset() {
        drain();
        return sinceReset.copy();
    }

    synchronized Histogram total() {
        drain();
        return total.copy();
    }

    long failures() {
        return failures.sum();
    }

    synchronized void reset() {
        drain();
        sinceReset.reset();
    }

    private void drain() {
        Histogram interval = recorder.getIntervalHistogram();
        total.add(interval);
        sinceReset.add(interval);
    }

    @Override
    public long payloadBytes(Record message) {
        return neighbour.payloadBytes(message);
    }

    @Override
    public void close() {
        neighbour.close();
    }
}
