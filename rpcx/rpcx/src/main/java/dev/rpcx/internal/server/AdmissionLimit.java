package dev.rpcx.internal.server;

import dev.rpcx.LongPoll;
import dev.rpcx.internal.ledger.AddressGroups;
import dev.rpcx.internal.ledger.Ledger;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Limit of how many handlers of one method run at once: concurrency limit = completion rate x target latency. By
 * Little's law the number of running calls, divided by the number that end in a second, is the time a call takes. The
 * target latency is what the handler itself needs, and half of what its caller's time leaves beyond. So admitted calls
 * end in time, whatever the resources behind the handler can do, and all other calls are refused at once, which costs
 * next to nothing. After the first late calls no other call has to be late, since the limit is computed and not found
 * by trial every few moments.
 *
 * <p>The time that a handler itself needs is estimated as the share of its callers' time that it took when it did not
 * have to wait. While calls are refused, a handler always has to wait. The estimate is then made whenever the limit has
 * sunk to half, and now and then the limit is halved for the purpose. If as many calls end as before, the calls had
 * been waiting for each other. If fewer calls end, the time is the handlers' own, and the limit comes back.
 *
 * <p>If most calls get no thread in nearly all of their time, or end too late, the limit is halved, as other algorithms
 * do at a drop. The effect is checked as well: if far fewer calls bring a result under half of the limit, the late
 * calls had not waited for other calls, and the limit comes back. While hardly any call ends, the refused calls make
 * that check.
 *
 * <p>Callers decide how much time they give, so the time that one caller gives must not steer the limit for the others.
 * Calls are not evaluated if they failed or were cancelled in good time, begun or not, or if they were given less time
 * than calls take that do not wait. A time above the usual time counts as the usual time, which is about the 5th
 * percentile of the times given. If calls of one group alone end, and take no longer than ever, the limit is not
 * lowered, however many of them end late.
 *
 * <p>The durations of calls, the times they are given and which of them are late are learnt from what most groups of
 * peers say. Each group counts for at most twice the calls of the group in the middle. Peers that run less than their
 * group's part of a limit are not refused for what others run. So one address does not decide for the others. See
 * {@link Group}.
 *
 * <p>Each method has a limit of its own, because methods wait for different things: an overloaded method takes nothing
 * from the others. Handlers on the event loop need no limit, since each event loop runs one at a time.
 *
 * <p>Sources: Little, 1961, for the law; Cardwell and others, <i>BBR: Congestion-Based Congestion Control</i>, 2016,
 * for a limit from rate times time and for measuring what is left when the limit is lowered; Netflix,
 * <i>concurrency-limits</i>, {@code Listener.onDropped}, for how to treat a call that timed out in a queue.
 */
public final class AdmissionLimit {
    public static final int MIN = 4;

    /** Maximum weight of a group or an address, as a multiple of the calls of the median group or address. */
    private static final double MAX_OF_MIDDLE = 2;

    /**
     * Number of a group's first calls in a step that are all evaluated; after them, one in {@link #SAMPLED} suffices.
     */
    private static final int ALL_COUNT = 256;

    private static final int SAMPLED = 16;

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LOOK_NANOS = STEP_NANOS / 8;

    /** Minimum number of calls from which anything is learnt. */
    private static final int MIN_COUNT = 8;

    /** What handlers need is the minimum seen in the current period of this length and in the period before it. */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Number of steps with refused calls after which the limit is halved for a moment to see what that changes. */
    private static final int PROBE_STEPS = 64;

    /**
     * As many calls end as before if their rate is at least this part of the earlier rate: a rate over one step is
     * noisy.
     */
    private static final double SAME_RATE = 0.8;

    /** If less than this part of the earlier rate is left, a lowered limit keeps calls out and has no other effect. */
    private static final double STOPPED_RATE = 0.3;

    /**
     * Minimum number of expected calls for a shortfall to be certain, as fewer than {@link #MIN_COUNT} have ended.
     */
    private static final int ENOUGH_EXPECTED = 2 * MIN_COUNT;

    /** When a step has been due for this long because too few calls have ended, refused calls check the limit. */
    private static final long OVERDUE_NANOS = 2 * STEP_NANOS;

    /** If fewer than one call in this many is late, no limit is needed, however much of their time calls take. */
    private static final int SOME_LATE = 64;

    /**
     * If fewer calls than half of those that run have ended for this long, and for a multiple of what a call takes, the
     * limit shuts others out and helps nobody.
     */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Upper bound of that multiple, since callers choose how long calls take. */
    private static final long MAX_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** While some calls are late, a handler that needs a larger part of its time leaves no room for a limit to help. */
    private static final double MAX_OWN = 0.95;

    /**
     * If calls take at most this part of their time and none is late, no call waits, and the trial of a lower limit
     * ends.
     */
    private static final double FAR_FROM_LATE = 0.25;

