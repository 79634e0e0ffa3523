package dev.parley.lab;

import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * How long trials of a run take. A load that is over when its work is done takes as long as the services need, which
 * nobody knows before the first restart; from the second on it is what the same took before. One thread.
 */
final class TrialTimes {
    private final Map<Place, TimeRange> seen = new HashMap<>();

    private record Place(String technology, Topology topology, MessageSpec message, Load load) {
        static Place of(TrialSpec trial) {
            return new Place(trial.technology(), trial.topology(), trial.message(), trial.load());
        }
    }

    /** @param done trials of the same run, from sittings before this one */
    TrialTimes(List<TrialRow> done) {
        done.forEach(this::took);
    }

    void took(TrialRow trial) {
        if (trial.state() == TrialRow.State.FINISHED) {
            seen.merge(Place.of(trial.spec()), TimeRange.of(length(trial)), TimeRange::around);
        }
    }

    static Duration length(TrialRow trial) {
        Duration length = Duration.between(trial.startedAt(), trial.endedAt());
        return TimeRange.longer(length, Duration.ZERO);
    }

    /** From the shortest to the longest that the same took in another restart; what is planned where none has ended. */
    TimeRange of(TrialSpec trial) {
        return seen.getOrDefault(Place.of(trial), Plan.estimate(trial));
    }

    /** The longest that the same took in another restart, but not under what it is planned to take at the most. */
    Duration longest(TrialSpec trial) {
        return TimeRange.longer(of(trial).most(), Plan.estimate(trial).most());
    }

    /** The services' start and rehearsal too. */
    Duration longest(Plan.Boot boot) {
        Duration sum = Plan.estimate(boot).most();
        for (TrialSpec trial : boot.trials()) {
            sum = sum.plus(longest(trial)).minus(Plan.estimate(trial).most());
        }
        return sum;
    }
}
