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
 * Limits how many handlers of one method run at the same time, so that admitted calls end in time. Calls above the
 * limit are refused immediately.
 *
 * <p>The limit is the rate at which calls end, multiplied by the target latency. By Little's law, the number of running
 * calls divided by that rate is the time that a call takes. The target latency is the time that the handler itself
 * needs, plus half of the rest of the time that its caller gives.
 *
 * <p>The time that a handler itself needs is estimated as a share of the time that its callers give, from calls that
 * did not have to wait. While calls are refused, handlers always have to wait. Then the estimate is made only when the
 * limit has sunk to half of its earlier value; if it does not sink so far, it is halved for a moment now and then: see
 * {@code PROBE_STEPS}. If calls then end at the same rate as before, they had been waiting for each other. If they end
 * at a lower rate, the time that they took is the time that handlers need, and the limit is restored.
 *
 * <p>If most calls end too late, or wait in vain for a thread for nearly all of their time, the limit is halved. If far
 * fewer calls bring a result after that, the late calls had not waited for other calls, and the limit is restored.
 * While hardly any call ends, refused calls cause this check.
 *
 * <p>Callers choose how much time they give, so one caller must not determine the limit for the others. Calls that
 * failed or were cancelled early are ignored, and so are calls that were given less time than a call takes without
 * waiting. A given time above the usual time, about the 5th percentile of the given times, counts as the usual time. If
 * only calls of one group end, late calls lower the limit only if calls take, on average, at least 1.25 times the
 * smallest mean duration that was seen lately.
 *
 * <p>How long calls take, how much time they are given and which are late is computed from what most groups of peers
 * report. A group counts for at most twice as many calls as the median group has. A group that runs fewer handlers than
 * its part of the limit is not refused because of the handlers of other groups: see {@link Group}.
 *
 * <p>Each method has its own limit, because methods wait for different things. Handlers on the event loop need no
 * limit, since each event loop runs one handler at a time.
 *
 * <p>Sources: Little, 1961, for the law; Cardwell and others, <i>BBR: Congestion-Based Congestion Control</i>, 2016,
 * for computing a limit as rate times time, and for measuring what remains when the limit is lowered; Netflix,
 * <i>concurrency-limits</i>, {@code Listener.onDropped}, for how to treat a call that timed out in a queue.
 */
public final class AdmissionLimit {
    public static final int MIN = 4;

    /** Maximum weight of a group or an address, as a multiple of the number of calls of the median group or address. */
    private static final double MAX_OF_MIDDLE = 2;

    /**
     * Maximum number of a group's calls that are all evaluated in one step. Of further calls, only one in
     * {@link #SAMPLED} is evaluated.
     */
    private static final int ALL_COUNT = 256;

    private static final int SAMPLED = 16;

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LOOK_NANOS = STEP_NANOS / 8;

    /** Minimum number of calls from which a step learns anything. */
    private static final int MIN_COUNT = 8;

    /**
     * Length of a memory period. The time that handlers need is the minimum over the current period and the one before
     * it.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Number of steps with refused calls from one trial to the next. In a trial the limit is halved for a moment, to
     * find out whether calls then end at a lower rate.
     */
    private static final int PROBE_STEPS = 64;

    /**
     * If calls end at this part of the earlier rate or more, the rate counts as unchanged. The part is less than 1
     * because a rate over one step is noisy.
     */
    private static final double SAME_RATE = 0.8;

    /** If calls end at less than this part of the earlier rate, they count as having nearly stopped. */
    private static final double STOPPED_RATE = 0.3;

    /**
     * A refused call may find that calls have stopped ending only if at least this number of calls would have ended
     * since the last step at the earlier rate, that is, the rate before the limit sank.
     */
    private static final int ENOUGH_EXPECTED = 2 * MIN_COUNT;

    /** If a step is overdue for this long, because too few calls end, each refused call checks the limit. */
    private static final long OVERDUE_NANOS = 2 * STEP_NANOS;

    /**
     * If less than one call in this number is late, no limit is needed, even if calls take nearly all of their time.
     */
    private static final int SOME_LATE = 64;

    /**
     * Minimum time after which a limit is raised because hardly any call ends: in that time, fewer calls end than half
     * the number of running calls. See {@code MAX_PATIENCE_NANOS} for a longer time.
     */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum of the longer time that may be used instead of {@code PATIENCE_NANOS}: {@code ROOMY} times the duration
     * of a call or, if most calls were late and the usual time is longer, the usual time.
     */
    private static final long MAX_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Maximum share of the callers' time that handlers are assumed to need themselves while some calls are late. A
     * larger share would leave nothing that a limit could change.
     */
    private static final double MAX_OWN_SHARE = 0.95;

    /**
     * If calls take at most this part of their time after a cut, and none is late, the check of the cut ends early and
     * the limit stays halved.
     */
    private static final double FAR_FROM_LATE = 0.25;

