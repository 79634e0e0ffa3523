package dev.parley.lab;

import dev.parley.analysis.Warmth;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;

/**
 * Warms the services of one boot until they are warm, not for a time: equal time favours whoever answers fastest.
 * Slices of load follow each other, and each shows whether compilers still take more than a trial allows. Nothing of
 * it is kept. One thread.
 */
final class Rehearsal {
    /**
     * A slice is this long, or {@link #SLICE_SHARE} of what the rehearsal may take where that is less, but not under
     * {@link #MIN_SLICE}.
     */
    static final Duration MAX_SLICE = Duration.ofMillis(500);

    /** A shorter slice holds too few replies and too little processor time to tell anything. */
    static final Duration MIN_SLICE = Duration.ofMillis(200);

    private static final int SLICE_SHARE = 20;

    /**
     * One quiet slice may be an accident, since compilers pause between two large methods, and latency that falls by
     * little from one to the next may fall by much over a window.
     */
    static final int QUIET_IN_A_ROW = 3;

    /** The same where time is so short that slices are: a scale that decides nothing has no time for a third. */
    static final int SHORT_IN_A_ROW = 2;

    /**
     * The last of this many equal parts of the slices that were played has to be level as a whole: what takes long to
     * become level has pauses on its way that are longer too.
     */
    private static final int LEVEL_PART = 4;

    /**
     * Clients that rehearse a message first, and every load that is not closed itself: one client alone would take
     * minutes.
     */
    static final int CLIENTS = 16;

    /** An open load of a lower rate is rehearsed by one client: at such a rate a slice would hold hardly a reply. */
    static final double MIN_RATE = 20;

    /** A new message asks for new code; another concurrency of the same message for little. */
    private static final int MESSAGE_WEIGHT = 3;

    private final Stage stage;
    private final Duration slice;
    private final int inARow;
    private final long leastNs;
    private final boolean isAsked;
    private final Map<Played, List<Slice>> played = new HashMap<>();
    private final Set<Played> warm = new HashSet<>();
    private long spentNs;
    private long leftNs;
    private int messagesLeft;
    private int trialsLeft;

    /** A message that was rehearsed under a load. */
    private record Played(MessageSpec message, Load load) {}

    /** Puts load on the services, and has the clock. */
    interface Stage {
        Slice play(MessageSpec message, Load load, Duration length) throws InterruptedException;

        long nowNs();
    }

    /**
     * @param least that it takes before the first trial, each message its part
     * @param most that all of it may take, beyond the slices without which nothing is known of a trial; nothing is
     *     rehearsed where it is zero
     * @param trials that will be measured afterwards
     */
    Rehearsal(Stage stage, Duration least, Duration most, int trials) {
        this.stage = stage;
        this.slice = slice(most);
        this.inARow = inARow(slice);
        this.leastNs = least.toNanos();
        this.isAsked = most.isPositive();
        this.leftNs = most.toNanos();
        this.trialsLeft = trials;
    }

    /** How long a slice is where all of the rehearsal may take so much. */
    private static Duration slice(Duration most) {
        return Duration.ofNanos(Math.clamp(most.toNanos() / SLICE_SHARE, MIN_SLICE.toNanos(), MAX_SLICE.toNanos()));
    }

    private static int inARow(Duration slice) {
        return slice.compareTo(MAX_SLICE) < 0 ? SHORT_IN_A_ROW : QUIET_IN_A_ROW;
    }

    /** What a message under a load is rehearsed for at the least, where all of the rehearsal may take so much. */
    static Duration needed(Duration most) {
        return slice(most).multipliedBy(inARow(slice(most)));
    }

    /** Time for which the services were rehearsed so far. */
    Duration spent() {
        return Duration.ofNanos(spentNs);
    }

    /** Rehearses each message until the services are warm for it, under more load than one client gives. */
    void of(List<MessageSpec> messages) throws InterruptedException {
        messagesLeft = messages.size();
        long leastEachNs = leastNs / Math.max(1, messages.size());
        for (int i = 0; i < messages.size(); i++) {
            int others = (messagesLeft - 1) * MESSAGE_WEIGHT + trialsLeft;
            long most = i == 0
                    ? ofTheFirst(messages.size())
                    : leftNs * MESSAGE_WEIGHT / Math.max(1, MESSAGE_WEIGHT + others);
            messagesLeft--;
            warm(
                    messages.get(i),
                    new Load.Closed(CLIENTS),
                    leastEachNs,
                    Math.max(leastEachNs, others == 0 ? leftNs : most));
        }
    }

