package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.model.Metric;
import dev.parley.model.TrialSpec;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** What a reader must know of a run before its figures are believed: how warm it was, in which order, how often. */
final class Circumstances {
    private Circumstances() {}

    /**
     * Share of the services' processor time that compilers took in the windows: the median over cells, and the most.
     */
    static String warmth(Analysis analysis) {
        double[] shares = analysis.summaries().stream()
                .filter(s -> s.metric() == Metric.COMPILING_SHARE)
                .mapToDouble(s -> s.estimate().value())
                .filter(Double::isFinite)
                .sorted()
                .toArray();
        return shares.length == 0
                ? "unknown: compilers were not measured"
                : String.format(
                        Locale.ROOT,
                        "compilers took %.0f %% of the services' processor time, %.0f %% at most",
                        shares[(shares.length - 1) / 2],
                        shares[shares.length - 1]);
    }

    /** The order of technologies, as the first restart had it. */
    static String order(Analysis analysis) {
        List<TrialSpec> plan = analysis.plan();
        if (plan.isEmpty()) {
            return "none";
        }
        int first = plan.getFirst().restart();
        return plan.stream()
                        .filter(trial -> trial.restart() == first)
                        .map(TrialSpec::technology)
                        .distinct()
                        .collect(Collectors.joining(", "))
                + "; each further restart begins one further on, and all of one restart carry the same in the same"
                + " order";
    }

    /** How many were planned. */
    static int restarts(Analysis analysis) {
        return analysis.plan().stream().mapToInt(TrialSpec::restart).max().orElse(0);
    }
}
