package dev.parley.load;

import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;
import org.jspecify.annotations.Nullable;

/**
 * What became of the requests of one phase: each is recorded exactly once, by whichever thread learns of its end. Writers never wait; a
 * reader takes intervals without stopping them.
 */
final class Outcomes {
    /** Relative error 0.1 %; nanoseconds; grows as needed, so that nothing is clamped. */
    static final int DIGITS = 3;

    private final long limitNs;
    private final Recorder response = new Recorder(DIGITS);
    private final Recorder service = new Recorder(DIGITS);
    private final Recorder sendDelay = new Recorder(DIGITS);
    private final Recorder error = new Recorder(DIGITS);
    private final LongAdder late = new LongAdder();
    private final LongAdder wrong = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final LongAdder notSent = new LongAdder();
    private final AtomicReference<@Nullable Throwable> firstFailure = new AtomicReference<>();

    Outcomes(long limitNs) {
        this.limitNs = limitNs;
    }

    /** An answer came, right or wrong. {@code dueNs} equals {@code sentNs} in closed loads. */
    void answered(boolean isRight, long dueNs, long sentNs, long nowNs) {
        long responseNs = Math.max(0, nowNs - dueNs);
        if (!isRight) {
            wrong.increment();
            error.recordValue(responseNs);
        } else if (responseNs > limitNs) {
            late.increment();
            error.recordValue(responseNs);
        } else {
            response.recordValue(responseNs);
            service.recordValue(Math.max(0, nowNs - sentNs));
        }
    }

    /** No answer will come. */
    void failed(Throwable cause, long dueNs, long nowNs) {
        failed.increment();
        error.recordValue(Math.max(0, nowNs - dueNs));
        firstFailure.compareAndSet(null, cause);
    }

    void notSent() {
        notSent.increment();
    }

    void sent(long dueNs, long sentNs) {
        sendDelay.recordValue(Math.max(0, sentNs - dueNs));
    }

    /** All so far, as plain counts. */
    record Counts(long late, long wrong, long failed, long notSent) {
        long sum() {
            return late + wrong + failed + notSent;
        }

        Counts since(Counts earlier) {
            return new Counts(
                    late - earlier.late, wrong - earlier.wrong, failed - earlier.failed, notSent - earlier.notSent);
        }
    }

    Counts counts() {
        return new Counts(late.sum(), wrong.sum(), failed.sum(), notSent.sum());
    }

    /** Response times recorded since this was last called. One reader. */
    Histogram responseInterval(@Nullable Histogram recycled) {
        return response.getIntervalHistogram(recycled);
    }

    Histogram serviceTimes() {
        return service.getIntervalHistogram();
    }

    Histogram sendDelays() {
        return sendDelay.getIntervalHistogram();
    }

    Histogram errorTimes() {
        return error.getIntervalHistogram();
    }

    String firstFailure() {
        Throwable failure = firstFailure.get();
        return failure == null ? "" : String.valueOf(failure);
    }
}