    /**
     * Lowest bit of {@link #ended} that counts calls. The bits below it sum up the durations of these calls, in units
     * of 2^16 ns and at most a minute each.
     */
    private static final int COUNT_SHIFT = 40;

    private static final int TIME_UNIT_SHIFT = HandlerTimeHistogram.UNIT_SHIFT;

    /**
     * Lowest bit of {@link GroupStats#shares} that counts late calls. The bits below it hold a sum in units of 1/1024.
     * Each call adds its duration divided by the time that it was given, or by the usual time if that is shorter, but
     * at most 2.
     */
    private static final int LATE_SHIFT = 40;

    private static final double SHARE_UNIT = 1024;
    private static final double MAX_SHARE = 2;

    /**
     * Calls that are given less time than this are not checked for being late, and their share of time is not
     * evaluated, since any pause of the process makes them late.
     */
    private static final long MIN_GIVEN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MAX_GIVEN_NANOS = TimeUnit.MINUTES.toNanos(1);

    /**
     * The usual time is the 5th percentile of the times that calls are given: one call in this number is given at most
     * the usual time.
     */
    private static final int USUAL_PART = 20;

    /**
     * Lower bound of the usual time, as a multiple of the duration of calls that do not wait, or of
     * {@code ownMiddleNanos} if that is longer. The bound is at most the middle given time: see
     * {@code middleGivenNanos}. Without it, a limit for callers who give hardly more time than the handler needs would
     * leave the handler idle. The factor is 4 because the durations of single calls of one method differ by about this
     * much.
     */
    private static final double ROOMY = 4;

    /**
     * Maximum factor by which the usual time rises in one step, since a few calls with much time may come together by
     * chance.
     */
    private static final double MAX_RISE = 1.25;

    /**
     * A call without a result counts as late if it took at least this part of its time. The part is less than 1 since
     * the clocks of caller and server differ a little.
     */
    private static final double NEARLY_ALL = 0.9;

    /**
     * Number of calls over which durations are smoothed. Fewer calls in a step move the smoothed mean in proportion to
     * their number.
     */
    private static final double SMOOTHED = 64;

    /** After a limit has been restored, late calls do not halve it for at least this long. */
    private static final long HOLD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Calls have not waited if they take less than this multiple of the smallest mean duration that was seen lately.
     */
    private static final double UNHINDERED = 1.25;

    /**
     * A call that is given at least this part of the usual time, and at least {@code MIN_GIVEN_NANOS}, is always
     * evaluated. A call that is given less is evaluated only if its time is at least {@code MIN_GIVEN_NANOS} and
     * {@code UNHINDERED} times the duration of calls that do not wait.
     */
    private static final double NEARLY_USUAL = 0.75;

    /**
     * Number of steps for which each connection has only its share of the limit, after a connection has found the limit
     * used up while others run handlers of the method. If a connection asks for a handler during these steps, while
     * others run handlers, the steps are counted anew.
     */
    private static final int SHARED_STEPS = 10;

    private final int maxRunning;

    /** Whether the durations of calls say anything about the load of the method. They do not for a {@link LongPoll}. */
    private final boolean isLearning;

    /** Number of running handlers of all methods of the server, except those on event loops. */
    private final AtomicInteger all;

    private final AtomicInteger running = new AtomicInteger();

    /** Groups by number. An element is null until {@code group} is first called for this number. */
    private final AtomicReferenceArray<@Nullable Group> groups = new AtomicReferenceArray<>(AddressGroups.COUNT);

    /**
     * Returns how many groups with consecutive numbers belong to one address: see
     * {@link AddressGroups#groupsPerAddress}.
     */
    private final IntSupplier groupsPerAddress;

    /** Number of groups that run handlers of this method. */
    private final AtomicInteger activeGroups = new AtomicInteger();

    private volatile int limit;

    /** Calls that have ended since the last step, and their durations; see {@code COUNT_SHIFT} for the layout. */
    private final AtomicLong ended = new AtomicLong();

    /**
     * Calls, since the last step, whose handlers never began and that waited for a thread for nearly all of their time,
     * in the layout of {@link #ended}.
     */
    private final AtomicLong unbegun = new AtomicLong();

    /** Time that the calls in {@link #ended} took in total, for each range of durations. */
    private final HandlerTimeHistogram taken = new HandlerTimeHistogram(MAX_GIVEN_NANOS);

    private final Medians medians = new Medians(AddressGroups.COUNT);

    /**
     * Whether, since the last step, a call has found the limit used up, or has been refused because of its connection's
     * share of a limit below the maximum. The call that found the limit used up may have been admitted within its
     * group's part.
     */
    private volatile boolean wasLimitReached;

    /** Whether there was a time since the last step at which no handler ran. */
    private volatile boolean wasIdle;

    /**
     * Number of remaining steps in which a connection has only its share of the limit, even if no other connection runs
     * handlers.
     */
    private volatile int sharedSteps;

    private volatile long nextStepNanos;

