package dev.parley.analysis;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Predicate;

/**
 * Whether services were warm while they were measured: a condition of every comparison. Technologies compile
 * different amounts of code, and the faster one answers more requests in the same rehearsal, so that ratios of cold
 * services are ratios of compilers.
 *
 * <p>A trial is warm where its rows show it, cold where they show the opposite, and its warmth is unknown where they
 * show neither.
 */
public final class Warmth {
    /**
     * Compilers' share of the services' processor time, in percent. Source: the project's rules of measuring,
     * docs/measuring.md.
     */
    public static final double MAX_COMPILING = 10;

    /**
     * What the load generator's compilers may take, in percent of a core. While they take more, services have less of
     * the machine, and the generator is slower than it will be. A load that is not steady opens connections all the
     * time, which a generator compiles for: it is exempt.
     */
    public static final double MAX_GENERATOR_COMPILING = 10;

    /** A median that falls by more than this from the first half of a window to the second has not arrived. */
    public static final double MAX_FALL = 0.10;

    /**
     * With so many requests in each half, the halves' medians alone tell whether latency fell. With response times
     * that scatter by half of themselves, the standard error of such a median is 3 % of it, and that of the ratio of
     * two 4.4 %. With fewer, the intervals of both medians have to agree.
     */
    static final int ENOUGH_SAMPLES = 400;

    /** Half the width of a 95 % interval of a median in ranks, over the root of the number of values: 1.96 / 2. */
    private static final double RANKS = 0.98;

    private static final String STILL_FELL = TrialRow.COLD
            + "latency still fell, by %.0f %% from the window's first half to its second (at most %.0f %%)";

    static final String FEW_IN_HALVES = "requests in the halves of the window do not tell whether latency still fell";

    private static final String NOT_HALVED =
            TrialRow.UNKNOWN + "the window was not kept in halves, so that nothing tells whether latency still fell";

    private Warmth() {}

    /**
     * Why a finished trial does not count as warm, each reason beginning with {@link TrialRow#COLD} or {@link
     * TrialRow#UNKNOWN}; empty where it was warm, and where it is a cold start.
     *
     * @param seconds of the trial, which stand in for the halves of a window that was kept without them
     * @param histograms of the trial, with its halves
     * @param figures of the trial: without a {@link Metric#COMPILING_SHARE} among them nothing shows that it was warm
     */
    public static List<String> reasons(
            TrialSpec spec, List<SecondRow> seconds, List<HistogramRow> histograms, List<FigureRow> figures) {
        if (isColdStart(spec, figures)) {
            return List.of();
        }
        List<String> reasons = new ArrayList<>();
        OptionalDouble share = compilingShare(figures);
        if (share.isEmpty()) {
            reasons.add(TrialRow.UNKNOWN + "how much processor time compilers took was not seen");
        } else if (share.getAsDouble() > MAX_COMPILING) {
            reasons.add(String.format(
                    Locale.ROOT,
                    "%scompilers took %.1f %% of the services' processor time (at most %.0f %%)",
                    TrialRow.COLD,
                    share.getAsDouble(),
                    MAX_COMPILING));
        }
        if (spec.load().isSteady()) {
            figures.stream()
                    .filter(f -> f.metric() == Metric.GENERATOR_COMPILING && f.value() > MAX_GENERATOR_COMPILING)
                    .forEach(f -> reasons.add(String.format(
                            Locale.ROOT,
                            "%sthe load generator's compilers took %.1f %% of a core (at most %.0f %%)",
                            TrialRow.COLD,
                            f.value(),
                            MAX_GENERATOR_COMPILING)));
            halves(seconds, histograms)
                    .map(halves -> halves.reason(rehearsedNs(figures)))
                    .orElse(Optional.of(NOT_HALVED))
                    .ifPresent(reasons::add);
        }
        return List.copyOf(reasons);
    }

    /**
     * Compilers' share of the services' processor time in a trial's window, in percent; empty where it is not known.
     */
    public static OptionalDouble compilingShare(List<FigureRow> figures) {
        return figures.stream()
                .filter(f -> f.metric() == Metric.COMPILING_SHARE && f.subject().equals(FigureRow.SYSTEM))
                .mapToDouble(FigureRow::value)
                .max();
    }

    /**
     * True where the study asks how services begin: it rehearses nothing, warms nothing up, and sends as many
     * requests to each technology. Such a trial is cold by design, and its figures are called those of a cold start.
     * In a window of a certain length whoever answers fastest would answer most and be compiled first: without a
     * rehearsal such a trial is cold, and no cold start.
     */
    static boolean isColdStart(TrialSpec spec, List<FigureRow> figures) {
        boolean isRehearsedForNoTime =
                figures.stream().anyMatch(f -> f.metric() == Metric.REHEARSAL_TIME && f.value() == 0);
        return isRehearsedForNoTime
                && spec.window().warmUpMost().equals(Duration.ZERO)
                && spec.load().isOfOneNumber();
    }

