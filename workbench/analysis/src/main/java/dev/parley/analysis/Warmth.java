package dev.parley.analysis;

import dev.parley.model.FigureRow;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;

/**
 * Whether services were warm while they were measured: a condition of every comparison. Technologies compile different amounts of code, and
 * the faster one answers more requests in the same rehearsal, so that ratios of cold services are ratios of compilers.
 */
public final class Warmth {
    /** Compilers' share of the services' processor time, in percent. Source: the project's rules of measuring, docs/measuring.md. */
    public static final double MAX_COMPILING = 10;

    /** A median that falls by more than this from the first half of a window to the second has not arrived. */
    public static final double MAX_FALL = 0.10;

    /**
     * Requests in each half before their medians tell a fall. With response times that scatter by half of themselves, the standard error of
     * such a median is 3 % of it, and that of the ratio of two 4.4 %.
     */
    static final int MIN_SAMPLES = 400;

    private Warmth() {}

    /**
     * Why a finished trial is cold, each reason beginning with {@link TrialRow#COLD}; empty where it was warm.
     *
     * @param figures of the trial: without a {@link Metric#COMPILING_SHARE} among them nothing shows that it was warm
     */
    public static List<String> reasons(TrialSpec spec, List<SecondRow> seconds, List<FigureRow> figures) {
        List<String> reasons = new ArrayList<>();
        OptionalDouble share = figures.stream()
                .filter(f -> f.metric() == Metric.COMPILING_SHARE && f.subject().equals(FigureRow.SYSTEM))
                .mapToDouble(FigureRow::value)
                .max();
        if (share.isEmpty()) {
            reasons.add(TrialRow.COLD + "how much processor time compilers took is not known");
        } else if (share.getAsDouble() > MAX_COMPILING) {
            reasons.add(String.format(
                    Locale.ROOT,
                    "%scompilers took %.1f %% of the services' processor time (at most %.0f %%)",
                    TrialRow.COLD,
                    share.getAsDouble(),
                    MAX_COMPILING));
        }
        if (isSteady(spec.load())) {
            List<SecondRow> window =
                    seconds.stream().filter(s -> s.second() >= 0).toList();
            int half = window.size() / 2;
            Distribution first = times(window.subList(0, half));
            Distribution second = times(window.subList(window.size() - half, window.size()));
            if (first.total() >= MIN_SAMPLES && second.total() >= MIN_SAMPLES) {
                double before = first.percentileNs(50);
                double after = second.percentileNs(50);
                if (falls(before, after)) {
                    reasons.add(String.format(
                            Locale.ROOT,
                            "%slatency still fell, by %.0f %% from the window's first half to its second (at most %.0f %%)",
                            TrialRow.COLD,
                            100 * (1 - after / before),
                            100 * MAX_FALL));
                }
            }
        }
        return List.copyOf(reasons);
    }

    /** True where latency is not level yet. One that rises is that of an overload, which is what a load may be there to show. */
    public static boolean falls(double before, double after) {
        return after < before * (1 - MAX_FALL);
    }

    /** Loads that ask for the same throughout, so that latency has a level to be on. */
    private static boolean isSteady(Load load) {
        return switch (load) {
            case Load.Closed _, Load.Open _ -> true;
            case Load.Staircase _,
                    Load.RateRamp _,
                    Load.Users _,
                    Load.Held _,
                    Load.Burst _,
                    Load.Rounds _,
                    Load.HighestRate _ -> false;
        };
    }

    private static Distribution times(List<SecondRow> seconds) {
        return Distribution.merged(
                seconds.stream().map(SecondRow::responseTimes).toList());
    }
}
