package dev.parley.cli;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.RunComparison;
import dev.parley.analysis.Situation;
import dev.parley.analysis.TargetAnswer;
import dev.parley.analysis.Verdict;
import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.model.Rules;
import dev.parley.model.Target;
import dev.parley.store.RunStore;
import dev.parley.studies.StudyText;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Tells a build whether a run is good enough. */
@Command(
        name = "gate",
        description = {
            "Tells a build by its exit code whether a stored run is good enough: whether each technology meets the"
                    + " target of the run's study, if that has one; and with --baseline, whether something is worse"
                    + " than in another run. For that each technology is compared with itself, in median and p99"
                    + " latency, throughput and CPU per request. Runs nothing, and writes nothing.",
            ""
        },
        footer = {
            "",
            "A target has a line for each technology: meets it, does not, or undecided. Where it is asked of several"
                    + " messages, loads or topologies, the line names those that decide.",
            "",
            "Exit codes: 0 every technology meets the target, and nothing is worse; 1 error, such as a folder that is"
                    + " not there; 2 it cannot be told: a technology is undecided; or the baseline's folder has no run"
                    + " in it, the runs have nothing in common or differ in machine, JDK, broker or rules of"
                    + " measuring, or cells are missing, void, cold, of half of their restarts or of under three; 3 a"
                    + " technology does not meet the target, or something is worse than the baseline.",
            "",
            "Examples:",
            "  ${ROOT-COMMAND-NAME} gate results/branch",
            "  ${ROOT-COMMAND-NAME} gate --baseline results/main results/branch"
        })
final class Gate implements Callable<Integer> {
    private static final int GOOD = 0;
    private static final int UNTOLD = 2;
    private static final int BAD = 3;

    @Option(
            names = "--baseline",
            paramLabel = "DIR",
            description = "The folder of the run that the other is compared with. Can be left out where the study of"
                    + " RUN has a target.")
    private Optional<Path> baseline = Optional.empty();

    @Option(
            names = "--other-machine",
            description = "Compare with the baseline although machine, JDK or broker differ. Runs by different rules of"
                    + " measuring are never compared.")
    private boolean isOtherMachine;

    @Parameters(paramLabel = "RUN", description = "The folder of the run that may not be good enough.")
    private Path run = Path.of("");

    @Override
    public Integer call() {
        Path store = Job.stored("RUN", run).resolve(Lab.STORE_FILE);
        baseline.filter(other -> !Files.isDirectory(other)).ifPresent(other -> {
            throw new BadInput(
                    "--baseline",
                    other,
                    "a folder with " + Lab.STORE_FILE + " in it, or one that is empty as long as there is no baseline");
        });
        Optional<Target> target;
        List<TargetAnswer> answers;
        try (RunStore stored = RunStore.open(store)) {
            target = stored.study().flatMap(study -> StudyText.target(study.text()));
            answers = target.isEmpty() ? List.of() : Analysis.of(stored, target).targetAnswers();
        }
        if (target.isEmpty() && baseline.isEmpty()) {
            throw new BadInput(
                    "--baseline", "none", "the folder of a run, since the study of " + run + " has no target");
        }
        int ofTarget = target.map(asked -> answered(asked, answers)).orElse(GOOD);
        return Math.max(ofTarget, baseline.map(this::heldAgainst).orElse(GOOD));
    }

    private static int answered(Target target, List<TargetAnswer> answers) {
        System.out.println("target: " + target.title());
        boolean isOfSeveral =
                answers.stream().map(TargetAnswer::situation).distinct().count() > 1;
        Map<TargetAnswer.Kind, List<String>> technologies = new EnumMap<>(TargetAnswer.Kind.class);
        answers.stream()
                .collect(Collectors.groupingBy(TargetAnswer::technology, LinkedHashMap::new, Collectors.toList()))
                .forEach((technology, own) -> {
                    TargetAnswer deciding = TargetAnswer.deciding(own);
                    technologies
                            .computeIfAbsent(deciding.kind(), _ -> new ArrayList<>())
                            .add(technology);
                    Situation situation = deciding.situation();
                    System.out.printf(
                            Locale.ROOT,
                            "%-14s %-9s  %s%s%n",
                            technology,
                            deciding.kind().words(),
                            isOfSeveral
                                    ? situation.topology() + ", " + situation.message() + ", " + situation.load() + ": "
                                    : "",
                            deciding.text());
                });
        List<String> notMet = technologies.getOrDefault(TargetAnswer.Kind.DOES_NOT, List.of());
        if (!notMet.isEmpty()) {
            System.err.println("parley: the target is not met: " + String.join(", ", notMet));
            return BAD;
        }
        List<String> undecided = technologies.getOrDefault(TargetAnswer.Kind.UNDECIDED, List.of());
        if (!undecided.isEmpty() || answers.isEmpty()) {
            System.err.println("parley: whether the target is met is undecided: "
                    + (answers.isEmpty() ? "nothing was planned" : String.join(", ", undecided)));
            return UNTOLD;
        }
        return GOOD;
    }

    private int heldAgainst(Path other) {
        if (!Files.isRegularFile(other.resolve(Lab.STORE_FILE))) {
            return nothing("no baseline in " + other);
        }
        RunComparison comparison = RunsCompared.read(other, run);
        RunsCompared.print(comparison, System.out);
        if (!comparison.isByOneRule()) {
            return nothing(Rules.FACT + " differ: " + Rules.of(comparison.baseline()) + " → "
                    + Rules.of(comparison.run()) + " (expected: two runs by the same rules; --other-machine does not"
                    + " make figures of different rules comparable)");
        }
        if (!isOtherMachine && !comparison.differences().isEmpty()) {
            return nothing(
                    "machine, JDK or broker differ (--other-machine holds them against each other all the same)");
        }
        if (has(comparison, Verdict.Kind.WORSE)) {
            System.err.println("parley: worse than the baseline");
            return BAD;
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
        return GOOD;
    }

    private static int nothing(String why) {
        System.err.println("parley: not held against the baseline: " + why);
        return UNTOLD;
    }

    private static boolean has(RunComparison comparison, Verdict.Kind kind) {
        return comparison.rows().stream().anyMatch(row -> row.verdict().kind() == kind);
    }
}
