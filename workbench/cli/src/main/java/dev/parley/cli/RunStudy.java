package dev.parley.cli;

import dev.parley.lab.Catalog;
import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.model.Study;
import dev.parley.studies.StudyFile;
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
        description = {
            "Measures a study written as a file, and prints a table and a report; or goes on with a run that was stopped.",
            ""
        },
        footer = {
            "",
            "A stopped run goes on at the next trial without a finished end; failed trials are tried again. It must be of the same study, machine, JDK and commit.",
            "",
            "A long run in sittings: parley run study.yaml --out DIR --for 2h, then parley run --resume DIR --for 2h until it",
            "says that nothing is left.",
            "",
            "Exit codes: 0 all trials that were begun finished, 1 error or some failed.",
            "",
            "Example: parley run study.yaml; after Ctrl-C: parley run --resume results/2026-11-21T08-15-30"
        })
final class RunStudy implements Callable<Integer> {
    @Parameters(paramLabel = "SPEC", arity = "0..1", description = "The study, as in docs/specs.md.")
    private Optional<Path> file = Optional.empty();

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "Where results go. Default: a new folder results/<date-time>/.")
    private Optional<Path> out = Optional.empty();

    @Option(
            names = "--resume",
            paramLabel = "DIR",
            description = "Go on with the run in DIR. SPEC can be left out; if given it must be the study of that run.")
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
    public Integer call() {
        Catalog catalog = Catalog.read();
        Optional<Study> study = file.map(path -> StudyFile.read(path, catalog.names()));
        Progress progress = Progress.toTerminal();
        Lab lab = new Lab(catalog, progress, Job.backends(backends), isObserved).until(Job.until(sitting));
        if (resumed.isPresent()) {
            if (out.isPresent()) {
                throw new BadInput("--out", out.get(), "not together with --resume, which goes on in its own folder");
            }
            Path folder = Job.stored("--resume", resumed.get());
            return Job.carryOut(() -> lab.resume(study, folder), folder, progress, sitting);
        }
        Study asked = study.orElseThrow(() -> new BadInput("SPEC", "none", "a study file, or --resume DIR"));
        lab.check(asked);
        Path folder = Job.folder(out);
        return Job.carryOut(() -> lab.run(asked, folder, Job.command(spec)), folder, progress, sitting);
    }
}
