package dev.parley.cli;

import dev.parley.lab.Catalog;
import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.model.Study;
import dev.parley.store.RunStore;
import dev.parley.studies.StudyFile;
import dev.parley.studies.StudyText;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** A study of the user's own. */
@Command(
        name = "run",
        description = {"Measures a study that is written as a file; or does the rest of a run that was stopped.", ""},
        footer = {
            "",
            "Before it measures it says about how long that takes. Ctrl-C ends it, and what was measured is kept:"
                    + " --resume begins with the trial that was under way, and tries again what failed. Study,"
                    + " machine, JDK and commit must be the same.",
            "",
            Job.WRITES,
            "",
            "Exit codes: 0 good, also where --for left trials for later; 1 error, or some trials failed.",
            "",
            "Examples:",
            "  ${ROOT-COMMAND-NAME} run study.yaml",
            "  ${ROOT-COMMAND-NAME} run --resume results/2026-11-21T08-15-30",
            "  ${ROOT-COMMAND-NAME} run study.yaml --out DIR --for 2h, then ${ROOT-COMMAND-NAME} run --resume DIR"
                    + " --for 2h until nothing is left"
        })
final class RunStudy implements Callable<Integer> {
    @Parameters(
            paramLabel = "SPEC",
            arity = "0..1",
            description = "The study's file; docs/specs.md says what stands in it.")
    private Optional<Path> file = Optional.empty();

    @Option(names = "--out", paramLabel = "DIR", description = Job.OUT_MEANS)
    private Optional<Path> out = Optional.empty();

    @Option(
            names = "--resume",
            paramLabel = "DIR",
            description =
                    "Do the rest of the run in DIR. SPEC can be left out; if it is given, it must be the study of that"
                            + " run.")
    private Optional<Path> resumed = Optional.empty();

    @Option(names = Job.FOR, paramLabel = "TIME", description = Job.FOR_MEANS)
    private Optional<String> sitting = Optional.empty();

    @Option(names = Job.BACKEND, paramLabel = "NAME=HOST:PORT", description = Job.BACKEND_MEANS)
    private List<String> backends = List.of();

    @Option(names = Job.OBSERVE, description = Job.OBSERVE_MEANS)
    private boolean isObserved;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public Integer call() throws InterruptedException {
        Catalog catalog = Catalog.read();
        Optional<Study> study = file.map(path -> StudyFile.read(path, catalog.names()));
        Progress progress = Progress.toTerminal();
        Lab lab = new Lab(catalog, progress, Job.backends(backends), isObserved).until(Job.until(sitting));
        if (resumed.isPresent()) {
            if (out.isPresent()) {
                throw new BadInput("--out", out.get(), "not together with --resume, which goes on in its own folder");
            }
            Path folder = Job.stored("--resume", resumed.get());
            if (!backends.isEmpty()) {
                lab.checkBackends(
                        study.or(() -> stored(folder, catalog)).stream().toList());
            }
            return Job.carryOut(() -> lab.resume(study, folder), folder, progress, sitting);
        }
        Study asked = study.orElseThrow(() -> new BadInput("SPEC", "none", "a study file, or --resume DIR"));
        lab.check(asked);
        lab.checkBackends(List.of(asked));
        Path folder = Job.folder(out);
        return Job.carryOut(() -> lab.run(asked, folder, Job.command(spec)), folder, progress, sitting);
    }

    /** The study of a stored run; empty for one that keeps none, which the lab does not resume. */
    private static Optional<Study> stored(Path folder, Catalog catalog) {
        try (RunStore store = RunStore.open(folder.resolve(Lab.STORE_FILE))) {
            return store.study().map(kept -> StudyText.read(kept.text(), catalog.names()));
        }
    }
}
