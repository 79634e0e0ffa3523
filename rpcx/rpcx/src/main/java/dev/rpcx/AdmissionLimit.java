package dev.rpcx;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * How many handlers of one method run at once. By Little's law those that run, divided by those that end in a second, is the time a call
 * takes; so the limit is the rate at which calls end, times the time that a call may take. It may take what the handler itself needs and
 * half of what its caller's time leaves beyond: so what is taken is finished in time, whatever the work behind it can do, and the rest is
 * refused at once, which costs next to nothing. Nothing has to be late first, so nothing has to be found again by trial every few moments.
 *
 * <p>What a handler itself needs is the share of its callers' time that it took when it did not have to wait. While calls are refused there
 * is no such moment: but whenever the limit has sunk to half, and now and then it is halved for that, it can be seen. Where as many calls
 * end as before, they had been waiting for each other; where fewer end, the time is the handlers' own, and the limit comes back.
 *
 * <p>One method each, because methods wait for different things: one that is overloaded takes no place from the others. Handlers on the
 * event loop need no limit: there is one a loop.
 *
 * <p>Sources: Little, 1961, for the law; Cardwell and others, <i>BBR: Congestion-Based Congestion Control</i>, 2016, for a limit from rate
 * times time and for the look at what is left when it is lowered.
 */
final class AdmissionLimit {
    static final int LEAST = 4;

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Fewer calls than this say nothing. */
    private static final int LEAST_COUNT = 8;

    /** What handlers need is the least that was seen in so long, and in as long before. */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Steps in which calls were refused, until the limit is halved for a moment to see what that changes. */
    private static final int PROBE_STEPS = 64;

    /** As many end as before if it is at least this part of them: a rate counted over one step has some noise. */
    private static final double SAME_RATE = 0.8;

    /** Above this, what a handler needs leaves no room for a limit to help. */
    private static final double MOST_OWN = 0.95;

    /** Of {@link #ended}: the upper bits count calls, the lower sum up what part of their time they took, in units of 1/1024, at most 2. */
    private static final int ENDED_SHIFT = 40;

    private static final double SHARE_UNIT = 1024;
    private static final double MOST_SHARE = 2;

    /** Of {@link #inTime}: the upper bits count calls, the lower sum up their time, in units of 2^16 ns, at most a minute each. */
    private static final int IN_TIME_SHIFT = 42;

    private static final int TIME_UNIT_SHIFT = 16;
    private static final long MOST_TIME_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final int most;

    /** Of all methods of the server. */
    private final AtomicInteger all;

    private final AtomicInteger running = new AtomicInteger();
    private volatile int limit;

    // since the last step
    private final AtomicLong ended = new AtomicLong();
    private final AtomicLong inTime = new AtomicLong();
    private volatile boolean refused;
    private volatile boolean gap;

    private volatile long nextStepNanos;

    /** Held for a step, by whoever finds that it is due; guards what follows. */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private long windowBeganNanos;

    /** The part of their time that handlers need for themselves: the least of what was seen lately. */
    private double own = MOST_OWN;

    private double leastNow = MOST_OWN;
    private double leastBefore = MOST_OWN;
    private long memoryEndNanos;

    /** The time that each call was given which ended in time lately. */
    private double givenNanos;

    private long cutNanos;
    private int refusingSteps;

    /** What the limit was when it began to sink, and how many ended; 0 where it does not sink. */
    private double sinkingFrom;

    private double sinkingRate;

    private boolean isProbe;
    private long probeEndNanos;

    /**
     * @param most handlers of all methods at once; from {@link #LEAST}
     * @param all how many run, shared by the methods of one server
     */
    AdmissionLimit(int most, AtomicInteger all, long nowNanos) {
        this.most = most;
        this.all = all;
        this.limit = most;
        this.windowBeganNanos = nowNanos;
        this.nextStepNanos = nowNanos + STEP_NANOS;
        this.memoryEndNanos = nowNanos + MEMORY_NANOS;
        this.cutNanos = nowNanos;
    }

    /** @return false if the call has to be refused */
    boolean enter() {
        if (running.incrementAndGet() > limit) {
            running.decrementAndGet();
            if (!refused) {
                refused = true;
            }
            return false;
        }
        if (all.incrementAndGet() > most) {
            all.decrementAndGet();
            running.decrementAndGet();
            return false;
        }
        return true;
    }

    /** Each that has entered leaves once. */
    void leave(long beganNanos, long deadlineNanos, long nowNanos) {
        all.decrementAndGet();
        if (running.getAndDecrement() == 1) {
            // it was alone: no wait to learn from, and what follows may be idle time
            if (!gap) {
                gap = true;
            }
            return;
        }
        long given = Math.max(1, deadlineNanos - beganNanos);
        double share = Math.max(0, nowNanos - beganNanos) / (double) given;
        if (share < 1) {
            inTime.addAndGet(1L << IN_TIME_SHIFT | Math.min(MOST_TIME_NANOS, given) >>> TIME_UNIT_SHIFT);
        }
        long sum = ended.addAndGet(1L << ENDED_SHIFT | (long) (SHARE_UNIT * Math.min(MOST_SHARE, share)));
        if (nowNanos - nextStepNanos >= 0
                && sum >>> ENDED_SHIFT >= LEAST_COUNT
                && stepping.compareAndSet(false, true)) {
            try {
                step(nowNanos);
            } finally {
                stepping.set(false);
            }
        }
    }

