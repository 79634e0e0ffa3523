package dev.parley.lab;

import dev.parley.analysis.Warmth;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.List;
import java.util.OptionalDouble;

/**
 * Warms the services of one boot until they are warm, not for a time: equal time favours whoever answers fastest. A slice of load shows
 * whether compilers still take more than a trial allows. While they do, a few requests a second keep the queue of the compilers alive and
 * leave them the processors, until it is empty; then comes the next slice. Nothing of it is kept. One thread.
 */
final class Rehearsal {
    static final Duration SLICE = Duration.ofSeconds(1);
    /** How often it is looked whether compilers have done what they were asked. */
    static final Duration LOOK = Duration.ofMillis(500);

    /** Clients of loads that are not closed themselves, and of a message's first rehearsal: one alone would take minutes. */
    static final int CLIENTS = 16;

    /** Processors that compilers use when their queue is as good as empty. */
    private static final double DRAINED_CORES = 0.1;

    /**
     * Requests a second meanwhile, at the most. HotSpot forgets what it was to compile of methods that are not called for 50 ms
     * (TieredCompileTaskTimeout): silence would empty the queue and compile nothing.
     */
    private static final double MOST_KEPT_ALIVE = 100;

    /** Of the rate that the services reached, so that compilers have the processors. */
    private static final double SHARE_KEPT_ALIVE = 0.1;

    /** A new message asks for new code; another concurrency of the same message for little. */
    private static final int MESSAGE_WEIGHT = 3;

    private final Stage stage;
    private final long leastNs;
    private long leftNs;
    private int messagesLeft;
    private int cellsLeft;

    /** Where load is put on the services. */
    interface Stage {
        Slice play(MessageSpec message, Load load, Duration length) throws InterruptedException;

        long nowNs();
    }

    /**
     * What a slice showed.
     *
     * @param compilingPercent compilers' share of the services' processor time; empty where it is not known
     * @param compilingCores processors that compilers kept busy
     */
    record Slice(OptionalDouble compilingPercent, double compilingCores, double medianMs, double perSecond) {
        boolean isQuiet() {
            return compilingPercent.isPresent() && compilingPercent.getAsDouble() <= Warmth.MAX_COMPILING;
        }
    }

    /**
     * @param least that it takes before the first trial, each message its part
     * @param most that all of it may take; nothing is rehearsed where it is zero
     * @param cells that will be measured afterwards
     */
    Rehearsal(Stage stage, Duration least, Duration most, int cells) {
        this.stage = stage;
        this.leastNs = least.toNanos();
        this.leftNs = most.toNanos();
        this.cellsLeft = cells;
    }

    /** Each message until the services are warm for it, under more load than one client gives. */
    void of(List<MessageSpec> messages) throws InterruptedException {
        messagesLeft = messages.size();
        long leastEachNs = leastNs / Math.max(1, messages.size());
        for (int i = 0; i < messages.size(); i++) {
            int others = (messagesLeft - 1) * MESSAGE_WEIGHT + cellsLeft;
            // most of the code is the same for every message: the first has it compiled for all
            long most = i == 0 ? leftNs / 2 : leftNs * MESSAGE_WEIGHT / Math.max(1, MESSAGE_WEIGHT + others);
            messagesLeft--;
            warm(
                    messages.get(i),
                    new Load.Closed(CLIENTS),
                    leastEachNs,
                    Math.max(leastEachNs, others == 0 ? leftNs : most));
        }
    }

    /**
     * Before a trial, at the concurrency that is then measured.
     *
     * @return whether the services were seen warm; where not, time was over, and the trial's own window tells
     */
    boolean before(TrialSpec trial) throws InterruptedException {
        long most = leftNs / Math.max(1, cellsLeft);
        cellsLeft--;
        Load load = switch (trial.load()) {
            case Load.Closed closed -> closed;
            case Load.Open open -> open;
            case Load.Staircase _,
                    Load.RateRamp _,
                    Load.Users _,
                    Load.Held _,
                    Load.Burst _,
                    Load.Rounds _,
                    Load.HighestRate _ -> new Load.Closed(CLIENTS);
        };
        return warm(trial.message(), load, 0, most);
    }

    private boolean warm(MessageSpec message, Load load, long leastNs, long mostNs) throws InterruptedException {
        long beganNs = stage.nowNs();
        boolean isWarm = untilWarm(message, load, beganNs, leastNs, mostNs);
        leftNs = Math.max(0, leftNs - (stage.nowNs() - beganNs));
        return isWarm;
    }

    private boolean untilWarm(MessageSpec message, Load load, long beganNs, long leastNs, long mostNs)
            throws InterruptedException {
        double medianBefore = Double.NaN;
        while (isTimeFor(SLICE, beganNs, mostNs)) {
            Slice slice = stage.play(message, load, SLICE);
            boolean isWarm = slice.isQuiet() && !Warmth.falls(medianBefore, slice.medianMs());
            if (isWarm && stage.nowNs() - beganNs >= leastNs) {
                return true;
            }
            medianBefore = slice.medianMs();
            if (!isWarm) {
                drain(message, slice, beganNs, mostNs);
            }
        }
        return false;
    }

    private void drain(MessageSpec message, Slice after, long beganNs, long mostNs) throws InterruptedException {
        double rate = Math.clamp(after.perSecond() * SHARE_KEPT_ALIVE, 1, MOST_KEPT_ALIVE);
        Slice slice = after;
        while (slice.compilingCores() > DRAINED_CORES && isTimeFor(LOOK, beganNs, mostNs)) {
            slice = stage.play(message, new Load.Open(rate, Load.Arrivals.EVEN), LOOK);
        }
    }

    private boolean isTimeFor(Duration next, long beganNs, long mostNs) {
        return stage.nowNs() - beganNs + next.toNanos() <= mostNs;
    }
}
