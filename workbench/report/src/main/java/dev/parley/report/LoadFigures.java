package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
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
        TITLES.put(Metric.HIGHEST_RATE, "Highest rate within the limit (1/s)");
        TITLES.put(Metric.SCENARIO_TIME, "Mean scenario (ms)");
        TITLES.put(Metric.SCENARIO_TIME_P99, "99th percentile scenario (ms)");
        TITLES.put(Metric.USERS_AT_FIRST_FAILURE, "Users at the first failure");
        TITLES.put(Metric.WINDOW_LENGTH, "All done in (s)");
    }

    private LoadFigures() {}

    /** True where the time until all was done is a result; a search takes as long as its tries happen to be. */
    private static boolean isDoneInATimeOfItsOwn(Load load) {
        return load.isCounted() && !(load instanceof Load.HighestRate);
    }

    /** Those that some technology has in the situation, or would have had, had it failed; empty for most loads. */
    static List<Metric> of(Analysis analysis, Situation situation) {
        List<Metric> metrics = new ArrayList<>();
        for (Metric metric : TITLES.keySet()) {
            if (metric == Metric.WINDOW_LENGTH && !isDoneInATimeOfItsOwn(situation.load())) {
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

    /** For people; of a search that ended at the highest or the lowest rate that it may try, what that says. */
    static String brief(Summary summary) {
        double value = summary.estimate().value();
        if (summary.metric() == Metric.HIGHEST_RATE
                && summary.load() instanceof Load.HighestRate search
                && summary.estimate().isPresent()) {
            return value >= search.to()
                    ? "at least " + Figures.brief(value)
                    : value > 0 ? Figures.brief(value) : "under " + Figures.brief(search.from());
        }
        return Figures.brief(value);
    }

    private static boolean canBeAbsent(Metric metric, Load load) {
        return switch (load) {
            case Load.Staircase _ -> metric == Metric.CLIENTS_AT_LIMIT;
            case Load.Users _, Load.Held _ -> metric == Metric.USERS_AT_FIRST_FAILURE;
            case Load.Closed _, Load.Open _, Load.RateRamp _, Load.Burst _, Load.Rounds _, Load.HighestRate _ -> false;
        };
    }

    /** Why a technology that was measured has none of a figure, such as a staircase that never gave out; empty where it was not measured. */
    static Optional<String> absence(Analysis analysis, Situation situation, String technology, Metric metric) {
        return analysis.summary(technology, situation, Metric.THROUGHPUT)
                .filter(s -> s.estimate().isPresent())
                .flatMap(s -> metric.absence());
    }
}