    /**
     * Most of the code is the same for every message, so that the first has it compiled for all: half of the time, and
     * where no other follows all but what shows at each trial that services are warm.
     */
    private long ofTheFirst(int messages) {
        long half = leftNs / 2;
        return messages > 1 ? half : Math.max(half, leftNs - slice.toNanos() * inARow * trialsLeft);
    }

    /**
     * Rehearses a trial at the concurrency that is then measured. Where the services of this boot were already seen
     * warm for its message at that concurrency, one slice is enough to see that they still are.
     *
     * @return whether the services were seen warm; where not, time was over, and the trial's own window tells
     */
    boolean before(TrialSpec trial) throws InterruptedException {
        long most = leftNs / Math.max(1, trialsLeft);
        trialsLeft--;
        return warm(trial.message(), standIn(trial.load()), 0, most);
    }

    /**
     * The lowest median among the last quarter of the slices of a trial's message and load, three at least, in
     * milliseconds: what its services had reached before its window. Empty where none had a reply.
     */
    OptionalDouble reachedMs(TrialSpec trial) {
        List<Slice> all = played.getOrDefault(new Played(trial.message(), standIn(trial.load())), List.of());
        int length = Math.min(all.size(), Math.max(QUIET_IN_A_ROW, Math.ceilDiv(all.size(), LEVEL_PART)));
        return all.subList(all.size() - length, all.size()).stream()
                .filter(Slice::hasReplies)
                .mapToDouble(Slice::medianMs)
                .min();
    }

    /** The load that is rehearsed for one that is measured. */
    static Load standIn(Load load) {
        if (!load.isSteady()) {
            return new Load.Closed(CLIENTS);
        }
        return load.isOpen() && load.amount() < MIN_RATE ? new Load.Closed(1) : load;
    }

    private boolean warm(MessageSpec message, Load load, long leastNs, long mostNs) throws InterruptedException {
        if (!isAsked) {
            return false;
        }
        long beganNs = stage.nowNs();
        boolean isWarm = untilWarm(message, load, beganNs, leastNs, mostNs);
        long tookNs = stage.nowNs() - beganNs;
        spentNs += tookNs;
        leftNs = Math.max(0, leftNs - tookNs);
        return isWarm;
    }

    private boolean untilWarm(MessageSpec message, Load load, long beganNs, long leastNs, long mostNs)
            throws InterruptedException {
        // What the criterion needs is played once for each message and load, however little time a scale gives.
        Played own = new Played(message, load);
        int needed = played.containsKey(own) ? 0 : inARow;
        List<Slice> before = played.computeIfAbsent(own, _ -> new ArrayList<>());
        int wanted = warm.contains(own) ? 1 : inARow;
        int quiet = 0;
        double highest = Double.NaN;
        List<Slice> all = new ArrayList<>();
        for (int i = 0; i < needed || isTimeFor(slice, beganNs, mostNs); i++) {
            Slice shown = stage.play(message, load, slice);
            all.add(shown);
            before.add(shown);
            boolean isQuiet = shown.isQuiet() && !Warmth.falls(highest, shown.medianMs());
            quiet = isQuiet ? quiet + 1 : 0;
            if (quiet >= wanted && isLevelAtTheEnd(all) && stage.nowNs() - beganNs >= leastNs) {
                warm.add(own);
                return true;
            }
            if (shown.hasReplies()) {
                highest = isQuiet && highest > shown.medianMs() ? highest : shown.medianMs();
            }
        }
        return false;
    }

    /** Whether the last part of the slices meets, as a whole, the limits that a trial's window has to meet. */
    private static boolean isLevelAtTheEnd(List<Slice> all) {
        int length = Math.ceilDiv(all.size(), LEVEL_PART);
        List<Slice> last = all.subList(all.size() - length, all.size());
        if (!last.stream().allMatch(Slice::hasReplies)) {
            return false;
        }
        double compiling = last.stream()
                .mapToDouble(s -> s.compilingPercent().orElse(Double.POSITIVE_INFINITY))
                .average()
                .orElseThrow();
        int half = length / 2;
        return compiling <= Warmth.MAX_COMPILING
                && (half == 0
                        || !Warmth.falls(
                                meanOfMedians(last.subList(0, half)),
                                meanOfMedians(last.subList(length - half, length))));
    }

    private static double meanOfMedians(List<Slice> some) {
        return some.stream().mapToDouble(Slice::medianMs).average().orElseThrow();
    }

    private boolean isTimeFor(Duration next, long beganNs, long mostNs) {
        return stage.nowNs() - beganNs + next.toNanos() <= mostNs;
    }
}