    /**
     * Earliest time at which a step that is due is tried again, after a try at which too few groups had reported calls.
     */
    private volatile long nextLookNanos;

    /** Time at which the limit was last raised because all running handlers had ended. */
    private volatile long caughtUpNanos;

    /**
     * Lock for changes of the limit. A thread that finds the lock taken makes no change. The lock guards the fields
     * that follow; the volatile ones among them are read without it.
     */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private long windowBeganNanos;

    /** Smallest part of the callers' time, from 0 to 1, that handlers lately needed themselves. */
    private double ownShare = MAX_OWN_SHARE;

    /** Upper bound of {@link #ownShare}: {@code MAX_OWN_SHARE}, or 1 while hardly any call is late. */
    private double maxOwnShare = MAX_OWN_SHARE;

    private double minShareNow = MAX_OWN_SHARE;
    private double minShareBefore = MAX_OWN_SHARE;
    private long memoryEndNanos;

    /**
     * End of the current memory period for durations. It differs from {@code memoryEndNanos}, since some steps measure
     * durations but no shares.
     */
    private long timeMemoryEndNanos;

    /** The usual time: see {@link #USUAL_PART}. It is {@code MAX_GIVEN_NANOS} until a step has computed it. */
    private volatile long usualNanos = MAX_GIVEN_NANOS;

    /** Calls that are given less time than this are not evaluated, since they are late whatever the limit is. */
    private volatile long minGivenNanos = MIN_GIVEN_NANOS;

    /**
     * Duration of calls that do not wait, in nanoseconds: the smallest mean duration that was seen lately. 0 while
     * unknown.
     */
    private double ownNanos;

    /**
     * Mean duration over about the last {@code SMOOTHED} calls, or over all calls if there were fewer.
     * {@link #smoothed} is their number.
     */
    private double smoothNanos;

    private double smoothed;

    private double minNanosNow = MAX_GIVEN_NANOS;
    private double minNanosBefore = MAX_GIVEN_NANOS;

    /** Smallest value of {@code middleNanos} that was seen lately. */
    private double ownMiddleNanos;

    /**
     * Current middle duration, in nanoseconds; 0 while unknown. Half of the time of all handlers goes to calls that
     * take at least this long. Even many quick calls lower the middle less than they would lower a mean.
     */
    private double middleNanos;

    private double minMiddleNow = MAX_GIVEN_NANOS;
    private double minMiddleBefore = MAX_GIVEN_NANOS;

    private long cutNanos;
    private int refusingSteps;

    /** Limit at which the current decline of the limit began; 0 if the limit is not in decline. */
    private double sinkingFrom;

    /**
     * Rate at which calls ended when the limit began to sink, in calls per nanosecond. If the limit was cut because
     * most calls were late, only calls that brought a result in time are counted.
     */
    private double sinkingRate;

    /**
     * Rate at which calls ended when the limit was last cut because most calls were late, in calls per nanosecond.
     * Includes calls that brought no result in time.
     */
    private double sinkingEnds;

    /**
     * Duration of calls that did not become quicker under a lower limit, in nanoseconds. Until
     * {@code neededUntilNanos}, it replaces {@link #ownNanos} if it is greater.
     */
    private double neededNanos;

    private long neededUntilNanos;

    /** Time since which every refused call has found that hardly any call ends. */
    private long stalledSinceNanos;

    /**
     * Number of calls from the last step to {@code stalledSinceNanos} that had ended, or are counted in
     * {@code unbegun}. Valid only while {@code stalledWindowNanos} equals {@code windowBeganNanos}.
     */
    private long stalledEnds;

    private long stalledWindowNanos = Long.MIN_VALUE;

    /** Whether most of the calls that were counted in the last step were late. */
    private boolean wereMostLate;

    private boolean isProbe;

    /** Whether the limit has been halved because most calls were late, and the effect is still being checked. */
    private boolean isCut;

    private long probeEndNanos;

    /**
     * Creates a limit that adapts, and whose groups all belong to different addresses.
     *
     * @param maxRunning maximum number of handlers of all methods that run at the same time; at least {@link #MIN}
     * @param all number of running handlers; all methods of a server share this counter
     */
    public AdmissionLimit(int maxRunning, AtomicInteger all, long nowNanos) {
        this(maxRunning, all, nowNanos, true, () -> 1);
    }

    /**
     * Creates a limit for one method.
     *
     * @param maxRunning maximum number of handlers of all methods that run at the same time; at least {@link #MIN}
     * @param all number of running handlers; all methods of a server share this counter
     * @param isLearning false for a limit that always stays at {@code maxRunning}
     * @param groupsPerAddress returns how many groups with consecutive numbers belong to one address, counted from
     *     group 0
     */
    public AdmissionLimit(
            int maxRunning, AtomicInteger all, long nowNanos, boolean isLearning, IntSupplier groupsPerAddress) {
        this.maxRunning = maxRunning;
        this.isLearning = isLearning;
        this.groupsPerAddress = groupsPerAddress;
        this.all = all;
        this.limit = maxRunning;
        this.windowBeganNanos = nowNanos;
        this.nextStepNanos = nowNanos + STEP_NANOS;
        this.nextLookNanos = nowNanos;
        this.memoryEndNanos = nowNanos + MEMORY_NANOS;
        this.timeMemoryEndNanos = nowNanos + MEMORY_NANOS;
        this.cutNanos = nowNanos;
        this.neededUntilNanos = nowNanos;
        this.caughtUpNanos = nowNanos;
    }