    private void step(long now) {
        if (now - nextStepNanos < 0) {
            return;
        }
        long sum = ended.getAndSet(0);
        long good = inTime.getAndSet(0);
        boolean refusing = refused;
        refused = false;
        boolean idle = gap;
        gap = false;
        double elapsed = now - windowBeganNanos;
        windowBeganNanos = now;
        nextStepNanos = now + STEP_NANOS;
        long count = sum >>> ENDED_SHIFT;
        if (count == 0 || idle && elapsed > 2 * STEP_NANOS) {
            // a rate over time in which there was nothing to do would say too little
            return;
        }
        double used = Math.max(1 / SHARE_UNIT, (sum & (1L << ENDED_SHIFT) - 1) / SHARE_UNIT / count);
        long goodCount = good >>> IN_TIME_SHIFT;
        if (2 * goodCount < count) {
            cut(now, used);
            return;
        }
        givenNanos = (good & (1L << IN_TIME_SHIFT) - 1) * (double) (1L << TIME_UNIT_SHIFT) / goodCount;
        // what a change has changed is not seen before calls have ended that came after it
        nextStepNanos = now + Math.max(STEP_NANOS, (long) (used * givenNanos));
        double current = count / elapsed;
        if (isProbe) {
            if (now - probeEndNanos >= 0) {
                sank(current, used);
            }
            return;
        }
        learn(now, refusing, used);
        int before = limit;
        adapt(refusing, used, current * givenNanos);
        if (limit == most) {
            refusingSteps = 0;
            sinkingFrom = 0;
            return;
        }
        if (sinkingFrom == 0 || limit > sinkingFrom) {
            sinkingFrom = Math.min(before, current * used * givenNanos);
            sinkingRate = current;
        }
        if (limit <= sinkingFrom / 2) {
            sank(current, used);
        } else if (refusing && ++refusingSteps % PROBE_STEPS == 0 && limit >= 2 * LEAST) {
            sinkingFrom = limit;
            sinkingRate = current;
            isProbe = true;
            limit /= 2;
            probeEndNanos = now + (long) (used * givenNanos) + STEP_NANOS;
        }
    }

    /** Most end too late. The limit is halved, and then left alone until calls have ended that have come since. */
    private void cut(long now, double used) {
        if (now - cutNanos >= used * givenNanos) {
            cutNanos = now;
            double from = isProbe ? sinkingFrom : limit;
            isProbe = false;
            sinkingFrom = 0;
            limit = (int) Math.max(LEAST, Math.min(from, running.get()) / 2);
        }
    }

    /** The limit is half of what it was. If about as many calls end as before, then those that are missing had only waited. */
    private void sank(double current, double used) {
        if (current < SAME_RATE * sinkingRate) {
            remember(Math.min(MOST_OWN, used));
            limit = (int) Math.max(LEAST, Math.min(most, sinkingFrom));
        } else if (isProbe) {
            remember(Math.min(own, used));
            limit = (int) sinkingFrom;
        }
        isProbe = false;
        sinkingFrom = 0;
    }

    private void remember(double least) {
        own = least;
        leastNow = least;
        leastBefore = least;
    }

    private void learn(long now, boolean refusing, double used) {
        if (used < own || refusing && limit == LEAST) {
            // at the least limit, what is seen is as near to what they need as can be
            remember(Math.min(MOST_OWN, used));
        } else if (!refusing) {
            leastNow = Math.min(leastNow, used);
            if (now - memoryEndNanos >= 0) {
                memoryEndNanos = now + MEMORY_NANOS;
                leastBefore = leastNow;
                leastNow = MOST_OWN;
            }
            own = Math.min(leastBefore, leastNow);
        }
    }

    /**
     * @param used the mean part of its caller's time that a call took
     * @param inTheirTime how many calls end in time in the time that one is given
     */
    private void adapt(boolean refusing, double used, double inTheirTime) {
        double target = (1 + own) / 2;
        // hardly any wait; more than that may still be on its way, for as long as a call takes
        boolean isCalm = used < own + (target - own) / 4;
        int now = limit;
        // without a refusal it is not known that calls wait for each other: then only what endangers them counts
        if (refusing || used > (now < most ? target : (1 + target) / 2)) {
            double goal = inTheirTime * target;
            if (isCalm) {
                goal = Math.max(goal, now * 1.1 + 1);
            }
            // at once where there was none: what has come by now is more than enough
            double from = now == most && !isCalm ? Math.min(now, goal) : now;
            double next = (from + goal) / 2;
            limit = (int) Math.max(LEAST, Math.min(most, goal > from ? Math.ceil(next) : next));
        } else if (isCalm && now < most) {
            limit = Math.min(most, now + Math.max(1, now / 10));
        }
    }

    int limit() {
        return limit;
    }

    int running() {
        return running.get();
    }
}
