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
 * Limits how many handlers of one method run at the same time. The limit is the rate at which calls end, multiplied by
 * the target latency. By Little's law, the number of running calls divided by the number of calls that end per second
 * is the time that a call takes. The target latency is the time that the handler itself needs, plus half of the rest of
 * the time that its caller gives. So admitted calls end in time, however few calls the resources behind the handler can
 * serve. All other calls are refused immediately, which costs next to nothing. After the first late calls no other call
 * has to be late, because the limit is computed; a limit that is found by trial would make calls late with each trial.
 *
 * <p>The time that a handler itself needs is estimated as a share of the time that its callers give. The share is
 * measured on calls that did not have to wait. While calls are refused, a handler always has to wait. So while calls
 * are refused, the estimate is made only when the limit has sunk to half of its earlier value. If the limit does not
 * sink so far, it is halved for a moment now and then to make the estimate: see {@code PROBE_STEPS}. If calls then end
 * at the same rate as before, they had been waiting for each other. If calls end at a lower rate, the time that they
 * took is the time that the handlers themselves need, and the limit is restored.
 *
 * <p>If most calls wait in vain for a thread for nearly all of their time, or end too late, the limit is halved. Other
 * algorithms do so when a request is dropped. The effect of the halving is checked as well: if far fewer calls bring a
 * result while the limit is halved, the late calls had not waited for other calls, and the limit is restored. While
 * hardly any call ends, this check is made when a call is refused.
 *
 * <p>Callers decide how much time they give, so the time that one caller gives must not determine the limit for the
 * others. The limit learns nothing from calls that failed or were cancelled early, whether or not their handlers had
 * begun, and nothing from calls that were given less time than a call takes if it does not wait. A given time above the
 * usual time counts as the usual time, which is about the 5th percentile of the given times. A single group may give
 * its calls too little time. So if only calls of one group end, it does not matter how many of them end late: they do
 * not lower the limit as long as they take, on average, less than 1.25 times the smallest mean duration that was seen
 * lately.
 *
 * <p>The limit learns how long calls take, how much time they are given, and which of them are late, from what most
 * groups of peers report. Each group counts for at most twice as many calls as the median group has. While a group of
 * peers runs fewer handlers than its part of the limit, none of its calls is refused because of what other groups run.
 * So one address does not decide for the others. See {@link Group}.
 *
 * <p>Each method has its own limit, because methods wait for different things: an overloaded method takes nothing from
 * the others. Handlers on the event loop need no limit, since each event loop runs one handler at a time.
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
     * The limit is computed anew in steps. Of the calls of a group that end between two steps, the first ones, up to
     * this number, are all evaluated: how late they were, and how much time they were given. Of the later ones, only
     * one in {@link #SAMPLED} is evaluated, which is enough.
     */
    private static final int ALL_COUNT = 256;

    private static final int SAMPLED = 16;

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LOOK_NANOS = STEP_NANOS / 8;

    /** Minimum number of calls from which a step learns anything. */
    private static final int MIN_COUNT = 8;

    /**
     * Length of a memory period. The time that handlers need is the minimum that was seen in the current period and in
     * the one before it.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Number of steps with refused calls from one trial to the next. In a trial the limit is halved for a moment, to
     * find out whether calls then end at a lower rate.
     */
    private static final int PROBE_STEPS = 64;

    /**
     * Calls count as ending at the same rate as before if the new rate is at least this part of the earlier rate. The
     * part is less than 1 because a rate that is measured over one step is noisy.
     */
    private static final double SAME_RATE = 0.8;

    /**
     * If calls end at less than this part of the earlier rate, the lowered limit only keeps calls out and has no other
     * effect.
     */
    private static final double STOPPED_RATE = 0.3;

    /**
     * When a call is refused, it is checked whether calls have stopped ending since the limit sank. For that, an
     * expected number is computed: how many calls would have ended since the last step at the earlier rate, that is,
     * the rate before the limit sank. The limit concludes that calls have stopped ending only if the expected number is
     * at least this constant. As a rule, fewer than {@link #MIN_COUNT} calls have really ended, since otherwise there
     * would have been another step. So it is certain that fewer calls end than expected.
     */
    private static final int ENOUGH_EXPECTED = 2 * MIN_COUNT;

    /**
     * If too few calls end for a step, the step becomes overdue. When it has been overdue for this long, each refused
     * call checks the limit.
     */
    private static final long OVERDUE_NANOS = 2 * STEP_NANOS;

    /**
     * If less than one call in {@code SOME_LATE} is late, no limit is needed, even if calls take nearly all of their
     * time.
     */
    private static final int SOME_LATE = 64;

    /**
     * A limit may keep calls out and help nobody. Such a limit is recognised by how few calls end: in a certain time,
     * fewer calls end than half the number of running calls. Then the limit is raised. This constant is the minimum of
     * that time. If {@code ROOMY} times the duration of a call is longer, that is used instead: see
     * {@code MAX_PATIENCE_NANOS}.
     */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * A longer time may be used instead of {@code PATIENCE_NANOS}: {@code ROOMY} times the duration of a call or, if
     * most calls were late and the usual time is longer, the usual time. This constant is the maximum of that longer
     * time. A maximum is needed because callers choose how long calls take.
     */
    private static final long MAX_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Maximum share of the callers' time that handlers are assumed to need themselves while some calls are late. A
     * larger share would leave too little time for waiting, and then a limit could change nothing.
     */
    private static final double MAX_OWN_SHARE = 0.95;

    /**
     * When the limit has been halved because most calls were late, the effect is checked for a while. If calls then
     * take at most this part of the time that they are given, and none is late, no call waits for other calls any more.
     * In this case the check ends early, and the limit is not restored.
     */
    private static final double FAR_FROM_LATE = 0.25;

    /**
     * Number of the lowest bit of {@link #ended} that counts calls. The bits from this one on count calls. The bits
     * below it sum up the durations of these calls, in units of 2^16 ns and at most a minute each.
     */
    private static final int COUNT_SHIFT = 40;

    private static final int TIME_UNIT_SHIFT = HandlerTimeHistogram.UNIT_SHIFT;

    /**
     * Number of the lowest bit of {@link GroupStats#shares} that counts late calls. The bits below it hold a sum in
     * units of 1/1024. Each call adds the time that it took, divided by the time that it was given, or by the usual
     * time if that is shorter. A call adds at most 2.
     */
    private static final int LATE_SHIFT = 40;

    private static final double SHARE_UNIT = 1024;
    private static final double MAX_SHARE = 2;

    /**
     * From a call that is given less time than this, the limit learns neither whether calls are late nor which share of
     * their time they take. The reason is that any pause of the process makes such a call late.
     */
    private static final long MIN_GIVEN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MAX_GIVEN_NANOS = TimeUnit.MINUTES.toNanos(1);

    /**
     * The usual time is the 5th percentile of the times that calls are given: out of this number of calls, one is given
     * at most the usual time. A limit for callers who give little time serves those who give much as well.
     */
    private static final int USUAL_PART = 20;

    /**
     * The usual time has a lower bound, which is this multiple of a duration. That duration is the mean duration of
     * calls that do not wait, or {@code ownMiddleNanos} if that is longer. But the lower bound is never greater than
     * the middle given time. Half of all the time that is given goes to calls that are given at least the middle given
     * time. The lower bound is needed because a limit for callers who give hardly more time than the handler needs
     * would leave the handler idle while other callers have time. The factor is 4 because the durations of single calls
     * of one method differ by about this much.
     */
    private static final double ROOMY = 4;

    /**
     * Maximum factor by which the usual time rises in one step. The rise is bounded because a few calls with much time
     * may happen to come together. If many calls are counted, the usual time may fall to any value in one step.
     */
    private static final double MAX_RISE = 1.25;

    /**
     * A call without a result counts as late if it took at least this part of its time. The part is less than 1 since
     * the clocks of caller and server differ a little.
     */
    private static final double NEARLY_ALL = 0.9;

    /**
     * If this many calls end in one step, their mean duration replaces the smoothed mean duration. If fewer calls end,
     * they move the smoothed mean in proportion to their number.
     */
    private static final double SMOOTHED = 64;

    /** After a limit has been restored, late calls do not halve it for at least this long. */
    private static final long HOLD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Calls have not waited if they take less than this multiple of the smallest mean duration that was seen lately.
     */
    private static final double UNHINDERED = 1.25;

    /**
     * A call that is given at least this part of the usual time, and at least {@code MIN_GIVEN_NANOS}, is always given
     * enough time for the limit to learn from it. A call that is given a smaller part has enough time only if it is
     * given at least {@code UNHINDERED} times the duration of calls that do not wait.
     */
    private static final double NEARLY_USUAL = 0.75;

    /**
     * When a connection finds the limit used up while other connections run handlers of the method, each connection has
     * only its share of the limit for this number of steps. If a connection asks for a handler during these steps,
     * while other connections run handlers of the method, the number of remaining steps is set to this number again.
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
     * Calls, since the last step, that waited for a thread for nearly all of their time, and whose handlers never
     * began. The layout of the bits is that of {@link #ended}.
     */
    private final AtomicLong unbegun = new AtomicLong();

    /** Time that the calls in {@link #ended} took in total, for each range of durations. */
    private final HandlerTimeHistogram taken = new HandlerTimeHistogram(MAX_GIVEN_NANOS);

    private final Medians medians = new Medians(AddressGroups.COUNT);

    /**
     * Whether, since the last step, a call has found the limit used up, or has been refused because of its connection's
     * share of a limit below the maximum. A call that found the limit used up may have been admitted all the same,
     * because its group ran fewer handlers than its part of the limit.
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
     * Earliest time at which a step that is due is tried again. At the last try, the step was not taken, since too few
     * of the groups that run handlers had calls that had ended.
     */
    private volatile long nextLookNanos;

    /** Time at which the limit was last raised because all running handlers had ended. */
    private volatile long caughtUpNanos;

    /**
     * Lock that a thread holds while it takes a step or changes the limit in another way. The thread that finds such a
     * change due takes the lock, unless another thread holds it. The lock guards the fields that follow; the volatile
     * ones among them are read without it.
     */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private long windowBeganNanos;

    /**
     * Part of the callers' time that handlers need themselves, from 0 to 1. It is the smallest part that was seen
     * lately.
     */
    private double ownShare = MAX_OWN_SHARE;

    /** Upper bound of {@link #ownShare}. It is 1, all of the callers' time, while hardly any call is late. */
    private double maxOwnShare = MAX_OWN_SHARE;

    private double minShareNow = MAX_OWN_SHARE;
    private double minShareBefore = MAX_OWN_SHARE;
    private long memoryEndNanos;

    /**
     * End of the current memory period for durations. It differs from {@code memoryEndNanos}, since durations are also
     * learnt in steps from which no shares are learnt.
     */
    private long timeMemoryEndNanos;

    /** The usual time: see {@link #USUAL_PART}. It is {@code MAX_GIVEN_NANOS} until the first step has learnt it. */
    private volatile long usualNanos = MAX_GIVEN_NANOS;

    /** Calls that are given less time than this are not evaluated, since they are late whatever the limit is. */
    private volatile long minGivenNanos = MIN_GIVEN_NANOS;

    /**
     * Duration of calls that do not wait, in nanoseconds: the smallest mean duration that was seen lately. It is 0
     * while it is not known. {@link #ownShare} is the corresponding share of the callers' time.
     */
    private double ownNanos;

    /**
     * Mean duration over about the last {@code SMOOTHED} calls. While fewer calls have ended, it is the mean over all
     * of them; their number is {@link #smoothed}.
     */
    private double smoothNanos;

    private double smoothed;

    private double minNanosNow = MAX_GIVEN_NANOS;
    private double minNanosBefore = MAX_GIVEN_NANOS;

    /** Smallest value of {@code middleNanos} that was seen lately. */
    private double ownMiddleNanos;

    /**
     * Current middle duration, in nanoseconds; 0 while it is not known. Half of the time of all handlers goes to calls
     * that take at least as long as the middle. Quick calls, however many there are, lower the middle only if together
     * they take as much time as all other calls. A mean over calls would be lowered by their number alone.
     */
    private double middleNanos;

    private double minMiddleNow = MAX_GIVEN_NANOS;
    private double minMiddleBefore = MAX_GIVEN_NANOS;

    private long cutNanos;
    private int refusingSteps;

    /** Limit at which the current decline of the limit began; 0 if the limit is not in decline. */
    private double sinkingFrom;

    /**
     * Rate at which calls ended when the decline began, in calls per nanosecond. The decline may have begun with a cut:
     * the limit was halved because most calls were late. In that case only calls that brought a result in time are
     * counted.
     */
    private double sinkingRate;

    /**
     * Rate at which calls ended when the limit was last halved because most calls were late, in calls per nanosecond.
     * Calls that brought no result in time are included.
     */
    private double sinkingEnds;

    /**
     * Duration of calls that did not become quicker under a lower limit, in nanoseconds. Until
     * {@code neededUntilNanos}, the greater of this duration and {@link #ownNanos} counts as the duration of calls that
     * do not wait.
     */
    private double neededNanos;

    private long neededUntilNanos;

    /**
     * Time at which a refused call first found that hardly any call ends. All calls that were refused since then have
     * found the same.
     */
    private long stalledSinceNanos;

    /**
     * Number of calls that had ended since the last step, at the time {@code stalledSinceNanos}. The calls in
     * {@code unbegun} are included. The number is valid only as long as {@code stalledWindowNanos} equals
     * {@code windowBeganNanos}.
     */
    private long stalledEnds;

    private long stalledWindowNanos = Long.MIN_VALUE;

    /** Whether most of the calls that were counted in the last step were late. */
    private boolean wereMostLate;

    private boolean isProbe;

    /**
     * Whether the limit has been halved because most calls were late, and it is not known yet whether calls still end
     * at the same rate.
     */
    private boolean isCut;

    private long probeEndNanos;

    /**
     * Creates a limit that learns, and whose groups all belong to different addresses.
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
     * Group of peers. {@link Ledger} puts peers into groups so that most of the peers of a group have the same address.
     * The group counts the handlers that its peers run, and records what their calls show. The limit learns from what
     * most groups report. So no group decides for the others by how many calls it makes, how long they take or how
     * little time it gives them.
     */
    public final class Group {
        private final AtomicInteger running = new AtomicInteger();

        /** What the calls of this group have shown; null if the limit does not learn. */
        private final @Nullable GroupStats stats = isLearning ? new GroupStats() : null;

        /**
         * Admits a call or refuses it, as {@link #admit(int, int)} does, for a connection that runs no other handler.
         */
        public boolean admit() {
            return admit(0, 0);
        }

        /**
         * Admits a call or refuses it. A connection may run another handler if it runs at most as many handlers as the
         * maximum for all methods still leaves free. So a greedy connection gets half of the maximum, each further
         * greedy connection gets a part of what remains, and something always remains for a connection that runs few
         * handlers. The same rule holds for the handlers of this method and the limit of this method. So connections
         * share a limit that has sunk, and a connection does not get a greater share by more requests. But while a
         * connection is the only one to use the method, it may use all of the limit. That ends when another connection
         * finds the limit used up. See {@link Ledger} for the source of the rule. If the limit is below the maximum, a
         * call that is refused because of its connection's share counts as refused because of the limit. Otherwise the
         * limit might never seem used up, since connections that share a limit always leave a part of it free.
         *
         * <p>A group's part of the limit is the limit divided by the number of groups that run handlers of this method.
         * A group that runs fewer handlers than its part is not refused because of the limit, even if other groups use
         * all of the limit. So peers that run few handlers lose nothing if other peers run handlers for long, or if the
         * limit sinks because of such handlers. For this reason, more handlers of this method may run than the limit
         * says. If 16 groups begin one after the other, and each group keeps all handlers of its part running, up to
         * 3.4 times the limit may run: 1/1 + 1/2 + ... + 1/16.
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
         * Stops counting an admitted call as a running handler. The limit learns nothing from the call. For each
         * admitted call, one of three methods is called exactly once: this one, {@code release} with times, or
         * {@code leaveUnbegun}.
         */
        public void release() {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release();
        }

        /**
         * Stops counting an admitted call as a running handler, and learns from how long the call took. Called at most
         * once for each admitted call, and then instead of {@code release} without times and {@code leaveUnbegun}.
         *
         * @param isDone whether the handler brought a result. The limit learns nothing from a call that failed or was
         *     cancelled early, since callers decide whether that happens
         */
        public void release(long beganNanos, long deadlineNanos, long nowNanos, boolean isDone) {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release(stats, beganNanos, deadlineNanos, nowNanos, isDone);
        }

        /**
         * Stops counting an admitted call whose handler never began. If the call has waited for a thread for nearly all
         * of its time, the called method, or other methods whose handlers use the same threads, admit more calls than
         * can be executed. Such a call, which other limit algorithms call a drop, counts as late. It does not count as
         * ended, since the rate of ended calls says how much can be done. The limit learns nothing from a call whose
         * caller gave up earlier.
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
         * Calls that ended too late or without a result. The layout of the bits is that of
         * {@link AdmissionLimit#ended}, but the lower bits sum up the times that the calls were given.
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
            // Most calls that did not end in time ended about when their time was over. So the time that such a call
            // was given counts as its duration.
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
                // A refusal because of a share counts as a refusal because of the limit. Otherwise the limit might
                // never seem used up, since connections that share a limit always leave a part of it free.
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
     * Returns whether a call has to be admitted although the limit, or the connection's share of it, is used up. Three
     * conditions must be met. Other groups run handlers too. The call's group runs fewer handlers than its part of the
     * limit. The call's connection runs at most as many handlers of the method as the group may still begin within its
     * part, or it runs all handlers of the group.
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
     * calls do not end, and the limit is at most their number, no other call is admitted. Then only a refused call can
     * find that the limit prevents calls that could be executed. In this case the limit is raised again and again,
     * until the calls that use it up have ended.
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
                // The new limit must be greater than the number of running calls, since these calls use up the present
                // limit.
                sinkingFrom = Math.max(sinkingFrom, 2.0 * running.get());
                restoreLimit();
            } else if (isStalled(nowNanos, count + (unbegun.get() >>> COUNT_SHIFT))) {
                // The running calls have used up the limit for a long time. That shows nothing about how many other
                // calls could be executed. So the limit rises to twice its value, or to twice the number of running
                // calls if that is greater.
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
     * running ones. {@code PATIENCE_NANOS} says how long "long" is.
     */
    private boolean isStalled(long nowNanos, long ends) {
        if (stalledWindowNanos != windowBeganNanos || 2 * (ends - stalledEnds) >= running.get()) {
            stalledWindowNanos = windowBeganNanos;
            stalledEnds = ends;
            stalledSinceNanos = nowNanos;
            return false;
        }
        // If the method is overloaded and the limit has not been cut far enough yet, calls end only when their time is
        // over. In that case the limit is raised at the earliest after the usual time, or after MAX_PATIENCE_NANOS if
        // that is shorter.
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
            // When this call ended, no other call was running, so the limit does not learn from this call's duration.
            // The time from now until the next call is idle time.
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
            // The limit learns nothing from a call that failed or was cancelled early. Nor does it learn from a call
            // that was given no time, because the call began when its time was already over.
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
     * Raises the limit when all admitted calls have ended, if the last one took less than {@code NEARLY_ALL} of the
     * usual time. Such a short duration shows that the limit does not admit too many calls. Nothing else can be learnt
     * from calls that come in bursts with idle time between the bursts. Without this method, the limit would stay as
     * low as one bad moment has made it.
     */
    private void raiseWhenIdle(long beganNanos, long nowNanos) {
        long took = nowNanos - beganNanos;
        if (took < NEARLY_ALL * usualNanos && stepping.compareAndSet(false, true)) {
            try {
                if (!isProbe && nowNanos - caughtUpNanos >= STEP_NANOS) {
                    caughtUpNanos = nowNanos;
                    // If twice as many calls run, each may take twice as long. So the limit is doubled only if such a
                    // call would still end within the usual time.
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
            // Most calls were late, and some of them got no thread. The limit is cut, whatever the rate at which the
            // few other calls end, and it is not checked afterwards whether that rate has become lower.
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
        // This minimum is computed even if no call was counted: the earlier minimum may be greater than the time that
        // any call is given, and then no call would ever be counted.
        minGivenNanos = Math.max(MIN_GIVEN_NANOS, (long) Math.min(UNHINDERED * ownNanos, NEARLY_USUAL * usualNanos));
        if (counted == 0) {
            return;
        }
        double used = Math.max(1 / SHARE_UNIT, shareTaken());
        // If most calls of several groups are late, the calls did have to wait. If all calls are of one group, this
        // group may have given them too little time, so only their duration shows whether they had to wait.
        boolean isUnhindered = tookByMost < UNHINDERED * ownNanos && !(areMany && areMostLate);
        boolean areSomeLate = SOME_LATE * late >= counted;
        maxOwnShare = areSomeLate ? MAX_OWN_SHARE : 1;
        double current = count / elapsed;
        // Little's law includes the calls that have not ended. The calls that end first are the quickest, so the mean
        // duration of the ended calls alone would be too small.
        double needed = Math.max(tookByMost, running.get() / current);
        // Bounds how long a trial lasts, and how long a cut limit is checked, since callers choose how long their calls
        // take.
        long trialNanos = (long) Math.min(tookByMost, Math.max(PATIENCE_NANOS, usualNanos));
        // A lower limit refuses mainly calls of the group that makes the most calls. If fewer of its calls end, that
        // shows nothing about the other groups, so the rates are weighted by group.
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
        // In a flood of quick calls, many quick calls end and hardly any long ones. So the rate is converted: it
        // becomes the rate at which calls of the mean duration tookByMost would have to end, to take as much time in
        // total.
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
     * Weight of each group, in calls: see {@code weigh}. The weight is computed from the number of the group's calls
     * whose given times were counted. Element i belongs to group i.
     */
    private final double[] weights = new double[AddressGroups.COUNT];

    /**
     * Weight of each group, in calls. It is computed from the number of the group's calls that have ended. Element i
     * belongs to group i.
     */
    private final double[] endedWeights = new double[AddressGroups.COUNT];

    /**
     * Part of each group's weight in {@link #endedWeights}, in calls. It is the part for those calls that have ended in
     * time and with a result. Element i belongs to group i.
     */
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
     * Returns whether enough calls have ended for a step. To find out, the calls of each group are weighed. A group
     * that runs handlers and has not reported anything yet is included when the medians are computed, as a group with 0
     * calls. Otherwise one step after the other would learn only from a group that calls often. The step waits for
     * groups that have not reported anything yet, but for no longer than {@code PATIENCE_NANOS}, since the calls of
     * these groups may take long.
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
     * Returns the maximum weight for the entries in a range. It is {@code MAX_OF_MIDDLE} times their median. Entries
     * that are 0 do not count, and {@link #NOT_REPORTED} counts as 0 in the median. If at most two entries are not 0,
     * there is no maximum, since the smaller entry, which may belong to anybody, would determine the maximum.
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
     * late, groups are weighted by the time that they give in total, just as calls are weighted within a group. Callers
     * who each give little time, even if they are many, then have little weight, since together they give only a small
     * part of all the time. In an overload, groups are weighted by their calls; otherwise the limit would serve only
     * callers who give much time.
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
     * Returns the new usual time. Its rise from the earlier value is bounded. If few calls are counted, its fall is
     * bounded too: when there are few calls, most of them may happen to come from a minority of the groups.
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
     * Halves the limit, since most calls end too late although they were given enough time. After a cut, the limit is
     * not cut again until the time that a call takes has passed, or the usual time if that is shorter.
     *
     * @param took mean duration of a call, in nanoseconds
     * @return false if the last cut, or the last restoration of the limit, is too recent: then the limit is not changed
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
     * Learns the duration of calls that do not wait. {@link #learn} learns which share of the callers' time this
     * duration is. The two are learnt separately, since callers choose their time, and so decide how large the share
     * is.
     */
    private void learnTime(long now, boolean refusing, double took, double count, double elapsed) {
        // The means are smoothed, because the minimum of many means over few calls would be smaller than any mean over
        // many calls.
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
     * Learns the middle duration. By Little's law, the time that handlers take is the time that passes, multiplied by
     * the number of running handlers. The calls that have ended change the middle in proportion to their part of that
     * time. So quick calls that end while long calls still run change hardly anything.
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
            // At the smallest limit, calls wait for each other as little as possible. So the middle duration that is
            // measured now comes closest to the time that calls themselves need, and replaces the earlier minimum. For
            // the same reason, learn() takes the share that is measured at the smallest limit.
            minMiddleNow = middleNanos;
            minMiddleBefore = middleNanos;
        }
    }

    /**
     * Evaluates a limit that has declined to half. If calls end at about the same rate as before, the calls that the
     * lower limit keeps out had only waited. Then the limit stays low; but if it was halved for a trial, it rises to
     * its earlier value. If calls end at a lower rate, the limit is restored.
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
     * Returns whether the halved limit shows that calls took as long as they need by themselves, and had not waited for
     * each other. That is so if, with fewer running calls, calls end at a lower rate and bring results at a lower rate.
     * If calls end at the same rate as before, they share a resource that is fully used. If many calls still end, but
     * hardly any of them brings a result in time, the limit is still too high.
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
     * Records how long calls were found to take without waiting. The smallest mean duration that was seen cannot be
     * used instead. It would be too short, since the quickest calls determine it. For at least {@code HOLD_NANOS} from
     * now on, late calls do not halve the limit.
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
            // At the smallest limit, calls wait for each other as little as possible. So the share of the callers' time
            // that calls took comes closest to the share that they need themselves, and replaces the share that was
            // learnt before.
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
     * @param areSomeLate whether at least one in {@code SOME_LATE} calls ended after its time was over, or without a
     *     result. If calls end in time, no limit is needed, even if they take nearly all of their time: a call that
     *     waits for news waits until its caller's time is nearly over
     * @param used part of the callers' time that calls took: the median of the groups' means
     * @param inTheirTime number of calls that end, at the current rate, in a span as long as the usual time
     */
    private void adapt(boolean refusing, boolean areSomeLate, double used, double inTheirTime) {
        double target = (1 + ownShare) / 2;
        // If isCalm is true, hardly any of the calls that have ended had to wait. But the calls that run now may turn
        // out to have waited longer.
        boolean isCalm = used < ownShare + (target - ownShare) / 4;
        int now = limit;
        // If no call was refused, it is not known whether calls wait for each other. A limit below the maximum is then
        // lowered only if calls are in danger of being late. A limit at the maximum is lowered only if, in addition,
        // some calls have been late.
        if (refusing || (now < maxRunning ? used > target : areSomeLate && used > (1 + target) / 2)) {
            double goal = inTheirTime * target;
            if (isCalm) {
                goal = Math.max(goal, now * 1.1 + 1);
            }
            // A limit that has been at the maximum until now has admitted more than enough calls. So the new limit is
            // computed from the goal alone and not also from the maximum, unless isCalm is true.
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