    /**
     * True where latency is not level yet. One that rises is that of an overload, which is what a load may be there
     * to show.
     */
    public static boolean falls(double before, double after) {
        return after < before * (1 - MAX_FALL);
    }

    /** What the services had reached before the window, under its load; 0 where it is not known. */
    private static double rehearsedNs(List<FigureRow> figures) {
        return figures.stream()
                .filter(f -> f.metric() == Metric.REHEARSED_MEDIAN)
                .mapToDouble(f -> f.value() * 1e6)
                .findFirst()
                .orElse(0);
    }

    private static Optional<Halves> halves(List<SecondRow> seconds, List<HistogramRow> histograms) {
        Distribution first = times(histograms, HistogramRow.Kind.FIRST_HALF);
        Distribution second = times(histograms, HistogramRow.Kind.SECOND_HALF);
        if (!first.isEmpty() || !second.isEmpty()) {
            return Optional.of(new Halves(first, second));
        }
        List<SecondRow> window = seconds.stream().filter(s -> s.second() >= 0).toList();
        int half = window.size() / 2;
        return half == 0
                ? Optional.empty()
                : Optional.of(new Halves(
                        times(window.subList(0, half)), times(window.subList(window.size() - half, window.size()))));
    }

    private static Distribution times(List<HistogramRow> histograms, HistogramRow.Kind kind) {
        Predicate<HistogramRow> wanted = row -> row.kind() == kind;
        return Distribution.merged(
                histograms.stream().filter(wanted).map(HistogramRow::histogram).toList());
    }

    private static Distribution times(List<SecondRow> seconds) {
        return Distribution.merged(
                seconds.stream().map(SecondRow::responseTimes).toList());
    }

    /** Response times of the two halves of one window. */
    private record Halves(Distribution first, Distribution second) {
        /**
         * Why they do not show that latency was level; empty where they do.
         *
         * @param rehearsedNs what the services had reached before: a window that ends no lower began slowly for
         *     another cause than services that grow faster; 0 where it is not known
         */
        Optional<String> reason(double rehearsedNs) {
            double before = first.percentileNs(50);
            double after = second.percentileNs(50);
            if (endsNoLowerThan(rehearsedNs)) {
                return Optional.empty();
            }
            if (first.total() >= ENOUGH_SAMPLES && second.total() >= ENOUGH_SAMPLES) {
                return falls(before, after) ? Optional.of(stillFell(before, after)) : Optional.empty();
            }
            Optional<Interval> early = Interval.ofMedian(first);
            Optional<Interval> late = Interval.ofMedian(second);
            if (early.isPresent() && late.isPresent()) {
                if (!falls(early.get().high(), late.get().low())) {
                    return Optional.empty();
                }
                if (falls(early.get().low(), late.get().high())) {
                    return Optional.of(stillFell(before, after));
                }
            }
            return Optional.of(String.format(
                    Locale.ROOT, "%s%d and %d " + FEW_IN_HALVES, TrialRow.UNKNOWN, first.total(), second.total()));
        }

        /** Of few requests the lower end of the median's interval tells, and of fewer than it takes nothing. */
        private boolean endsNoLowerThan(double rehearsedNs) {
            OptionalDouble end = second.total() >= ENOUGH_SAMPLES
                    ? OptionalDouble.of(second.percentileNs(50))
                    : Interval.ofMedian(second).stream()
                            .mapToDouble(Interval::low)
                            .findFirst();
            return rehearsedNs > 0 && end.isPresent() && !falls(rehearsedNs, end.getAsDouble());
        }

        private static String stillFell(double before, double after) {
            return String.format(Locale.ROOT, STILL_FELL, 100 * (1 - after / before), 100 * MAX_FALL);
        }
    }

    /** The interval in which a median lies at 95 %, whatever the distribution of its values is. */
    private record Interval(double low, double high) {
        /** The values of those ranks that the median is between; empty where there are too few values. */
        static Optional<Interval> ofMedian(Distribution times) {
            long n = times.total();
            long low = (long) Math.floor(n / 2.0 - RANKS * Math.sqrt(n));
            long high = (long) Math.ceil(1 + n / 2.0 + RANKS * Math.sqrt(n));
            return low < 1 || high > n
                    ? Optional.empty()
                    : Optional.of(
                            new Interval(times.percentileNs(100.0 * low / n), times.percentileNs(100.0 * high / n)));
        }
    }
}
