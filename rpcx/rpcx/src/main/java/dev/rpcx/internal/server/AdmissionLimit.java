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
 * Limits how many handlers of one method run at the same time. Further calls are refused at once, so that the admitted
 * ones end before their deadlines. The limit is updated up to ten times a second, from the calls that have ended since
 * the last update. An update is also called a step.
 *
 * <p><b>The limit</b> is the rate at which calls end, multiplied by the time that a call should take. By Little's law,
 * the number of running calls divided by that rate is the time that a call does take. A call should take the time that
 * its handler needs without waiting for other calls, plus half of the time that then remains until its deadline.
 *
 * <p><b>What a handler needs</b> is measured on calls that did not wait, as a part of the time from the start of a call
 * to its deadline. While calls are refused, all handlers wait, so what they need shows only when the limit has sunk to
 * half of its earlier value. If it does not sink so far by itself, it is halved for a moment now and then, in a trial:
 * see {@code PROBE_STEPS}. If calls then end at the same rate as before, they had been waiting for each other. If they
 * end at a lower rate, handlers need the time that the calls took, and the limit is restored.
 *
 * <p><b>Late calls</b> halve the limit if they are more than half of all calls. A call is also late if it waits for a
 * thread, in vain, for nearly all of its time. If far fewer calls bring a result under the halved limit, the late calls
 * had not waited for other calls, and the limit is restored. While hardly any call ends, refused calls cause this
 * check.
 *
 * <p><b>No caller determines the limit for the others</b>, although callers choose their deadlines. Calls that failed
 * or were cancelled early are ignored, and so are calls that were given less time than a call takes without waiting. A
 * call that is given more than the usual time, about the 5th percentile, counts as if it were given the usual time. The
 * connections of a server belong to groups, mostly by the address of the peer, and a group counts for at most twice as
 * many calls as the median group. How long calls take, how much time they are given and which are late is computed from
 * what most groups report. If calls of only one group end, late calls lower the limit only if calls take, on average,
 * at least 1.25 times the smallest mean duration that was seen lately. A group that runs fewer handlers than its part
 * of the limit is not refused because of other groups: see {@link Group}.
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

    /**
     * Maximum weight of a group of connections, as a multiple of the weight of the median group. The weight is the
     * number of the group's calls that count when the limit is computed. The weight of an address is bounded in the
     * same way, by that of the median address.
     */
    private static final double MAX_OF_MIDDLE = 2;

    /**
     * Number of calls of one group that are all compared with their deadlines, from one update of the limit to the
     * next. Of further calls, only one in {@link #SAMPLED} is compared. The comparison counts late calls, and measures
     * which part of the time until its deadline a call takes.
     */
    private static final int ALL_COUNT = 256;

    private static final int SAMPLED = 16;

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LOOK_NANOS = STEP_NANOS / 8;

    /** Minimum number of calls from which the limit is updated. Fewer calls would say too little. */
    private static final int MIN_COUNT = 8;

    /**
     * Length of the periods for which the shortest times of calls are remembered, in nanoseconds. The time that a
     * handler needs without waiting is the shortest one of the current period and the period before it.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Number of steps, that is, updates of the limit, from one trial to the next. Only steps while calls are refused
     * are counted. In a trial, the limit is halved for a moment, to find out whether calls then end at a lower rate.
     */
    private static final int PROBE_STEPS = 64;

    /**
     * The rate at which calls end counts as unchanged if it is at least this part of the earlier rate. The part is less
     * than 1 because a rate that is measured over a short time varies by chance.
     */
    private static final double SAME_RATE = 0.8;

    /** Calls count as having nearly stopped ending if their rate is less than this part of the earlier rate. */
    private static final double STOPPED_RATE = 0.3;

    /**
     * A refused call may conclude that calls have nearly stopped ending only if at least this number of calls would
     * have ended since the last update of the limit, at the rate from before the limit sank.
     */
    private static final int ENOUGH_EXPECTED = 2 * MIN_COUNT;

    /**
     * How much too late an update of the limit must be before refused calls check the limit, in nanoseconds. Normally
     * calls that end update it, but sometimes too few of them end.
     */
    private static final long OVERDUE_NANOS = 2 * STEP_NANOS;

    /**
     * If less than one call in this number is late, the method needs no limit. This is so even if calls take nearly all
     * of the time until their deadlines, as calls that wait for news do.
     */
    private static final int SOME_LATE = 64;

    /**
     * The limit is raised if, for at least this time, calls are refused and hardly any call ends. Hardly any means
     * fewer than half the number of running calls. If calls take long, it is raised later: see
     * {@link #MAX_PATIENCE_NANOS}.
     */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum time until the limit is raised because calls are refused and hardly any call ends. If calls take long,
     * this time is {@link #ROOMY} times the duration of a call that does not wait. If most calls were late, it is at
     * least {@link #usualNanos}, the time that calls are usually given. But it is never longer than this maximum.
     */
    private static final long MAX_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Maximum part of a call's time until its deadline that its handler is assumed to need, while some calls are late.
     * If a handler needed more, nothing would remain that a limit could change.
     */
    private static final double MAX_OWN_SHARE = 0.95;

    /**
     * Calls are far from late if they take at most this part of the time until their deadlines. If late calls have
     * halved the limit, and calls are then far from late and none is late, the limit stays halved without a further
     * check.
     */
    private static final double FAR_FROM_LATE = 0.25;

    /**
     * In {@link #ended}, the bits from this one upwards are the number of calls. The bits below it are the sum of the
     * durations of these calls, in units of 2^16 ns; a call adds at most a minute.
     */
    private static final int COUNT_SHIFT = 40;

    private static final int TIME_UNIT_SHIFT = HandlerTimeHistogram.UNIT_SHIFT;

    /**
     * In {@link GroupStats#shares}, the bits from this one upwards are the number of late calls. The bits below it are
     * a sum in units of 1/1024. Each call that is compared with its deadline adds its duration divided by the time that
     * it was given, or by {@link #usualNanos} if that is shorter, but at most 2.
     */
    private static final int LATE_SHIFT = 40;

    private static final double SHARE_UNIT = 1024;
    private static final double MAX_SHARE = 2;

    /**
     * Calls that are given less time than this, in nanoseconds, are not compared with their deadlines: they do not
     * count as late, and the part of their time that they take is not measured. Any pause of the process makes such
     * calls late.
     */
    private static final long MIN_GIVEN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MAX_GIVEN_NANOS = TimeUnit.MINUTES.toNanos(1);

    /**
     * One call in this number is given at most the usual time, from its start to its deadline. So the usual time,
     * {@link #usualNanos}, is about the 5th percentile of the times that calls are given.
     */
    private static final int USUAL_PART = 20;

    /**
     * The usual time, {@link #usualNanos}, is at least this multiple of the time that calls take without waiting. That
     * time is {@link #needNanos}, or {@link #ownMiddleNanos} if that is greater. The bound is never above
     * {@link #middleGivenNanos}. Without the bound, the limit for callers who give hardly more time than the handler
     * needs would be so low that the handler is idle at times. The factor is 4 because the durations of single calls of
     * one method differ by about this much.
     */
    private static final double ROOMY = 4;

    /**
     * Maximum factor by which {@link #usualNanos}, the time that calls are usually given, rises in one update of the
     * limit. With calls of several groups, it may rise by this factor for each {@link #STEP_NANOS} since the last
     * update. A few calls that are given much time may come together by chance.
     */
    private static final double MAX_RISE = 1.25;

    /**
     * A call without a result is late if it took at least this part of the time until its deadline. The part is less
     * than 1 because the clocks of caller and server differ a little.
     */
    private static final double NEARLY_ALL = 0.9;

    /**
     * Number of calls over which the mean duration of calls is smoothed. If fewer calls end between two updates of the
     * limit, they change the mean in proportion to their number.
     */
    private static final double SMOOTHED = 64;

    /** After a limit has been restored, late calls do not halve it again for at least this long. */
    private static final long HOLD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Calls count as not having waited if they take less than this multiple of the smallest mean duration that was seen
     * lately.
     */
    private static final double UNHINDERED = 1.25;

    /**
     * A call that is given at least this part of {@link #usualNanos} is compared with its deadline. If it is given
     * less, it is compared only if its time is at least {@code UNHINDERED} times the duration of calls that do not
     * wait. In both cases, its time must be at least {@link #MIN_GIVEN_NANOS}.
     */
    private static final double NEARLY_USUAL = 0.75;

    /**
     * Number of steps, that is, updates of the limit, for which each connection may use only a share of it, after
     * connections have competed. They compete if one of them finds the limit used up while others run handlers of the
     * method. If a connection asks for a handler during these steps, while others run handlers, the count begins anew.
     */
    private static final int SHARED_STEPS = 10;

    private final int maxRunning;

    /**
     * Whether the limit adapts to how long calls take. It does not for a {@link LongPoll} method, whose calls mostly
     * wait for news, so that their durations say nothing about the load.
     */
    private final boolean isLearning;

    /** Number of handlers that run on the server now, for all methods together, except those on event loops. */
    private final AtomicInteger all;

    private final AtomicInteger running = new AtomicInteger();

    /** Groups of connections, by number. An element is null until {@code group} is first called for this number. */
    private final AtomicReferenceArray<@Nullable Group> groups = new AtomicReferenceArray<>(AddressGroups.COUNT);

    /**
     * Returns how many groups of connections belong to each address now. The groups of one address have consecutive
     * numbers: see {@link AddressGroups#groupsPerAddress}.
     */
    private final IntSupplier groupsPerAddress;

    /** Number of groups of connections that run at least one handler of this method. */
    private final AtomicInteger activeGroups = new AtomicInteger();

    private volatile int limit;

    /**
     * Number of calls that have ended since the last update of the limit, and the sum of their durations. See
     * {@link #COUNT_SHIFT} for the layout of the bits.
     */
    private final AtomicLong ended = new AtomicLong();

    /**
     * Number of calls since the last update of the limit whose handlers never began, and the sum of their waiting
     * times. Only calls that waited for a thread for nearly all of the time until their deadlines are counted. The
     * layout of the bits is that of {@link #ended}.
     */
    private final AtomicLong unbegun = new AtomicLong();

    /** Histogram of the durations of the calls that have ended since the last update of the limit. */
    private final HandlerTimeHistogram taken = new HandlerTimeHistogram(MAX_GIVEN_NANOS);

    private final Medians medians = new Medians(AddressGroups.COUNT);

    /**
     * Whether the limit has been used up for at least one call since it was last updated. The call may still have been
     * admitted, because its group ran fewer handlers than its part of the limit. Also true if a limit below the maximum
     * was not used up, but a call was refused because its connection may use only a share of it.
     */
    private volatile boolean wasLimitReached;

    /** Whether, at some time since the last update of the limit, no handler of this method ran. */
    private volatile boolean wasIdle;

    /**
     * Number of remaining steps, that is, updates of the limit, during which a connection may use only a share of it.
     * This holds even if no other connection runs handlers of the method. 0 if a connection that is alone may use all
     * of the limit.
     */
    private volatile int sharedSteps;

    private volatile long nextStepNanos;

    /**
     * Earliest time for another try to update the limit. It is set by a try that found that too few groups of
     * connections had reported calls.
     */
    private volatile long nextLookNanos;

    /** Time at which the limit was last raised because all running handlers had ended. */
    private volatile long caughtUpNanos;

    /**
     * Lock for steps and all other changes of the limit; true while a thread holds it. A thread that finds the lock
     * taken does not wait, and makes no change. The lock guards the fields that follow; the volatile ones among them
     * are read without it.
     */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private long windowBeganNanos;

    /**
     * Part of a call's time until its deadline that its handler needs if it does not wait, from 0 to 1. It is the
     * smallest part that was measured lately.
     */
    private double ownShare = MAX_OWN_SHARE;

    /**
     * Upper bound of {@link #ownShare}, the part of a call's time that its handler needs. It is {@link #MAX_OWN_SHARE},
     * or 1 while hardly any call is late.
     */
    private double maxOwnShare = MAX_OWN_SHARE;

    private double minShareNow = MAX_OWN_SHARE;
    private double minShareBefore = MAX_OWN_SHARE;
    private long memoryEndNanos;

    /**
     * End of the current memory period for the durations of calls: see {@link #MEMORY_NANOS}. Which part of their time
     * calls take is remembered in other periods, whose end is {@code memoryEndNanos}, since some updates of the limit
     * measure only durations.
     */
    private long timeMemoryEndNanos;

    /**
     * The usual time, in nanoseconds: about the 5th percentile of the times that calls are given from their start to
     * their deadline, but with a lower bound. See {@link #USUAL_PART} and, for the bound, {@link #ROOMY}. Until an
     * update of the limit has computed it, it is {@link #MAX_GIVEN_NANOS}.
     */
    private volatile long usualNanos = MAX_GIVEN_NANOS;

    /**
     * Calls that are given less time than this, in nanoseconds, are not compared with their deadlines. They would be
     * late whatever the limit is.
     */
    private volatile long minGivenNanos = MIN_GIVEN_NANOS;

    /**
     * Time that a call takes if it does not wait for other calls, in nanoseconds; 0 while unknown. It is the smallest
     * mean duration that was seen lately.
     */
    private double ownNanos;

    /**
     * Mean duration, in nanoseconds, of about the last {@code SMOOTHED} calls, or of all calls if there were fewer.
     * {@link #smoothed} is their number.
     */
    private double smoothNanos;

    private double smoothed;

    private double minNanosNow = MAX_GIVEN_NANOS;
    private double minNanosBefore = MAX_GIVEN_NANOS;

    /**
     * Middle duration of calls that do not wait for other calls, in nanoseconds; 0 while unknown. It is the smallest
     * value of {@link #middleNanos} that was seen lately.
     */
    private double ownMiddleNanos;

    /**
     * Middle duration of calls, in nanoseconds; 0 while unknown. Half of the time of all handlers goes to calls that
     * take at least this long. Many quick calls lower it less than they would lower a mean.
     */
    private double middleNanos;

    private double minMiddleNow = MAX_GIVEN_NANOS;
    private double minMiddleBefore = MAX_GIVEN_NANOS;

    private long cutNanos;
    private int refusingSteps;

    /**
     * Value of the limit before it began to sink; 0 if it is not sinking. If fewer handlers ran than the limit allowed,
     * it is their number instead. When the limit is at half of this value, its effect on the rate of ended calls is
     * judged.
     */
    private double sinkingFrom;

    /**
     * Rate at which calls ended before the limit began to sink, in calls per nanosecond. If the limit was halved
     * because most calls were late, only calls that brought a result in time are counted.
     */
    private double sinkingRate;

    /**
     * Rate at which calls ended before the limit was last halved because most calls were late, in calls per nanosecond.
     * Calls that brought no result in time are counted too.
     */
    private double sinkingEnds;

    /**
     * Time that a call was found to need without waiting, in nanoseconds, since a lower limit did not make calls
     * quicker. Until {@link #neededUntilNanos}, this time replaces {@link #ownNanos} if it is greater.
     */
    private double neededNanos;

    private long neededUntilNanos;

    /** Time since which every refused call has found that hardly any call ends. The limit is raised if this goes on. */
    private long stalledSinceNanos;

    /**
     * Number of calls that ended, or waited for a thread in vain, between the last update of the limit and
     * {@link #stalledSinceNanos}. Valid only while {@code stalledWindowNanos} equals {@code windowBeganNanos}.
     */
    private long stalledEnds;

    private long stalledWindowNanos = Long.MIN_VALUE;

    /** Whether most calls were late, as the last update of the limit found. */
    private boolean wereMostLate;

    private boolean isProbe;

    /** Whether the limit has been halved because most calls were late, and the effect is still being checked. */
    private boolean isCut;

    private long probeEndNanos;

    /**
     * Creates a limit that adapts to how long calls take, and whose groups of connections all have different addresses.
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
     * @param groupsPerAddress returns how many groups of connections belong to one address now; the groups of one
     *     address have consecutive numbers, counted from group 0
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

    /** Returns the group of connections with this number, from 0 to {@link AddressGroups#COUNT} - 1. */
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
     * Connections that count together when the limit is computed, usually all from one address. A group counts the
     * handlers that its connections run, and records how their calls end. The limit is computed from what most groups
     * record, so no group decides for the others. {@link AddressGroups} decides which connections form a group.
     */
    public final class Group {
        private final AtomicInteger running = new AtomicInteger();

        /** What the calls of this group have shown; null if the limit does not adapt. */
        private final @Nullable GroupStats stats = isLearning ? new GroupStats() : null;

        /** Admits or refuses a call of a connection that runs no other handler: see {@link #admit(int, int)}. */
        public boolean admit() {
            return admit(0, 0);
        }

        /**
         * Admits a call and counts it as a running handler, or refuses it. A connection that runs n handlers may run
         * another one only if the maximum for all methods leaves at least n further handlers free. So something always
         * remains for a connection that runs few handlers. The same rule holds for the handlers of this method and its
         * limit. But a connection that is the only one to use the method may use all of the limit, until another
         * connection finds the limit used up. See {@link Ledger} for the source of the rule.
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
         * Stops counting an admitted call as a running handler, and does not evaluate how long it took. For each
         * admitted call, exactly one of this method, {@link #release(long, long, long, boolean)} and
         * {@link #leaveUnbegun} is called, once.
         */
        public void release() {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release();
        }

        /**
         * Stops counting an admitted call as a running handler, and evaluates how long it took. For each admitted call,
         * exactly one of this method, {@link #release()} and {@link #leaveUnbegun} is called, once.
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
         * Stops counting an admitted call whose handler never began. If the call waited for a thread for nearly all of
         * the time until its deadline, it counts as late. It does not count as ended, since the rate at which calls end
         * says how much the method can do. A call whose caller gave up earlier is not evaluated.
         */
        public void leaveUnbegun(long beganNanos, long deadlineNanos, long nowNanos) {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.leaveUnbegun(stats, beganNanos, deadlineNanos, nowNanos);
        }

        /** Reports that a call of this method has been refused: see {@link AdmissionLimit#refused(long)}. */
        public void refused(long nowNanos) {
            AdmissionLimit.this.refused(nowNanos);
        }

        /** Returns how many handlers of the method may run at the same time. */
        public int limit() {
            return limit;
        }

        /** Returns how many handlers of the method run now, for all groups together. */
        public int running() {
            return AdmissionLimit.this.running.get();
        }
    }

    /**
     * What the calls of one group of connections have shown. It has the counters since the last update of the limit,
     * and the values that they had at that update.
     */
    private static final class GroupStats {
        // The next fields count calls since the last update of the limit. Any thread writes them.

        /**
         * Number of the group's calls that ended in time and with a result, and the sum of their durations. The layout
         * of the bits is that of {@link AdmissionLimit#ended}.
         */
        private final AtomicLong done = new AtomicLong();

        /**
         * Number of the group's calls that ended too late or without a result, and the sum of their given times. A
         * given time is the time from the start of a call to its deadline. The layout of the bits is that of
         * {@link AdmissionLimit#ended}.
         */
        private final AtomicLong undone = new AtomicLong();

        private final AtomicInteger unbegun = new AtomicInteger();
        private final AtomicLong shares = new AtomicLong();
        private final GivenTimes given = new GivenTimes(MIN_GIVEN_NANOS, MAX_GIVEN_NANOS);

        // The next fields hold the values that the counters above had at the last update of the limit. The lock
        // "stepping" guards them.
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

        /** Returns the mean duration, in nanoseconds, of the calls that ended in time and with a result. */
        private double doneNanos() {
            return mean(doneSum);
        }

        /** Returns the mean duration, in nanoseconds, of all calls that ended, late or not. */
        private double tookNanos() {
            // A call that did not end in time counts with the time that it was given, since most such calls ended about
            // then.
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
                // A refusal because of a share counts too. Connections that share a limit always leave a part of it
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
     * Returns whether a call is admitted because its group runs fewer handlers than its part of the limit. This is
     * asked when the limit, or the connection's share of it, is used up. The answer is false if no other group runs
     * handlers. The call's connection must run at most as many handlers of the method as the group's part leaves free,
     * or else all handlers of the group.
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
     * Checks, after a call has been refused, whether the limit has to be raised. Normally calls that end update the
     * limit. But if the running calls use up the limit and do not end, only a refused call can find this. Nothing is
     * done unless an update of the limit is overdue.
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
                // The running calls use up the present limit, so the new limit must be greater than their number.
                sinkingFrom = Math.max(sinkingFrom, 2.0 * running.get());
                restoreLimit();
            } else if (isStalled(nowNanos, count + (unbegun.get() >>> COUNT_SHIFT))) {
                // The running calls have used up the limit for a long time, so nobody knows how many other calls the
                // method could handle. So the limit is at least doubled.
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
     * Returns whether calls have been refused for so long, while hardly any ended, that the limit has to be raised.
     * Hardly any means fewer than half the number of running calls. The time that must have passed is between
     * {@link #PATIENCE_NANOS} and {@link #MAX_PATIENCE_NANOS}.
     *
     * @param ends number of calls, since the last update of the limit, that ended or waited for a thread in vain
     */
    private boolean isStalled(long nowNanos, long ends) {
        if (stalledWindowNanos != windowBeganNanos || 2 * (ends - stalledEnds) >= running.get()) {
            stalledWindowNanos = windowBeganNanos;
            stalledEnds = ends;
            stalledSinceNanos = nowNanos;
            return false;
        }
        // Calls of an overloaded method end only when their time is over. So if most calls were late, the limit is
        // raised at the earliest after the usual time, or after MAX_PATIENCE_NANOS if that is shorter.
        double need = needNanos(nowNanos);
        double longest = wereMostLate && need > 0 ? Math.max(usualNanos, ROOMY * need) : ROOMY * need;
        double patience = Math.min(MAX_PATIENCE_NANOS, longest);
        return nowNanos - stalledSinceNanos >= Math.max(PATIENCE_NANOS, patience);
    }

    /**
     * Returns how long a call takes that does not wait for other calls, in nanoseconds, as seen lately; 0 if unknown.
     */
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
            // No other call runs now, so the duration of this call is not recorded. The time until the next call is
            // idle time.
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
            // The call failed or was cancelled early, or began after its deadline, so it is not evaluated.
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
     * Records how a call has ended, and updates the limit if an update is due.
     *
     * @param counted counter to which the call is added: {@link #ended}, or {@link #unbegun} for a call whose handler
     *     never began
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
     * Raises the limit after the last running call of the method has ended, if that call was quick enough. It must have
     * taken less than {@code NEARLY_ALL} of {@link #usualNanos}, the time that calls are usually given. Otherwise the
     * limit would stay low for calls that come in bursts with idle time between the bursts.
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

    /**
     * Takes a step: updates the limit, if an update is due, from the calls that have ended since the last update. The
     * caller holds the lock {@link #stepping}.
     */
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
            // Most calls were late, and some of them got no thread. So the limit is halved, and nothing checks the
            // effect later.
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
        // Computed even if no call was compared with its deadline: if this minimum is too great, no call would ever be
        // compared.
        minGivenNanos = Math.max(MIN_GIVEN_NANOS, (long) Math.min(UNHINDERED * ownNanos, NEARLY_USUAL * usualNanos));
        if (counted == 0) {
            return;
        }
        double used = Math.max(1 / SHARE_UNIT, shareTaken());
        // If most calls of several groups are late, the calls did have to wait for each other. A single group may have
        // given its calls too little time, so only their duration counts.
        boolean isUnhindered = tookByMost < UNHINDERED * ownNanos && !(areMany && areMostLate);
        boolean areSomeLate = SOME_LATE * late >= counted;
        maxOwnShare = areSomeLate ? MAX_OWN_SHARE : 1;
        double current = count / elapsed;
        // Includes the calls that have not ended, by Little's law. The calls that end first are the quickest, so a mean
        // over them alone would be too short.
        double needed = Math.max(tookByMost, running.get() / current);
        // How long a trial lasts, or the check of a halved limit. It is bounded, since callers choose how long their
        // calls take.
        long trialNanos = (long) Math.min(tookByMost, Math.max(PATIENCE_NANOS, usualNanos));
        // A lower limit refuses mainly calls of the group with the most calls, which shows nothing about the other
        // groups. So in these rates no group counts for many more calls than most groups do.
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
        // The effect of a change is seen at the earliest when calls end that began after the change.
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
        // In a flood of quick calls, the rate at which calls end is high, although hardly any long ones end. So it is
        // converted to the rate of calls that take tookByMost each and the same time in total.
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

    /** Reads one number from what a group of connections has reported, such as the mean duration of its calls. */
    private interface GroupFigure {
        double value(GroupStats stats);
    }

    /**
     * Value in {@link #counts} for a group, or an address, that has reported no call yet. It runs handlers, but none of
     * its calls has ended since the last update of the limit.
     */
    private static final double NOT_REPORTED = -1;

    private final double[] counts = new double[AddressGroups.COUNT];

    /**
     * Weight of each group of connections where times until the deadline are evaluated. It is the number of the group's
     * calls that were compared with their deadlines, but bounded: see {@code weigh}. The index is the group's number.
     */
    private final double[] weights = new double[AddressGroups.COUNT];

    /**
     * Weight of each group of connections where durations of calls are evaluated. It is the number of the group's calls
     * that have ended, but bounded: see {@code weigh}. The index is the group's number.
     */
    private final double[] endedWeights = new double[AddressGroups.COUNT];

    /**
     * Part of {@link #endedWeights}, the weight of each group's ended calls, for calls that ended in time and with a
     * result. The index is the group's number.
     */
    private final double[] doneWeights = new double[AddressGroups.COUNT];

    /**
     * Weighted number of calls that were compared with their deadlines: the sum of {@link #weights} over all groups.
     */
    private double counted;

    /** Weighted number of calls that have ended: the sum of {@link #endedWeights} over all groups. */
    private double endedByMost;

    /**
     * Weighted number of calls that ended in time and with a result: the sum of {@link #doneWeights} over all groups.
     */
    private double done;

    /** Number of late calls among those in {@link #counted}, with the same weights. */
    private double late;

    /** Number of calls that were compared with their deadlines before the last update of the limit, without weights. */
    private long countedCalls;

    /** Number of groups of connections that had at least one call end before the last update of the limit. */
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
     * Returns whether enough calls have ended, in enough groups of connections, to update the limit. A group counts for
     * at most {@code MAX_OF_MIDDLE} times as many calls as the median group. A group that runs handlers, and has had no
     * call end, has 0 calls in that median, so no update is based only on a group that calls often. An update that is
     * overdue by {@link #PATIENCE_NANOS} no longer waits for such groups.
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
     * Computes how much each group of connections counts, from the number of its calls. A group counts for at most
     * {@code MAX_OF_MIDDLE} times as many calls as the median group of its address. An address counts for at most
     * {@code MAX_OF_MIDDLE} times as many calls as the median address.
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
     * Returns the maximum weight for the groups or addresses in a range, from the numbers of their calls. It is
     * {@code MAX_OF_MIDDLE} times the median of the numbers that are not 0; in the median, {@link #NOT_REPORTED} counts
     * as 0 calls. If at most two numbers are not 0, there is no maximum, since the smaller one would determine it.
     */
    private double bound(double[] counts, int begin, int end) {
        medians.clear();
        for (int i = begin; i < end; i++) {
            medians.add(Math.max(0, counts[i]), counts[i] == 0 ? 0 : 1);
        }
        return medians.size() > 2 ? MAX_OF_MIDDLE * medians.median() : Double.MAX_VALUE;
    }

    /** Returns the weighted median, over all groups of connections, of a number that the groups report. */
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
     * Returns the middle time that calls are given until their deadlines, in nanoseconds. It is the weighted median of
     * {@link GivenTimes#middleNanos} over all groups of connections. While hardly any call is late, the weight of a
     * group is the time that it gives in total, so callers who give little time have little weight, even if they are
     * many. In an overload, the weight is the number of the group's calls; otherwise the limit would serve only callers
     * who give much time.
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

    /**
     * Returns whether more than half of all the time that calls were given belonged to calls that brought no result in
     * time.
     */
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
     * Returns the new value of {@link #usualNanos}: the measured value, unless it is much greater than the present one.
     * If few calls were counted, it is not much smaller than the present one either, since most of these calls may come
     * from a minority of the groups.
     *
     * @param usual the measured value, in nanoseconds
     * @param elapsed time since the last update of the limit, in nanoseconds
     */
    private double gradually(double usual, double elapsed) {
        double change = Math.pow(MAX_RISE, Math.max(1, elapsed / STEP_NANOS));
        boolean areFew = countedCalls < SMOOTHED && usualNanos < MAX_GIVEN_NANOS;
        double min = areFew ? usualNanos / change : 0;
        return Math.min(MAX_GIVEN_NANOS, Math.max(min, Math.min(change * usualNanos, usual)));
    }

    /**
     * Returns the mean duration of calls, in nanoseconds, from their number and the sum of their durations.
     *
     * @param sum value of {@link #ended}, or of the same layout; must not be 0
     */
    private static double mean(long sum) {
        return sum(sum) / (sum >>> COUNT_SHIFT);
    }

    private static double sum(long sum) {
        return (sum & (1L << COUNT_SHIFT) - 1) * (double) (1L << TIME_UNIT_SHIFT);
    }

    /**
     * Halves the limit, because most calls are late although they were given enough time. The limit is halved again, at
     * the earliest, after the duration of a call, or after the usual time if that is shorter.
     *
     * @param took mean duration of a call, in nanoseconds
     * @return false, without changing the limit, if it was halved or restored too recently
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
     * Learns how long a call takes that does not wait for other calls. The results are {@link #ownNanos} and
     * {@link #ownMiddleNanos}. {@link #learn} learns separately which part of the time until its deadline a call takes,
     * since callers choose their deadlines.
     */
    private void learnTime(long now, boolean refusing, double took, double count, double elapsed) {
        // Smoothed, since the smallest of many means would be too small if each were a mean over only a few calls.
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
     * Updates {@link #middleNanos}, the middle duration of calls, from the calls that ended before this update of the
     * limit. These calls count by their part of the time that all handlers took since the last update. So quick calls
     * that end while long calls still run change hardly anything.
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
            // now replaces the earlier minimum. learn() does the same with the part of their time that calls take.
            minMiddleNow = middleNanos;
            minMiddleBefore = middleNanos;
        }
    }

    /**
     * Decides whether a limit that has sunk to half of its earlier value stays low. If calls end at about the same rate
     * as before, the calls that are kept out had only waited. Then the limit stays low or, after a trial, returns to
     * its earlier value. If calls end at a lower rate, the limit is restored.
     *
     * @param current rate at which calls end now, in calls per nanosecond
     * @param used part of the time until their deadlines that calls took
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
     * Returns whether calls need all the time that they took, as the effect of halving the limit shows. They do if
     * fewer calls end, and fewer bring a result in time. Had they waited for each other, they would end at the same
     * rate under a lower limit. If many calls still end, but hardly any of them brings a result in time, the limit is
     * still too high, and the answer is false.
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
     * Remembers how long calls take without waiting, after a lower limit has shown it. The smallest mean duration would
     * be too short, since the quickest calls determine it. For at least {@link #HOLD_NANOS}, late calls do not halve
     * the limit.
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
            // At the smallest limit, calls wait for each other as little as possible. So the part of their time that
            // calls take now replaces the earlier one.
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
     * Computes the new limit: the rate at which calls end, multiplied by the time that a call should take.
     *
     * @param refusing whether calls have been refused since the last update of the limit
     * @param areSomeLate whether at least one in {@code SOME_LATE} calls was late. If not, no limit is needed, even if
     *     calls take nearly all of their time, as a call that waits for news does
     * @param used part of the time until their deadlines that calls took: the median of the groups' means
     * @param inTheirTime number of calls that end, at the current rate, in a span as long as {@link #usualNanos}
     */
    private void adapt(boolean refusing, boolean areSomeLate, double used, double inTheirTime) {
        double target = (1 + ownShare) / 2;
        // If isCalm is true, hardly any of the calls that have ended had to wait. But the calls that still run may have
        // waited longer.
        boolean isCalm = used < ownShare + (target - ownShare) / 4;
        int now = limit;
        // If no call was refused, it is not known whether calls wait for each other. Then a limit below the maximum is
        // lowered only if calls come close to their deadlines, and a limit at the maximum only if, besides, some calls
        // were late.
        if (refusing || (now < maxRunning ? used > target : areSomeLate && used > (1 + target) / 2)) {
            double goal = inTheirTime * target;
            if (isCalm) {
                goal = Math.max(goal, now * 1.1 + 1);
            }
            // A limit at the maximum has admitted more than enough calls. So it is set to the goal at once, unless
            // isCalm is true.
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
