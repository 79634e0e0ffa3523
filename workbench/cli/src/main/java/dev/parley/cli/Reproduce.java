package dev.parley.cli;

import dev.parley.analysis.Analysis;
import dev.parley.lab.Catalog;
import dev.parley.lab.Lab;
import dev.parley.lab.LabException;
import dev.parley.lab.Plan;
import dev.parley.model.BadInput;
import dev.parley.model.Study;
import dev.parley.process.Children;
import dev.parley.process.ProcessException;
import dev.parley.report.PaperRecord;
import dev.parley.report.PaperReport;
import dev.parley.report.PaperRun;
import dev.parley.report.Report;
import dev.parley.studies.Paper;
import dev.parley.studies.Scale;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** A published experiment, run again. */
@Command(
        name = "reproduce",
        description = {
            "Runs a published experiment again: its figures beside ours, and a verdict on each of its conclusions.",
            ""
        },
        footer = {
            "",
            "Stopped with Ctrl-C it goes on with --resume DIR at the next trial: same plan, one report.",
            "",
            "What failed is tried once more. Exit codes: 0 all trials finished, 1 error or some failed twice.",
            "",
            "Example: parley reproduce zhang --scale quick; before it: parley reproduce zhang --plan"
        })
final class Reproduce implements Callable<Integer> {
    /** What a folder is a run of, so that it can be gone on with. */
    private static final String MARK = "reproduce.txt";

    @Parameters(
            paramLabel = "NAME",
            arity = "0..1",
            description = "kazanavicius, weerasinghe, niswar, iwanowski, zhang or all; or a folder with a paper.yaml.")
    private Optional<String> name = Optional.empty();

    @Option(
            names = "--scale",
            paramLabel = "SCALE",
            description =
                    "quick, standard or paper: how much of the published plan. Default: quick. parley studies says what each cuts.")
    private Optional<String> scale = Optional.empty();