    /** Returns the group of peers with this number, from 0 to {@link AddressGroups#COUNT} - 1. */
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
     * Group of peers, most of which have the same address: see {@link Ledger}. It counts the handlers that its peers
     * run, and records how their calls end. The limit is computed from what most groups report, so no group decides for
     * the others.
     */
    public final class Group {
        private final AtomicInteger running = new AtomicInteger();

        /** What the calls of this group have shown; null if the limit does not learn. */
        private final @Nullable GroupStats stats = isLearning ? new GroupStats() : null;

        /** Admits or refuses a call of a connection that runs no other handler: see {@link #admit(int, int)}. */
        public boolean admit() {
            return admit(0, 0);
        }

        /**
         * Admits a call or refuses it. A connection may run another handler if it runs at most as many handlers as the
         * maximum for all methods still leaves free. So something always remains for a connection that runs few
         * handlers. The same rule holds for the handlers of this method and the limit of this method. But while a
         * connection is the only one to use the method, it may use all of the limit, until another connection finds the
         * limit used up. See {@link Ledger} for the source of the rule.
         *
         * <p>A group's part of the limit is the limit divided by the number of groups that run handlers of this method.
         * A group that runs fewer handlers than its part is not refused because of the limit, even if other groups use
         * all of it. So more handlers of this method may run than the limit says: with 16 groups, up to 3.4 times as
         * many.
         *
         * @param own number of handlers that the caller's connection already runs
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

        /**
         * Stops counting an admitted call as a running handler, without evaluating it. Called once for each admitted
         * call, unless {@code release} with times or {@code leaveUnbegun} is called instead.
         */
        public void release() {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release();
        }

        /**
         * Stops counting an admitted call as a running handler, and evaluates how long it took. Called at most once for
         * each admitted call, and then instead of {@code release} without times and {@code leaveUnbegun}.
         *
         * @param isDone whether the handler brought a result. A call that failed or was cancelled early is not
         *     evaluated, since callers decide whether that happens
         */
        public void release(long beganNanos, long deadlineNanos, long nowNanos, boolean isDone) {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release(stats, beganNanos, deadlineNanos, nowNanos, isDone);
        }

        /**
         * Stops counting an admitted call whose handler never began. If the call has waited for a thread for nearly all
         * of its time, it counts as late, but not as ended, since the rate of ended calls says how much can be done. If
         * its caller gave up earlier, the call is not evaluated.
         */
        public void leaveUnbegun(long beganNanos, long deadlineNanos, long nowNanos) {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.leaveUnbegun(stats, beganNanos, deadlineNanos, nowNanos);
        }

        /** Records that a call of this method has been refused: see {@link AdmissionLimit#refused(long)}. */
        public void refused(long nowNanos) {
            AdmissionLimit.this.refused(nowNanos);
        }

        /** Returns how many handlers of the method may run at the same time. */
        public int limit() {
            return limit;
        }

        /** Returns how many handlers of the method run, of all groups. */
        public int running() {
            return AdmissionLimit.this.running.get();
        }
    }

    /** What the calls of a group have shown since the last step, and the sums of the last step. */
    private static final class GroupStats {
        // The next fields count what has happened since the last step. Any thread writes them.

        /**
         * Calls that ended in time and with a result. The layout of the bits is that of {@link AdmissionLimit#ended}.
         */
        private final AtomicLong done = new AtomicLong();

        /**
         * Calls that ended too late or without a result, in the layout of {@link AdmissionLimit#ended}; but the lower
         * bits sum up the times that the calls were given.
         */
        private final AtomicLong undone = new AtomicLong();

        private final AtomicInteger unbegun = new AtomicInteger();
        private final AtomicLong shares = new AtomicLong();
        private final GivenTimes given = new GivenTimes(MIN_GIVEN_NANOS, MAX_GIVEN_NANOS);

        // The next fields are the sums of the last step. The lock "stepping" guards them.
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

        /** Returns the mean duration of the calls that ended in time and with a result, in nanoseconds. */
        private double doneNanos() {
            return mean(doneSum);
        }

        /** Returns the mean duration of all calls that ended, in nanoseconds. */
        private double tookNanos() {
            // Most calls that did not end in time ended about when their time was over, so their given time counts as
            // their duration.
            return (sum(doneSum) + sum(undoneSum)) / endedCount();
        }
    }

