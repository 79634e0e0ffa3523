package dev.rpcx;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * How many handlers of one method run at once. By Little's law those that run, divided by those that end in a second,
 * is the time a call takes; so the limit is the rate at which calls end, times the time that a call may take. It may
 * take what the handler itself needs and half of what its caller's time leaves beyond: so what is taken is finished in
 * time, whatever the work behind it can do, and the rest is refused at once, which costs next to nothing. Once some
 * have been late, none has to be again: nothing is found by trial every few moments.
 *
 * <p>What a handler itself needs is the share of its callers' time that it took when it did not have to wait. While calls are refused there
 * is no such moment: but whenever the limit has sunk to half, and now and then it is halved for that, it can be seen. Where as many calls
 * end as before, they had been waiting for each other; where fewer end, the time is the handlers' own, and the limit comes back.
 *
 * <p>Where most calls get no thread in nearly all of their time, or end too late, the limit is halved, as others do at a drop. Whether that was
 * right is looked at as well: where far fewer bring a result under half of the limit, those that were late had not waited for others, and the
 * limit comes back. Where hardly any call ends, those that are refused see to that.
 *
 * <p>Callers decide how much time they give, so none of it may steer the limit for the others. Calls that failed or were cancelled in good
 * time, begun or not, or that were given less than calls take which do not wait, say nothing. Nobody is given more than the usual time,
 * which a twentieth of the calls have at most. Where calls take no longer than ever, no limit is lowered, however many are late.
 *
 * <p>One method each, because methods wait for different things: one that is overloaded takes no place from the others. Handlers on the
 * event loop need no limit: there is one a loop.
 *
 * <p>Sources: Little, 1961, for the law; Cardwell and others, <i>BBR: Congestion-Based Congestion Control</i>, 2016, for a limit from rate
 * times time and for the look at what is left when it is lowered; Netflix, <i>concurrency-limits</i>, {@code Listener.onDropped}, for what a
 * call says that timed out in a queue.
 */
final class AdmissionLimit {
    static final int LEAST = 4;

    /** So many calls of a step are all looked at; of those behind them one in {@link #SAMPLED} says enough. */
    private static final int ALL_COUNT = 256;

    private static final int SAMPLED = 16;

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Fewer calls than this say nothing. */
    private static final int LEAST_COUNT = 8;

    /** What handlers need is the least that was seen in so long, and in as long before. */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Steps in which calls were refused, until the limit is halved for a moment to see what that changes. */
    private static final int PROBE_STEPS = 64;

    /** As many end as before if it is at least this part of them: a rate counted over one step has some noise. */
    private static final double SAME_RATE = 0.8;

    /** Where only this part of them ends under a limit that has been halved, it keeps others out and changes nothing else. */
    private static final double STOPPED_RATE = 0.3;

    /** As fewer calls than {@link #LEAST_COUNT} end, it is known that they are fewer where so many were to be expected. */
    private static final int ENOUGH_EXPECTED = 2 * LEAST_COUNT;

    /** A step has been due for so long, and too few calls have ended for it: then those that are refused look. */
    private static final long OVERDUE_NANOS = 2 * STEP_NANOS;

    /** Where fewer than one in so many are late, there is no need of a limit, however much of their time calls take. */
    private static final int SOME_LATE = 64;

    /**
     * Not half as many calls as run have ended for so long, and for some times what calls take: then a limit shuts
     * others out, and helps nobody.
     */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** However long calls take: callers choose that. */
    private static final long MOST_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Above this, what a handler needs leaves no room for a limit to help, where some are late. */
    private static final double MOST_OWN = 0.95;

    /**
     * Where calls take no more than this of their time, and none is late, a trial of a lower limit is over: none waits.
     */
    private static final double FAR_FROM_LATE = 0.25;

    /** Of {@link #ended}: the upper bits count calls, the lower sum up how long they took, in units of 2^16 ns, at most a minute each. */
    private static final int COUNT_SHIFT = 40;

    private static final int TIME_UNIT_SHIFT = TakenTimes.UNIT_SHIFT;

    /** Of {@link #shares}: the upper bits count those that were late, the lower sum up what part of their time calls took, at most 2. */
    private static final int LATE_SHIFT = 40;

