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
    private final Map<Place, Duration> longest = new HashMap<>();

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
            longest.merge(
                    Place.of(trial.spec()),
                    Duration.between(trial.startedAt(), trial.endedAt()),
                    (a, b) -> a.compareTo(b) > 0 ? a : b);
        }
    }

    /** The longest that the same took in another restart, but not under what it is planned to take. */
    Duration of(TrialSpec trial) {
        Duration planned = Plan.estimate(trial);
        Duration seen = longest.getOrDefault(Place.of(trial), planned);
        return seen.compareTo(planned) > 0 ? seen : planned;
    }

    /** The services' start and rehearsal too. */
    Duration of(Plan.Boot boot) {
        Duration sum = Plan.estimate(boot);
        for (TrialSpec trial : boot.trials()) {
            sum = sum.plus(of(trial)).minus(Plan.estimate(trial));
        }
        return sum;
    }
}