    /**
     * Layout of {@link #ended}: the upper bits count calls, the lower bits sum up their durations, in units of 2^16 ns,
     * at most a minute each.
     */
    private static final int COUNT_SHIFT = 40;

    private static final int TIME_UNIT_SHIFT = HandlerTimeHistogram.UNIT_SHIFT;

    /**
     * Layout of {@link GroupStats#shares}: the upper bits count late calls, the lower bits sum up the part of its time
     * that each call took, at most 2.
     */
    private static final int LATE_SHIFT = 40;

    private static final double SHARE_UNIT = 1024;
    private static final double MAX_SHARE = 2;

    /** Calls that are given less say nothing of lateness and shares: any pause of the process makes them late. */
    private static final long MIN_GIVEN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MAX_GIVEN_NANOS = TimeUnit.MINUTES.toNanos(1);

    /**
     * The usual time is the time that a twentieth of calls are given at most (the 5th percentile): a limit for callers
     * who give little time serves those who give much as well.
     */
    private static final int USUAL_PART = 20;

    /**
     * The usual time is at least this multiple of what calls take that do not wait: of their mean, or of
     * {@code ownMiddleNanos} if that is longer. This bound does not hold if most of the time is given in shorter
     * pieces. A limit for callers who give hardly as much as the handler needs would leave the handler idle while other
     * callers have time. The durations of single calls of one method differ by about this factor.
     */
    private static final double ROOMY = 4;

    /**
     * Maximum factor by which the usual time rises in one step, since a few calls with much time may come together. If
     * many calls are counted, the usual time falls at once.
     */
    private static final double MAX_RISE = 1.25;

    /**
     * A call without a result counts as late if it took this part of its time, since the clocks of caller and server
     * differ a little.
     */
    private static final double NEARLY_ALL = 0.9;

    /** So many calls in one step replace the mean duration at once; fewer calls move it in proportion. */
    private static final double SMOOTHED = 64;

    /** Time for which a limit that has come back is not halved for late calls. */
    private static final long HOLD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Calls that take less than this multiple of the least mean duration seen lately have not waited. */
    private static final double UNHINDERED = 1.25;

    /**
     * A call that is given this part of the usual time, and {@code MIN_GIVEN_NANOS}, counts however long calls take.
     */
    private static final double NEARLY_USUAL = 0.75;

    /** Number of steps for which each connection has only its share of the limit after another connection was there. */
    private static final int SHARED_STEPS = 10;

    private final int most;

    /** Whether the durations of calls say anything of the method's load; see {@link LongPoll}. */
    private final boolean isLearning;

    /** Number of running handlers of all methods of the server. */
    private final AtomicInteger all;

    private final AtomicInteger running = new AtomicInteger();

    /** Groups by number; null for a group that nobody has asked for. */
    private final AtomicReferenceArray<@Nullable Group> groups = new AtomicReferenceArray<>(AddressGroups.COUNT);

    /** Returns how many consecutive groups belong to one address: see {@link AddressGroups#groupsPerAddress}. */
    private final IntSupplier groupsPerAddress;

    /** Number of groups that run handlers of this method. */
    private final AtomicInteger activeGroups = new AtomicInteger();

    private volatile int limit;

    // What has happened since the last step: ended, unbegun, taken, refused and wasIdle.
    private final AtomicLong ended = new AtomicLong();

    /** Layout as {@link #ended}: calls that waited for a thread for nearly all of their time, and never began. */
    private final AtomicLong unbegun = new AtomicLong();

    /** Time of the calls in {@link #ended}, by duration. */
    private final HandlerTimeHistogram taken = new HandlerTimeHistogram(MAX_GIVEN_NANOS);

    private final Medians medians = new Medians(AddressGroups.COUNT);
    private volatile boolean refused;
    private volatile boolean wasIdle;

    /** Remaining steps in which a connection has only its share of the limit, even if no other one runs handlers. */
    private volatile int sharedSteps;

    private volatile long nextStepNanos;

    /** Earliest time to try a due step again; at the last try too few groups that run handlers had ended a call. */
    private volatile long nextLookNanos;

    /** Time at which the limit was last raised because no handler was left running. */
    private volatile long caughtUpNanos;

    /**
     * Lock held for a step or another change of the limit, by the thread that finds it due. It guards the fields that
     * follow; the volatile ones are read without it.
     */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private long windowBeganNanos;

    /** Part of their callers' time that handlers need for themselves: the least value seen lately. */
    private double own = MAX_OWN;

    /** Upper bound of {@link #own}: all of the callers' time (1) while hardly any call is late. */
    private double mostOwn = MAX_OWN;

    private double leastNow = MAX_OWN;
    private double leastBefore = MAX_OWN;
    private long memoryEndNanos;

    /** End of the memory period of durations, which are also learnt in steps that say nothing of shares. */
    private long timeMemoryEndNanos;

    /** Usual time, see {@link #USUAL_PART}; {@code MAX_GIVEN_NANOS} while it is not known. */
    private volatile long usualNanos = MAX_GIVEN_NANOS;