    private static final double SHARE_UNIT = 1024;
    private static final double MOST_SHARE = 2;

    /** Calls that are given less say nothing: any pause of the process makes them late. */
    private static final long MIN_GIVEN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MAX_GIVEN_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** The usual time is what a twentieth of calls are given at most: a limit for the hasty serves the patient too. */
    private static final int USUAL_PART = 20;

    /**
     * Unless most of the time is given in shorter pieces, the usual time is no less than so many times what calls take that
     * do not wait, in the mean, or those of them that have half of all handlers' time: a limit for callers who give
     * hardly as much as the handler needs would leave it idle while others have time. How long single calls of one
     * method take differs by about as much.
     */
    private static final double ROOMY = 4;

    /** In one step the usual time rises no more than so much: a few calls with much time may come together. It sinks at once. */
    private static final double MAX_RISE = 1.25;

    /** A call that brought no result was late if it took this part of its time: its caller's clock and this one differ a little. */
    private static final double NEARLY_ALL = 0.9;

    /** So many calls decide at once what calls take, fewer by their part. */
    private static final double SMOOTHED = 64;

    /** For so long after a limit has come back it is not halved. */
    private static final long HOLD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Calls that take at most this much longer than the least that was seen lately have not waited. */
    private static final double UNHINDERED = 1.25;

    /** A call that is given this part of the usual time counts in any case. */
    private static final double NEARLY_USUAL = 0.75;

    /** For so many steps after another connection was there, each has its share of the limit only. */
    private static final int SHARED_STEPS = 10;

    private final int most;

    /** Whether how long calls take says something; see {@link LongPoll}. */
    private final boolean isLearning;

    /** Of all methods of the server. */
    private final AtomicInteger all;

    private final AtomicInteger running = new AtomicInteger();

    /** Connections that run handlers of this method. */
    private final AtomicInteger holders = new AtomicInteger();

    private volatile int limit;

    // since the last step
    private final AtomicLong ended = new AtomicLong();
    private final AtomicLong shares = new AtomicLong();

    /** As {@link #ended}, of calls that waited for a thread for nearly all of their time and did not begin. */
    private final AtomicLong unbegun = new AtomicLong();

    /**
     * Those of {@link #ended} that brought no result in time. The lower bits sum up what they were given.
     */
    private final AtomicLong undone = new AtomicLong();

    /** As {@link #ended}, by how long they took. */
    private final TakenTimes taken = new TakenTimes(MAX_GIVEN_NANOS);

    private final GivenTimes given = new GivenTimes(MIN_GIVEN_NANOS, MAX_GIVEN_NANOS);
    private volatile boolean refused;
    private volatile boolean gap;

    /** For so many steps a connection has its share of the limit and no more, also while no other runs handlers. */
    private volatile int sharedSteps;

    private volatile long nextStepNanos;

    /** When the limit was raised last because nothing was left to do. */
    private volatile long caughtUpNanos;

    /** Held for a step, by whoever finds that it is due; guards what follows. */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private long windowBeganNanos;

    /** The part of their time that handlers need for themselves: the least of what was seen lately. */
    private double own = MOST_OWN;

    /** What handlers may need of their time: all of it where hardly any is late. */
    private double mostOwn = MOST_OWN;

    private double leastNow = MOST_OWN;
    private double leastBefore = MOST_OWN;
    private long memoryEndNanos;

    /** The same for the least time that calls took, which is also learnt in steps that say nothing of shares. */
    private long timeMemoryEndNanos;

    /** See {@link #USUAL_PART}. Unlimited while it is not known. */
    private volatile long usualNanos = MAX_GIVEN_NANOS;

    /** Calls that are given less are late whatever is done for them. */
    private volatile long minGivenNanos = MIN_GIVEN_NANOS;

    /** What calls take that do not wait: the least mean that was seen lately; see {@link #own}. 0 while it is not known. */
    private double ownNanos;

    /** What calls take, of as many calls as make chance small; or of all {@link #smoothed}, as long as those are fewer. */
    private double smoothNanos;

    private double smoothed;

    private double leastNanosNow = MAX_GIVEN_NANOS;
    private double leastNanosBefore = MAX_GIVEN_NANOS;

