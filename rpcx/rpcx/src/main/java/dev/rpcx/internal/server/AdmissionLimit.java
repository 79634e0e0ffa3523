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
 * Limits how many handlers of one method run at the same time. A call above the limit is refused at once, so that the
 * admitted calls end before their deadlines. The limit is updated up to ten times a second, from the calls that have
 * ended since the last update. An update is also called a step.
 *
 * <p><b>The limit</b> is the rate at which calls end, multiplied by the time that a call should take. By Little's law,
 * about this many handlers then run at the same time. For example, if 200 calls end per second and a call should take
 * half a second, the limit is 100. A call should take the time that its handler needs without waiting for other calls,
 * plus half of the time that is then left until the deadline.
 *
 * <p><b>What a handler needs</b> is measured as a part of the time from the admission of a call to its deadline. While
 * calls are refused, the running calls may wait for each other, so the measured time may be too long. Therefore the
 * calls are measured again when the limit has sunk to half. If the limit does not sink to half by itself, a probe
 * halves it for a moment: see {@code PROBE_STEPS}. The rate at which calls end under the lower limit shows one of two
 * things:
 *
 * <ul>
 *   <li>If the rate is the same as before, the calls had been waiting for each other under the higher limit.
 *   <li>If the rate is lower, handlers need all the time that the calls took. The limit is restored.
 * </ul>
 *
 * <p><b>Late calls</b> halve the limit if more than half of all calls are late. A call is late if it ends after its
 * deadline. A call is also late if nearly all of its time has passed without a result, for example because it got no
 * thread. A later update checks whether the halving was right:
 *
 * <ul>
 *   <li>If fewer calls end than before, and also fewer bring a result in time, the late calls had not waited for each
 *       other. The limit is restored. There are two exceptions, in which the limit stays low: if many calls still end,
 *       but hardly any brings a result in time; or if more than half of the time that all calls are given belongs to
 *       calls without a result in time.
 *   <li>In all other cases, the limit stays low.
 *   <li>If too few calls end for an update, a refused call checks the limit instead: see {@link #refused}.
 *   <li>If some of the late calls got no thread, there is no check.
 * </ul>
 *
 * <p><b>No caller determines the limit for the others</b>, although callers choose their deadlines:
 *
 * <ul>
 *   <li>A call that failed early or was cancelled early is ignored.
 *   <li>A call that is given less time than a call takes without waiting is not compared with its deadline.
 *   <li>A call that is given more than the usual time counts as if it were given the usual time. The usual time is
 *       about the 5th percentile of the times that calls are given.
 *   <li>The connections of a server form groups, mostly by the address of the peer. If there are more than two groups,
 *       a group counts for at most twice as many calls as the median group.
 *   <li>Even if other groups use up the limit, a group may run as many handlers as its own part of the limit allows:
 *       see {@link Group#admit(int, int)}.
 * </ul>
 *
 * <p><b>Calls of one group</b> say little about calls of others. Sometimes calls end in only one group, and no call
 * waits for a thread in vain. Late calls then halve the limit only if calls take, on average, at least 1.25 times the
 * smallest mean duration that was seen lately.
 *
 * <p>Each method has its own limit, because methods wait for different things. Handlers on the event loop need no
 * limit, since each event loop runs one handler at a time.
 *
 * <p>This class is long because the measured time, the probes and the halvings all change the same limit in one step,
 * and each of them has to know what the others are doing.
 *
 * <p>Sources: Little, 1961, for the law; Cardwell and others, <i>BBR: Congestion-Based Congestion Control</i>, 2016,
 * for computing a limit as rate times time, and for measuring what remains when the limit is lowered; Netflix,
 * <i>concurrency-limits</i>, {@code Listener.onDropped}, for how to treat a call that timed out in a queue.
 */
public final class AdmissionLimit {
    public static final int MIN_LIMIT = 4;

    /**
     * Bounds how much one group of connections determines the limit. The group counts for at most this multiple of the
     * calls of the median group of the same address. For example, if the median group had 10 calls, a group with 500
     * calls counts for only 20. The calls of one address are bounded in the same way, by the median address. If there
     * are at most two groups or addresses, they are not bounded: see {@link #bound}.
     *
     * <p>The limit is the rate at which calls end, multiplied by the time that a call should take. The bound does not
     * apply to this rate, which covers all calls.
     */
    private static final double MAX_OF_MIDDLE = 2;

    /**
     * After each update of the limit, the first calls of each group of connections, up to this number, are all compared
     * with their deadlines. Of the group's further calls, only one in {@link #SAMPLED} is compared. The comparison of a
     * call finds whether the call was late, and which part of the time until its deadline the call took. For this part,
     * a longer time than {@link #usualNanos} counts as {@code usualNanos}.
     */
    private static final int MAX_ALL_COUNTED = 256;

    private static final int SAMPLED = 16;

    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LOOK_NANOS = STEP_NANOS / 8;

    /**
     * The end of a call updates the limit only if one of two counts since the last update has reached this number: the
     * calls that ended, or the calls that waited for a thread in vain. The two counts are not added. Fewer calls would
     * say too little.
     */
    private static final int MIN_COUNT = 8;

    /**
     * Length, in nanoseconds, of the periods for which the shortest mean duration of calls is remembered. Each mean is
     * over about {@link #SMOOTHED} calls. The shortest mean of the current and the previous period is taken as the time
     * that a call needs when it does not wait for other calls. While calls are refused, the current period does not
     * end.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * A probe begins after this many updates of the limit. An update counts only if calls were refused since the update
     * before it. A probe halves the limit for a moment, to find out whether calls end at a lower rate under the lower
     * limit.
     */
    private static final int PROBE_STEPS = 64;

    /**
     * The rate at which calls end counts as unchanged if it is at least this part of the earlier rate. The part is less
     * than 1 because a rate that is measured over a short time varies by chance.
     */
    private static final double SAME_RATE = 0.8;

    /**
     * The rate at which calls end counts as near zero if it is less than this part of an earlier rate. The earlier rate
     * is the rate at which calls ended before the limit began to sink. {@link #isOfTheirOwn} also applies this part to
     * the rate at which calls bring a result in time.
     */
    private static final double STOPPED_RATE = 0.3;

    /**
     * If the limit has begun to sink, a refused call checks whether hardly any call ends. The check compares the number
     * of calls that have ended since the last update of the limit with the expected number. The expected number is
     * {@link #sinkingRate}, the rate before the limit began to sink, multiplied by the time since that update. The
     * check is made only if the expected number is at least {@code ENOUGH_EXPECTED}.
     */
    private static final int ENOUGH_EXPECTED = 2 * MIN_COUNT;

    /**
     * A refused call checks the limit only if an update of the limit is overdue by at least this time, in nanoseconds.
     * Normally, calls that end update the limit. But if too few calls end, only refused calls can notice that the limit
     * has to be raised.
     */
    private static final long OVERDUE_NANOS = 2 * STEP_NANOS;

    /**
     * A method needs a limit only if at least one in this many calls is late. For example, a method whose calls wait
     * for news needs no limit: such calls take nearly all of the time until their deadlines, but are hardly ever late.
     */
    private static final int SOME_LATE = 64;

    /**
     * If calls have been refused for at least this time, in nanoseconds, and hardly any running call has ended
     * meanwhile, the limit is raised. "Hardly any" means that the number of ended calls is less than half of the number
     * of running calls. For methods whose calls take long, the time is longer: see {@link #MAX_PATIENCE_NANOS}.
     */
    private static final long MIN_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * If calls are refused for this time, in nanoseconds, and hardly any running call ends during it, the limit is
     * raised, however long the calls take. If calls are short, the limit is raised earlier: {@link #isStalled} computes
     * the time.
     */
    private static final long MAX_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * While some calls are late, a handler is assumed to need at most this part of the time until the deadline of its
     * call, without the time in which it waits for other calls. If handlers needed a larger part, a lower limit could
     * not help, because a lower limit shortens only the waiting.
     */
    private static final double MAX_OWN_FRACTION = 0.95;

    /**
     * Calls are far from late if they take at most this part of the time until their deadlines. After late calls have
     * halved the limit, a later update of the limit checks how the halving has changed the rate at which calls end. If
     * an update before it finds no late call, and calls are far from late, this check is left out, and the halving is
     * not undone.
     */
    private static final double FAR_FROM_LATE = 0.25;

    /**
     * A number such as {@link #ended} has two parts. The bits from this one upwards are a number of calls. The bits
     * below it are the sum of the durations of these calls, in units of 2^16 ns. A call that takes more than a minute
     * adds a minute.
     */
    private static final int COUNT_SHIFT = 40;

    private static final int TIME_UNIT_SHIFT = HandlerTimeHistogram.UNIT_SHIFT;

    /**
     * In {@link GroupStats#usedFractions}, the bits from this one upwards are the number of late calls. The bits below
     * it are a sum over the calls that were compared with their deadlines, in units of 1/1024. Each call adds its
     * duration divided by the time that it was given, but at most 2. A call that was given more than
     * {@link #usualNanos} counts as if it were given {@code usualNanos}.
     */
    private static final int LATE_SHIFT = 40;

    private static final double FRACTION_UNIT = 1024;
    private static final double MAX_FRACTION = 2;

    /**
     * A call that was given less than this time, in nanoseconds, is not compared with its deadline. Any pause of the
     * process makes such a call late, so the call says nothing about the load.
     */
    private static final long MIN_GIVEN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MAX_GIVEN_NANOS = TimeUnit.MINUTES.toNanos(1);

    /**
     * About one call in this number is given at most the usual time, {@link #usualNanos}, from its admission to its
     * deadline. So the usual time is about the 5th percentile of the times that calls are given.
     */
    private static final int USUAL_PART = 20;

    /**
     * Factor for the lower bound of {@link #usualNanos}. The bound is the smaller of two times: the time that a call
     * needs without waiting for other calls, multiplied by this factor, and {@link #middleGivenNanos}. Without the
     * bound, callers who give hardly more time than the handler needs would make the limit so low that even a nearly
     * idle server refuses calls. The factor is 4 because the durations of single calls of one method differ by about
     * this much.
     */
    private static final double ROOMY = 4;

    /**
     * One update of the limit raises {@link #usualNanos} by at most this factor. Otherwise, a few calls that are given
     * much time could raise {@code usualNanos} too much if these calls came together by chance. If calls have ended in
     * several groups of connections since the last update, the factor applies once for each {@link #STEP_NANOS} since
     * then, and at least once: for example, three times after 300 ms.
     */
    private static final double MAX_RISE = 1.25;

    /**
     * A call without a result is late if it took at least this part of the time from its admission to its deadline. For
     * example, if the deadline is 1 s after the admission, a call that fails after 900 ms or more is late. The part is
     * less than 1 because the clocks of caller and server differ a little.
     */
    private static final double NEARLY_ALL = 0.9;

    /**
     * The mean duration of calls is smoothed over this number of calls. For example, if 16 calls end between two
     * updates of the limit, the smoothed mean moves by a quarter of the way to the mean of these 16 calls.
     */
    private static final double SMOOTHED = 64;

    /**
     * Late calls do not halve the limit for at least this time, in nanoseconds, after the limit has been restored. The
     * limit is restored if fewer calls have ended under a lower limit.
     */
    private static final long HOLD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Calls are assumed not to wait for each other if their mean duration is less than this multiple of the smallest
     * mean duration that was seen lately.
     */
    private static final double UNHINDERED = 1.25;

    /**
     * Upper bound of {@link #minGivenNanos}, as a part of {@link #usualNanos}. If this bound is less than
     * {@link #MIN_GIVEN_NANOS}, then {@code minGivenNanos} is {@code MIN_GIVEN_NANOS}. A call is compared with its
     * deadline only if it is given at least {@code minGivenNanos}.
     */
    private static final double NEARLY_USUAL = 0.75;

    /**
     * Number of updates of the limit for which connections share the limit after they have competed for it. During this
     * time, each connection may use only a share of the limit.
     *
     * <ul>
     *   <li>The time begins if a connection asks for a handler while the limit is used up and other connections run
     *       handlers of the method.
     *   <li>The time begins anew if, before its end, a connection asks for a handler while other connections run
     *       handlers of the method.
     * </ul>
     */
    private static final int SHARED_STEPS = 10;

    private final int maxRunning;

    /**
     * Whether the limit adapts to how long calls take. This is false for a {@link LongPoll} method: its calls mostly
     * wait for news, so their durations say nothing about the load. This is also false for a method that takes a
     * stream, since the caller decides how long such a call lasts.
     */
    private final boolean isLearning;

    /**
     * Number of handlers of all methods together that run on the server now. Handlers that run on event loops are not
     * counted. An event loop adds a handler, and any thread may remove it.
     */
    private final AtomicInteger all;

    /** Number of running handlers of this method. An event loop adds a handler, and any thread may remove it. */
    private final AtomicInteger running = new AtomicInteger();

    /**
     * Groups of connections, by number. An element is null until {@code group} is first called for its number. If two
     * event loops create a group for the same number at once, only the first one stores its group, and both use the
     * stored group.
     */
    private final AtomicReferenceArray<@Nullable Group> groups = new AtomicReferenceArray<>(AddressGroups.COUNT);

    /**
     * Returns how many groups of connections each address has now. The groups of one address have consecutive numbers.
     * For example, if the result is 4, one address has the groups 0 to 3, and another the groups 4 to 7: see
     * {@link AddressGroups}.
     */
    private final IntSupplier groupsPerAddress;

    /** Number of groups of connections that run at least one handler of this method. */
    private final AtomicInteger activeGroups = new AtomicInteger();

    /**
     * How many handlers of this method may run. Written while holding the lock {@link #stepping}, and read by any
     * thread.
     */
    private volatile int limit;

    /**
     * Number of calls that have ended since the last update of the limit, and the sum of their durations.
     * {@link #COUNT_SHIFT} describes the bits. Any thread can add a call. An update of the limit reads the value and
     * sets it to 0.
     */
    private final AtomicLong ended = new AtomicLong();

    /**
     * Number of calls that have waited for a thread in vain since the last update of the limit, and the sum of their
     * waiting times. A call is counted only if its handler has not begun, although nearly all of the time until the
     * deadline has passed. {@link #COUNT_SHIFT} describes the bits. Any thread can add a call. An update of the limit
     * reads the value and sets it to 0.
     */
    private final AtomicLong unbegun = new AtomicLong();

    /** Histogram of the durations of the calls that have ended since the last update of the limit. */
    private final HandlerTimeHistogram taken = new HandlerTimeHistogram(MAX_GIVEN_NANOS);

    private final Medians medians = new Medians(AddressGroups.COUNT);

    /**
     * Whether calls have reached the limit since its last update. There are two cases:
     *
     * <ul>
     *   <li>A call has found the limit used up. Such a call can still be admitted if its group of connections runs few
     *       handlers: see {@link Group#admit(int, int)}.
     *   <li>A call has been refused because its connection has used up the connection's share of the limit. This case
     *       counts only while the limit is below the maximum.
     * </ul>
     *
     * <p>Event loops set the field, and the update clears it.
     */
    private volatile boolean wasLimitReached;

    /**
     * Whether the number of running handlers of this method has become 0 since the last update of the limit. If
     * {@link Group#release()} has made the number 0, this field is not set. Any thread sets the field, and the update
     * clears it.
     */
    private volatile boolean wasIdle;

    /**
     * Number of further updates of the limit during which each connection may use only a share of the limit, even if no
     * other connection runs handlers of the method. At 0, a connection may use all of the limit while no other
     * connection runs handlers. When connections compete for the limit, as {@link #SHARED_STEPS} explains, an event
     * loop sets the number. Each update decreases the number. If an update overwrites a number that was set during the
     * update, the next call that competes for the limit sets the number again.
     */
    private volatile int sharedSteps;

    /**
     * Earliest time of the next update of the limit. Any thread reads this field and the next two. They are written
     * while holding the lock {@link #stepping}.
     */
    private volatile long nextStepNanos;

    /**
     * Earliest time of the next check whether calls have ended in enough groups of connections to update the limit. A
     * few groups, mostly of a few addresses, say little about the others. If there are too few groups, the limit is not
     * updated, and the next check is at least {@link #LOOK_NANOS} (12.5 ms) later.
     */
    private volatile long nextLookNanos;

    /** Time at which the limit was last raised because all running handlers had ended. */
    private volatile long caughtUpNanos;

    /**
     * Lock for every change of the limit. The value is true while a thread holds the lock. A thread that finds the lock
     * taken does not wait, and makes no change. The lock also guards the fields below. The volatile fields among them
     * are read without the lock.
     */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private long windowBeganNanos;

    /**
     * Time that a handler needs if it does not wait for other calls, divided by the time until the deadline of its
     * call: from 0 to 1. It is the smallest value that was measured lately.
     */
    private double ownFraction = MAX_OWN_FRACTION;

    /** Maximum of {@link #ownFraction}. It is {@link #MAX_OWN_FRACTION} while some calls are late, and otherwise 1. */
    private double maxOwnFraction = MAX_OWN_FRACTION;

    private double minFractionNow = MAX_OWN_FRACTION;
    private double minFractionBefore = MAX_OWN_FRACTION;
    private long memoryEndNanos;

    /**
     * End of the current period for which the shortest duration of calls is remembered: see {@link #MEMORY_NANOS}. The
     * periods for {@link #ownFraction} end at {@code memoryEndNanos} instead. The two ends can differ, because an
     * update of the limit that measures only durations never ends a period for {@code ownFraction}.
     */
    private long timeMemoryEndNanos;

    /**
     * Usual time that calls are given: about the 5th percentile of the times from the admission of a call to its
     * deadline, in nanoseconds. The lower bound depends on the time that a call needs: see {@link #ROOMY}. Until an
     * update of the limit has computed this time, it is {@link #MAX_GIVEN_NANOS}.
     */
    private volatile long usualNanos = MAX_GIVEN_NANOS;

    /**
     * A call that was given less than this time, in nanoseconds, is not compared with its deadline. Such a call would
     * be late whatever the limit is.
     */
    private volatile long minGivenNanos = MIN_GIVEN_NANOS;

    /**
     * Time that a call takes if it does not wait for other calls, in nanoseconds; 0 while unknown. It is the smallest
     * mean duration that was seen lately.
     */
    private double ownNanos;

    /**
     * Mean duration, in nanoseconds, of about the last {@link #SMOOTHED} calls. While fewer calls have ended, the mean
     * covers all of them. {@link #smoothed} is the number of calls in the mean.
     */
    private double smoothNanos;

    private double smoothed;

    private double minNanosNow = MAX_GIVEN_NANOS;
    private double minNanosBefore = MAX_GIVEN_NANOS;

    /**
     * Middle duration, in nanoseconds, of calls that do not wait for other calls; 0 while unknown. It is the smallest
     * value that {@link #middleNanos} has had in the current and the previous period of {@link #MEMORY_NANOS}. While
     * calls are refused at the smallest limit, it is the present value of {@code middleNanos} instead.
     */
    private double ownMiddleNanos;

    /**
     * Middle duration of calls, in nanoseconds; 0 while unknown. At most about half of the total time of all calls is
     * spent in shorter calls, and at most about half in longer ones. For example, if 100 calls take 1 ms each and one
     * call takes 300 ms, the total is 400 ms, and the middle duration is about 300 ms.
     */
    private double middleNanos;

    private double minMiddleNow = MAX_GIVEN_NANOS;
    private double minMiddleBefore = MAX_GIVEN_NANOS;

    private long cutNanos;
    private int refusingSteps;

    /**
     * Value of the limit before it began to sink. If fewer handlers ran at that time than the limit allowed, this is
     * the number of these handlers. It is 0 if no comparison is due, for example while the limit is at its maximum.
     *
     * <p>The comparison is between the present rate at which calls end and {@link #sinkingRate}. If it shows that the
     * lower limit is too low, the limit is raised to this value again. The time of the comparison depends on how the
     * limit sinks:
     *
     * <ul>
     *   <li>If the limit sinks step by step, the comparison is made when the limit is at most half of this value. If an
     *       update leaves the limit above this value, but below the maximum, the update stores a new value.
     *   <li>If a probe or late calls have halved the limit at once, the first update after {@link #probeEndNanos} makes
     *       the comparison.
     * </ul>
     */
    private double sinkingFrom;

    /**
     * Rate at which calls ended before the limit began to sink, in calls per nanosecond. If the limit was halved
     * because most calls were late, this rate covers only calls that brought a result in time.
     */
    private double sinkingRate;

    /**
     * Rate at which calls ended before the limit was last halved because most calls were late, in calls per nanosecond.
     * Unlike {@link #sinkingRate}, this rate also covers calls that brought no result in time.
     */
    private double sinkingEnds;

    /**
     * Time that a call needs without waiting for other calls, in nanoseconds. The time was measured when the limit had
     * been lowered, and calls ended at a lower rate than before that. Until {@link #neededUntilNanos},
     * {@link #needNanos} returns this time or {@link #ownNanos}, whichever is greater.
     */
    private double neededNanos;

    private long neededUntilNanos;

    /**
     * Time since which hardly any running call has ended. The field is written and read only when a call is refused, by
     * {@link #isStalled}. If hardly any call ends for long enough, the limit is raised.
     */
    private long stalledSinceNanos;

    /**
     * Number of calls that ended between the last update of the limit and the time {@link #stalledSinceNanos}. A call
     * that waited for a thread in vain counts, too. The number is valid only while {@code stalledWindowNanos} equals
     * {@code windowBeganNanos}, that is, until the next update.
     */
    private long stalledEnds;

    private long stalledWindowNanos = Long.MIN_VALUE;

    /** Whether more than half of the calls were late at the last update of the limit. */
    private boolean wereMostLate;

    private boolean isProbe;

    /**
     * Whether late calls have halved the limit, and the halved limit still has to be checked. The check compares the
     * rates at which calls end, and at which calls bring a result in time, with the rates before the halving.
     */
    private boolean isCut;

    private long probeEndNanos;

    /**
     * Creates a limit that adapts to how long calls take. Each address has only one group of connections.
     *
     * @param maxRunning maximum number of running handlers of all methods together; at least {@link #MIN_LIMIT}
     * @param all counts the running handlers of all methods; all limits of a server share this counter
     */
    public AdmissionLimit(int maxRunning, AtomicInteger all, long nowNanos) {
        this(maxRunning, all, nowNanos, true, () -> 1);
    }

    /**
     * Creates a limit for one method.
     *
     * @param maxRunning maximum number of running handlers of all methods together; at least {@link #MIN_LIMIT}
     * @param all counts the running handlers of all methods; all limits of a server share this counter
     * @param isLearning false for a limit that always stays at {@code maxRunning}
     * @param groupsPerAddress returns how many groups of connections each address has now. Groups are numbered address
     *     by address: with 2 groups for each address, the first address has the groups 0 and 1
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
     * record, so that no group decides for the others. {@link AddressGroups} assigns connections to groups.
     */
    public final class Group {
        /**
         * Number of handlers that the connections of this group run. An event loop compares this number with the
         * group's part of the limit before it increases the number. So two event loops can both take the last place of
         * the part. An event loop adds a handler, and any thread may remove it.
         */
        private final AtomicInteger running = new AtomicInteger();

        /** Results of the calls of this group, from which the limit is computed; null if the limit does not adapt. */
        private final @Nullable GroupStats stats = isLearning ? new GroupStats() : null;

        /** Admits or refuses a call of a connection that runs no other handler: see {@link #admit(int, int)}. */
        public boolean admit() {
            return admit(0, 0);
        }

        /**
         * Admits a call and counts its handler as running, or refuses the call. There are two rules for a connection:
         *
         * <ul>
         *   <li>A connection with n running handlers may run another one only if the maximum for all methods leaves
         *       room for at least n more. So something always remains for a connection that runs few handlers.
         *       {@link Ledger} names the source of this rule.
         *   <li>A connection with n running handlers of this method may run another one only if the limit of the method
         *       leaves room for at least n more. But a connection that is the only one to use the method may use all of
         *       the limit, until another connection finds the limit used up.
         * </ul>
         *
         * <p>There is one exception to the second rule, for groups that run few handlers. A group's part of the limit
         * is the limit divided by the number of groups that run handlers of this method. There must be at least two
         * such groups. If a group runs fewer handlers than its part, the rest of the part is free. A connection of the
         * group is then not refused because of the limit in two cases: it runs at most as many handlers as are free, or
         * it runs all handlers of the group. For example, if the part is 10 and the group runs 6 handlers, 4 are free.
         * A connection that runs 4 of the 6 handlers is not refused, but a connection that runs 5 of them may be
         * refused.
         *
         * <p>Because of this exception, more handlers of this method may run than the limit says: with 16 groups, up to
         * 3.4 times as many.
         *
         * @param own number of handlers of all methods that the caller's connection already runs, including the
         *     orphaned handlers of earlier connections of its address
         * @param ownHere number of handlers of this method that the caller's connection already runs
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
         * Stops counting the handler of an admitted call as running. The duration of the call does not affect the
         * limit. For each admitted call, exactly one of this method, {@link #release(long, long, long, boolean)} and
         * {@link #leaveUnbegun} must be called, once.
         */
        public void release() {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release();
        }

        /**
         * Stops counting the handler of an admitted call as running, and uses the duration of the call to adapt the
         * limit. For each admitted call, exactly one of three methods must be called, once: this one,
         * {@link #release()} or {@link #leaveUnbegun}.
         *
         * @param isDone whether the handler brought a result. If not, the duration is recorded only if the call took
         *     nearly all of the time until its deadline, since callers decide whether a call fails or is cancelled
         *     earlier
         */
        public void release(long beganNanos, long deadlineNanos, long nowNanos, boolean isDone) {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.release(stats, beganNanos, deadlineNanos, nowNanos, isDone);
        }

        /**
         * Stops counting the handler of an admitted call as running. Called if the handler has not begun: it will not
         * start, or its call is postponed. The limit counts the call as late if the call was given at least
         * {@link AdmissionLimit#minGivenNanos} until its deadline, and waited for a thread for nearly all of that time.
         * Otherwise the limit ignores the wait. The call never counts as ended, because the rate at which calls end
         * shows how much the method can do.
         */
        public void leaveUnbegun(long beganNanos, long deadlineNanos, long nowNanos) {
            if (running.decrementAndGet() == 0) {
                activeGroups.decrementAndGet();
            }
            AdmissionLimit.this.leaveUnbegun(stats, beganNanos, deadlineNanos, nowNanos);
        }

        /**
         * Reports that a call of this method has been refused. {@link AdmissionLimit#refused(long)} then checks whether
         * the limit has to be raised.
         */
        public void refused(long nowNanos) {
            AdmissionLimit.this.refused(nowNanos);
        }

        /** Returns how many handlers of the method may run at the same time. */
        public int limit() {
            return limit;
        }

        /** Returns how many handlers of the method run now, in all groups of connections together. */
        public int running() {
            return AdmissionLimit.this.running.get();
        }
    }

    /**
     * Counts how the calls of one group of connections have ended since the last update of the limit. Each update
     * copies three counters to fields whose names end with {@code Sum}, and then sets all counters to 0.
     */
    private static final class GroupStats {
        // Any thread may write the fields from "done" to "given". They count calls since the last update of the limit.

        /**
         * Number of the group's calls that ended in time and with a result, and the sum of their durations.
         * {@link AdmissionLimit#COUNT_SHIFT} describes the bits.
         */
        private final AtomicLong done = new AtomicLong();

        /**
         * Number of the group's calls that ended too late or without a result, and the sum of the times that these
         * calls were given. A call is given the time from its admission to its deadline.
         * {@link AdmissionLimit#COUNT_SHIFT} describes the bits.
         */
        private final AtomicLong undone = new AtomicLong();

        private final AtomicInteger unbegun = new AtomicInteger();
        private final AtomicLong usedFractions = new AtomicLong();
        private final GivenTimes given = new GivenTimes(MIN_GIVEN_NANOS, MAX_GIVEN_NANOS);

        // The lock "stepping" guards doneSum, undoneSum and usedFractionSum. They hold the values that the counters
        // above had at the last update of the limit.
        private long doneSum;
        private long undoneSum;
        private long usedFractionSum;

        private long countNow() {
            return (done.get() >>> COUNT_SHIFT) + (undone.get() >>> COUNT_SHIFT) + unbegun.get();
        }

        private void take() {
            doneSum = done.getAndSet(0);
            undoneSum = undone.getAndSet(0);
            unbegun.set(0);
            usedFractionSum = usedFractions.getAndSet(0);
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
            return usedFractionSum >>> LATE_SHIFT;
        }

        private double usedFraction() {
            return (usedFractionSum & (1L << LATE_SHIFT) - 1) / FRACTION_UNIT / given.count();
        }

        /** Returns the mean duration, in nanoseconds, of the calls that ended in time and with a result. */
        private double doneNanos() {
            return mean(doneSum);
        }

        /**
         * Returns the approximate mean duration, in nanoseconds, of all recorded calls that ended, also of those that
         * ended late or without a result.
         */
        private double tookNanos() {
            // undoneSum is the sum of the times that calls were given, not of their durations. The difference is small,
            // since most calls that do not end in time end at about their deadlines.
            return (sum(doneSum) + sum(undoneSum)) / endedCount();
        }
    }

    private boolean admit(int own, int ownHere, int ofGroup) {
        int limitNow = limit;
        // The counts "running" and "all" are each increased before they are compared, and the comparison uses the value
        // that this increase has returned. If event loops compared first, two of them could both take the last place.
        // Held for "all" by {@code AdmissionRace}.
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
                // Connections that share the limit always leave a part of it free, so they might never use it up.
                // Therefore a refusal because of a connection's share also counts as reaching the limit.
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
     * Returns whether a call is admitted although the limit, or its connection's share of the limit, is used up. A call
     * is admitted only if its group of connections runs few handlers. The group's part is the limit divided by the
     * number of groups that run handlers, including this group. All of the following must be true:
     *
     * <ul>
     *   <li>At least two groups run handlers.
     *   <li>The group runs fewer handlers than its part.
     *   <li>The connection runs all handlers of the group, or at most as many handlers as the part leaves free. For
     *       example, if the part is 10 and the group runs 6 handlers, the connection runs at most 4 of them, or all 6.
     * </ul>
     */
    private boolean isWithinShare(int limitNow, int ofGroup, int ownHere) {
        int sharing = activeGroups.get() + (ofGroup == 0 ? 1 : 0);
        if (sharing < 2) {
            return false;
        }
        int free = limitNow / sharing - ofGroup;
        // ownHere can be greater than ofGroup: it includes handlers that the connection began when it was in another
        // group.
        return free > 0 && (ownHere <= free || ownHere >= ofGroup);
    }

    private void share() {
        if (sharedSteps < SHARED_STEPS) {
            sharedSteps = SHARED_STEPS;
        }
    }

    /**
     * Checks, after a call has been refused, whether the limit has to be raised. Normally the limit is updated when a
     * call ends. But if the running calls use up the limit and do not end, only a refused call can raise the limit.
     * This method does nothing unless an update of the limit is overdue.
     */
    public void refused(long nowNanos) {
        if (nowNanos - nextStepNanos < OVERDUE_NANOS || !stepping.compareAndSet(false, true)) {
            return;
        }
        try {
            if (nowNanos - nextStepNanos < OVERDUE_NANOS) {
                // another thread has updated the limit before this thread got the lock
                return;
            }
            double elapsed = nowNanos - windowBeganNanos;
            long count = ended.get() >>> COUNT_SHIFT;
            if (sinkingFrom > 0
                    && sinkingRate * elapsed >= ENOUGH_EXPECTED
                    && count < STOPPED_RATE * sinkingRate * elapsed) {
                rememberNeed(nowNanos, elapsed * running.get() / Math.max(1, count));
                // The running calls use up the present limit. So sinkingFrom, to which restoreLimit raises the limit,
                // must be at least twice their number.
                sinkingFrom = Math.max(sinkingFrom, 2.0 * running.get());
                restoreLimit();
            } else if (isStalled(nowNanos, count + (unbegun.get() >>> COUNT_SHIFT))) {
                // The running calls have used up the limit for a long time, so the rate at which calls end does not
                // show how many calls the method can handle. So the limit is at least doubled.
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
     * Returns whether the limit has to be raised, because calls have been refused for a long time while hardly any
     * running call ended. "Hardly any" means that fewer calls ended in this time than half of the calls that run now.
     * "A long time" is between {@link #MIN_PATIENCE_NANOS} and {@link #MAX_PATIENCE_NANOS}, and depends on how long a
     * call takes.
     *
     * @param ends number of calls that ended, or waited for a thread in vain, since the last update of the limit
     */
    private boolean isStalled(long nowNanos, long ends) {
        if (stalledWindowNanos != windowBeganNanos || 2 * (ends - stalledEnds) >= running.get()) {
            stalledWindowNanos = windowBeganNanos;
            stalledEnds = ends;
            stalledSinceNanos = nowNanos;
            return false;
        }
        // Calls of an overloaded method end only when their time is over. So if most calls were late, the limit is
        // raised only after hardly any call has ended for at least usualNanos, but no later than after
        // MAX_PATIENCE_NANOS. If it is unknown how long a call needs, MIN_PATIENCE_NANOS is enough.
        double need = needNanos(nowNanos);
        double longest = wereMostLate && need > 0 ? Math.max(usualNanos, ROOMY * need) : ROOMY * need;
        double patience = Math.min(MAX_PATIENCE_NANOS, longest);
        return nowNanos - stalledSinceNanos >= Math.max(MIN_PATIENCE_NANOS, patience);
    }

    /**
     * Returns the time, in nanoseconds, that calls have lately needed without waiting for other calls; 0 if unknown.
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
            // No handler runs until the next call comes. So wasIdle is set: if no handler ran for a part of the time,
            // the rate at which calls end does not show how much the method can do. The duration of this call is not
            // recorded.
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
            // The duration of a call that failed or was cancelled early, or began after its deadline, is not recorded.
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
        if (givenNanos >= minGivenNanos && (ofGroup <= MAX_ALL_COUNTED || ofGroup % SAMPLED == 0)) {
            long held = Math.min(givenNanos, usualNanos);
            double usedFraction = took / (double) held;
            stats.given.add(Math.min(MAX_GIVEN_NANOS, givenNanos));
            stats.usedFractions.addAndGet(
                    (isLate ? 1L << LATE_SHIFT : 0) + (long) (FRACTION_UNIT * Math.min(MAX_FRACTION, usedFraction)));
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
     * Raises the limit after a call has ended and no other call of the method runs, if the call took less than
     * {@code NEARLY_ALL} of {@link #usualNanos}, the usual time that calls are given. Without this method, the limit
     * would stay low for calls that come in bursts with idle time between the bursts.
     */
    private void raiseWhenIdle(long beganNanos, long nowNanos) {
        long took = nowNanos - beganNanos;
        if (took < NEARLY_ALL * usualNanos && stepping.compareAndSet(false, true)) {
            try {
                // the time is compared again, since another thread may have raised the limit before this thread got the
                // lock
                if (!isProbe && nowNanos - caughtUpNanos >= STEP_NANOS) {
                    caughtUpNanos = nowNanos;
                    // With twice as many calls, each call may take twice as long. So the limit is doubled only if calls
                    // that take twice as long still end within the usual time.
                    limit = Math.min(maxRunning, 2 * took < usualNanos ? 2 * limit : limit + limit / 4);
                }
            } finally {
                stepping.set(false);
            }
        }
    }

    /**
     * Updates the limit, if an update is due, from the calls that have ended since the last update. The caller holds
     * the lock {@link #stepping}.
     */
    private void step(long now) {
        if (now - nextStepNanos < 0) {
            // another thread has updated the limit before this thread got the lock
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
            // Most calls were late, and some of them got no thread. So the limit is halved, without a later check of
            // the effect.
            if (cut(now, mean(unbegunSum))) {
                sinkingFrom = 0;
            }
            return;
        }
        long count = sum >>> COUNT_SHIFT;
        if (count == 0 || idle && elapsed > 2 * STEP_NANOS) {
            // If no handler ran for a part of the time, the rate at which calls ended does not show how much the method
            // can do.
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
        // minGivenNanos is updated even if no call was compared with its deadline. Otherwise, a minGivenNanos that is
        // too great would never be lowered, since it prevents all comparisons.
        minGivenNanos = Math.max(MIN_GIVEN_NANOS, (long) Math.min(UNHINDERED * ownNanos, NEARLY_USUAL * usualNanos));
        if (counted == 0) {
            return;
        }
        double used = Math.max(1 / FRACTION_UNIT, medianUsedFraction());
        // Calls are unhindered if they did not wait for each other: their mean duration is hardly above the smallest
        // one that was seen lately. But if most calls of several groups are late, calls waited. The calls of a single
        // group may be late only because their caller gave them too little time, so it does not matter whether they are
        // late.
        boolean isUnhindered = tookByMost < UNHINDERED * ownNanos && !(areMany && areMostLate);
        boolean areSomeLate = SOME_LATE * late >= counted;
        maxOwnFraction = areSomeLate ? MAX_OWN_FRACTION : 1;
        double current = count / elapsed;
        // By Little's law, running calls divided by the rate is the mean duration of all calls, including those that
        // still run. The calls that have ended are the quickest ones, so their mean alone would be too short.
        double needed = Math.max(tookByMost, running.get() / current);
        // A probe, and the check of a halved limit, last as long as a call takes. The time is bounded, since callers
        // choose how long their calls take.
        long probeNanos = (long) Math.min(tookByMost, Math.max(MIN_PATIENCE_NANOS, usualNanos));
        // A lower limit refuses mainly calls of the group that calls most. If all calls of this group counted, the
        // rates would sink although other groups are not affected. So in "ends" and "inTime", a group counts only up to
        // a bound: see weigh.
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
                resetOwnFraction(Math.min(maxOwnFraction, used));
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
                probeEndNanos = now + probeNanos + STEP_NANOS;
            }
            return;
        }
        // The next update waits for the duration of a call, so that it sees calls that began after this update.
        nextStepNanos = now + Math.max(STEP_NANOS, (long) tookByMost);
        if (isProbe) {
            if (now - probeEndNanos >= 0) {
                evaluateDecline(now, ends, used, needed);
            }
            return;
        }
        if (isUnhindered && used > ownFraction) {
            resetOwnFraction(Math.min(maxOwnFraction, used));
        }
        learn(now, refusing, used);
        int before = limit;
        // If one group makes many quick calls, the rate "current" is high although hardly any long calls end. So if the
        // mean duration of calls is less than tookByMost, they are converted to calls that take tookByMost each. For
        // example, ten calls of 1 ms count as one call if tookByMost is 10 ms. The rate is never increased.
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
        } else if (refusing && ++refusingSteps % PROBE_STEPS == 0 && limit >= 2 * MIN_LIMIT) {
            sinkingFrom = limit;
            sinkingRate = ends;
            isProbe = true;
            limit /= 2;
            probeEndNanos = now + probeNanos + STEP_NANOS;
        }
    }

    // ---- what groups report in a step

    /** Reads one number from the results of a group of connections, for example the mean duration of its calls. */
    private interface GroupFigure {
        double value(GroupStats stats);
    }

    /**
     * Value in {@link #counts} for a group of connections that runs handlers, but in which no call has ended since the
     * last update of the limit. {@code weigh} later replaces the values of the groups in {@code counts} by one value
     * for each address: the sum of the weights of its groups. If this sum is 0, and at least one group of the address
     * is {@code NOT_REPORTED}, the value for the address is {@code NOT_REPORTED} too.
     */
    private static final double NOT_REPORTED = -1;

    private final double[] counts = new double[AddressGroups.COUNT];

    /**
     * Weight of each group of connections in the medians that concern deadlines. It is the number of the group's calls
     * that were compared with their deadlines, but at most the bound that {@code weigh} computes, so that no group
     * dominates. The index is the group's number.
     */
    private final double[] weights = new double[AddressGroups.COUNT];

    /**
     * Weight of each group of connections in the median of the durations of calls. It is the number of the group's
     * calls that have ended, but at most the bound that {@code weigh} computes, so that no group dominates. The index
     * is the group's number.
     */
    private final double[] endedWeights = new double[AddressGroups.COUNT];

    /**
     * Part of each group's weight in {@link #endedWeights} that belongs to calls that ended in time and with a result.
     * For example, if half of the group's ended calls did so, this is half of its weight. The index is the group's
     * number.
     */
    private final double[] doneWeights = new double[AddressGroups.COUNT];

    /**
     * Number of calls that were compared with their deadlines, where a group of connections counts only up to a bound:
     * the sum of {@link #weights} over all groups.
     */
    private double counted;

    /** Weighted number of calls that have ended: the sum of {@link #endedWeights} over all groups of connections. */
    private double endedByMost;

    /**
     * Number of calls that ended in time and with a result, where a group of connections counts only up to a bound: the
     * sum of {@link #doneWeights} over all groups.
     */
    private double done;

    /** Weighted number of late calls; {@link #counted} includes them. */
    private double late;

    /**
     * Number of calls that were compared with their deadlines between the last two updates of the limit. Every call
     * counts as 1, while {@link #counted} counts the calls of a group or address only up to a bound.
     */
    private long countedCalls;

    /** Number of groups of connections in which at least one call ended between the last two updates of the limit. */
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
     * Returns whether enough calls have ended, in enough groups of connections, to update the limit. The result is true
     * in two cases:
     *
     * <ul>
     *   <li>The sum of the weights of all groups is at least {@link #MIN_COUNT}. The weight of a group is the number of
     *       its calls that have ended or have waited for a thread in vain, but at most {@code MAX_OF_MIDDLE} times the
     *       number of the median group. A group that runs handlers, but has no such call, enters the median with 0
     *       calls. So one group that calls often is not enough. But with at most two groups or addresses, the weight
     *       has no maximum (see {@link #bound}), and one group can be enough.
     *   <li>The update has been overdue for {@link #MIN_PATIENCE_NANOS}.
     * </ul>
     */
    private boolean haveMostGroupsReported(long now) {
        if (now - nextStepNanos >= MIN_PATIENCE_NANOS) {
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
     * Computes the weight of each group of connections in two steps. First, the weight of a group is its number of
     * calls, but at most {@code MAX_OF_MIDDLE} times the number of calls of the median group of its address. Then the
     * weights of each address are added up. The sum for an address may be at most {@code MAX_OF_MIDDLE} times the sum
     * for the median address. If it is greater, all weights of the address are multiplied by the factor that reduces
     * the sum to this maximum. {@link #bound} says when there is no maximum.
     *
     * @param weights receives the weight of each group, in calls
     * @param each number of groups that belong to one address
     * @param calls reads the number of calls of a group
     * @return the sum of the weights of all groups
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
     * Returns the maximum weight for the groups or addresses in a range: {@code MAX_OF_MIDDLE} times the median of
     * their numbers of calls. An element that is {@link #NOT_REPORTED} counts in the median as 0 calls. An element that
     * is 0 does not count in the median at all.
     *
     * <p>If at most two elements count in the median, there is no maximum, and the result is {@code Double.MAX_VALUE}.
     * The median of two numbers is the smaller one here. So, of two groups, the one with fewer calls would otherwise
     * limit the weight of the other one.
     *
     * @param counts number of calls of each group or address
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
     * Returns the middle time, in nanoseconds, that calls are given until their deadlines. It is the weighted median of
     * {@link GivenTimes#middleNanos} over all groups of connections. The weight of a group is:
     *
     * <ul>
     *   <li>While hardly any call is late: the sum of the times that the group's calls are given. So callers who give
     *       little time have little influence, even if they are many.
     *   <li>While more calls are late: the number of the group's calls. So the limit does not serve only callers who
     *       give much time.
     * </ul>
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

    private double medianUsedFraction() {
        return median(weights, GroupStats::usedFraction);
    }

    /**
     * Adds up the times that calls were given until their deadlines, and returns whether more than half of the sum
     * belongs to calls that brought no result in time.
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
     * Returns the new value of {@link #usualNanos}. The new value is the measured value within two bounds:
     *
     * <ul>
     *   <li>The upper bound is the present value, multiplied by {@link #MAX_RISE} once for each {@link #STEP_NANOS}
     *       since the last update of the limit, and at least once. The upper bound is at most {@link #MAX_GIVEN_NANOS}.
     *   <li>The lower bound is the present value, divided by the same factor. It applies only if fewer than
     *       {@link #SMOOTHED} calls were compared with their deadlines, since most of so few calls may come from a
     *       minority of the groups of connections. It does not apply if the present value is {@code MAX_GIVEN_NANOS},
     *       the initial value.
     * </ul>
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
     * Returns the mean duration of calls, in nanoseconds.
     *
     * @param sum number of calls and sum of their durations, in the bits that {@link #COUNT_SHIFT} describes; must not
     *     be 0
     */
    private static double mean(long sum) {
        return sum(sum) / (sum >>> COUNT_SHIFT);
    }

    private static double sum(long sum) {
        return (sum & (1L << COUNT_SHIFT) - 1) * (double) (1L << TIME_UNIT_SHIFT);
    }

    /**
     * Halves the limit, because most calls are late although they were given enough time. The new limit is half of the
     * present limit or half of the number of running handlers, whichever is smaller, but at least {@link #MIN_LIMIT}.
     * During a probe, the limit from before the probe is used instead of the present one.
     *
     * <p>After a halving, this method does not halve the limit again for a while: for {@code took} or
     * {@link #usualNanos}, whichever is shorter. This time begins with the halving. But if the limit has been restored
     * since the halving, this time begins {@link #HOLD_NANOS} after the limit was restored.
     *
     * @param took mean duration of a call in nanoseconds; for calls that waited for a thread in vain, their mean wait
     * @return false if the limit was not halved
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
        limit = (int) Math.max(MIN_LIMIT, from / 2);
        return true;
    }

    /**
     * Learns how long a call takes if it does not wait for other calls, and stores the time in {@link #ownNanos} and
     * {@link #ownMiddleNanos}. The method {@link #learn} separately learns {@link #ownFraction}: this time, divided by
     * the time until the call's deadline. The fraction does not follow from the time, since callers choose their
     * deadlines.
     */
    private void learnTime(long now, boolean refusing, double took, double count, double elapsed) {
        // The mean duration is smoothed over SMOOTHED calls before its minimum is taken. The smallest of many means
        // over a few calls each would be too small.
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
     * Moves {@link #middleNanos}, the middle duration of calls, towards the middle duration of the calls that have
     * ended since the last update of the limit. How far {@code middleNanos} moves depends on the total duration of
     * these calls, compared with the time that all running handlers have had since that update. For example, 10 running
     * handlers and 100 ms make 1 s. If the durations of the ended calls add up to 100 ms, {@code middleNanos} moves a
     * tenth of the way. So quick calls that end while long calls still run change hardly anything.
     *
     * @param elapsed time in nanoseconds since the last update of the limit
     */
    private void learnMiddle(boolean refusing, double elapsed) {
        double middle = taken.middleNanos();
        if (middle == 0) {
            return;
        }
        double part = Math.min(1, taken.sumNanos() / Math.max(1, elapsed * Math.max(1, running.get())));
        middleNanos = middleNanos == 0 ? middle : middleNanos + (middle - middleNanos) * part;
        minMiddleNow = Math.min(minMiddleNow, middleNanos);
        if (refusing && limit == MIN_LIMIT) {
            // At the smallest limit, calls wait for each other as little as possible. So the present middle duration
            // replaces the minimum of the earlier ones.
            minMiddleNow = middleNanos;
            minMiddleBefore = middleNanos;
        }
    }

    /**
     * Decides whether a limit that has sunk to half of its earlier value stays low. The decision depends on the rate at
     * which calls end:
     *
     * <ul>
     *   <li>If the rate is lower than before, the limit is restored.
     *   <li>If the rate is about the same, and no probe has halved the limit, the limit stays low. The rate shows that
     *       calls only waited for each other under the earlier limit.
     *   <li>If the rate is about the same after a probe, the limit returns to its earlier value. Only
     *       {@link #ownFraction} may be lowered.
     * </ul>
     *
     * @param current rate at which calls end now, in calls per nanosecond
     * @param used duration of a call, divided by the time that it was given: the median, over all groups of
     *     connections, of the mean of each group
     * @param needed mean duration of a call in nanoseconds, including calls that have not ended
     */
    private void evaluateDecline(long now, double current, double used, double needed) {
        if (current < SAME_RATE * sinkingRate) {
            resetOwnFraction(Math.min(maxOwnFraction, used));
            rememberNeed(now, needed);
            restoreLimit();
        } else if (isProbe) {
            resetOwnFraction(Math.min(ownFraction, used));
            limit = (int) sinkingFrom;
        }
        isProbe = false;
        sinkingFrom = 0;
    }

    /**
     * Returns whether halving the limit has shown that calls do not wait for each other. Calls that wait for each other
     * end at the same rate under the lower limit. So the answer is true if fewer calls end, and also fewer bring a
     * result in time. There is one exception: if many calls still end, but hardly any brings a result in time, the
     * answer is false, since the limit is still too high.
     *
     * @param ends rate at which calls end now, in calls per nanosecond
     * @param done rate at which calls bring a result in time now, in calls per nanosecond
     */
    private boolean isOfTheirOwn(double ends, double done) {
        boolean areFewer = ends < SAME_RATE * sinkingEnds && done < SAME_RATE * sinkingRate;
        return areFewer && (done > STOPPED_RATE * sinkingRate || ends < STOPPED_RATE * sinkingEnds);
    }

    /** Raises the limit to at least the value that it had when it began to sink, and ends any probe or check. */
    private void restoreLimit() {
        limit = (int) Math.max(MIN_LIMIT, Math.min(maxRunning, Math.max(limit, sinkingFrom)));
        isCut = false;
        isProbe = false;
        sinkingFrom = 0;
    }

    /**
     * Remembers how long a call takes if it does not wait for other calls. Called if calls have ended at a lower rate
     * since the limit was lowered: under the earlier limit, they did not wait for each other. In this case,
     * {@link #ownNanos} is too short, since the quickest calls determine it. This method also prevents late calls from
     * halving the limit for at least {@link #HOLD_NANOS}.
     *
     * @param nanos mean duration of a call, in nanoseconds
     */
    private void rememberNeed(long now, double nanos) {
        neededNanos = nanos;
        neededUntilNanos = now + 2 * MEMORY_NANOS;
        cutNanos = now + HOLD_NANOS;
    }

    private void resetOwnFraction(double fraction) {
        ownFraction = fraction;
        minFractionNow = fraction;
        minFractionBefore = fraction;
    }

    private void learn(long now, boolean refusing, double used) {
        if (used < ownFraction || refusing && limit == MIN_LIMIT) {
            // Under the smallest limit, calls hardly wait for each other, so "used" is what their handlers need. While
            // calls are refused there, it replaces ownFraction even if it is greater.
            resetOwnFraction(Math.min(maxOwnFraction, used));
        } else if (!refusing) {
            minFractionNow = Math.min(minFractionNow, used);
            if (now - memoryEndNanos >= 0) {
                memoryEndNanos = now + MEMORY_NANOS;
                minFractionBefore = minFractionNow;
                minFractionNow = MAX_OWN_FRACTION;
            }
            ownFraction = Math.min(minFractionBefore, minFractionNow);
        }
    }

    /**
     * Computes the new limit: the rate at which calls end, multiplied by the time that a call should take.
     *
     * @param refusing whether calls have been refused, or have found the limit used up, since the last update of the
     *     limit
     * @param areSomeLate whether at least one in {@code SOME_LATE} calls was late. If not, no limit is needed, even if
     *     calls take nearly all of their time, as a call that waits for news does
     * @param used duration of a call, divided by the time that it was given: the median, over all groups of
     *     connections, of the mean of each group
     * @param inTheirTime number of calls that end, at the current rate, in a time as long as {@link #usualNanos}
     */
    private void adapt(boolean refusing, boolean areSomeLate, double used, double inTheirTime) {
        double target = (1 + ownFraction) / 2;
        // "Calm" means that the calls that have ended hardly waited. It says nothing about calls that still run.
        boolean isCalm = used < ownFraction + (target - ownFraction) / 4;
        int now = limit;
        // If calls found the limit used up, the limit moves to the goal. If not, calls may take long for other reasons
        // than waiting for each other. So a limit below the maximum then moves to the goal only if calls take more than
        // "target" of their time. A limit at the maximum does so only if they take even more, and some calls were late.
        if (refusing || (now < maxRunning ? used > target : areSomeLate && used > (1 + target) / 2)) {
            double goal = inTheirTime * target;
            if (isCalm) {
                goal = Math.max(goal, now * 1.1 + 1);
            }
            // The limit moves halfway to the goal. But if it is at the maximum and calls had to wait (they were not
            // calm), it is lowered to the goal at once, since the maximum has admitted more than enough calls.
            double from = now == maxRunning && !isCalm ? Math.min(now, goal) : now;
            double next = (from + goal) / 2;
            limit = (int) Math.max(MIN_LIMIT, Math.min(maxRunning, goal > from ? Math.ceil(next) : next));
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