    /** Calls that are given less time are late, whatever the limit is. */
    private volatile long minGivenNanos = MIN_GIVEN_NANOS;

    /** Duration of calls that do not wait: the least mean seen lately; see {@link #own}. 0 while it is not known. */
    private double ownNanos;

    /**
     * Mean duration over the last {@code SMOOTHED} calls or so, or over all {@link #smoothed} calls while those are
     * fewer.
     */
    private double smoothNanos;

    private double smoothed;

    private double leastNanosNow = MAX_GIVEN_NANOS;
    private double leastNanosBefore = MAX_GIVEN_NANOS;

    /**
     * Least value of {@code middleNanos} seen lately: half of the time of all handlers goes to calls that take at least
     * this long. Quick calls, however many, do not move the value unless they take as much time in all; they do move a
     * mean over calls.
     */
    private double ownMiddleNanos;

    /** Present value for {@code ownMiddleNanos}; 0 while it is not known. */
    private double middleNanos;

    private double leastMiddleNow = MAX_GIVEN_NANOS;
    private double leastMiddleBefore = MAX_GIVEN_NANOS;

    private long cutNanos;
    private int refusingSteps;

    /** Limit at which the present decline began; 0 if the limit is not in decline. */
    private double sinkingFrom;

    /** Rate at which calls ended when the decline began; after a cut only of calls that brought a result in time. */
    private double sinkingRate;

    /** Rate at which calls ended when a cut was made, including those that brought no result in time. */
    private double sinkingEnds;

    /**
     * Duration of calls that a lower limit did not make quicker; it counts until {@code neededUntilNanos}. See
     * {@link #ownNanos}.
     */
    private double neededNanos;

    private long neededUntilNanos;

    /** Time since which hardly any call has ended, as far as refused calls have seen. */
    private long heldSinceNanos;

    /** Number of calls that had ended at {@code heldSinceNanos} in the step that {@code heldWindowNanos} names. */
    private long heldEnds;

    private long heldWindowNanos = Long.MIN_VALUE;

    /** Whether most of the counted calls of the last step were late. */
    private boolean wereMostLate;

    private boolean isProbe;

    /**
     * The limit has been halved because most calls were late, and it is not known yet whether as many end as before.
     */
    private boolean isCut;

    private long probeEndNanos;

    /**
     * @param most maximum number of handlers of all methods at once; at least {@link #MIN}
     * @param all number of running handlers, shared by the methods of one server
     */
    public AdmissionLimit(int most, AtomicInteger all, long nowNanos) {
        this(most, all, nowNanos, true, () -> 1);
    }