    /**
     * The least that was seen lately of what those calls take at least that have half of all handlers' time. However
     * many quick ones come beside them, they do not move it unless they take as much time: they do move a mean of
     * calls.
     */
    private double ownMiddleNanos;

    /** The same as of now; 0 while it is not known. */
    private double middleNanos;

    private double leastMiddleNow = MAX_GIVEN_NANOS;
    private double leastMiddleBefore = MAX_GIVEN_NANOS;

    private long cutNanos;
    private int refusingSteps;

    /** What the limit was when it began to sink, and how many ended; 0 where it does not sink. */
    private double sinkingFrom;

    private double sinkingRate;

    /** How many ended then, with those that brought no result in time: of a limit that was halved because most were late. */
    private double sinkingEnds;

    /** What calls needed that a lower limit did not make quicker, until this is forgotten; see {@link #ownNanos}. */
    private double neededNanos;

    private long neededUntilNanos;

    /**
     * Since when hardly any call has ended, as far as those know that are refused; how many had ended then, and of
     * which step they are.
     */
    private long heldSinceNanos;

    private long heldEnds;
    private long heldWindowNanos = Long.MIN_VALUE;

    private boolean isProbe;

    /** The limit has been halved because most were late, and it is not known yet whether as many end as before. */
    private boolean isCut;

    private long probeEndNanos;

    /**
     * @param most handlers of all methods at once; from {@link #LEAST}
     * @param all how many run, shared by the methods of one server
     */
    AdmissionLimit(int most, AtomicInteger all, long nowNanos) {
        this(most, all, nowNanos, true);
    }

    /** @param isLearning false for a limit that stays what it is */
    AdmissionLimit(int most, AtomicInteger all, long nowNanos, boolean isLearning) {
        this.most = most;
        this.isLearning = isLearning;
        this.all = all;
        this.limit = most;
        this.windowBeganNanos = nowNanos;
        this.nextStepNanos = nowNanos + STEP_NANOS;
        this.memoryEndNanos = nowNanos + MEMORY_NANOS;
        this.timeMemoryEndNanos = nowNanos + MEMORY_NANOS;
        this.cutNanos = nowNanos;
        this.neededUntilNanos = nowNanos;
        this.caughtUpNanos = nowNanos;
    }

    /** As {@link #enter(int, int)}, of a connection that runs nothing else. */
    boolean enter() {
        return enter(0, 0);
    }

    /**
     * A connection may run as many handlers as are still free of all then, and one more: so it comes to half of them, each greedy one more to
     * a part of what is left, and there is always something left for who runs few. The same holds for a method's handlers and its limit: where
     * that has sunk, it is shared by connections and not by requests. But a connection that has the method for itself has all of the limit,
     * until another one is refused. See {@link Ledger} for where that comes from. A connection that is refused over its share says nothing:
     * the limit itself is not used up.
     *
     * <p>A connection that runs less than the limit divided by those that run handlers of this method is not refused
     * for the limit, though others have all of it, so that two to three times as many may run: what others run for
     * long, or the limit that they bring about by that, takes no place from those who run little. Where there are more
     * connections than the limit, there is nothing to divide.
     *
     * @param own handlers that the caller's connection runs already
     * @param ownHere those among them that are of this method; who says 0 and has entered says later when it is 0
     *     again, by {@link #holdsNone}
     * @return false if the call has to be refused
     */
    boolean enter(int own, int ownHere) {
        int most = limit;
        int others = running.getAndIncrement() - ownHere;
        int free = most - ownHere - others;
        int left = sharedSteps;
        if (others > 0 && (left > 0 || free <= 0)) {
            share();
        }
        if (free <= 0 && !refused) {
            refused = true;
        }
        boolean isOver = free <= 0 || ownHere > free && (left > 0 || others > 0);
        if (isOver && (ownHere + 1L) * (holders.get() + (ownHere == 0 ? 1 : 0)) > most) {
            running.decrementAndGet();
            return false;
        }
        int now = all.incrementAndGet();
        if (now > this.most || own > this.most - (now - 1)) {
            all.decrementAndGet();
            running.decrementAndGet();
            return false;
        }
        if (ownHere == 0) {
            holders.incrementAndGet();
        }
        return true;
    }