    private boolean admit(int own, int ownHere, int ofGroup) {
        int limitNow = limit;
        int others = running.getAndIncrement() - ownHere;
        int free = limitNow - ownHere - others;
        int left = sharedSteps;
        if (others > 0 && (left > 0 || free <= 0)) {
            share();
        }
        if (free <= 0 && !wasLimitReached) {
            wasLimitReached = true;
        }
        boolean isOver = free <= 0 || ownHere > free && (left > 0 || others > 0);
        if (isOver && !isWithinShare(limitNow, ofGroup, ownHere)) {
            if (!wasLimitReached && limitNow < this.maxRunning) {
                // A refusal because of a share counts too: connections that share a limit always leave a part of it
                // free, so the limit might never seem used up.
                wasLimitReached = true;
            }
            running.decrementAndGet();
            return false;
        }
        int now = all.incrementAndGet();
        if (now > this.maxRunning || own > this.maxRunning - (now - 1)) {
            all.decrementAndGet();
            running.decrementAndGet();
            return false;
        }
        return true;
    }

    /**
     * Returns whether a call is admitted although the limit, or the connection's share of it, is used up. Its group
     * must run fewer handlers than its part of the limit, while other groups run handlers too. Its connection must run
     * at most as many handlers of the method as the group's part leaves free, or all handlers of the group.
     */
    private boolean isWithinShare(int limitNow, int ofGroup, int ownHere) {
        int sharing = activeGroups.get() + (ofGroup == 0 ? 1 : 0);
        if (sharing < 2) {
            return false;
        }
        int free = limitNow / sharing - ofGroup;
        // The connection may run handlers that it began when it belonged to another group, so ownHere can be greater
        // than ofGroup.
        return free > 0 && (ownHere <= free || ownHere >= ofGroup);
    }

    private void share() {
        if (sharedSteps < SHARED_STEPS) {
            sharedSteps = SHARED_STEPS;
        }
    }

    /**
     * Checks the limit when a call has been refused. Normally the limit is checked when calls end. But if the running
     * calls use up the limit and do not end, only a refused call can find that the limit has to be raised.
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
                // The running calls use up the present limit, so the new limit must exceed their number.
                sinkingFrom = Math.max(sinkingFrom, 2.0 * running.get());
                restoreLimit();
            } else if (isStalled(nowNanos, count + (unbegun.get() >>> COUNT_SHIFT))) {
                // The running calls have used up the limit for a long time, which shows nothing about how many other
                // calls could be executed. So the limit is at least doubled.
                limit = Math.min(maxRunning, 2 * Math.max(limit, running.get()));
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

    /**
     * Returns whether calls have been refused for long, and in that time fewer calls have ended than half the number of
     * running ones. See {@code PATIENCE_NANOS}.
     */
    private boolean isStalled(long nowNanos, long ends) {
        if (stalledWindowNanos != windowBeganNanos || 2 * (ends - stalledEnds) >= running.get()) {
            stalledWindowNanos = windowBeganNanos;
            stalledEnds = ends;
            stalledSinceNanos = nowNanos;
            return false;
        }
        // While the method is overloaded, calls end only when their time is over. Then the limit is raised at the
        // earliest after the usual time, or after MAX_PATIENCE_NANOS if that is shorter.
        double need = needNanos(nowNanos);
        double longest = wereMostLate && need > 0 ? Math.max(usualNanos, ROOMY * need) : ROOMY * need;
        double patience = Math.min(MAX_PATIENCE_NANOS, longest);
        return nowNanos - stalledSinceNanos >= Math.max(PATIENCE_NANOS, patience);
    }