    /**
     * @param isLearning false for a limit that never changes
     * @param groupsPerAddress returns how many consecutive groups belong to one address, counted from the first group
     */
    public AdmissionLimit(
            int most, AtomicInteger all, long nowNanos, boolean isLearning, IntSupplier groupsPerAddress) {
        this.most = most;
        this.isLearning = isLearning;
        this.groupsPerAddress = groupsPerAddress;
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

    /** Returns the group of peers with this number, from 0 to below {@link AddressGroups#COUNT}. */
    public Group group(int number) {
        Group known = groups.get(number);
        if (known != null) {
            return known;
        }
        Group made = new Group();
        Group before = groups.compareAndExchange(number, null, made);
        return before == null ? made : before;
    }

    /**
     * Group of peers, for the most part of one address, as {@link Ledger} puts them together: the handlers that it runs
     * and what its calls say. The limit learns from what most groups say, so no group decides for the others by how
     * many calls it makes, how long they take or how little time it gives them.
     */
    public final class Group {
        private final AtomicInteger running = new AtomicInteger();

        /** Null if nothing is learnt. */
        private final @Nullable GroupStats stats = isLearning ? new GroupStats() : null;

        /** Like {@link #admit(int, int)}, for a connection that runs no other handler. */
        public boolean admit() {
            return admit(0, 0);
        }

        /**
         * Admits a call or refuses it. A connection may run as many handlers as are still free of all then, and one
         * more. So a greedy connection comes to half of all, each further greedy one to a part of what is left, and
         * something is always left for a connection that runs few. The same rule holds for a method's handlers and its
         * limit: a limit that has sunk is shared by connections and not by requests. But a connection that has the
         * method for itself has all of the limit, until another connection is refused. See {@link Ledger} for the
         * source of the rule. If the method has a limit, a call that is refused over its connection's share counts as
         * refused for the limit, since connections that share a limit leave a part of it free.
         *
         * <p>A group that runs less than the limit divided by the number of groups that run handlers of this method is
         * not refused for the limit, even if others have all of it. So what others run for long, or a limit that sinks
         * because of that, takes nothing from those who run few. Up to 3.4 times a limit may run, if each of 16 groups
         * comes after the other while those before it run their parts.
         *
         * @param own handlers that the caller's connection runs already
         * @param ownHere number of those handlers that are of this method
         * @return false if the call has to be refused
         */
        public boolean admit(int own, int ownHere) {
            if (!AdmissionLimit.this.admit(own, ownHere, running.get())) {
                return false;
            }
            if (running.getAndIncrement() == 0) {
                activeGroups.incrementAndGet();
            }
            return true;
        }

        /** Takes an admitted call off the running handlers, and does not evaluate it. */
        public void release() {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release();
        }

        /**
         * Takes an admitted call off the running handlers; each call is released once.
         *
         * @param isDone whether the handler brought a result. A call that failed or was cancelled in good time is not
         *     evaluated, since callers decide that
         */
        public void release(long beganNanos, long deadlineNanos, long nowNanos, boolean isDone) {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release(stats, beganNanos, deadlineNanos, nowNanos, isDone);
        }

        /**
         * Takes an admitted call, whose handler never began, off the running handlers. If the call has waited for a
         * thread for nearly all of its time, this method, or others with the same threads, admit more calls than can be
         * executed; other limit algorithms call that a drop. The call counts as late, and not among the ended calls,
         * since their rate says how much can be done. A call whose caller gave up earlier is not evaluated.
         */
        public void leaveUnbegun(long beganNanos, long deadlineNanos, long nowNanos) {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.leaveUnbegun(stats, beganNanos, deadlineNanos, nowNanos);
        }

        /** Records that a call of this method has been refused: see {@link AdmissionLimit#refused}. */
        public void refused(long nowNanos) {
            AdmissionLimit.this.refused(nowNanos);
        }

        /** How many handlers of the method may run. */
        public int limit() {
            return limit;
        }

        /** How many handlers of the method run. */
        public int running() {
            return AdmissionLimit.this.running.get();
        }
    }

    /** What the calls of a group have shown since the last step, and the sums of the last step. */
    private static final class GroupStats {
        // Counted since the last step, by any thread.

        /** Layout as {@link AdmissionLimit#ended}: calls that ended in time and with a result. */
        private final AtomicLong done = new AtomicLong();

        /** Layout as {@link AdmissionLimit#ended}: the other calls. The lower bits sum up the times they were given. */
        private final AtomicLong undone = new AtomicLong();

        private final AtomicInteger unbegun = new AtomicInteger();
        private final AtomicLong shares = new AtomicLong();
        private final GivenTimes given = new GivenTimes(MIN_GIVEN_NANOS, MAX_GIVEN_NANOS);

        // Sums of the last step, guarded by stepping.
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

        /** Mean duration of the calls that ended in time. */
        private double doneNanos() {
            return mean(doneSum);
        }

        /** Mean duration of the calls that ended, in time or not. */
        private double tookNanos() {
            // A call that did not end in time ended, by and large, when its time did. So the time it was given counts.
            return (sum(doneSum) + sum(undoneSum)) / endedCount();
        }
    }

    private boolean admit(int own, int ownHere, int ofGroup) {
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
                // A refusal over a share alone counts too: connections that share a limit leave a part of it free.
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

    /**
     * Whether other groups run handlers too, the group runs less than its part of the limit, and this connection runs
     * no more than is left of that part, or all that the group runs.
     */
    private boolean isWithinShare(int most, int ofGroup, int ownHere) {
        int sharing = activeGroups.get() + (ofGroup == 0 ? 1 : 0);
        if (sharing < 2) {
            return false;
        }
        int free = most / sharing - ofGroup;
        // The connection may run handlers that it began in another group, so ownHere can be above ofGroup.
        return free > 0 && (ownHere <= free || ownHere >= ofGroup);
    }

    private void share() {
        if (sharedSteps < SHARED_STEPS) {
            sharedSteps = SHARED_STEPS;
        }
    }

    /**
     * Looks at the limit when a call has been refused. Otherwise the limit is looked at when calls end. If the running
     * calls do not end, and a limit below their number lets no others in, only a refused call can find that the limit
     * prevents what would be done otherwise. The limit then rises, again and again, as long as the calls that hold it
     * do not end.
     */
    public void refused(long nowNanos) {
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
                // The limit has to exceed the number of running calls, since those take up all of it.
                sinkingFrom = Math.max(sinkingFrom, 2.0 * running.get());
                restoreLimit();
            } else if (isStalled(nowNanos, count + (unbegun.get() >>> COUNT_SHIFT))) {
                // Calls that hold the whole limit for so long show nothing of what can be done for others.
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

    /** Whether calls have been refused for long, and meanwhile fewer calls have ended than half of those that run. */
    private boolean isStalled(long nowNanos, long ends) {
        if (heldWindowNanos != windowBeganNanos || 2 * (ends - heldEnds) >= running.get()) {
            heldWindowNanos = windowBeganNanos;
            heldEnds = ends;
            heldSinceNanos = nowNanos;
            return false;
        }
        // In an overload in which the limit has not been cut far enough, calls end only when their time is over.
        double need = needNanos(nowNanos);
        double longest = wereMostLate && need > 0 ? Math.max(usualNanos, ROOMY * need) : ROOMY * need;
        double patience = Math.min(MAX_PATIENCE_NANOS, longest);
        return nowNanos - heldSinceNanos >= Math.max(PATIENCE_NANOS, patience);
    }

    /** Duration of a call that does not wait, as far as it is known from recent steps. */
    private double needNanos(long now) {
        return now - neededUntilNanos < 0 ? Math.max(ownNanos, neededNanos) : ownNanos;
    }

    private void release() {
        all.decrementAndGet();
        running.decrementAndGet();
    }

    private void release(
            @Nullable GroupStats stats, long beganNanos, long deadlineNanos, long nowNanos, boolean isDone) {
        if (stats == null) {
            release();
            return;
        }
        all.decrementAndGet();
        if (running.getAndDecrement() == 1) {
            // No other call was running: there is no wait to learn from, and what follows may be idle time.
            if (!wasIdle) {
                wasIdle = true;
            }
            if (limit < most && nowNanos - caughtUpNanos >= STEP_NANOS) {
                raiseWhenIdle(beganNanos, nowNanos);
            }
            return;
        }
        long givenNanos = deadlineNanos - beganNanos;
        long took = Math.max(0, nowNanos - beganNanos);
        if (givenNanos <= 0 || !isDone && took < NEARLY_ALL * givenNanos) {
            // A call that began as its time ran out was given no time.
            return;
        }
        recordCall(stats, ended, took, givenNanos, nowNanos, isDone);
    }

    private void leaveUnbegun(@Nullable GroupStats stats, long beganNanos, long deadlineNanos, long nowNanos) {
        if (stats == null) {
            release();
            return;
        }
        all.decrementAndGet();
        if (running.getAndDecrement() == 1 && !wasIdle) {
            wasIdle = true;
        }
        long givenNanos = deadlineNanos - beganNanos;
        long waited = nowNanos - beganNanos;
        if (givenNanos >= minGivenNanos && waited >= NEARLY_ALL * givenNanos) {
            recordCall(stats, unbegun, waited, givenNanos, nowNanos, false);
        }
    }

    /** @param counted {@link #ended} or {@code unbegun}, to which the call is added */
    private void recordCall(
            GroupStats stats, AtomicLong counted, long took, long givenNanos, long nowNanos, boolean isDone) {
        long units = Math.min(MAX_GIVEN_NANOS, took) >>> TIME_UNIT_SHIFT;
        long sum = counted.addAndGet(1L << COUNT_SHIFT | units);
        long count = sum >>> COUNT_SHIFT;
        boolean isLate = !isDone || took >= givenNanos;
        if (counted == unbegun) {
            stats.unbegun.incrementAndGet();
        } else if (isLate) {
            stats.undone.addAndGet(1L << COUNT_SHIFT | Math.min(MAX_GIVEN_NANOS, givenNanos) >>> TIME_UNIT_SHIFT);
        } else {
            stats.done.addAndGet(1L << COUNT_SHIFT | units);
        }
        if (counted == ended) {
            taken.add(units, sum & (1L << COUNT_SHIFT) - 1);
        }
        long ofGroup = stats.countNow();
        if (givenNanos >= minGivenNanos && (ofGroup <= ALL_COUNT || ofGroup % SAMPLED == 0)) {
            long held = Math.min(givenNanos, usualNanos);
            double share = took / (double) held;
            stats.given.add(Math.min(MAX_GIVEN_NANOS, givenNanos));
            stats.shares.addAndGet((isLate ? 1L << LATE_SHIFT : 0) + (long) (SHARE_UNIT * Math.min(MAX_SHARE, share)));
        }
        boolean isDue = nowNanos - nextStepNanos >= 0 && nowNanos - nextLookNanos >= 0;
        if (isDue && count >= MIN_COUNT && stepping.compareAndSet(false, true)) {
            try {
                if (haveMostGroupsReported(nowNanos)) {
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
     * Raises the limit when all admitted calls have ended, the last one in time: then the limit does not admit too
     * many. Calls that come in bursts, with nothing to do between the bursts, would otherwise leave the limit where one
     * bad moment has put it, since nothing else can be learnt from them.
     */
    private void raiseWhenIdle(long beganNanos, long nowNanos) {
        long took = nowNanos - beganNanos;
        if (took < NEARLY_ALL * usualNanos && stepping.compareAndSet(false, true)) {
            try {
                if (!isProbe && nowNanos - caughtUpNanos >= STEP_NANOS) {
                    caughtUpNanos = nowNanos;
                    // Twice as many calls may take twice as long.
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
        boolean idle = wasIdle;
        wasIdle = false;
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
            // The limit is cut whatever the rate is at which the few other calls end.
            if (cut(now, mean(unbegunSum))) {
                sinkingFrom = 0;
            }
            return;
        }
        long count = sum >>> COUNT_SHIFT;
        if (count == 0 || idle && elapsed > 2 * STEP_NANOS) {
            // A rate over a period with nothing to do would say too little.
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
        if (countedCalls >= MIN_COUNT) {
            double roomy = ROOMY * Math.max(needNanos(now), ownMiddleNanos);
            double usual = Math.max(usualGivenNanos(), Math.min(roomy, middleGivenNanos()));
            usualNanos = (long) (areMany ? gradually(usual, elapsed) : Math.min(MAX_RISE * usualNanos, usual));
        }
        // The minimum is set even if no call was counted, as it may by now be more than any call is given.
        minGivenNanos = Math.max(MIN_GIVEN_NANOS, (long) Math.min(UNHINDERED * ownNanos, NEARLY_USUAL * usualNanos));
        if (counted == 0) {
            return;
        }
        double used = Math.max(1 / SHARE_UNIT, shareTaken());
        // With a single group nothing else tells whether the late calls were given too little time.
        boolean isUnhindered = tookByMost < UNHINDERED * ownNanos && !(areMany && areMostLate);
        boolean areSomeLate = SOME_LATE * late >= counted;
        mostOwn = areSomeLate ? MAX_OWN : 1;
        double current = count / elapsed;
        // Little's law includes the calls that have not ended: the first that end are those that take least.
        double needed = Math.max(tookByMost, running.get() / current);
        // The trial has a bound, since callers choose how long their calls take.
        long trialNanos = (long) Math.min(tookByMost, Math.max(PATIENCE_NANOS, usualNanos));
        // A lower limit refuses the calls of the group that calls most. That fewer of them end says nothing of the
        // other groups, so the rates are weighted.
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
                restoreLimit();
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
        // The effect of a change is not seen before calls have ended that came after the change.
        nextStepNanos = now + Math.max(STEP_NANOS, (long) tookByMost);
        if (isProbe) {
            if (now - probeEndNanos >= 0) {
                evaluateDecline(now, ends, used, needed);
            }
            return;
        }
        if (isUnhindered && used > own) {
            remember(Math.min(mostOwn, used));
        }
        learn(now, refusing, used);
        int before = limit;
        // In a flood of quick calls many end and hardly any long ones. The rate is scaled to ordinary calls that take
        // as much time in all.
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
            evaluateDecline(now, ends, used, needed);
        } else if (refusing && ++refusingSteps % PROBE_STEPS == 0 && limit >= 2 * MIN) {
            sinkingFrom = limit;
            sinkingRate = ends;
            isProbe = true;
            limit /= 2;
            probeEndNanos = now + trialNanos + STEP_NANOS;
        }
    }

    // ---- what groups report in a step

    /** One of the figures that a group has reported. */
    private interface GroupFigure {
        double value(GroupStats stats);
    }

    /** Value in {@link #counts} for a group or an address that runs handlers and has reported nothing yet. */
    private static final double NOT_REPORTED = -1;

    private final double[] counts = new double[AddressGroups.COUNT];

    /** Number of calls for which each group counts among the calls whose given times are counted. */
    private final double[] weights = new double[AddressGroups.COUNT];

    /** Number of calls for which each group counts among those that have ended. */
    private final double[] endedWeights = new double[AddressGroups.COUNT];

    /** Number of calls for which each group counts among those that have ended in time. */
    private final double[] doneWeights = new double[AddressGroups.COUNT];

    // Sums of these weights, in the same order.
    private double counted;
    private double endedByMost;
    private double done;

    /** Part of {@link #counted} that was late. */
    private double late;

    // Totals without weights.
    private long countedCalls;
    private int groupsEnded;

    private void takeAll() {
        int each = groupsPerAddress.getAsInt();
        late = 0;
        countedCalls = 0;
        groupsEnded = 0;
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            GroupStats stats = stats(i);
            if (stats != null) {
                stats.take();
                countedCalls += stats.given.count();
                groupsEnded += stats.endedCount() > 0 ? 1 : 0;
            }
        }
        counted = weigh(weights, each, stats -> stats.given.count());
        endedByMost = weigh(endedWeights, each, GroupStats::endedCount);
        done = 0;
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            doneWeights[i] = 0;
            if (endedWeights[i] > 0) {
                GroupStats stats = Objects.requireNonNull(stats(i));
                doneWeights[i] = endedWeights[i] * stats.doneCount() / stats.endedCount();
                done += doneWeights[i];
            }
            if (weights[i] > 0) {
                GroupStats stats = Objects.requireNonNull(stats(i));
                late += stats.lateCount() * weights[i] / stats.given.count();
            }
        }
    }

    private @Nullable GroupStats stats(int group) {
        Group known = groups.get(group);
        return known == null ? null : known.stats;
    }

    /**
     * Whether enough calls have ended for a step. Groups that run handlers and have reported nothing yet count in the
     * medians, with 0 calls: otherwise a group that calls often would report alone, in one step after the other. The
     * step waits for such groups, though not for long, since their calls may be long ones.
     */
    private boolean haveMostGroupsReported(long now) {
        if (now - nextStepNanos >= PATIENCE_NANOS) {
            return true;
        }
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            Group group = groups.get(i);
            GroupStats stats = stats(i);
            long calls = stats == null ? 0 : stats.countNow();
            counts[i] = calls == 0 && group != null && group.running.get() > 0 ? NOT_REPORTED : calls;
        }
        return weigh(weights, groupsPerAddress.getAsInt()) >= MIN_COUNT;
    }

    /**
     * Weighs each group by its calls, up to a bound for a group among those of its address, and a bound for an address.
     *
     * @return the sum of the weights
     */
    private double weigh(double[] weights, int each, GroupFigure calls) {
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            GroupStats stats = stats(i);
            counts[i] = stats == null ? 0 : calls.value(stats);
        }
        return weigh(weights, each);
    }

    private double weigh(double[] weights, int each) {
        for (int first = 0; first < AddressGroups.COUNT; first += each) {
            double most = bound(counts, first, first + each);
            double sum = 0;
            boolean isUnreported = false;
            for (int i = first; i < first + each; i++) {
                weights[i] = Math.min(most, Math.max(0, counts[i]));
                sum += weights[i];
                isUnreported |= counts[i] == NOT_REPORTED;
            }
            counts[first / each] = sum == 0 && isUnreported ? NOT_REPORTED : sum;
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

    /** Maximum weight in a range. Two entries have no bound: the smaller one, which may be anybody, would decide it. */
    private double bound(double[] counts, int begin, int end) {
        medians.clear();
        for (int i = begin; i < end; i++) {
            medians.add(Math.max(0, counts[i]), counts[i] == 0 ? 0 : 1);
        }
        return medians.size() > 2 ? MAX_OF_MIDDLE * medians.median() : Double.MAX_VALUE;
    }

    /** Weighted median of what the groups report. */
    private double median(double[] weights, GroupFigure value) {
        medians.clear();
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            if (weights[i] > 0) {
                medians.add(value.value(Objects.requireNonNull(stats(i))), weights[i]);
            }
        }
        return medians.median();
    }

    private double doneNanos() {
        return median(doneWeights, GroupStats::doneNanos);
    }

    private double tookNanos() {
        return median(endedWeights, GroupStats::tookNanos);
    }

    private double usualGivenNanos() {
        return median(weights, stats -> stats.given.usualNanos());
    }

    /**
     * Weighted median of the groups' middle given times. As long as hardly any call is late, groups are weighted by the
     * time that they give, as calls are within a group: those who give little are many and give little of the whole. In
     * overload groups are weighted by calls, since those who give much would have the limit serve them alone.
     */
    private double middleGivenNanos() {
        boolean areSomeLate = SOME_LATE * late >= counted;
        medians.clear();
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            if (weights[i] > 0) {
                GivenTimes given = Objects.requireNonNull(stats(i)).given;
                medians.add(given.middleNanos(), areSomeLate ? weights[i] : weights[i] * given.meanNanos());
            }
        }
        return medians.median();
    }

    private double shareTaken() {
        return median(weights, GroupStats::share);
    }

    /** Whether more than half of the time that was given went to calls that brought nothing in time. */
    private boolean isMostGivenInVain() {
        double inVain = 0;
        double ends = 0;
        double givenNanos = 0;
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            if (endedWeights[i] > 0) {
                GroupStats stats = Objects.requireNonNull(stats(i));
                ends += endedWeights[i];
                inVain += sum(stats.undoneSum) * endedWeights[i] / stats.endedCount();
                givenNanos += stats.given.meanNanos() * weights[i];
            }
        }
        return inVain > 0 && 2 * inVain > ends * givenNanos / counted;
    }

    /**
     * Bounds the rise of the usual time, and its fall if few calls are counted: among few calls a minority of the
     * groups is the majority now and then.
     */
    private double gradually(double usual, double elapsed) {
        double change = Math.pow(MAX_RISE, Math.max(1, elapsed / STEP_NANOS));
        boolean areFew = countedCalls < SMOOTHED && usualNanos < MAX_GIVEN_NANOS;
        double least = areFew ? usualNanos / change : 0;
        return Math.min(MAX_GIVEN_NANOS, Math.max(least, Math.min(change * usualNanos, usual)));
    }

    /** Mean duration of {@link #ended} or a value of the same layout, which must not be 0. */
    private static double mean(long sum) {
        return sum(sum) / (sum >>> COUNT_SHIFT);
    }

    private static double sum(long sum) {
        return (sum & (1L << COUNT_SHIFT) - 1) * (double) (1L << TIME_UNIT_SHIFT);
    }

    /**
     * Halves the limit, since most calls end too late and not because they were given too little time. The limit is
     * then left alone until other calls have ended.
     *
     * @return false if the limit is left alone
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
        limit = (int) Math.max(MIN, from / 2);
        return true;
    }

    /** Like {@link #learn}, for durations and not for shares: callers decide what share of their time a duration is. */
    private void learnTime(long now, boolean refusing, double took, double count, double elapsed) {
        // The minimum of many means over few calls would be less than any mean over many calls.
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
     * Learns the middle duration. By Little's law, the time that handlers take is the time that passes, times the
     * number of running handlers. The ended calls count by their part of that time: quick calls that end in a moment in
     * which others only run say hardly anything.
     */
    private void learnMiddle(boolean refusing, double elapsed) {
        double middle = taken.middleNanos();
        if (middle == 0) {
            return;
        }
        double part = Math.min(1, taken.sumNanos() / Math.max(1, elapsed * Math.max(1, running.get())));
        middleNanos = middleNanos == 0 ? middle : middleNanos + (middle - middleNanos) * part;
        leastMiddleNow = Math.min(leastMiddleNow, middleNanos);
        if (refusing && limit == MIN) {
            // As with shares, at the smallest limit the duration is as near to what calls need as it can be.
            leastMiddleNow = middleNanos;
            leastMiddleBefore = middleNanos;
        }
    }

    /**
     * Evaluates a limit that has declined to half. If about as many calls end as before, the calls that are missing had
     * only waited.
     *
     * @param needed mean duration of a call, with the calls that have not ended
     */
    private void evaluateDecline(long now, double current, double used, double needed) {
        if (current < SAME_RATE * sinkingRate) {
            remember(Math.min(mostOwn, used));
            rememberNeed(now, needed);
            restoreLimit();
        } else if (isProbe) {
            remember(Math.min(own, used));
            limit = (int) sinkingFrom;
        }
        isProbe = false;
        sinkingFrom = 0;
    }

    /**
     * Whether the halved limit shows that calls had taken their own time and had not waited for each other: then fewer
     * calls end, and fewer bring a result, as fewer run. If as many calls end as before, they share a resource that is
     * fully used. If as many calls end as are admitted, and hardly any brings a result, the limit is still too high.
     */
    private boolean isOfTheirOwn(double ends, double done) {
        boolean areFewer = ends < SAME_RATE * sinkingEnds && done < SAME_RATE * sinkingRate;
        return areFewer && (done > STOPPED_RATE * sinkingRate || ends < STOPPED_RATE * sinkingEnds);
    }

    /** Restores the limit to at least what it was when it began to sink. */
    private void restoreLimit() {
        limit = (int) Math.max(MIN, Math.min(most, Math.max(limit, sinkingFrom)));
        isCut = false;
        isProbe = false;
        sinkingFrom = 0;
    }

    /** Remembers how long calls were seen to take by themselves; the quickest calls alone would say less. */
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
        if (used < own || refusing && limit == MIN) {
            // At the smallest limit, the share is as near to what calls need as it can be.
            remember(Math.min(mostOwn, used));
        } else if (!refusing) {
            leastNow = Math.min(leastNow, used);
            if (now - memoryEndNanos >= 0) {
                memoryEndNanos = now + MEMORY_NANOS;
                leastBefore = leastNow;
                leastNow = MAX_OWN;
            }
            own = Math.min(leastBefore, leastNow);
        }
    }

    /**
     * @param areSomeLate whether some calls ended after their own time, or without a result. Calls that end in time
     *     need no limit, though they may take nearly all of their time, as calls do that wait for news until their
     *     caller's time is nearly over
     * @param used the part of their callers' time that calls took: the median of the groups' means
     * @param inTheirTime number of calls that end in the usual time that one call is given
     */
    private void adapt(boolean refusing, boolean areSomeLate, double used, double inTheirTime) {
        double target = (1 + own) / 2;
        // Hardly any call waits. For as long as a call takes, a longer wait may still be to come.
        boolean isCalm = used < own + (target - own) / 4;
        int now = limit;
        // Without a refusal it is not known that calls wait for each other. The limit is then lowered only if calls
        // are in danger of being late, and where there is no limit yet, only if some of them have been late.
        if (refusing || (now < most ? used > target : areSomeLate && used > (1 + target) / 2)) {
            double goal = inTheirTime * target;
            if (isCalm) {
                goal = Math.max(goal, now * 1.1 + 1);
            }
            // A first limit starts from the goal at once: what has been admitted by now is more than enough.
            double from = now == most && !isCalm ? Math.min(now, goal) : now;
            double next = (from + goal) / 2;
            limit = (int) Math.max(MIN, Math.min(most, goal > from ? Math.ceil(next) : next));
        } else if (isCalm && now < most) {
            limit = Math.min(most, now + Math.max(1, now / 10));
        }
    }

    public int limit() {
        return limit;
    }

    public int running() {
        return running.get();
    }
}
