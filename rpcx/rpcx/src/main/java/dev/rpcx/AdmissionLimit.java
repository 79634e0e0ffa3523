package dev.rpcx;

import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

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
 * <p>What is learnt, of how long calls take and are given and of which are late, is what most groups of peers say, each
 * of which counts for twice the calls of the group in the middle at most; and peers that run less than their group's
 * part of a limit are not refused for what others run. So one address does not decide for the others. See
 * {@link Group}.
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

    /** No group, and no address, counts for more calls than so many times those of the one in the middle. */
    private static final double MOST_OF_MIDDLE = 2;

    /** So many calls of a step are all looked at; of those behind them one in {@link #SAMPLED} says enough. */
    private static final int ALL_COUNT = 256;

    private static final int SAMPLED = 16;

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LOOK_NANOS = STEP_NANOS / 8;

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

    /**
     * Of {@link Said#shares}: the upper bits count those that were late, the lower sum up what part of their time
     * calls took, at most 2.
     */
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

    /**
     * In one step the usual time rises no more than so much: a few calls with much time may come together. Of many
     * calls it sinks at once.
     */
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

    /** Those that have been asked for, by number. */
    private final AtomicReferenceArray<@Nullable Group> groups = new AtomicReferenceArray<>(AddressGroups.COUNT);

    /** How many groups belong together, as those of one address: see {@link AddressGroups#each}. */
    private final IntSupplier together;

    /** Groups that run handlers of this method. */
    private final AtomicInteger holders = new AtomicInteger();

    private volatile int limit;

    // since the last step
    private final AtomicLong ended = new AtomicLong();

    /** As {@link #ended}, of calls that waited for a thread for nearly all of their time and did not begin. */
    private final AtomicLong unbegun = new AtomicLong();

    /** As {@link #ended}, by how long they took. */
    private final TakenTimes taken = new TakenTimes(MAX_GIVEN_NANOS);

    private final Medians medians = new Medians(AddressGroups.COUNT);
    private volatile boolean refused;
    private volatile boolean gap;

    /** For so many steps a connection has its share of the limit and no more, also while no other runs handlers. */
    private volatile int sharedSteps;

    private volatile long nextStepNanos;

    /** A step that is due waits for this, as few of those that run handlers have spoken when it was looked at last. */
    private volatile long nextLookNanos;

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

    /** In the last step. */
    private boolean wereMostLate;

    private boolean isProbe;

    /** The limit has been halved because most were late, and it is not known yet whether as many end as before. */
    private boolean isCut;

    private long probeEndNanos;

    /**
     * @param most handlers of all methods at once; from {@link #LEAST}
     * @param all how many run, shared by the methods of one server
     */
    AdmissionLimit(int most, AtomicInteger all, long nowNanos) {
        this(most, all, nowNanos, true, () -> 1);
    }

    /**
     * @param isLearning false for a limit that stays what it is
     * @param together how many groups belong to one address, from the first on
     */
    AdmissionLimit(int most, AtomicInteger all, long nowNanos, boolean isLearning, IntSupplier together) {
        this.most = most;
        this.isLearning = isLearning;
        this.together = together;
        this.all = all;
        this.limit = most;
        this.windowBeganNanos = nowNanos;
        this.nextStepNanos = nowNanos + STEP_NANOS;
        this.nextLookNanos = nowNanos;
        this.memoryEndNanos = nowNanos + MEMORY_NANOS;
        this.timeMemoryEndNanos = nowNanos + MEMORY_NANOS;
        this.cutNanos = nowNanos;
        this.neededUntilNanos = nowNanos;
        this.caughtUpNanos = nowNanos;
    }

    /** Peers of this number, from 0 to below {@link AddressGroups#COUNT}. */
    Group group(int number) {
        Group known = groups.get(number);
        if (known != null) {
            return known;
        }
        Group made = new Group();
        Group before = groups.compareAndExchange(number, null, made);
        return before == null ? made : before;
    }

    /**
     * What some peers run and say, of one address for the most part, as {@link Ledger} puts them together: what is
     * learnt is learnt of most groups, so that none of them decides for the others by how much, how long or how hastily
     * it calls.
     */
    final class Group {
        private final AtomicInteger running = new AtomicInteger();

        /** Null where nothing is learnt. */
        private final @Nullable Said said = isLearning ? new Said() : null;

        /** As {@link #enter(int, int)}, of a connection that runs nothing else. */
        boolean enter() {
            return enter(0, 0);
        }

        /**
         * A connection may run as many handlers as are still free of all then, and one more: so it comes to half of
         * them, each greedy one more to a part of what is left, and there is always something left for who runs few.
         * The same holds for a method's handlers and its limit: where that has sunk, it is shared by connections and
         * not by requests. But a connection that has the method for itself has all of the limit, until another one is
         * refused. See {@link Ledger} for where that comes from. A connection that is refused over its share is
         * refused for the limit, where there is one: those who share it leave a part of it free.
         *
         * <p>Peers that run less than the limit divided by the groups that run handlers of this method are not refused
         * for the limit, though others have all of it: what others run for long, or the limit that they bring about by
         * that, takes no place from those who run little. So up to 3.4 times a limit may run, where one of 16 groups
         * after the other comes while those before it run their parts.
         *
         * @param own handlers that the caller's connection runs already
         * @param ownHere those among them that are of this method
         * @return false if the call has to be refused
         */
        boolean enter(int own, int ownHere) {
            if (!AdmissionLimit.this.enter(own, ownHere, running.get())) {
                return false;
            }
            if (running.getAndIncrement() == 0) {
                holders.incrementAndGet();
            }
            return true;
        }

        /** A call that has entered leaves, and says nothing. */
        void leave() {
            if (running.decrementAndGet() == 0) {
                holders.decrementAndGet();
            }
            AdmissionLimit.this.leave();
        }

        /**
         * Each that has entered leaves once.
         *
         * @param isDone whether the handler brought a result. One that failed or was cancelled in good time says
         *     nothing: callers decide that
         */
        void leave(long beganNanos, long deadlineNanos, long nowNanos, boolean isDone) {
            if (running.decrementAndGet() == 0) {
                holders.decrementAndGet();
            }
            AdmissionLimit.this.leave(said, beganNanos, deadlineNanos, nowNanos, isDone);
        }

        /**
         * A call that has entered leaves, and its handler never began. Where it has waited for a thread for nearly all
         * of its time, more is taken than can be done, by this method or by others that have the same threads: that is
         * what a drop is to other limits. It counts as late, and not among those that end, of which the rate says what
         * can be done. A call whose caller gave up before that says nothing.
         */
        void leaveUnbegun(long beganNanos, long deadlineNanos, long nowNanos) {
            if (running.decrementAndGet() == 0) {
                holders.decrementAndGet();
            }
            AdmissionLimit.this.leaveUnbegun(said, beganNanos, deadlineNanos, nowNanos);
        }

        /** A call of this method has been refused: see {@link AdmissionLimit#refused}. */
        void refused(long nowNanos) {
            AdmissionLimit.this.refused(nowNanos);
        }

        /** How many handlers of the method may run. */
        int limit() {
            return limit;
        }

        /** How many handlers of the method run. */
        int running() {
            return AdmissionLimit.this.running.get();
        }
    }

    /** What the calls of a group said since the last step, and then of that step. */
    private static final class Said {
        // any thread

        /** As {@link AdmissionLimit#ended}, of those that ended in time and with a result. */
        private final AtomicLong done = new AtomicLong();

        /** As {@link AdmissionLimit#ended}, of the others. The lower bits sum up what they were given. */
        private final AtomicLong undone = new AtomicLong();

        private final AtomicInteger unbegun = new AtomicInteger();
        private final AtomicLong shares = new AtomicLong();
        private final GivenTimes given = new GivenTimes(MIN_GIVEN_NANOS, MAX_GIVEN_NANOS);

        // of the last step, guarded as that is
        private long doneSum;
        private long undoneSum;
        private long shareSum;

        private long countNow() {
            return (done.get() >>> COUNT_SHIFT) + (undone.get() >>> COUNT_SHIFT) + unbegun.get();
        }

        private void take() {
            doneSum = done.getAndSet(0);
            undoneSum = undone.getAndSet(0);
            unbegun.set(0);
            shareSum = shares.getAndSet(0);
            given.take(USUAL_PART);
        }

        private long doneCount() {
            return doneSum >>> COUNT_SHIFT;
        }

        private long undoneCount() {
            return undoneSum >>> COUNT_SHIFT;
        }

        private long endedCount() {
            return doneCount() + undoneCount();
        }

        private long lateCount() {
            return shareSum >>> LATE_SHIFT;
        }

        private double share() {
            return (shareSum & (1L << LATE_SHIFT) - 1) / SHARE_UNIT / given.count();
        }

        /** What those took that ended in time. */
        private double doneNanos() {
            return mean(doneSum);
        }

        /** What those took that ended, in time or not. */
        private double tookNanos() {
            // what was not in time ended as its time did, by and large
            return (sum(doneSum) + sum(undoneSum)) / endedCount();
        }
    }

    private boolean enter(int own, int ownHere, int ofGroup) {
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
        if (isOver && !isWithinShare(most, ofGroup, ownHere)) {
            if (!refused && most < this.most) {
                // also over a share alone: those who share a limit leave a part of it free
                refused = true;
            }
            running.decrementAndGet();
            return false;
        }
        int now = all.incrementAndGet();
        if (now > this.most || own > this.most - (now - 1)) {
            all.decrementAndGet();
            running.decrementAndGet();
            return false;
        }
        return true;
    }

    /** Whether the group runs less than its part, where there are others, and this one no more than is left of that. */
    private boolean isWithinShare(int most, int ofGroup, int ownHere) {
        int sharing = holders.get() + (ofGroup == 0 ? 1 : 0);
        if (sharing < 2) {
            return false;
        }
        int free = most / sharing - ofGroup;
        // it may run some that it began in another group
        return free > 0 && (ownHere <= free || ownHere >= ofGroup);
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
        // in an overload that has not been cut enough they end when their time is over
        double need = needNanos(nowNanos);
        double longest = wereMostLate && need > 0 ? Math.max(usualNanos, ROOMY * need) : ROOMY * need;
        double patience = Math.min(MOST_PATIENCE_NANOS, longest);
        return nowNanos - heldSinceNanos >= Math.max(PATIENCE_NANOS, patience);
    }

    /** What a call needs by itself, as far as that is known of late. */
    private double needNanos(long now) {
        return now - neededUntilNanos < 0 ? Math.max(ownNanos, neededNanos) : ownNanos;
    }

    private void leave() {
        all.decrementAndGet();
        running.decrementAndGet();
    }

    private void leave(@Nullable Said said, long beganNanos, long deadlineNanos, long nowNanos, boolean isDone) {
        if (said == null) {
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
        look(said, ended, took, givenNanos, nowNanos, isDone);
    }

    private void leaveUnbegun(@Nullable Said said, long beganNanos, long deadlineNanos, long nowNanos) {
        if (said == null) {
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
            look(said, unbegun, waited, givenNanos, nowNanos, false);
        }
    }

    /** @param counted which of the two counts and sums it belongs to */
    private void look(Said said, AtomicLong counted, long took, long givenNanos, long nowNanos, boolean isDone) {
        long units = Math.min(MAX_GIVEN_NANOS, took) >>> TIME_UNIT_SHIFT;
        long sum = counted.addAndGet(1L << COUNT_SHIFT | units);
        long count = sum >>> COUNT_SHIFT;
        boolean isLate = !isDone || took >= givenNanos;
        if (counted == unbegun) {
            said.unbegun.incrementAndGet();
        } else if (isLate) {
            said.undone.addAndGet(1L << COUNT_SHIFT | Math.min(MAX_GIVEN_NANOS, givenNanos) >>> TIME_UNIT_SHIFT);
        } else {
            said.done.addAndGet(1L << COUNT_SHIFT | units);
        }
        if (counted == ended) {
            taken.add(units, sum & (1L << COUNT_SHIFT) - 1);
        }
        long ofGroup = said.countNow();
        if (givenNanos >= minGivenNanos && (ofGroup <= ALL_COUNT || ofGroup % SAMPLED == 0)) {
            long held = Math.min(givenNanos, usualNanos);
            double share = took / (double) held;
            said.given.add(Math.min(MAX_GIVEN_NANOS, givenNanos));
            said.shares.addAndGet((isLate ? 1L << LATE_SHIFT : 0) + (long) (SHARE_UNIT * Math.min(MOST_SHARE, share)));
        }
        boolean isDue = nowNanos - nextStepNanos >= 0 && nowNanos - nextLookNanos >= 0;
        if (isDue && count >= LEAST_COUNT && stepping.compareAndSet(false, true)) {
            try {
                if (haveMostSpoken(nowNanos)) {
                    step(nowNanos);
                } else {
                    nextLookNanos = nowNanos + LOOK_NANOS;
                }
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
        taken.take();
        takeAll();
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
        boolean areMostLate = 2 * late > counted;
        wereMostLate = areMostLate;
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
        boolean areMany = groupsEnded > 1;
        double tookByMost = areMany ? Math.max(1, tookNanos()) : took;
        if (!areMany) {
            learnTime(now, refusing, took, count, elapsed);
        } else if (done > 0) {
            learnTime(now, refusing, Math.max(1, doneNanos()), done, elapsed);
        }
        if (countedCalls >= LEAST_COUNT) {
            double roomy = ROOMY * Math.max(needNanos(now), ownMiddleNanos);
            double usual = Math.max(usualGivenNanos(), Math.min(roomy, middleGivenNanos()));
            usualNanos = (long) (areMany ? gradually(usual, elapsed) : Math.min(MAX_RISE * usualNanos, usual));
        }
        // also where none is counted, as it may be more than any call is given by now
        minGivenNanos = Math.max(MIN_GIVEN_NANOS, (long) Math.min(UNHINDERED * ownNanos, NEARLY_USUAL * usualNanos));
        if (counted == 0) {
            return;
        }
        double used = Math.max(1 / SHARE_UNIT, shareTaken());
        // of one group nothing else tells whether those that are late were given too little
        boolean isUnhindered = tookByMost < UNHINDERED * ownNanos && !(areMany && areMostLate);
        boolean areSomeLate = SOME_LATE * late >= counted;
        mostOwn = areSomeLate ? MOST_OWN : 1;
        double current = count / elapsed;
        // by Little's law, for those that have not ended as well: the first that end are those that take least
        double needed = Math.max(tookByMost, running.get() / current);
        // callers choose how long their calls take
        long trialNanos = (long) Math.min(tookByMost, Math.max(PATIENCE_NANOS, usualNanos));
        // what is refused under a lower limit is that of whoever calls most: fewer of theirs say nothing of the others
        double ends = endedByMost / elapsed;
        double inTime = done / elapsed;
        if (isCut && now - probeEndNanos < 0) {
            if (late > 0 || used > FAR_FROM_LATE) {
                return;
            }
            isCut = false;
            sinkingFrom = 0;
        } else if (isCut) {
            isCut = false;
            if (!isMostGivenInVain() && isOfTheirOwn(ends, inTime)) {
                remember(Math.min(mostOwn, used));
                rememberNeed(now, needed);
                comeBack();
                return;
            }
            sinkingFrom = 0;
        }
        if (areMostLate) {
            if (!isUnhindered && cut(now, tookByMost)) {
                isCut = true;
                sinkingRate = inTime;
                sinkingEnds = ends;
                probeEndNanos = now + trialNanos + STEP_NANOS;
            }
            return;
        }
        // what a change has changed is not seen before calls have ended that came after it
        nextStepNanos = now + Math.max(STEP_NANOS, (long) tookByMost);
        if (isProbe) {
            if (now - probeEndNanos >= 0) {
                sank(now, ends, used, needed);
            }
            return;
        }
        if (isUnhindered && used > own) {
            remember(Math.min(mostOwn, used));
        }
        learn(now, refusing, used);
        int before = limit;
        // a flood of quick calls ends often, and long ones hardly: of others it would be as many as take the same time
        adapt(refusing, areSomeLate, used, current * Math.min(1, took / tookByMost) * usualNanos);
        if (limit == most) {
            refusingSteps = 0;
            sinkingFrom = 0;
            return;
        }
        if (sinkingFrom == 0 || limit > sinkingFrom) {
            sinkingFrom = Math.min(before, current * tookByMost);
            sinkingRate = ends;
        }
        if (limit <= sinkingFrom / 2) {
            sank(now, ends, used, needed);
        } else if (refusing && ++refusingSteps % PROBE_STEPS == 0 && limit >= 2 * LEAST) {
            sinkingFrom = limit;
            sinkingRate = ends;
            isProbe = true;
            limit /= 2;
            probeEndNanos = now + trialNanos + STEP_NANOS;
        }
    }

    // ---- what groups say in a step

    /** One of what each group said, as a number. */
    private interface Of {
        double value(Said said);
    }

    /** Of {@link #counts}: somebody who has said nothing, though handlers run. */
    private static final double SILENT = -1;

    private final double[] counts = new double[AddressGroups.COUNT];

    /** For how many calls each group counts among those whose time counts, those that have ended, and ended in time. */
    private final double[] weights = new double[AddressGroups.COUNT];

    private final double[] endedWeights = new double[AddressGroups.COUNT];
    private final double[] doneWeights = new double[AddressGroups.COUNT];

    // sums of these
    private double counted;
    private double endedByMost;
    private double done;

    /** Part of {@link #counted}. */
    private double late;

    // of all calls
    private long countedCalls;
    private int groupsEnded;

    private void takeAll() {
        int each = together.getAsInt();
        late = 0;
        countedCalls = 0;
        groupsEnded = 0;
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            Said said = said(i);
            if (said != null) {
                said.take();
                countedCalls += said.given.count();
                groupsEnded += said.endedCount() > 0 ? 1 : 0;
            }
        }
        counted = weigh(weights, each, said -> said.given.count());
        endedByMost = weigh(endedWeights, each, Said::endedCount);
        done = 0;
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            doneWeights[i] = 0;
            if (endedWeights[i] > 0) {
                Said said = Objects.requireNonNull(said(i));
                doneWeights[i] = endedWeights[i] * said.doneCount() / said.endedCount();
                done += doneWeights[i];
            }
            if (weights[i] > 0) {
                Said said = Objects.requireNonNull(said(i));
                late += said.lateCount() * weights[i] / said.given.count();
            }
        }
    }

    private @Nullable Said said(int group) {
        Group known = groups.get(group);
        return known == null ? null : known.said;
    }

    /**
     * Whether enough calls have ended, where those that run handlers and have said nothing yet count as well: otherwise
     * whoever calls often would speak alone, in one step after the other. They are waited for, though not for long:
     * their calls may be long ones.
     */
    private boolean haveMostSpoken(long now) {
        if (now - nextStepNanos >= PATIENCE_NANOS) {
            return true;
        }
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            Group group = groups.get(i);
            Said said = said(i);
            long calls = said == null ? 0 : said.countNow();
            counts[i] = calls == 0 && group != null && group.running.get() > 0 ? SILENT : calls;
        }
        return weigh(weights, together.getAsInt()) >= LEAST_COUNT;
    }

    /** By calls, up to the bound of a group among those of its address, and of an address. @return the sum */
    private double weigh(double[] weights, int each, Of calls) {
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            Said said = said(i);
            counts[i] = said == null ? 0 : calls.value(said);
        }
        return weigh(weights, each);
    }

    private double weigh(double[] weights, int each) {
        for (int first = 0; first < AddressGroups.COUNT; first += each) {
            double most = bound(counts, first, first + each);
            double sum = 0;
            boolean isSilent = false;
            for (int i = first; i < first + each; i++) {
                weights[i] = Math.min(most, Math.max(0, counts[i]));
                sum += weights[i];
                isSilent |= counts[i] == SILENT;
            }
            counts[first / each] = sum == 0 && isSilent ? SILENT : sum;
        }
        int addresses = AddressGroups.COUNT / each;
        double most = bound(counts, 0, addresses);
        double all = 0;
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            double ofAddress = counts[i / each];
            if (ofAddress > most) {
                weights[i] *= most / ofAddress;
            }
            all += weights[i];
        }
        return all;
    }

    /** Of two it would be decided by the smaller one, which may be anybody. */
    private double bound(double[] counts, int begin, int end) {
        medians.clear();
        for (int i = begin; i < end; i++) {
            medians.add(Math.max(0, counts[i]), counts[i] == 0 ? 0 : 1);
        }
        return medians.size() > 2 ? MOST_OF_MIDDLE * medians.median() : Double.MAX_VALUE;
    }

    /** What the group in the middle says. */
    private double median(double[] weights, Of value) {
        medians.clear();
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            if (weights[i] > 0) {
                medians.add(value.value(Objects.requireNonNull(said(i))), weights[i]);
            }
        }
        return medians.median();
    }

    private double doneNanos() {
        return median(doneWeights, Said::doneNanos);
    }

    private double tookNanos() {
        return median(endedWeights, Said::tookNanos);
    }

    private double usualGivenNanos() {
        return median(weights, said -> said.given.usualNanos());
    }

    /**
     * By the time that is given, as of one group's calls, as long as hardly any is late: those who give little are many
     * and have little of it. In overload by calls, since those who give much would have the limit serve them alone.
     */
    private double middleGivenNanos() {
        boolean areSomeLate = SOME_LATE * late >= counted;
        medians.clear();
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            if (weights[i] > 0) {
                GivenTimes given = Objects.requireNonNull(said(i)).given;
                medians.add(given.middleNanos(), areSomeLate ? weights[i] : weights[i] * given.meanNanos());
            }
        }
        return medians.median();
    }

    private double shareTaken() {
        return median(weights, Said::share);
    }

    /** Whether more than half of the time that was given went to calls that brought nothing in time. */
    private boolean isMostGivenInVain() {
        double inVain = 0;
        double ends = 0;
        double givenNanos = 0;
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            if (endedWeights[i] > 0) {
                Said said = Objects.requireNonNull(said(i));
                ends += endedWeights[i];
                inVain += sum(said.undoneSum) * endedWeights[i] / said.endedCount();
                givenNanos += said.given.meanNanos() * weights[i];
            }
        }
        return inVain > 0 && 2 * inVain > ends * givenNanos / counted;
    }

    /** Of few calls a minority of the groups is most of them now and then. */
    private double gradually(double usual, double elapsed) {
        double change = Math.pow(MAX_RISE, Math.max(1, elapsed / STEP_NANOS));
        boolean areFew = countedCalls < SMOOTHED && usualNanos < MAX_GIVEN_NANOS;
        double least = areFew ? usualNanos / change : 0;
        return Math.min(MAX_GIVEN_NANOS, Math.max(least, Math.min(change * usualNanos, usual)));
    }

    /** Of {@link #ended}, or the like, where that is not 0. */
    private static double mean(long sum) {
        return sum(sum) / (sum >>> COUNT_SHIFT);
    }

    private static double sum(long sum) {
        return (sum & (1L << COUNT_SHIFT) - 1) * (double) (1L << TIME_UNIT_SHIFT);
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
    private void learnTime(long now, boolean refusing, double took, double count, double elapsed) {
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
