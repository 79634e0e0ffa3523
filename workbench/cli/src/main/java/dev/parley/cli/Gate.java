package dev.parley.cli;

import dev.parley.analysis.RunComparison;
import dev.parley.analysis.Verdict;
import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Tells a build whether something has become worse. */
@Command(
        name = "gate",
        description = {
            "Tells a build whether a stored run is worse than a baseline. Each technology is compared with itself, in"
                    + " median and p99 latency, throughput and CPU per request. Runs nothing, and writes nothing.",
            ""
        },
        footer = {
            "",
            "Exit codes: 0 nothing is worse; 1 error, such as a folder that is not there; 2 it cannot be told: the"
                    + " baseline's folder has no run in it, the runs have nothing in common or differ in machine, JDK"
                    + " or broker, or cells are missing, void, cold, of half of their restarts or of under three; 3"
                    + " something is worse than the baseline.",
            "",
            "Example: parley gate --baseline results/main results/branch"
        })
final class Gate implements Callable<Integer> {
    @Option(
            names = "--baseline",
            required = true,
            paramLabel = "DIR",
            description = "The folder of the run that the other is compared with.")
    private Path baseline = Path.of("");

    @Option(names = "--other-machine", description = "Compare them although machine, JDK or broker differ.")
    private boolean isOtherMachine;

    @Parameters(paramLabel = "RUN", description = "The folder of the run that may be worse.")
    private Path run = Path.of("");

    @Override
    public Integer call() {
        Job.stored("RUN", run);
        if (!Files.isDirectory(baseline)) {
            throw new BadInput(
                    "--baseline",
                    baseline,
                    "a folder with " + Lab.STORE_FILE + " in it, or one that is empty as long as there is no baseline");
        }
        if (!Files.isRegularFile(baseline.resolve(Lab.STORE_FILE))) {
            return nothing("no baseline in " + baseline);
        }
        RunComparison comparison = RunsCompared.read(baseline, run);
        RunsCompared.print(comparison, System.out);
        if (!isOtherMachine && !comparison.differences().isEmpty()) {
            return nothing(
                    "machine, JDK or broker differ (--other-machine holds them against each other all the same)");
        }
        if (has(comparison, Verdict.Kind.WORSE)) {
            System.err.println("parley: worse than the baseline");
            return 3;
        }
        if (comparison.rows().isEmpty()) {
            return nothing("nothing in common with the baseline");
        }
        if (comparison.uncommon() > 0
                || has(comparison, Verdict.Kind.VOID)
                || has(comparison, Verdict.Kind.COLD)
                || has(comparison, Verdict.Kind.UNKNOWN)) {
            return nothing("some cells of the baseline are missing, void, cold or of unknown warmth");
        }
        if (comparison.rows().stream().anyMatch(row -> !row.verdict().why().isEmpty())) {
            return nothing("some cells answered nothing in a restart, or rest on half of their restarts or fewer");
        }
        // under three restarts no verdict can be other than undecided, with an interval all the same
        if (comparison.rows().stream().allMatch(row -> row.verdict().kind() == Verdict.Kind.UNDECIDED)) {
            return nothing("nothing could be decided: more restarts are needed");
        }
        return 0;
    }

    private static int nothing(String why) {
        System.err.println("parley: not held against the baseline: " + why);
        return 2;
    }

    private static boolean has(RunComparison comparison, Verdict.Kind kind) {
        return comparison.rows().stream().anyMatch(row -> row.verdict().kind() == kind);
    }
}
