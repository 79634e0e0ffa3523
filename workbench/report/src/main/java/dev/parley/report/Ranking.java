package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;

/** The order in which technologies stand: first those whose figure counts, the best one first, then the others. */
final class Ranking {
    private Ranking() {}

    /** @param value NaN where there is none, which comes last */
    static <T> Comparator<T> bestFirst(Metric.Better better, Predicate<T> counts, ToDoubleFunction<T> value) {
        int sign = better == Metric.Better.HIGHER ? -1 : 1;
        return Comparator.<T, Boolean>comparing(one -> !counts.test(one))
                .thenComparingDouble(one -> sign * value.applyAsDouble(one));
    }

    /** The points of a chart of one metric. */
    static Comparator<Chart.Point> points(Metric metric) {
        return bestFirst(metric.better(), point -> Summary.counts(point.flag()), Chart.Point::value);
    }

    /** All technologies of a run by one metric in one situation. */
    static List<String> technologies(Analysis analysis, Situation situation, Metric metric) {
        return analysis.run().technologies().stream()
                .map(Technology::name)
                .map(name -> new Placed(name, analysis.summary(name, situation, metric)))
                .sorted(bestFirst(
                        metric.better(),
                        placed -> placed.figure()
                                .filter(figure -> figure.counts())
                                .isPresent(),
                        placed -> placed.figure()
                                .map(figure -> figure.estimate().value())
                                .orElse(Double.NaN)))
                .map(Placed::technology)
                .toList();
    }

    private record Placed(String technology, Optional<Summary> figure) {}
}
