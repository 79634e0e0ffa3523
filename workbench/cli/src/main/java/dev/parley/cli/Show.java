package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.model.Run;
import dev.parley.model.TrialRow;
import dev.parley.report.Report;
import dev.parley.store.RunStore;
import dev.parley.store.StoredStudy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** One stored run. */
@Command(
        name = "show",
        description = {
            "Shows a stored run: its command, machine and study, the trials that do not count, and its table. Writes"
                    + " nothing.",
            ""
        },
        footer = {
            "",
            "Exit codes: 0 good, 1 error.",
            "",
            "Examples:",
            "  ${ROOT-COMMAND-NAME} show results/2026-11-21T08-15-30",
            "  ${ROOT-COMMAND-NAME} show --study results/2026-11-21T08-15-30 > study.yaml"
        })
final class Show implements Callable<Integer> {
    @Parameters(paramLabel = "RUN", description = "The folder of the run.")
    private Path folder = Path.of("");

    @Option(
            names = "--study",
            description = "Print the run's study alone, as a file that ${ROOT-COMMAND-NAME} run reads.")
    private boolean isStudy;

    @Override
    public Integer call() {
        Path file = Job.stored("RUN", folder).resolve(Lab.STORE_FILE);
        try (RunStore store = RunStore.open(file)) {
            Optional<StoredStudy> study = store.study();
            if (isStudy) {
                System.out.print(study.map(StoredStudy::text)
                        .orElseThrow(() -> new BadInput("--study", folder, "a run that keeps its study")));
                return 0;
            }
            Run run = store.run();
            System.out.println("command  " + run.command());
            System.out.println("started  " + run.startedAt());
            System.out.println("commit   " + run.commit());
            System.out.println("jdk      " + run.jdk() + " " + String.join(" ", run.jvmFlags()));
            run.machine().forEach((name, value) -> System.out.println(String.format("%-8s ", name) + value));
            study.ifPresent(s -> {
                System.out.println("digest   " + s.digest());
                System.out.println();
                System.out.print(s.text());
            });
            System.out.println();
            trials(store);
        }
        System.out.println();
        System.out.print(Report.of(file).table());
        return 0;
    }

    private static void trials(RunStore store) {
        List<TrialRow> trials = store.trials();
        List<String> uncounted = new ArrayList<>();
        for (TrialRow trial : trials) {
            if (!trial.isValid()) {
                uncounted.add("trial " + (trial.spec().id() + 1) + ", "
                        + trial.spec().technology() + " "
                        + trial.spec().message() + " " + trial.spec().load() + ": "
                        + (trial.state() == TrialRow.State.FINISHED
                                ? (trial.voidReasons().stream().allMatch(TrialRow::isOfWarmth) ? "" : "void: ")
                                        + String.join("; ", trial.voidReasons())
                                : trial.state().name().toLowerCase(java.util.Locale.ROOT) + ": " + trial.message()));
            }
        }
        System.out.println(trials.size() + " of " + store.plan().size() + " trials ended, "
                + (trials.size() - uncounted.size()) + " of them valid as stored");
        uncounted.forEach(System.out::println);
    }
}