    /** A connection that has entered runs no handler of this method any more. */
    void holdsNone() {
        holders.decrementAndGet();
    }

    private void share() {
        if (sharedSteps < SHARED_STEPS) {
            sharedSteps = SHARED_STEPS;
        }
    }

    /**
     * A call has been refused. What is decided here is decided when calls end: where those that run do not end, and a
     * limit below their number lets no others in, only this can say that the limit stops what would be done otherwise.
     * It rises then, again and again, as long as those that hold it do not end.
     */
    void refused(long nowNanos) {
        if (nowNanos - nextStepNanos < OVERDUE_NANOS || !stepping.compareAndSet(false, true)) {
            return;
        }
        try {
            if (nowNanos - nextStepNanos < OVERDUE_NANOS) {
                return;
            }
            double elapsed = nowNanos - windowBeganNanos;
            long count = ended.get() >>> COUNT_SHIFT;
            if (sinkingFrom > 0
                    && sinkingRate * elapsed >= ENOUGH_EXPECTED
                    && count < STOPPED_RATE * sinkingRate * elapsed) {
                rememberNeed(nowNanos, elapsed * running.get() / Math.max(1, count));
                // more than now run, since those have the limit for themselves
                sinkingFrom = Math.max(sinkingFrom, 2.0 * running.get());
                comeBack();
            } else if (isHeld(nowNanos, count + (unbegun.get() >>> COUNT_SHIFT))) {
                // whoever holds all there is for so long shows nothing of what can be done for others
                limit = Math.min(most, 2 * Math.max(limit, running.get()));
                isCut = false;
                isProbe = false;
                sinkingFrom = 0;
            } else {
                return;
            }
            windowBeganNanos = nowNanos;
            nextStepNanos = nowNanos + STEP_NANOS;
        } finally {
            stepping.set(false);
        }
    }

    /** Whether calls have been refused for long, and not half as many have ended meanwhile as run. */
    private boolean isHeld(long nowNanos, long ends) {
        if (heldWindowNanos != windowBeganNanos || 2 * (ends - heldEnds) >= running.get()) {
            heldWindowNanos = windowBeganNanos;
            heldEnds = ends;
            heldSinceNanos = nowNanos;
            return false;
        }
        double patience = Math.min(MOST_PATIENCE_NANOS, ROOMY * needNanos(nowNanos));
        return nowNanos - heldSinceNanos >= Math.max(PATIENCE_NANOS, patience);
    }

    /** What a call needs by itself, as far as that is known of late. */
    private double needNanos(long now) {
        return now - neededUntilNanos < 0 ? Math.max(ownNanos, neededNanos) : ownNanos;
    }

    /** A call that has entered leaves, and says nothing. */
    void leave() {
        all.decrementAndGet();
        running.decrementAndGet();
    }

    /**
     * Each that has entered leaves once.
     *
     * @param isDone whether the handler brought a result. One that failed or was cancelled in good time says nothing: callers decide that
     */
    void leave(long beganNanos, long deadlineNanos, long nowNanos, boolean isDone) {
        if (!isLearning) {
            leave();
            return;
        }
        all.decrementAndGet();
        if (running.getAndDecrement() == 1) {
            // it was alone: no wait to learn from, and what follows may be idle time
            if (!gap) {
                gap = true;
            }
            if (limit < most && nowNanos - caughtUpNanos >= STEP_NANOS) {
                caughtUp(beganNanos, nowNanos);
            }
            return;
        }
        long givenNanos = deadlineNanos - beganNanos;
        long took = Math.max(0, nowNanos - beganNanos);
        if (givenNanos <= 0 || !isDone && took < NEARLY_ALL * givenNanos) {
            // a call that was begun as its time ran out had none
            return;
        }
        look(ended, took, givenNanos, nowNanos, isDone);
    }

    /**
     * A call that has entered leaves, and its handler never began. Where it has waited for a thread for nearly all of its time, more is taken
     * than can be done, by this method or by others that have the same threads: that is what a drop is to other limits. It counts as late, and
     * not among those that end, of which the rate says what can be done. A call whose caller gave up before that says nothing.
     */
    void leaveUnbegun(long beganNanos, long deadlineNanos, long nowNanos) {
        if (!isLearning) {
            leave();
            return;
        }
        all.decrementAndGet();
        if (running.getAndDecrement() == 1 && !gap) {
            gap = true;
        }
        long givenNanos = deadlineNanos - beganNanos;
        long waited = nowNanos - beganNanos;
        if (givenNanos >= minGivenNanos && waited >= NEARLY_ALL * givenNanos) {
            look(unbegun, waited, givenNanos, nowNanos, false);
        }
    }

