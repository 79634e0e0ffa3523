package dev.parley.service;

import dev.parley.spi.CallLog;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;

/**
 * A neighbour whose calls are timed on this service's clock. Calls that fail are counted and not timed: a refused
 * connection is fast, and would make a hop look better than it is.
 */
final class TimedNeighbour implements Neighbour {
    /** Three digits, as every histogram of the workbench. */
    private static final int DIGITS = 3;

    private final Neighbour neighbour;
    /**
     * All calls since the process began, for the metrics; {@link #current}'s part is added when it is read. Guarded by
     * this.
     */
    private final Histogram total = new Histogram(DIGITS);
    /** Calls since the last reset. Guarded by this. */
    private final Histogram sinceReset = new Histogram(DIGITS);

    private final LongAdder failures = new LongAdder();
    private final String peer;
    private final Optional<CallLog> log;
    /** One reference, so that a call is counted and written down in the same window. */
    private volatile Window current = new Window("", new Recorder(DIGITS));

    /** @param name what the lab calls the window under way; empty outside of any */
    private record Window(String name, Recorder recorder) {}

    /** @param log where each call is written down, if anywhere */
    TimedNeighbour(String peer, Neighbour neighbour, Optional<CallLog> log) {
        this.peer = peer;
        this.neighbour = neighbour;
        this.log = log;
    }

    private void ended(Operation<?, ?> operation, long tookNs, boolean isAnswered) {
        Window window = current;
        if (isAnswered) {
            window.recorder().recordValue(tookNs);
        } else {
            failures.increment();
        }
        if (log.isPresent()) {
            log.get().called(peer, operation.name(), tookNs, isAnswered, window.name());
        }
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        long begin = System.nanoTime();
        try {
            R reply = neighbour.call(operation, request, timeout);
            ended(operation, System.nanoTime() - begin, true);
            return reply;
        } catch (RuntimeException e) {
            ended(operation, System.nanoTime() - begin, false);
            throw e;
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        long begin = System.nanoTime();
        return neighbour
                .send(operation, request, timeout)
                .whenComplete((reply, failure) -> ended(operation, System.nanoTime() - begin, failure == null));
    }

    /** Calls since the last {@link #reset}. The window that began with it ends. */
    synchronized Histogram sinceReset() {
        begin("");
        return sinceReset.copy();
    }

    synchronized Histogram total() {
        add(current);
        return total.copy();
    }

    long failures() {
        return failures.sum();
    }

    /** @param begun name of the window that begins now */
    synchronized void reset(String begun) {
        begin(begun);
        sinceReset.reset();
    }

    private void begin(String name) {
        Window over = current;
        current = new Window(name, new Recorder(DIGITS));
        add(over);
    }

    private void add(Window window) {
        Histogram interval = window.recorder().getIntervalHistogram();
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
