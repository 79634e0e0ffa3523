package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.model.Technology;
import dev.parley.model.TrialRow;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** What a report says of cold trials: those whose services were still warming up while they were measured. */
final class Warmth {
    private Warmth() {}

    static long cold(Analysis analysis) {
        return analysis.trials().stream().filter(JudgedTrial::isCold).count();
    }

    /** How many trials of which technology were cold, and what follows; empty where none was. */
    static Optional<String> note(Analysis analysis) {
        List<String> cold = new ArrayList<>();
        for (Technology technology : analysis.run().technologies()) {
            List<JudgedTrial> own = analysis.trials().stream()
                    .filter(t -> t.row().spec().technology().equals(technology.name()))
                    .toList();
            long count = own.stream().filter(JudgedTrial::isCold).count();
            if (count > 0) {
                cold.add(technology.name() + " " + count + " of " + own.size());
            }
        }
        return cold.isEmpty()
                ? Optional.empty()
                : Optional.of("Cold trials, in which services were still warming up: " + String.join(", ", cold)
                        + ". They are kept, and have no ratio and no verdict; a longer rehearsal warms them.");
    }

    /** Reasons as text, without the word before each that tells cold ones from others. */
    static String why(JudgedTrial trial) {
        return String.join(
                "; ",
                trial.reasons().stream()
                        .map(r -> trial.isCold() ? r.substring(TrialRow.COLD.length()) : r)
                        .toList());
    }
}