    @Option(
            names = "--restarts",
            paramLabel = "N",
            description =
                    "So many restarts in place of the scale's; 1 to try everything once. Under 3 no claim is decided.")
    private Optional<Integer> restarts = Optional.empty();

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "Where results go. Default: a new folder results/<date-time>/.")
    private Optional<Path> out = Optional.empty();

    @Option(
            names = "--resume",
            paramLabel = "DIR",
            description = "Go on with what was begun in DIR; NAME can be left out.")
    private Optional<Path> resumed = Optional.empty();

    @Option(
            names = "--read",
            paramLabel = "DIR",
            description = "Write the pages of DIR anew from its stores, and run nothing.")
    private Optional<Path> read = Optional.empty();

    @Option(
            names = "--record",
            paramLabel = "FILE.md",
            description =
                    "Also write a page to be kept: what held, what did not, what depends; with --read from what was run before.")
    private Optional<Path> record = Optional.empty();

    @Option(names = "--plan", description = "Say how many trials and about how long, and run nothing.")
    private boolean isPlan;

    @Option(names = Job.BACKEND, paramLabel = "NAME=HOST:PORT", description = Job.BACKEND_MEANS)
    private List<String> backends = List.of();

    @Option(names = Job.OBSERVE, description = Job.OBSERVE_MEANS)
    private boolean isObserved;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    /** What was asked for, in a form that {@link #MARK} keeps. */
    private record Asked(String name, Scale scale, Optional<Integer> restarts) {
        Optional<Scale.Scaled> study(Paper.Part part, List<String> here) {
            return part.study(here, scale)
                    .map(s -> restarts.map(s::withRestarts).orElse(s));
        }

        String mark() {
            return "name: " + name + "\nscale: " + scale + "\n"
                    + restarts.map(n -> "restarts: " + n + "\n").orElse("");
        }

        List<Paper> papers() {
            if (name.equals("all")) {
                return Paper.NAMES.stream().map(Paper::named).toList();
            }
            return List.of(
                    Files.isRegularFile(Path.of(name, "paper.yaml")) ? Paper.read(Path.of(name)) : Paper.named(name));
        }
    }

    @Override
    public Integer call() throws IOException {
        Catalog catalog = Catalog.read();
        record.filter(file -> !file.toString().endsWith(".md")).ifPresent(file -> {
            throw new BadInput("--record", file, "a name that ends in .md");
        });
        if (read.isPresent()) {
            if (resumed.isPresent() || isPlan) {
                throw new BadInput("--read", read.get(), "neither --resume nor --plan, since nothing is run");
            }
            Asked begun = begun(read.get(), "--read");
            return carriedOut(begun.papers(), begun, read.get(), catalog, false);
        }
        Asked asked = resumed.isPresent() ? begun(resumed.get(), "--resume") : asked();
        List<Paper> papers = asked.papers();
        plan(papers, asked, catalog);
        if (isPlan) {
            return 0;
        }
        Path folder = resumed.isPresent() ? resumed.get() : Job.folder(out);
        Files.writeString(folder.resolve(MARK), asked.mark());
        return carriedOut(papers, asked, folder, catalog, true);
    }

    private Asked asked() {
        String given = name.orElseThrow(() ->
                new BadInput("NAME", "none", "one of " + String.join(", ", Paper.NAMES) + ", all, or --resume DIR"));
        String wanted = scale.orElse(Scale.QUICK.toString());
        restarts.filter(n -> n < 1 || n > 1000).ifPresent(n -> {
            throw new BadInput("--restarts", n, "1 to 1000");
        });
        return new Asked(
                given,
                Scale.named(wanted).orElseThrow(() -> new BadInput("--scale", wanted, "quick, standard or paper")),
                restarts);
    }

    private Asked begun(Path folder, String option) throws IOException {
        if (out.isPresent()) {
            throw new BadInput("--out", out.get(), "not together with " + option + ", which has its own folder");
        }
        if (!Files.isRegularFile(folder.resolve(MARK))) {
            throw new BadInput(option, folder, "a folder in which parley reproduce was begun");
        }
        Map<String, String> mark = new LinkedHashMap<>();
        Files.readAllLines(folder.resolve(MARK)).forEach(line -> {
            int colon = line.indexOf(": ");
            if (colon > 0) {
                mark.put(line.substring(0, colon), line.substring(colon + 2));
            }
        });
        Asked begun = new Asked(
                mark.getOrDefault("name", ""),
                Scale.named(mark.getOrDefault("scale", ""))
                        .orElseThrow(() -> new BadInput(option, folder, "a folder with a whole " + MARK)),
                Optional.ofNullable(mark.get("restarts")).map(Integer::valueOf));
        name.filter(given -> !given.equals(begun.name())).ifPresent(given -> {
            throw new BadInput("NAME", given, begun.name() + ", which was begun in " + folder);
        });
        scale.filter(given -> !given.equals(begun.scale().toString())).ifPresent(given -> {
            throw new BadInput("--scale", given, begun.scale() + ", with which " + folder + " was begun");
        });
        restarts.filter(given -> !begun.restarts().equals(Optional.of(given))).ifPresent(given -> {
            throw new BadInput(
                    "--restarts",
                    given,
                    begun.restarts().map(n -> "" + n).orElse("none") + ", with which " + folder + " was begun");
        });
        return begun;
    }

    private void plan(List<Paper> papers, Asked asked, Catalog catalog) {
        List<String> here = catalog.names();
        Duration sum = Duration.ZERO;
        int trials = 0;
        for (Paper paper : papers) {
            for (Paper.Part part : paper.parts()) {
                Feasible feasible = feasible(asked, part, here, catalog);
                List<String> missing = new ArrayList<>(part.missing(here));
                if (!feasible.why().isEmpty()) {
                    missing.add(feasible.why());
                }
                String left = missing.isEmpty() ? "" : "; not here: " + String.join(", ", missing);
                if (feasible.scaled().isPresent()) {
                    Plan plan = Plan.of(feasible.scaled().get().study());
                    sum = sum.plus(plan.estimate());
                    trials += plan.trials().size();
                    System.out.println(paper.name() + "/" + part.name() + ": "
                            + plan.trials().size() + " trials in "
                            + plan.boots().size() + " boots of services, about " + Progress.text(plan.estimate())
                            + left);
                } else {
                    System.out.println(paper.name() + "/" + part.name() + ": nothing of it can be measured" + left);
                }
            }
        }
        System.out.println("in all " + trials + " trials, about " + Progress.text(sum)
                + ", and longer where a load goes on until its work is done; scale " + asked.scale() + ": "
                + asked.scale().rule()
                + asked.restarts().map(n -> "; here " + n + " restarts").orElse(""));
    }

    /**
     * What of a part can be measured on this machine.
     *
     * @param scaled empty where nothing can
     * @param why it cannot, or not within its limits; empty where everything can
     */
    private record Feasible(Optional<Scale.Scaled> scaled, String why) {}

    private Feasible feasible(Asked asked, Paper.Part part, List<String> here, Catalog catalog) {
        Optional<Scale.Scaled> scaled = asked.study(part, here);
        Optional<String> obstacle = scaled.flatMap(s -> obstacle(s.study(), catalog));
        if (obstacle.isEmpty()) {
            return new Feasible(scaled, "");
        }
        Optional<Scale.Scaled> unlimited = part.bounds() == Paper.Bounds.WANTED
                ? scaled.map(Scale.Scaled::withoutLimits)
                        .filter(s -> obstacle(s.study(), catalog).isEmpty())
                : Optional.empty();
        return new Feasible(
                unlimited,
                unlimited.isPresent() ? "its test bed, measured without; " + obstacle.get() : obstacle.get());
    }

    /**
     * Why a part cannot be measured on this machine: one part without its test bed leaves the others as they are. What nobody could measure
     * anywhere is a mistake in the data, and ends the command.
     */
    private Optional<String> obstacle(Study study, Catalog catalog) {
        try {
            new Lab(catalog, Progress.toTerminal(), Job.backends(backends)).check(study);
            return Optional.empty();
        } catch (LabException | ProcessException e) {
            return Optional.of(String.valueOf(e.getMessage()));
        } catch (BadInput e) {
            String what = String.valueOf(e.getMessage());
            if (what.startsWith("limits:")) {
                return Optional.of(what);
            }
            throw e;
        }
    }

    /** @param isRun false where the pages alone are to be written, from what is in the stores */
    private int carriedOut(List<Paper> papers, Asked asked, Path folder, Catalog catalog, boolean isRun)
            throws IOException {
        int failed = 0;
        List<PaperReport> reports = new ArrayList<>();
        try (Children.Hold _ = Children.hold()) {
            for (Paper paper : papers) {
                List<PaperRun.PartRun> runs = new ArrayList<>();
                for (Paper.Part part : paper.parts()) {
                    Path own = folder.resolve(paper.name()).resolve(part.name());
                    Part done = new Part(
                            part,
                            feasible(asked, part, catalog.names(), catalog),
                            own,
                            isObserved || paper.isObserved());
                    try {
                        failed += isRun ? done.carryOut(catalog) : 0;
                    } catch (InterruptedException e) {
                        System.err.println("parley: interrupted; finished trials are kept: ./parley reproduce --resume "
                                + folder + " goes on");
                        return 1;
                    }
                    runs.add(done.read(catalog.names()));
                }
                PaperReport report = PaperReport.of(new PaperRun(paper, asked.scale(), runs));
                report.writeTo(Files.createDirectories(folder.resolve(paper.name())));
                reports.add(report);
                System.out.println(report.line());
            }
            System.out.println("report: " + PaperReport.index(folder, reports));
            record.ifPresent(file -> System.out.println("record: " + PaperRecord.write(file, reports)));
        }
        return failed > 0 ? 1 : 0;
    }

    /** One part and its folder. */
    private final class Part {
        private final Paper.Part part;
        private final Optional<Scale.Scaled> scaled;
        private final Path folder;
        private final boolean isObserved;
        private String why;

        Part(Paper.Part part, Feasible feasible, Path folder, boolean isObserved) {
            this.isObserved = isObserved;
            this.part = part;
            this.scaled = feasible.scaled();
            this.why = feasible.why();
            this.folder = folder;
        }

        /**
         * How many trials failed, twice each, as one that failed is tried once more at the end; or 1 where none could begin: the other parts are
         * measured all the same.
         */
        int carryOut(Catalog catalog) throws InterruptedException, IOException {
            if (scaled.isEmpty()) {
                return 0;
            }
            Files.createDirectories(folder);
            Progress progress = Progress.toTerminal();
            System.err.println(folder + ": " + part.place());
            Lab lab = new Lab(catalog, progress, Job.backends(backends), isObserved);
            try {
                Lab.Ending ending = Files.exists(folder.resolve(Lab.STORE_FILE))
                        ? lab.resume(scaled.map(Scale.Scaled::study), folder)
                        : lab.run(scaled.get().study(), folder, Job.command(spec));
                if (ending.failed() > 0) {
                    progress.end();
                    System.err.println("trying again what failed: " + ending.failed() + " trials");
                    ending = lab.resume(scaled.map(Scale.Scaled::study), folder);
                }
                int failed = ending.failed();
                ending.firstFailure()
                        .ifPresent(first -> why =
                                (why.isEmpty() ? "" : why + "; ") + failed + " trials failed; the first: " + first);
                return failed;
            } catch (LabException | ProcessException e) {
                why = String.valueOf(e.getMessage());
                System.err.println("parley: " + part.name() + ": " + why);
                return 1;
            } finally {
                progress.end();
            }
        }

        PaperRun.PartRun read(List<String> here) {
            List<String> missing = new ArrayList<>(part.missing(here));
            if (!why.isEmpty()) {
                missing.add(why);
            }
            Optional<Analysis> analysis = Optional.empty();
            if (Files.exists(folder.resolve(Lab.STORE_FILE))) {
                Report report = Report.of(folder.resolve(Lab.STORE_FILE));
                report.writeTo(folder);
                analysis = Optional.of(report.analysis());
            }
            return new PaperRun.PartRun(part, scaled, analysis, String.join("; ", missing));
        }
    }
}
