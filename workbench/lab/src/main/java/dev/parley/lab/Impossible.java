package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.protocol.Event;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * What cannot be true of any trial: a trial that shows one of these is void, however its figures look, since the fault
 * that made one figure impossible may have made others merely wrong. Source: the project's rules of measuring,
 * docs/measuring.md.
 */
record Impossible(
        Ceiling ceiling,
        List<SecondRow> seconds,
        List<Event.Step> steps,
        Event.Finished finished,
        List<FigureRow> figures,
        Traffic traffic) {
    /**
     * Shares are counted by two clocks, the kernel's ticks and the probe's: so much over the whole is their difference.
     */
    private static final double SHARE_TOLERANCE = 1.05;

    List<String> reasons() {
        List<String> reasons = new ArrayList<>();
        long inSeconds = seconds.stream()
                .filter(s -> s.second() >= 0)
                .mapToLong(s -> s.replied() + s.late() + s.wrong() + s.failed() + s.notSent())
                .sum();
        if (inSeconds != finished.due()) {
            reasons.add("impossible: the seconds hold " + inSeconds + " requests, the whole window " + finished.due());
        }
        long inSteps = steps.stream()
                .filter(Event.Step::isCounted)
                .mapToLong(Impossible::due)
                .sum();
        if (inSteps != finished.due()) {
            reasons.add("impossible: the steps hold " + inSteps + " requests, the whole window " + finished.due());
        }
        if (finished.windowNs() <= 0 && finished.due() > 0) {
            reasons.add("impossible: " + finished.due() + " requests in a window of no length");
        }
        steps.forEach(step -> reasons.addAll(of(step)));
        reasons.addAll(traffic.contradictions());
        double processors = Runtime.getRuntime().availableProcessors();
        double used = sum(Metric.CPU_SHARE) / 100;
        if (used > processors * SHARE_TOLERANCE) {
            reasons.add(text("impossible: the services used %.2f cores of %.0f", used, processors));
        }
        if (sum(Metric.COMPILING_SHARE) > 100 * SHARE_TOLERANCE) {
            reasons.add("impossible: compilers took more processor time than the services that they are part of");
        }
        return reasons;
    }

    private List<String> of(Event.Step step) {
        long answered = step.replied() + step.late() + step.wrong();
        if (step.lengthNs() <= 0) {
            return answered == 0
                    ? List.of()
                    : List.of("impossible: " + answered + " replies in the step " + step.label() + " of no length");
        }
        double perSecond = answered * 1e9 / step.lengthNs();
        return perSecond <= ceiling.perSecond()
                ? List.of()
                : List.of(text(
                        "impossible: %.0f replies/s in the step %s, over the %.0f that the load generator reaches here",
                        perSecond, step.label(), ceiling.perSecond()));
    }

    private static long due(Event.Step step) {
        return step.replied() + step.late() + step.wrong() + step.failed() + step.notSent();
    }

    private double sum(Metric metric) {
        return figures.stream()
                .filter(f -> f.metric() == metric)
                .mapToDouble(FigureRow::value)
                .sum();
    }

    private static String text(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
