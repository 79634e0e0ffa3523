package dev.parley.cli;

import dev.parley.analysis.Estimate;
import dev.parley.analysis.RunComparison;
import dev.parley.analysis.Verdict;
import dev.parley.lab.Lab;
import dev.parley.store.RunStore;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;

/** Two stored runs side by side, as text. */
final class RunsCompared {
    private RunsCompared() {}

    static RunComparison read(Path baseline, Path run) {
        try (RunStore before = RunStore.open(baseline.resolve(Lab.STORE_FILE));
                RunStore after = RunStore.open(run.resolve(Lab.STORE_FILE))) {
            return RunComparison.of(before, after);
        }
    }

    static void print(RunComparison comparison, PrintStream out) {
        comparison.differences().forEach(difference -> out.println("not the same: " + difference));
        if (comparison.uncommon() > 0) {
            out.println(comparison.uncommon() + " cells of the first run are not in the second");
        }
        for (RunComparison.Row row : comparison.rows()) {
            out.printf(
                    Locale.ROOT,
                    "%-14s %-10s %-14s %-16s %-15s %10s → %10s %-4s %s%n",
                    row.technology(),
                    row.situation().topology(),
                    row.situation().message(),
                    row.situation().load(),
                    row.metric().key(),
                    number(row.baseline().value()),
                    number(row.run().value()),
                    row.metric().unit(),
                    verdict(row));
        }
        Map<Verdict.Kind, Integer> counts = new EnumMap<>(Verdict.Kind.class);
        comparison.rows().forEach(row -> counts.merge(row.verdict().kind(), 1, Integer::sum));
        StringBuilder sum = new StringBuilder();
        counts.forEach((kind, count) -> sum.append(sum.isEmpty() ? "" : ", ")
                .append(count)
                .append(' ')
                .append(kind.name().toLowerCase(Locale.ROOT)));
        out.println(sum.isEmpty() ? "nothing in common" : "second run against the first: " + sum);
        if (comparison.isOfSomething()) {
            out.println("×: the median of the second run over that of the first, with its 95 % interval");
        }
    }

    private static String verdict(RunComparison.Row row) {
        Estimate ratio = row.ratio();
        return row.verdict()
                + (row.survivors().isEmpty() ? "" : ", " + row.survivors())
                + (ratio.isPresent()
                        ? String.format(
                                Locale.ROOT, ", × %.3f (%.3f to %.3f)", ratio.value(), ratio.low(), ratio.high())
                        : "");
    }

    private static String number(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, value >= 100 ? "%.0f" : "%.3f", value);
    }
}
