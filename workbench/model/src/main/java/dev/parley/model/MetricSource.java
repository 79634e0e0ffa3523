package dev.parley.model;

import java.util.OptionalDouble;

/**
 * Which of a trial's rows a metric is computed from. Of times it is the mean, or a percentile: {@link #MEAN} or
 * {@link #percentile}.
 */
public sealed interface MetricSource {
    /** Figures that were stored under the metric's key by whoever measured it: {@link FigureRow}. */
    record Figures() implements MetricSource {}

    /** What became of the requests that were due in the window, second by second: {@link SecondRow}. */
    record Outcomes() implements MetricSource {}

    /** Response times of the replies in the window, second by second: {@link SecondRow}. */
    record ResponseTimes(OptionalDouble percentile) implements MetricSource {}

    /** Times of one kind, all of a trial together: {@link HistogramRow}. */
    record Histograms(HistogramRow.Kind kind, OptionalDouble percentile) implements MetricSource {}

    /**
     * Processor time for one answer, where no figure of it was stored: what all services used in the window, over the
     * requests that were answered in it.
     *
     * @param share their processor use, in percent of a core
     */
    record PerAnswer(Metric share) implements MetricSource {}

    /** The mean of all times. */
    OptionalDouble MEAN = OptionalDouble.empty();

    /** @param percent 0 for the shortest time, 100 for the longest */
    static OptionalDouble percentile(double percent) {
        if (!(percent >= 0) || percent > 100) {
            throw new BadInput("percentile", percent, "0 to 100");
        }
        return OptionalDouble.of(percent);
    }

    /** {@link ResponseTimes}, as the entries of {@link Metric} write it. */
    static MetricSource responses(OptionalDouble percentile) {
        return new ResponseTimes(percentile);
    }

    /** Times of the services' calls to their neighbours. */
    static MetricSource hops(OptionalDouble percentile) {
        return new Histograms(HistogramRow.Kind.HOP, percentile);
    }
}
