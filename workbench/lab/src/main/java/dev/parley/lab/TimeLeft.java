package dev.parley.lab;

import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * How much time a run still takes: as planned, and from what its trials and boots so far took. What is told never
 * grows, unless {@link #booting} or {@link #ended} says why. One thread.
 */
public final class TimeLeft {
    /** A time that grows by less is no news. */
    private static final Duration MIN_GROWTH = Duration.ofSeconds(5);

    /** The same as a share of what was told: a tenth. */
    private static final int GROWTH_SHARE = 10;

    private final Plan plan;
    private final TrialTimes times = new TrialTimes(List.of());

    /** What boots took beside their trials. */
    private final Map<Kind, TimeRange> asides = new HashMap<>();

    /** The boot under way, or the first before it begins. */
    private int current;

    private long beganNs;
    private boolean isBooting;

    /** Trials of the boot under way that have not ended. */
    private final List<TrialSpec> waiting = new ArrayList<>();

    /** What its trials took that have ended. */
    private Duration inTrials = Duration.ZERO;

    private boolean hasFailed;
    private TimeRange told;

    /** Boots that do the same. What a boot carries comes in another order in each block. */
    private record Kind(String technology, Topology topology, Set<Study.MessageUnderLoad> pairs) {
        static Kind of(Plan.Boot boot) {
            return new Kind(
                    boot.technology(),
                    boot.topology(),
                    boot.trials().stream()
                            .map(trial -> new Study.MessageUnderLoad(trial.message(), trial.load()))
                            .collect(Collectors.toSet()));
        }
    }

    public TimeLeft(Plan plan) {
        this.plan = plan;
        this.told = left(0);
    }

    /** What is left: never more than was told before. */
    public TimeRange at(long nowNs) {
        TimeRange now = left(nowNs);
        Duration most = shorter(now.most(), told.most());
        told = new TimeRange(shorter(now.least(), most), most);
        return told;
    }

    /**
     * A boot begins, and the one before it is over.
     *
     * @param index in the plan, from 0
     * @return why more time is left than was told before; empty as a rule
     */
    public Optional<String> booting(int index, long nowNs) {
        String why = "trials failed";
        if (isBooting && !hasFailed && waiting.isEmpty()) {
            Plan.Boot before = plan.boots().get(current);
            Duration took = besideTrials(nowNs);
            why = "starting and rehearsing " + before.technology() + " on " + before.topology() + " took "
                    + TimeRange.of(took) + ", expected: " + aside(current);
            asides.merge(Kind.of(before), TimeRange.of(took).less(around(current)), TimeRange::around);
        }
        current = index;
        isBooting = true;
        hasFailed = false;
        beganNs = nowNs;
        inTrials = Duration.ZERO;
        waiting.clear();
        waiting.addAll(plan.boots().get(index).trials());
        return grown(nowNs, why);
    }

    /**
     * A trial of the boot under way is over.
     *
     * @return why more time is left than was told before; empty as a rule
     */
    public Optional<String> ended(TrialRow trial, long nowNs) {
        TrialSpec spec = trial.spec();
        Duration took = TrialTimes.length(trial);
        String why = spec.technology() + " " + spec.message() + " " + spec.load() + " took " + TimeRange.of(took)
                + ", expected: " + times.of(spec);
        waiting.removeIf(one -> one.id() == spec.id());
        hasFailed |= trial.state() != TrialRow.State.FINISHED;
        inTrials = inTrials.plus(took);
        times.took(trial);
        return grown(nowNs, why);
    }

    private Optional<String> grown(long nowNs, String why) {
        TimeRange now = left(nowNs);
        Duration growth = now.most().minus(told.most());
        if (growth.compareTo(MIN_GROWTH) <= 0 || growth.compareTo(told.most().dividedBy(GROWTH_SHARE)) <= 0) {
            return Optional.empty();
        }
        told = now;
        return Optional.of(now + " left, more than before: " + why);
    }

    /** What the boot under way took so far, without the trials that have ended: these have a clock of their own. */
    private Duration besideTrials(long nowNs) {
        return TimeRange.longer(Duration.ofNanos(nowNs - beganNs).minus(inTrials), Duration.ZERO);
    }

    private TimeRange left(long nowNs) {
        TimeRange sum = plan.boots().isEmpty() ? TimeRange.NONE : plan.afterBoots();
        for (int i = current; i < plan.boots().size(); i++) {
            sum = sum.plus(i == current && isBooting ? ofCurrent(nowNs) : of(i));
        }
        return sum;
    }

    private TimeRange of(int index) {
        return aside(index).plus(ofTrials(plan.boots().get(index).trials()));
    }

    /** At least the trials after the one that may be under way are still to come. */
    private TimeRange ofCurrent(long nowNs) {
        if (waiting.isEmpty()) {
            return TimeRange.NONE;
        }
        return aside(current)
                .plus(ofTrials(waiting))
                .less(besideTrials(nowNs))
                .atLeast(ofTrials(waiting.subList(1, waiting.size())));
    }

    private TimeRange ofTrials(List<TrialSpec> trials) {
        TimeRange sum = TimeRange.NONE;
        for (TrialSpec trial : trials) {
            sum = sum.plus(times.of(trial));
        }
        return sum;
    }

    private TimeRange aside(int index) {
        Plan.Boot boot = plan.boots().get(index);
        return asides.getOrDefault(Kind.of(boot), Plan.aside(boot)).plus(around(index));
    }

    /** What stands around a boot for its place in the plan: the generator's ceiling, and the empty service. */
    private Duration around(int index) {
        return (index == 0 ? Plan.CEILING : Duration.ZERO)
                .plus(plan.boots().get(index).opensBlock() ? Plan.EMPTY_SERVICE : Duration.ZERO);
    }

    private static Duration shorter(Duration a, Duration b) {
        return a.compareTo(b) < 0 ? a : b;
    }
}