    /** Returns the duration of a call that does not wait, in nanoseconds, as far as recent steps have shown it. */
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
            // No other call runs now, so this call's duration is not recorded. The time until the next call is idle
            // time.
            if (!wasIdle) {
                wasIdle = true;
            }
            if (limit < maxRunning && nowNanos - caughtUpNanos >= STEP_NANOS) {
                raiseWhenIdle(beganNanos, nowNanos);
            }
            return;
        }
        long givenNanos = deadlineNanos - beganNanos;
        long took = Math.max(0, nowNanos - beganNanos);
        if (givenNanos <= 0 || !isDone && took < NEARLY_ALL * givenNanos) {
            // Not evaluated: a call that failed or was cancelled early, or that began when its time was already over.
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

    /**
     * Records how a call has ended, and takes a step if one is due.
     *
     * @param counted counter to which the call is added: {@link #ended} or {@code unbegun}
     */
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
     * Raises the limit when the last running call has ended, if that call took less than {@code NEARLY_ALL} of the
     * usual time. Otherwise the limit would stay low for calls that come in bursts with idle time between the bursts.
     */
    private void raiseWhenIdle(long beganNanos, long nowNanos) {
        long took = nowNanos - beganNanos;
        if (took < NEARLY_ALL * usualNanos && stepping.compareAndSet(false, true)) {
            try {
                if (!isProbe && nowNanos - caughtUpNanos >= STEP_NANOS) {
                    caughtUpNanos = nowNanos;
                    // With twice as many calls, each may take twice as long. So the limit is doubled only if calls
                    // would then still end within the usual time.
                    limit = Math.min(maxRunning, 2 * took < usualNanos ? 2 * limit : limit + limit / 4);
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
        boolean refusing = wasLimitReached;
        wasLimitReached = false;
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
            // Most calls were late, and some of them got no thread. The limit is cut, and the effect is not checked.
            if (cut(now, mean(unbegunSum))) {
                sinkingFrom = 0;
            }
            return;
        }
        long count = sum >>> COUNT_SHIFT;
        if (count == 0 || idle && elapsed > 2 * STEP_NANOS) {
            // A rate that is measured over a time that was partly idle would say too little.
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
        // Computed even if no call was counted: if this minimum is too great, no call would ever be counted.
        minGivenNanos = Math.max(MIN_GIVEN_NANOS, (long) Math.min(UNHINDERED * ownNanos, NEARLY_USUAL * usualNanos));
        if (counted == 0) {
            return;
        }
        double used = Math.max(1 / SHARE_UNIT, shareTaken());
        // If most calls of several groups are late, the calls did have to wait. A single group may have given its calls
        // too little time, so only their duration counts.
        boolean isUnhindered = tookByMost < UNHINDERED * ownNanos && !(areMany && areMostLate);
        boolean areSomeLate = SOME_LATE * late >= counted;
        maxOwnShare = areSomeLate ? MAX_OWN_SHARE : 1;
        double current = count / elapsed;
        // Includes the calls that have not ended, by Little's law: the calls that end first are the quickest.
        double needed = Math.max(tookByMost, running.get() / current);
        // Length of a trial, and of the check of a cut limit. It is bounded, since callers choose how long their calls
        // take.
        long trialNanos = (long) Math.min(tookByMost, Math.max(PATIENCE_NANOS, usualNanos));
        // A lower limit refuses mainly calls of the group with the most calls. That shows nothing about the other
        // groups, so the rates are weighted by group.
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
                resetOwnShare(Math.min(maxOwnShare, used));
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
        // The effect of a change cannot be seen before calls have ended that began after the change.
        nextStepNanos = now + Math.max(STEP_NANOS, (long) tookByMost);
        if (isProbe) {
            if (now - probeEndNanos >= 0) {
                evaluateDecline(now, ends, used, needed);
            }
            return;
        }
        if (isUnhindered && used > ownShare) {
            resetOwnShare(Math.min(maxOwnShare, used));
        }
        learn(now, refusing, used);
        int before = limit;
        // In a flood of quick calls, hardly any long ones end. So the rate is converted to that of calls of the mean
        // duration tookByMost that take as much time in total.
        adapt(refusing, areSomeLate, used, current * Math.min(1, took / tookByMost) * usualNanos);
        if (limit == maxRunning) {
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

    /** Returns one of the figures that a group has reported. */
    private interface GroupFigure {
        double value(GroupStats stats);
    }

    /** Value in {@link #counts} for a group or an address that runs handlers and has not reported anything yet. */
    private static final double NOT_REPORTED = -1;

    private final double[] counts = new double[AddressGroups.COUNT];

    /**
     * Weight of each group, in calls, by the number of its calls whose given times were counted: see {@code weigh}.
     * Element i belongs to group i.
     */
    private final double[] weights = new double[AddressGroups.COUNT];

    /** Weight of each group, in calls, by the number of its calls that have ended. Element i belongs to group i. */
    private final double[] endedWeights = new double[AddressGroups.COUNT];

    /** Part of {@link #endedWeights} for calls that ended in time and with a result. Element i belongs to group i. */
    private final double[] doneWeights = new double[AddressGroups.COUNT];

    /** Sum of {@code weights}. */
    private double counted;

    /** Sum of {@code endedWeights}. */
    private double endedByMost;

    /** Sum of {@code doneWeights}. */
    private double done;

    /** Weight of the late calls among {@link #counted}. */
    private double late;

    /** Number of calls, without weights, whose given times were counted in the last step. */
    private long countedCalls;

    /** Number of groups of which calls ended in the last step. */
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
     * Returns whether enough calls have ended for a step. A group that runs handlers and has not reported anything yet
     * counts as a group with 0 calls in the medians. So no step is based only on a group that calls often. A step waits
     * for such groups, but for no longer than {@code PATIENCE_NANOS}.
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
     * Weighs each group by its calls. A group counts for at most {@code MAX_OF_MIDDLE} times as many calls as the
     * median group of its address has. An address counts for at most {@code MAX_OF_MIDDLE} times as many calls as the
     * median address has.
     *
     * @param weights receives the weight of each group, in calls
     * @param each number of groups that belong to one address
     * @param calls number of calls by which a group is weighed
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
            double maxWeight = bound(counts, first, first + each);
            double sum = 0;
            boolean isUnreported = false;
            for (int i = first; i < first + each; i++) {
                weights[i] = Math.min(maxWeight, Math.max(0, counts[i]));
                sum += weights[i];
                isUnreported |= counts[i] == NOT_REPORTED;
            }
            counts[first / each] = sum == 0 && isUnreported ? NOT_REPORTED : sum;
        }
        int addresses = AddressGroups.COUNT / each;
        double maxWeight = bound(counts, 0, addresses);
        double all = 0;
        for (int i = 0; i < AddressGroups.COUNT; i++) {
            double ofAddress = counts[i / each];
            if (ofAddress > maxWeight) {
                weights[i] *= maxWeight / ofAddress;
            }
            all += weights[i];
        }
        return all;
    }

    /**
     * Returns the maximum weight for the entries in a range: {@code MAX_OF_MIDDLE} times the median of the entries that
     * are not 0. {@link #NOT_REPORTED} counts as 0 in the median. If at most two entries are not 0, there is no
     * maximum, since the smaller entry would determine it.
     */
    private double bound(double[] counts, int begin, int end) {
        medians.clear();
        for (int i = begin; i < end; i++) {
            medians.add(Math.max(0, counts[i]), counts[i] == 0 ? 0 : 1);
        }
        return medians.size() > 2 ? MAX_OF_MIDDLE * medians.median() : Double.MAX_VALUE;
    }

    /** Returns the weighted median of one of the figures that the groups report. */
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
     * Returns the weighted median of the groups' middle given times, in nanoseconds. As long as hardly any call is
     * late, groups are weighted by the time that they give in total. So callers who give little time have little
     * weight, even if they are many. In an overload, groups are weighted by their calls; otherwise the limit would
     * serve only callers who give much time.
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

    /** Returns whether more than half of all the given time belonged to calls that brought no result in time. */
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
     * Returns the new usual time. Its rise is bounded. If few calls are counted, its fall is bounded too, since most of
     * them may come from a minority of the groups.
     */
    private double gradually(double usual, double elapsed) {
        double change = Math.pow(MAX_RISE, Math.max(1, elapsed / STEP_NANOS));
        boolean areFew = countedCalls < SMOOTHED && usualNanos < MAX_GIVEN_NANOS;
        double min = areFew ? usualNanos / change : 0;
        return Math.min(MAX_GIVEN_NANOS, Math.max(min, Math.min(change * usualNanos, usual)));
    }

    /**
     * Returns the mean duration in nanoseconds, from {@link #ended} or a value of the same layout, which must not be 0.
     */
    private static double mean(long sum) {
        return sum(sum) / (sum >>> COUNT_SHIFT);
    }

    private static double sum(long sum) {
        return (sum & (1L << COUNT_SHIFT) - 1) * (double) (1L << TIME_UNIT_SHIFT);
    }

    /**
     * Halves the limit, since most calls end too late although they were given enough time. Two cuts are at least the
     * duration of a call apart, or the usual time if that is shorter.
     *
     * @param took mean duration of a call, in nanoseconds
     * @return false, without changing the limit, if the last cut or restoration of the limit is too recent
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

    /**
     * Estimates the duration of calls that do not wait. {@link #learn} estimates separately which share of the callers'
     * time this duration is, since callers choose their time.
     */
    private void learnTime(long now, boolean refusing, double took, double count, double elapsed) {
        // Smoothed, since the minimum of many means over few calls would be smaller than any mean over many calls.
        smoothed = Math.min(SMOOTHED, smoothed + count);
        smoothNanos += (took - smoothNanos) * Math.min(1, count / smoothed);
        minNanosNow = smoothed < SMOOTHED ? smoothNanos : Math.min(minNanosNow, smoothNanos);
        learnMiddle(refusing, elapsed);
        if (now - timeMemoryEndNanos >= 0 && !refusing) {
            timeMemoryEndNanos = now + MEMORY_NANOS;
            minNanosBefore = minNanosNow;
            minNanosNow = smoothNanos;
            minMiddleBefore = minMiddleNow;
            minMiddleNow = middleNanos;
        }
        ownNanos = Math.min(minNanosBefore, minNanosNow);
        ownMiddleNanos = middleNanos == 0 ? 0 : Math.min(minMiddleBefore, minMiddleNow);
    }

    /**
     * Updates the middle duration. The calls that have ended count by their part of the time of all handlers in this
     * step. So quick calls that end while long calls still run change hardly anything.
     */
    private void learnMiddle(boolean refusing, double elapsed) {
        double middle = taken.middleNanos();
        if (middle == 0) {
            return;
        }
        double part = Math.min(1, taken.sumNanos() / Math.max(1, elapsed * Math.max(1, running.get())));
        middleNanos = middleNanos == 0 ? middle : middleNanos + (middle - middleNanos) * part;
        minMiddleNow = Math.min(minMiddleNow, middleNanos);
        if (refusing && limit == MIN) {
            // At the smallest limit, calls wait for each other as little as possible. So the duration that is measured
            // now replaces the earlier minimum. learn() does the same with the share.
            minMiddleNow = middleNanos;
            minMiddleBefore = middleNanos;
        }
    }

    /**
     * Evaluates a limit that has sunk to half. If calls end at about the same rate as before, the calls that are kept
     * out had only waited: the limit stays low or, after a trial, returns to its earlier value. If calls end at a lower
     * rate, the limit is restored.
     *
     * @param current rate at which calls end now, in calls per nanosecond
     * @param used share of their callers' time that calls took
     * @param needed mean duration of a call in nanoseconds, including calls that have not ended
     */
    private void evaluateDecline(long now, double current, double used, double needed) {
        if (current < SAME_RATE * sinkingRate) {
            resetOwnShare(Math.min(maxOwnShare, used));
            rememberNeed(now, needed);
            restoreLimit();
        } else if (isProbe) {
            resetOwnShare(Math.min(ownShare, used));
            limit = (int) sinkingFrom;
        }
        isProbe = false;
        sinkingFrom = 0;
    }

    /**
     * Returns whether the halved limit shows that calls need all the time that they took, and had not waited for each
     * other: calls end at a lower rate, and bring results at a lower rate. If many calls still end, but hardly any of
     * them brings a result in time, the limit is still too high, and the answer is false.
     */
    private boolean isOfTheirOwn(double ends, double done) {
        boolean areFewer = ends < SAME_RATE * sinkingEnds && done < SAME_RATE * sinkingRate;
        return areFewer && (done > STOPPED_RATE * sinkingRate || ends < STOPPED_RATE * sinkingEnds);
    }

    /** Restores the limit to at least the value that it had when it began to sink. */
    private void restoreLimit() {
        limit = (int) Math.max(MIN, Math.min(maxRunning, Math.max(limit, sinkingFrom)));
        isCut = false;
        isProbe = false;
        sinkingFrom = 0;
    }

    /**
     * Records how long calls were found to take without waiting. The smallest mean duration would be too short, since
     * the quickest calls determine it. For at least {@code HOLD_NANOS}, late calls do not halve the limit.
     */
    private void rememberNeed(long now, double nanos) {
        neededNanos = nanos;
        neededUntilNanos = now + 2 * MEMORY_NANOS;
        cutNanos = now + HOLD_NANOS;
    }

    private void resetOwnShare(double share) {
        ownShare = share;
        minShareNow = share;
        minShareBefore = share;
    }

    private void learn(long now, boolean refusing, double used) {
        if (used < ownShare || refusing && limit == MIN) {
            // At the smallest limit, calls wait for each other as little as possible. So the share that is measured now
            // replaces the earlier one.
            resetOwnShare(Math.min(maxOwnShare, used));
        } else if (!refusing) {
            minShareNow = Math.min(minShareNow, used);
            if (now - memoryEndNanos >= 0) {
                memoryEndNanos = now + MEMORY_NANOS;
                minShareBefore = minShareNow;
                minShareNow = MAX_OWN_SHARE;
            }
            ownShare = Math.min(minShareBefore, minShareNow);
        }
    }

    /**
     * Computes the new limit, from the rate at which calls end and the target latency.
     *
     * @param refusing whether calls have been refused since the last step
     * @param areSomeLate whether at least one in {@code SOME_LATE} calls ended too late or without a result. If not, no
     *     limit is needed, even if calls take nearly all of their time, as a call that waits for news does
     * @param used part of the callers' time that calls took: the median of the groups' means
     * @param inTheirTime number of calls that end, at the current rate, in a span as long as the usual time
     */
    private void adapt(boolean refusing, boolean areSomeLate, double used, double inTheirTime) {
        double target = (1 + ownShare) / 2;
        // If isCalm is true, hardly any of the calls that have ended had to wait. But the calls that run now may turn
        // out to have waited longer.
        boolean isCalm = used < ownShare + (target - ownShare) / 4;
        int now = limit;
        // If no call was refused, it is not known whether calls wait for each other. Then a limit below the maximum is
        // lowered only if calls are in danger of being late, and a limit at the maximum only if some have been late
        // too.
        if (refusing || (now < maxRunning ? used > target : areSomeLate && used > (1 + target) / 2)) {
            double goal = inTheirTime * target;
            if (isCalm) {
                goal = Math.max(goal, now * 1.1 + 1);
            }
            // A limit at the maximum has admitted more than enough calls, so the new limit is computed from the goal
            // alone, unless isCalm is true.
            double from = now == maxRunning && !isCalm ? Math.min(now, goal) : now;
            double next = (from + goal) / 2;
            limit = (int) Math.max(MIN, Math.min(maxRunning, goal > from ? Math.ceil(next) : next));
        } else if (isCalm && now < maxRunning) {
            limit = Math.min(maxRunning, now + Math.max(1, now / 10));
        }
    }

    public int limit() {
        return limit;
    }

    public int running() {
        return running.get();
    }
}
