package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.model.Technology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * What a report says of trials that are not known to be warm: those whose services still warmed up, and those where
 * nothing tells.
 */
final class Warmth {
    private Warmth() {}

    static long cold(Analysis analysis) {
        return analysis.trials().stream().filter(JudgedTrial::isCold).count();
    }

    static long unknown(Analysis analysis) {
        return analysis.trials().stream().filter(JudgedTrial::isUnknown).count();
    }

    /** How many trials of which technology were cold or of unknown warmth, and what follows; empty where none was. */
    static Optional<String> note(Analysis analysis) {
        List<String> notes = new ArrayList<>();
        count(analysis, JudgedTrial::isCold)
                .ifPresent(cold -> notes.add("Cold trials, in which services were still warming up: " + cold
                        + ". They are kept, and have no ratio and no verdict; a longer rehearsal warms them."));
        count(analysis, JudgedTrial::isUnknown)
                .ifPresent(unknown -> notes.add("Trials of unknown warmth, of which nothing tells whether services were"
                        + " warm: " + unknown + ". They are kept, and decide nothing; more requests in a longer window"
                        + " tell."));
        return notes.isEmpty() ? Optional.empty() : Optional.of(String.join(" ", notes));
    }

    private static Optional<String> count(Analysis analysis, Predicate<JudgedTrial> wanted) {
        List<String> counts = new ArrayList<>();
        for (Technology technology : analysis.run().technologies()) {
            List<JudgedTrial> own = analysis.trials().stream()
                    .filter(t -> t.row().spec().technology().equals(technology.name()))
                    .toList();
            long count = own.stream().filter(wanted).count();
            if (count > 0) {
                counts.add(technology.name() + " " + count + " of " + own.size());
            }
        }
        return counts.isEmpty() ? Optional.empty() : Optional.of(String.join(", ", counts));
    }

    /** Reasons as text, without the word before each that tells cold ones and unknown ones from others. */
    static String why(JudgedTrial trial) {
        List<String> reasons = trial.reasons();
        return String.join(
                "; ",
                trial.isVoid() ? reasons : reasons.stream().map(Warmth::bare).toList());
    }

    private static String bare(String reason) {
        return reason.replaceFirst("^(" + TrialRow.COLD + "|" + TrialRow.UNKNOWN + ")", "");
    }

    /** What a trial was, in a word or two. */
    static String word(Analysis analysis, JudgedTrial trial) {
        if (!trial.isFinished()) {
            return trial.row().state().name().toLowerCase(Locale.ROOT);
        }
        if (trial.isVoid()) {
            return "void";
        }
        if (trial.isCold()) {
            return "cold";
        }
        return trial.isUnknown() ? "unknown" : analysis.isColdStart(trial) ? "cold start" : "warm";
    }

    /**
     * A line for each technology, message and load, with what compilers took of the services' processor time in the
     * window of each trial, in the order of the restarts, and what the trial was.
     */
    static String lines(Analysis analysis) {
        boolean isOnOneTopology =
                analysis.plan().stream().map(TrialSpec::topology).distinct().count() <= 1;
        Map<String, List<String>> lines = new LinkedHashMap<>();
        analysis.plan().forEach(spec -> lines.put(place(spec, isOnOneTopology), new ArrayList<>()));
        for (JudgedTrial trial : analysis.trials()) {
            String share = analysis.compilingShare(trial).stream()
                    .mapToObj(percent -> String.format(Locale.ROOT, "%.1f %% ", percent))
                    .findFirst()
                    .orElse("");
            lines.computeIfAbsent(place(trial.row().spec(), isOnOneTopology), _ -> new ArrayList<>())
                    .add(share + word(analysis, trial));
        }
        StringBuilder text =
                new StringBuilder("Compilers' share of the services' processor time, restart by restart:\n");
        lines.forEach((place, told) -> text.append("  ")
                .append(place)
                .append(": ")
                .append(told.isEmpty() ? "not run" : String.join(", ", told))
                .append('\n'));
        return text.toString();
    }

    private static String place(TrialSpec spec, boolean isOnOneTopology) {
        return spec.technology() + " " + (isOnOneTopology ? "" : spec.topology().text() + " ") + spec.message() + " "
                + spec.load();
    }
}