    /** @param counted which of the two counts and sums it belongs to */
    private void look(AtomicLong counted, long took, long givenNanos, long nowNanos, boolean isDone) {
        long units = Math.min(MAX_GIVEN_NANOS, took) >>> TIME_UNIT_SHIFT;
        long sum = counted.addAndGet(1L << COUNT_SHIFT | units);
        long count = sum >>> COUNT_SHIFT;
        if (counted == ended) {
            taken.add(units, sum & (1L << COUNT_SHIFT) - 1);
            if (!isDone || took >= givenNanos) {
                undone.addAndGet(1L << COUNT_SHIFT | Math.min(MAX_GIVEN_NANOS, givenNanos) >>> TIME_UNIT_SHIFT);
            }
        }
        if (givenNanos >= minGivenNanos && (count <= ALL_COUNT || count % SAMPLED == 0)) {
            long held = Math.min(givenNanos, usualNanos);
            double share = took / (double) held;
            boolean isLate = !isDone || took >= givenNanos;
            given.add(Math.min(MAX_GIVEN_NANOS, givenNanos));
            shares.addAndGet((isLate ? 1L << LATE_SHIFT : 0) + (long) (SHARE_UNIT * Math.min(MOST_SHARE, share)));
        }
        if (nowNanos - nextStepNanos >= 0 && count >= LEAST_COUNT && stepping.compareAndSet(false, true)) {
            try {
                step(nowNanos);
            } finally {
                stepping.set(false);
            }
        }
    }

