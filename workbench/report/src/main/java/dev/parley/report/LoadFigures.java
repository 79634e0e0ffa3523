package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * What a load is for, beside response time and throughput: where a staircase gives out, the rate that a search found, a
 * user's whole scenario.
 */
final class LoadFigures {
    private LoadFigures() {}

    /**
     * Those that some technology has in the situation, and those whose absence tells something; empty for most loads.
     */
    static List<Metric> of(Analysis analysis, Situation situation) {
        return Arrays.stream(Metric.values())
                .filter(metric -> metric.isResultOf(situation.load()))
                .filter(metric -> metric.absence().isPresent()
                        || analysis.run().technologies().stream()
                                .anyMatch(t -> analysis.summary(t.name(), situation, metric)
                                        .isPresent()))
                .toList();
    }

    /** For people; of a search that ended at the highest or the lowest rate that it may try, what that says. */
    static String brief(Summary summary) {
        double value = summary.estimate().value();
        if (summary.metric() == Metric.HIGHEST_RATE
                && summary.load() instanceof Load.HighestRate search
                && summary.estimate().isPresent()) {
            return value >= search.to()
                    ? "at least " + bound(search.to())
                    : value > 0 ? Figures.brief(value) : "under " + bound(search.from());
        }
        return Figures.brief(value);
    }

    /** Not rounded: what is under a rate need not be under the rounded one. */
    private static String bound(double rate) {
        return rate == Math.rint(rate) ? Figures.whole((long) rate) : Figures.full(rate);
    }

    /**
     * Why a technology that was measured has none of a figure, such as a staircase that never gave out; empty where
     * nothing was measured that counts: a void or cold trial does not show that no step gives out.
     */
    static Optional<String> absence(Analysis analysis, Situation situation, String technology, Metric metric) {
        return analysis.summary(technology, situation, Metric.THROUGHPUT)
                .filter(s -> s.estimate().isPresent() && s.counts())
                .flatMap(s -> metric.absence());
    }
}
