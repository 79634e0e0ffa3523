package dev.parley.load;

import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;
import org.jspecify.annotations.Nullable;

/**
 * What became of the requests of one phase: each is recorded exactly once, by whichever thread learns of its end. Writers never wait and
 * never allocate; one reader takes intervals without stopping them.
 */
final class Outcomes {
    /** Relative error 0.1 %; nanoseconds; grows as needed, so that nothing is clamped. */
    static final int DIGITS = 3;

    /** Recorders of right replies: one a worker for so many workers; more share, and a recorder takes any number of writers. */
    private static final int SHEETS = 16;

    private final long limitNs;
    private final AtomicReferenceArray<@Nullable Sheet> sheets = new AtomicReferenceArray<>(SHEETS);
    private final Recorder sendDelay = new Recorder(DIGITS);
    private final Recorder error = new Recorder(DIGITS);
    private final Recorder scenario = new Recorder(DIGITS);
    private final LongAdder due = new LongAdder();
    private final LongAdder late = new LongAdder();
    private final LongAdder wrong = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final LongAdder notSent = new LongAdder();
    private final LongAdder twice = new LongAdder();
    /** Moments left less moments entered; wraps, as differences of moments may. */
    private final LongAdder inSystemNs = new LongAdder();

    private final LongAdder inSystem = new LongAdder();
    private final AtomicReference<@Nullable Throwable> firstFailure = new AtomicReference<>();
    private final Histogram service = new Histogram(DIGITS);
    /** Right replies within the limit of which the reader knows. Reader only. */
    private long taken;

    private static final class Sheet {
        private final Recorder response = new Recorder(DIGITS);
        private final Recorder service = new Recorder(DIGITS);
        private @Nullable Histogram responses;
        private @Nullable Histogram services;
    }

    Outcomes(long limitNs) {
        this.limitNs = limitNs;
    }

    /** A request falls due: exactly one of the other methods is called for it later. */
    void due(long requests) {
        due.add(requests);
    }

    /** A request is in the system from now on: from the moment it was due, for an open load. */
    void entered(long dueNs) {
        inSystem.increment();
        inSystemNs.add(-dueNs);
    }

    /** A request is in the system no longer, however it ended. */
    void left(long nowNs) {
        inSystem.decrement();
        inSystemNs.add(nowNs);
    }

    /** An answer came, right or wrong. {@code dueNs} equals {@code sentNs} in closed loads. */
    void answered(int worker, boolean isRight, long dueNs, long sentNs, long nowNs) {
        long responseNs = Math.max(0, nowNs - dueNs);
        if (!isRight) {
            wrong.increment();
            error.recordValue(responseNs);
        } else if (responseNs > limitNs) {
            late.increment();
            error.recordValue(responseNs);
        } else {
            Sheet sheet = sheet(worker & SHEETS - 1);
            sheet.response.recordValue(responseNs);
            sheet.service.recordValue(Math.max(0, nowNs - sentNs));
        }
    }

    private Sheet sheet(int index) {
        Sheet sheet = sheets.get(index);
        if (sheet == null) {
            Sheet fresh = new Sheet();
            Sheet other = sheets.compareAndExchange(index, null, fresh);
            sheet = other == null ? fresh : other;
        }
        return sheet;
    }

    /** No answer will come. */
    void failed(Throwable cause, long dueNs, long nowNs) {
        failed.increment();
        error.recordValue(Math.max(0, nowNs - dueNs));
        firstFailure.compareAndSet(null, cause);
    }

    void notSent(long requests) {
        notSent.add(requests);
    }

    /** The same request's end was told again: no outcome, since it has one, but not to be passed over. */
    void toldTwice() {
        twice.increment();
    }

    void sent(long dueNs, long sentNs) {
        sendDelay.recordValue(Math.max(0, sentNs - dueNs));
    }

    /** A user's scenario is done, all of its iterations. */
    void scenario(long tookNs) {
        scenario.recordValue(Math.max(0, tookNs));
    }

    /** All so far, as plain counts. Replies within the limit are counted by their histogram. */
    record Counts(long late, long wrong, long failed, long notSent) {
        static final Counts NONE = new Counts(0, 0, 0, 0);

        long sum() {
            return late + wrong + failed + notSent;
        }

        Counts since(Counts earlier) {
            return new Counts(
                    late - earlier.late, wrong - earlier.wrong, failed - earlier.failed, notSent - earlier.notSent);
        }

        Counts plus(Counts other) {
            return new Counts(late + other.late, wrong + other.wrong, failed + other.failed, notSent + other.notSent);
        }
    }

    Counts counts() {
        return new Counts(late.sum(), wrong.sum(), failed.sum(), notSent.sum());
    }

    /** Requests that went out; once all that were due have been sent or given up. */
    long sent() {
        return due.sum() - notSent.sum();
    }

    /** Replies of every kind, those that were taken before and those that are new. Takes them, so it is the reader's. */
    long answered() {
        takeResponses(new Histogram(DIGITS));
        return taken + late.sum() + wrong.sum();
    }

    long due() {
        return due.sum();
    }

    /** The number of requests in the system, integrated over time: what rate × mean time must come to. Once all have left. */
    long inSystemNs() {
        return inSystemNs.sum();
    }

    /** What entered and never left has failed: those few share the mean of the moments at which they entered. */
    void closeInSystem(Throwable cause, long nowNs) {
        long stuck = inSystem.sum();
        if (stuck > 0) {
            long meanNs = (inSystemNs.sum() + stuck * nowNs) / stuck;
            for (long i = 0; i < stuck; i++) {
                left(nowNs);
                failed(cause, nowNs - meanNs, nowNs);
            }
        }
    }

    long twice() {
        return twice.sum();
    }

    /** Adds the response times recorded since this was last called. One reader. */
    void takeResponses(Histogram into) {
        for (int i = 0; i < SHEETS; i++) {
            Sheet sheet = sheets.get(i);
            if (sheet != null) {
                Histogram interval = sheet.response.getIntervalHistogram(sheet.responses);
                into.add(interval);
                taken += interval.getTotalCount();
                sheet.responses = interval;
            }
        }
    }

    Histogram serviceTimes() {
        for (int i = 0; i < SHEETS; i++) {
            Sheet sheet = sheets.get(i);
            if (sheet != null) {
                Histogram interval = sheet.service.getIntervalHistogram(sheet.services);
                service.add(interval);
                sheet.services = interval;
            }
        }
        return service;
    }

    /** Once. */
    Histogram sendDelays() {
        return sendDelay.getIntervalHistogram();
    }

    /** Once. */
    Histogram errorTimes() {
        return error.getIntervalHistogram();
    }

    /** Once. */
    Histogram scenarioTimes() {
        return scenario.getIntervalHistogram();
    }

    String firstFailure() {
        Throwable failure = firstFailure.get();
        return failure == null ? "" : String.valueOf(failure);
    }
}
