package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Whether the services' JVMs had done their compiling when they were measured. */
final class Warmth {
    /** Below, compiling changes processor time per request by less than restarts do. */
    private static final double PERCENT = 10;

    private Warmth() {}

    /** A warning that names the technologies whose compilers were still busy; empty when none was. */
    static Optional<String> note(Analysis analysis) {
        List<String> busy = new ArrayList<>();
        for (Technology technology : analysis.run().technologies()) {
            double most = analysis.summaries().stream()
                    .filter(s -> s.metric() == Metric.COMPILING_SHARE)
                    .filter(s -> s.technology().equals(technology.name()))
                    .mapToDouble(s -> s.estimate().value())
                    .filter(Double::isFinite)
                    .max()
                    .orElse(0);
            if (most > PERCENT) {
                busy.add(technology.name() + " " + Math.round(most) + " %");
            }
        }
        return busy.isEmpty()
                ? Optional.empty()
                : Optional.of(
                        "Not fully warm: just-in-time compilers took up to this share of the services' CPU in a window: "
                                + String.join(", ", busy)
                                + ". Latency and CPU of a service that runs for hours are lower; longer warm-ups show them.");
    }
}