    /**
     * All that had been taken has ended, and in time: then it is not too much that is taken. Calls that come together, with nothing to do
     * between them, would otherwise leave the limit where one bad moment has put it, since nothing else can be learnt from them.
     */
    private void caughtUp(long beganNanos, long nowNanos) {
        long took = nowNanos - beganNanos;
        if (took < NEARLY_ALL * usualNanos && stepping.compareAndSet(false, true)) {
            try {
                if (!isProbe && nowNanos - caughtUpNanos >= STEP_NANOS) {
                    caughtUpNanos = nowNanos;
                    // twice as many may take twice as long
                    limit = Math.min(most, 2 * took < usualNanos ? 2 * limit : limit + limit / 4);
                }
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
        long unbegunSum = unbegun.getAndSet(0);
        long shareSum = shares.getAndSet(0);
        long undoneSum = undone.getAndSet(0);
        given.take(USUAL_PART);
        taken.take();
        boolean refusing = refused;
        refused = false;
        boolean idle = gap;
        gap = false;
        int shared = sharedSteps;
        if (shared > 0) {
            sharedSteps = shared - 1;
        }
        double elapsed = now - windowBeganNanos;
        windowBeganNanos = now;
        nextStepNanos = now + STEP_NANOS;
        long counted = given.count();
        long late = shareSum >>> LATE_SHIFT;
        boolean areMostLate = 2 * late > counted;
        if (unbegunSum != 0 && areMostLate) {
            // whatever the rate is at which the few others end
            if (cut(now, mean(unbegunSum))) {
                sinkingFrom = 0;
            }
            return;
        }
        long count = sum >>> COUNT_SHIFT;
        if (count == 0 || idle && elapsed > 2 * STEP_NANOS) {
            // a rate over time in which there was nothing to do would say too little
            return;
        }
        double took = Math.max(1, mean(sum));
        learnTime(now, refusing, took, count, elapsed);
        if (counted >= LEAST_COUNT) {
            double roomy = ROOMY * Math.max(needNanos(now), ownMiddleNanos);
            double usual = Math.max(given.usualNanos(), Math.min(roomy, given.middleNanos()));
            usualNanos = (long) Math.min(MAX_RISE * usualNanos, usual);
        }
        // also where none is counted, as it may be more than any call is given by now
        minGivenNanos = Math.max(MIN_GIVEN_NANOS, (long) Math.min(UNHINDERED * ownNanos, NEARLY_USUAL * usualNanos));
        if (counted == 0) {
            return;
        }
        double used = Math.max(1 / SHARE_UNIT, (shareSum & (1L << LATE_SHIFT) - 1) / SHARE_UNIT / counted);
        boolean isUnhindered = took < UNHINDERED * ownNanos;
        boolean areSomeLate = SOME_LATE * late >= counted;
        mostOwn = areSomeLate ? MOST_OWN : 1;
        double current = count / elapsed;
        // by Little's law, for those that have not ended as well: the first that end are those that take least
        double needed = Math.max(took, running.get() / current);
        // callers choose how long their calls take
        long trialNanos = (long) Math.min(took, Math.max(PATIENCE_NANOS, usualNanos));
        long undoneCount = undoneSum >>> COUNT_SHIFT;
        double done = Math.max(0, count - undoneCount) / elapsed;
        if (isCut && now - probeEndNanos < 0) {
            if (late > 0 || used > FAR_FROM_LATE) {
                return;
            }
            isCut = false;
            sinkingFrom = 0;
        } else if (isCut) {
            isCut = false;
            boolean isMostForNothing = undoneCount > 0 && 2 * undoneCount * mean(undoneSum) > count * given.meanNanos();
            if (!isMostForNothing && isOfTheirOwn(current, done)) {
                remember(Math.min(mostOwn, used));
                rememberNeed(now, needed);
                comeBack();
                return;
            }
            sinkingFrom = 0;
        }
        if (areMostLate) {
            if (!isUnhindered && cut(now, took)) {
                isCut = true;
                sinkingRate = done;
                sinkingEnds = current;
                probeEndNanos = now + trialNanos + STEP_NANOS;
            }
            return;
        }
        // what a change has changed is not seen before calls have ended that came after it
        nextStepNanos = now + Math.max(STEP_NANOS, (long) took);
        if (isProbe) {
            if (now - probeEndNanos >= 0) {
                sank(now, current, used, needed);
            }
            return;
        }
        if (isUnhindered && used > own) {
            remember(Math.min(mostOwn, used));
        }
        learn(now, refusing, used);
        int before = limit;
        adapt(refusing, areSomeLate, used, current * usualNanos);
        if (limit == most) {
            refusingSteps = 0;
            sinkingFrom = 0;
            return;
        }
        if (sinkingFrom == 0 || limit > sinkingFrom) {
            sinkingFrom = Math.min(before, current * took);
            sinkingRate = current;
        }
        if (limit <= sinkingFrom / 2) {
            sank(now, current, used, needed);
        } else if (refusing && ++refusingSteps % PROBE_STEPS == 0 && limit >= 2 * LEAST) {
            sinkingFrom = limit;
            sinkingRate = current;
            isProbe = true;
            limit /= 2;
            probeEndNanos = now + trialNanos + STEP_NANOS;
        }
    }

    /** Of {@link #ended}, or the like, where that is not 0. */
    private static double mean(long sum) {
        return (sum & (1L << COUNT_SHIFT) - 1) * (double) (1L << TIME_UNIT_SHIFT) / (sum >>> COUNT_SHIFT);
    }

    /**
     * Most end too late, and not because they were given too little. The limit is halved, and then left alone until
     * others have ended.
     *
     * @return false if it is left alone
     */
    private boolean cut(long now, double took) {
        if (now - cutNanos < Math.min(took, usualNanos)) {
            return false;
        }
        cutNanos = now;
        double from = Math.min(isProbe ? sinkingFrom : limit, running.get());
        isProbe = false;
        isCut = false;
        sinkingFrom = from;
        limit = (int) Math.max(LEAST, from / 2);
        return true;
    }

    /** As {@link #learn}, in time: callers decide what share of theirs it is. */
    private void learnTime(long now, boolean refusing, double took, long count, double elapsed) {
        // the least of many means of few would be less than any mean of many
        smoothed = Math.min(SMOOTHED, smoothed + count);
        smoothNanos += (took - smoothNanos) * Math.min(1, count / smoothed);
        leastNanosNow = smoothed < SMOOTHED ? smoothNanos : Math.min(leastNanosNow, smoothNanos);
        learnMiddle(refusing, elapsed);
        if (now - timeMemoryEndNanos >= 0 && !refusing) {
            timeMemoryEndNanos = now + MEMORY_NANOS;
            leastNanosBefore = leastNanosNow;
            leastNanosNow = smoothNanos;
            leastMiddleBefore = leastMiddleNow;
            leastMiddleNow = middleNanos;
        }
        ownNanos = Math.min(leastNanosBefore, leastNanosNow);
        ownMiddleNanos = middleNanos == 0 ? 0 : Math.min(leastMiddleBefore, leastMiddleNow);
    }

    /**
     * By Little's law, handlers take as much time as passes, times those that run. The calls that have ended decide by
     * their part of that: quick ones that end in a moment in which others only run say hardly anything.
     */
    private void learnMiddle(boolean refusing, double elapsed) {
        double middle = taken.middleNanos();
        if (middle == 0) {
            return;
        }
        double part = Math.min(1, taken.sumNanos() / Math.max(1, elapsed * Math.max(1, running.get())));
        middleNanos = middleNanos == 0 ? middle : middleNanos + (middle - middleNanos) * part;
        leastMiddleNow = Math.min(leastMiddleNow, middleNanos);
        if (refusing && limit == LEAST) {
            // as of the shares: it is as near to what they need as can be
            leastMiddleNow = middleNanos;
            leastMiddleBefore = middleNanos;
        }
    }

    /**
     * The limit is half of what it was. If about as many calls end as before, then those that are missing had only
     * waited.
     *
     * @param needed what a call has needed, those that have not ended among them
     */
    private void sank(long now, double current, double used, double needed) {
        if (current < SAME_RATE * sinkingRate) {
            remember(Math.min(mostOwn, used));
            rememberNeed(now, needed);
            comeBack();
        } else if (isProbe) {
            remember(Math.min(own, used));
            limit = (int) sinkingFrom;
        }
        isProbe = false;
        sinkingFrom = 0;
    }

    /**
     * Whether the limit that has been halved says that calls had taken their own time and had not waited for each other:
     * then fewer end, and fewer bring a result, as fewer run. Where as many end as before, they share what is all at
     * work; where as many end as are let in, and hardly any brings a result, the limit is still too high.
     */
    private boolean isOfTheirOwn(double ends, double done) {
        boolean areFewer = ends < SAME_RATE * sinkingEnds && done < SAME_RATE * sinkingRate;
        return areFewer && (done > STOPPED_RATE * sinkingRate || ends < STOPPED_RATE * sinkingEnds);
    }

    /** The limit is what it was when it began to sink. */
    private void comeBack() {
        limit = (int) Math.max(LEAST, Math.min(most, Math.max(limit, sinkingFrom)));
        isCut = false;
        isProbe = false;
        sinkingFrom = 0;
    }

    /** Calls have been seen to need so much, of which the quickest alone would say less. */
    private void rememberNeed(long now, double nanos) {
        neededNanos = nanos;
        neededUntilNanos = now + 2 * MEMORY_NANOS;
        cutNanos = now + HOLD_NANOS;
    }

    private void remember(double least) {
        own = least;
        leastNow = least;
        leastBefore = least;
    }

    private void learn(long now, boolean refusing, double used) {
        if (used < own || refusing && limit == LEAST) {
            // at the least limit, what is seen is as near to what they need as can be
            remember(Math.min(mostOwn, used));
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
     * @param areSomeLate whether some calls ended after their own time, or without a result: those that end in time
     *     need no limit, though they may take nearly all of it, as those do that wait for news until their caller's
     *     time is nearly over
     * @param used the mean part of its caller's time that a call took
     * @param inTheirTime how many calls end in time in the time that one is given
     */
    private void adapt(boolean refusing, boolean areSomeLate, double used, double inTheirTime) {
        double target = (1 + own) / 2;
        // hardly any wait; more than that may still be on its way, for as long as a call takes
        boolean isCalm = used < own + (target - own) / 4;
        int now = limit;
        // without a refusal it is not known that calls wait for each other: then only what endangers them counts,
        // and where there is no limit yet, only what has made some of them late
        if (refusing || (now < most ? used > target : areSomeLate && used > (1 + target) / 2)) {
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
