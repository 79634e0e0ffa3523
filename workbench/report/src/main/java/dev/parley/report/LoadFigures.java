package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** What a load is for, beside response time and throughput: where a staircase gives out, the rate that a search found, a user's whole scenario. */
final class LoadFigures {
    private static final Map<Metric, String> TITLES = new LinkedHashMap<>();

    static {
        TITLES.put(Metric.THROUGHPUT_BEST, "Best throughput (1/s)");
        TITLES.put(Metric.CLIENTS_AT_BEST, "Clients at the best");
        TITLES.put(Metric.CLIENTS_AT_LIMIT, "Clients when it gave out");
        TITLES.put(Metric.RATE_AT_BEST, "Rate at the best (1/s)");
        TITLES.put(Metric.RATE_AT_LIMIT, "Rate when it gave out (1/s)");
        TITLES.put(Metric.HIGHEST_RATE, "Highest rate within the limit (1/s)");
        TITLES.put(Metric.SCENARIO_TIME, "Mean scenario (ms)");
        TITLES.put(Metric.SCENARIO_TIME_P99, "99th percentile scenario (ms)");
        TITLES.put(Metric.USERS_AT_FIRST_FAILURE, "Users at the first failure");
        TITLES.put(Metric.WINDOW_LENGTH, "All done in (s)");
    }

    private LoadFigures() {}

    /** Those that some technology has in the situation, or would have had, had it failed; empty for most loads. */
    static List<Metric> of(Analysis analysis, Situation situation) {
        List<Metric> metrics = new ArrayList<>();
        for (Metric metric : TITLES.keySet()) {
            // the time until all was done is a result only where there is as much to do for everybody
            if (metric == Metric.WINDOW_LENGTH && !situation.load().isOfOneNumber()) {
                continue;
            }
            if (canBeAbsent(metric, situation.load())
                    || analysis.run().technologies().stream()
                            .anyMatch(t -> analysis.summary(t.name(), situation, metric)
                                    .isPresent())) {
                metrics.add(metric);
            }
        }
        return metrics;
    }

    static String title(Metric metric) {
        return TITLES.getOrDefault(metric, metric.key());
    }

    private static boolean canBeAbsent(Metric metric, Load load) {
        Metric limit = load.isOpen() ? Metric.RATE_AT_LIMIT : Metric.CLIENTS_AT_LIMIT;
        return metric == limit && load.isStepped() || metric == Metric.USERS_AT_FIRST_FAILURE && load.hasUsers();
    }

    /** Why a technology that was measured has none of a figure, such as a staircase that never gave out; empty where it was not measured. */
    static Optional<String> absence(Analysis analysis, Situation situation, String technology, Metric metric) {
        return analysis.summary(technology, situation, Metric.THROUGHPUT)
                .filter(s -> s.estimate().isPresent())
                .flatMap(s -> metric.absence());
    }
}
