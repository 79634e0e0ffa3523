package dev.parley.cli;

import dev.parley.analysis.Analysis;
import dev.parley.lab.Catalog;
import dev.parley.lab.Checkout;
import dev.parley.lab.Lab;
import dev.parley.lab.LabException;
import dev.parley.lab.Plan;
import dev.parley.lab.TimeRange;
import dev.parley.model.BadInput;
import dev.parley.model.Study;
import dev.parley.model.TrialRow;
import dev.parley.process.Children;
import dev.parley.process.ProcessException;
import dev.parley.report.PaperRecord;
import dev.parley.report.PaperReport;
import dev.parley.report.PaperRun;
import dev.parley.report.Report;
import dev.parley.store.RunStore;
import dev.parley.store.StoredStudy;
import dev.parley.studies.Paper;
import dev.parley.studies.Scale;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
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
            "Runs a published experiment again, and writes a page: its figures beside ours, and a judgement of each"
                    + " of its conclusions.",
            ""
        },
        footer = {
            "",
            "Before it measures it says about how long that takes. Ctrl-C ends it, and what was measured is kept:"
                    + " --resume does the rest. A trial that failed is tried once more.",
            "",
            "Writes to DIR: index.html; for each paper a folder with paper.html, its figures and claims as CSV, and"
                    + " record.json; and in it, for each part of the paper, the folder of a run, which show, report and"
                    + " export read too.",
            "",
            "Exit codes: 0 good, also where --for left trials for later; 1 error, or some trials failed twice.",
            "",
            "Examples:",
            "  ${ROOT-COMMAND-NAME} reproduce zhang --plan",
            "  ${ROOT-COMMAND-NAME} reproduce zhang --scale quick",
            "  ${ROOT-COMMAND-NAME} reproduce zhang --scale standard --out DIR --for 2h, then ${ROOT-COMMAND-NAME}"
                    + " reproduce --resume DIR --for 2h until nothing is left",
            "  ${ROOT-COMMAND-NAME} reproduce --read DIR --record FILE.md, then ${ROOT-COMMAND-NAME} reproduce"
                    + " --pages FILE.md --out PAGES"
        })
final class Reproduce implements Callable<Integer> {
    /** What a folder is a run of, so that it can be gone on with. */
    private static final String MARK = "reproduce.txt";

    private static final String PAGES = "--pages";
    private static final int MAX_RESTARTS = 1000;

    @Parameters(
            paramLabel = "NAME",
            arity = "0..1",
            description =
                    "kazanavicius, weerasinghe, niswar, iwanowski or zhang; all for each of them; or the folder of a"
                            + " study of your own, with a paper.yaml in it (docs/studies.md).")
    private Optional<String> name = Optional.empty();

    @Option(
            names = "--scale",
            paramLabel = "SCALE",
            description =
                    "How much of the published plan is carried out: quick decides little or nothing, standard decides"
                            + " what the paper concludes, paper is as published. Default: quick."
                            + " ${ROOT-COMMAND-NAME} studies says what each of them shortens.")
    private Optional<String> scale = Optional.empty();

    @Option(
            names = "--restarts",
            paramLabel = "N",
            description =
                    "How often all services are started anew and measured. Default: the scale's. 1 tries everything"
                            + " once; under 3 no claim is decided.")
    private Optional<Integer> restarts = Optional.empty();

    @Option(names = "--out", paramLabel = "DIR", description = Job.OUT_MEANS)
    private Optional<Path> out = Optional.empty();

    @Option(
            names = "--resume",
            paramLabel = "DIR",
            description = "Do the rest of what was begun in DIR. NAME can be left out.")
    private Optional<Path> resumed = Optional.empty();

    @Option(
            names = "--read",
            paramLabel = "DIR",
            description =
                    "Write the pages of DIR anew from its runs, and measure nothing. Several times for one record of"
                            + " papers that were run apart.")
    private List<Path> read = List.of();

    @Option(names = Job.FOR, paramLabel = "TIME", description = Job.FOR_MEANS)
    private Optional<String> sitting = Optional.empty();

    @Option(
            names = "--record",
            paramLabel = "FILE.md",
            description =
                    "Also write what is to be kept: a page of what held, what did not, and what depends on how it is"
                            + " measured; and a folder FILE with each paper's results as CSV and record.json. With"
                            + " --read from what was run before. Papers that FILE has already stay.")
    private Optional<Path> record = Optional.empty();

    @Option(
            names = PAGES,
            paramLabel = "FILE.md",
            description =
                    "Make the pages of a record again, from its folder FILE and without any run: FILE.md itself, and in"
                            + " the DIR of --out index.html and each paper's paper.html.")
    private Optional<Path> pages = Optional.empty();

    @Option(
            names = "--plan",
            description = "Say how many trials there are and about how long they take, and measure nothing.")
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

        /** @throws BadInput where the file was edited or cut, so that it no longer says what was begun */
        static Asked read(Path file) throws IOException {
            String text;
            try {
                text = Files.readString(file);
            } catch (CharacterCodingException e) {
                throw new BadInput(file.toString(), "bytes that are no UTF-8", "the text that parley reproduce wrote");
            }
            Map<String, String> mark = new LinkedHashMap<>();
            text.lines().forEach(line -> {
                String[] sides = line.split(": ", 2);
                if (sides.length < 2 || !List.of("name", "scale", "restarts").contains(sides[0])) {
                    throw new BadInput(file.toString(), line, "lines with name, scale and restarts");
                }
                mark.put(sides[0], sides[1]);
            });
            String name = mark.getOrDefault("name", "nothing");
            if (!name.equals("all") && !Paper.NAMES.contains(name) && !isFolder(name)) {
                throw new BadInput(
                        file + ": name",
                        name,
                        "one of " + String.join(", ", Paper.NAMES) + ", all, or a folder with a paper.yaml in it");
            }
            String scale = mark.getOrDefault("scale", "nothing");
            Scale named = Scale.named(scale)
                    .orElseThrow(() -> new BadInput(file + ": scale", scale, "quick, standard or paper"));
            Optional<Integer> restarts =
                    Optional.ofNullable(mark.get("restarts")).map(typed -> restarts(file + ": restarts", typed));
            if (!text.endsWith("\n")) {
                throw new BadInput(file.toString(), "a last line without an end", "a whole file");
            }
            return new Asked(name, named, restarts);
        }

        private static int restarts(String place, String typed) {
            try {
                return checkedRestarts(place, Integer.parseInt(typed));
            } catch (NumberFormatException e) {
                throw new BadInput(place, typed, "1 to " + MAX_RESTARTS);
            }
        }

        private static boolean isFolder(String name) {
            return Files.isRegularFile(Path.of(name, "paper.yaml"));
        }

        List<Paper> papers() {
            if (name.equals("all")) {
                return Paper.NAMES.stream().map(Paper::named).toList();
            }
            return List.of(isFolder(name) ? Paper.read(Path.of(name)) : Paper.named(name));
        }
    }

    @Override
    public Integer call() throws IOException, InterruptedException {
        record.ifPresent(file -> {
            checkMarkdown("--record", file);
            Job.checkPlace("--record", file, false);
            Job.checkPlace("--record", PaperRecord.folder(file), true);
        });
        if (pages.isPresent()) {
            return pages(pages.get());
        }
        Catalog catalog = Catalog.read();
        Optional<Instant> until = Job.until(sitting);
        if (!read.isEmpty()) {
            if (resumed.isPresent() || isPlan || until.isPresent()) {
                throw new BadInput(
                        "--read", read.getFirst(), "neither --resume, --for nor --plan, since nothing is run");
            }
            List<PaperReport> reports = new ArrayList<>();
            for (Path folder : read) {
                Asked begun = begun(folder, "--read");
                checkFolder("--read", folder, begun.papers());
                reports.addAll(carriedOut(begun.papers(), begun, folder, catalog, Optional.empty(), false)
                        .reports());
            }
            record(reports);
            return 0;
        }
        Asked asked = resumed.isPresent() ? begun(resumed.get(), "--resume") : asked();
        List<Paper> papers = asked.papers();
        lab(catalog)
                .checkBackends(papers.stream()
                        .flatMap(paper -> paper.parts().stream())
                        .flatMap(part -> asked.study(part, catalog.names()).stream())
                        .map(Scale.Scaled::study)
                        .toList());
        plan(papers, asked, catalog);
        if (isPlan) {
            return 0;
        }
        Path folder = resumed.isPresent() ? resumed.get() : Job.folder(out);
        checkFolder(resumed.isPresent() ? "--resume" : "--out", folder, papers);
        Report.write(folder.resolve(MARK), asked.mark());
        Sittings.begin(folder, Instant.now(), Checkout.commit(), Job.command(spec));
        CarriedOut done;
        // Ctrl-C waits until the sitting is written down
        try (Children.Hold _ = Children.hold()) {
            done = carriedOut(papers, asked, folder, catalog, until, true);
            Sittings.end(folder);
        }
        if (done.isInterrupted()) {
            return 1;
        }
        // read again, so that the pages tell of this sitting too
        record(carriedOut(papers, asked, folder, catalog, Optional.empty(), false)
                .reports());
        if (done.left() > 0) {
            System.out.println(
                    "left: " + done.left() + " trials; " + Job.resuming("reproduce", folder, sitting) + " goes on");
        }
        return done.failed() > 0 ? 1 : 0;
    }

    private int pages(Path file) {
        checkMarkdown(PAGES, file);
        Job.checkPlace(PAGES, file, false);
        if (spec.commandLine().getParseResult().matchedOptions().stream()
                        .anyMatch(option -> !List.of(PAGES, "--out").contains(option.longestName()))
                || name.isPresent()) {
            throw new BadInput(PAGES, file, "nothing beside it but --out, since nothing is run or read");
        }
        List<PaperReport> recorded = PaperRecord.read(file);
        System.out.println("report: " + PaperRecord.writePages(file, recorded, Job.folder(out)));
        System.out.println("record: " + file);
        return 0;
    }

    private static void checkMarkdown(String option, Path file) {
        // The name without its ending is that of the folder beside it.
        if (!file.toString().endsWith(".md") || file.endsWith(".md")) {
            throw new BadInput(option, file, "a name that ends in .md");
        }
    }

    private static void checkFolder(String option, Path folder, List<Paper> papers) {
        Job.checkPlace(option, folder.resolve(MARK), false);
        Job.checkPlace(option, folder.resolve(Sittings.FILE), false);
        for (Paper paper : papers) {
            Path own = folder.resolve(paper.name());
            Job.checkPlace(option, own, true);
            paper.parts().forEach(part -> Job.checkPlace(option, own.resolve(part.name()), true));
        }
    }

    private void record(List<PaperReport> reports) {
        record.ifPresent(file -> System.out.println("record: " + PaperRecord.write(file, reports)));
    }

    /** @param left trials that were not begun, because there was no time */
    private record CarriedOut(List<PaperReport> reports, int failed, int left, boolean isInterrupted) {}

    private Asked asked() {
        String given = name.orElseThrow(() ->
                new BadInput("NAME", "none", "one of " + String.join(", ", Paper.NAMES) + ", all, or --resume DIR"));
        String wanted = scale.orElse(Scale.QUICK.toString());
        restarts.ifPresent(n -> checkedRestarts("--restarts", n));
        return new Asked(
                given,
                Scale.named(wanted)
                        .orElseThrow(() -> BadInput.near(
                                "--scale", wanted, List.of("quick", "standard", "paper"), "quick, standard or paper")),
                restarts);
    }

    private static int checkedRestarts(String place, int restarts) {
        if (restarts < 1 || restarts > MAX_RESTARTS) {
            throw new BadInput(place, restarts, "1 to " + MAX_RESTARTS);
        }
        return restarts;
    }

    private Asked begun(Path folder, String option) throws IOException {
        if (out.isPresent()) {
            throw new BadInput("--out", out.get(), "not together with " + option + ", which has its own folder");
        }
        if (!Files.isRegularFile(folder.resolve(MARK))) {
            throw new BadInput(option, folder, "a folder in which parley reproduce was begun");
        }
        Asked begun = Asked.read(folder.resolve(MARK));
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
        TimeRange sum = TimeRange.NONE;
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
                            + plan.boots().size() + " boots of services, about " + plan.estimate() + left);
                } else {
                    System.out.println(paper.name() + "/" + part.name() + ": nothing of it can be measured" + left);
                }
            }
        }
        System.out.println("in all " + trials + " trials, about " + sum + Progress.LONGER + "; scale " + asked.scale()
                + ": " + asked.scale().rule()
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
     * Why a part cannot be measured on this machine: one part without its test bed leaves the others as they are. What
     * nobody could measure anywhere is a mistake in the data, and ends the command.
     */
    private Optional<String> obstacle(Study study, Catalog catalog) {
        try {
            lab(catalog).check(study);
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

    /** One that checks, and runs nothing. */
    private Lab lab(Catalog catalog) {
        return new Lab(catalog, Progress.toTerminal(), Job.backends(backends));
    }

    /** @param isRun false where the pages alone are to be written, from what is in the stores */
    private CarriedOut carriedOut(
            List<Paper> papers, Asked asked, Path folder, Catalog catalog, Optional<Instant> until, boolean isRun)
            throws IOException {
        int failed = 0;
        int left = 0;
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
                        Lab.Ending ending = isRun ? done.carryOut(catalog, until) : NOTHING;
                        failed += ending.failed();
                        left += ending.left();
                    } catch (InterruptedException e) {
                        System.err.println("parley: interrupted; finished trials are kept: "
                                + Job.resuming("reproduce", folder, sitting) + " goes on");
                        return new CarriedOut(reports, failed, left, true);
                    }
                    runs.add(done.read(catalog.names()));
                }
                if (isRun) {
                    continue;
                }
                PaperReport report = PaperReport.of(new PaperRun(paper, asked.scale(), runs, Sittings.read(folder)));
                report.writeTo(Files.createDirectories(folder.resolve(paper.name())));
                reports.add(report);
                System.out.println(report.line());
            }
            if (!isRun) {
                System.out.println("report: " + PaperReport.index(folder, reports));
            }
        }
        return new CarriedOut(reports, failed, left, false);
    }

    private static final Lab.Ending NOTHING = new Lab.Ending(0, 0, 0, 0, Optional.empty());

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
         * How many trials failed, twice each, as one that failed is tried once more at the end; or 1 where none could
         * begin: the other parts are measured all the same.
         */
        Lab.Ending carryOut(Catalog catalog, Optional<Instant> until) throws InterruptedException, IOException {
            if (scaled.isEmpty() || isDone()) {
                return NOTHING;
            }
            Plan plan = Plan.of(scaled.get().study());
            Duration boot = plan.estimate().most().dividedBy(plan.boots().size());
            if (until.isPresent() && Instant.now().plus(boot).isAfter(until.get())) {
                // not even described: a part that is not begun is begun at the commit of the sitting that begins it
                return new Lab.Ending(0, 0, 0, plan.trials().size() - finished(), Optional.empty());
            }
            Files.createDirectories(folder);
            Progress progress = Progress.toTerminal();
            System.err.println(folder + ": " + part.place());
            Lab lab = new Lab(catalog, progress, Job.backends(backends), isObserved).until(until);
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
                return ending;
            } catch (LabException | ProcessException e) {
                why = String.valueOf(e.getMessage());
                System.err.println("parley: " + part.name() + ": " + why);
                return new Lab.Ending(0, 1, 0, 0, Optional.of(why));
            } finally {
                progress.end();
            }
        }

        /**
         * A part that is done is not opened again: it may have been measured at an earlier commit than the next one.
         */
        private boolean isDone() {
            Path store = folder.resolve(Lab.STORE_FILE);
            if (!Files.exists(store)) {
                return false;
            }
            try (RunStore done = RunStore.open(store)) {
                return finished() == done.plan().size();
            }
        }

        private int finished() {
            Path store = folder.resolve(Lab.STORE_FILE);
            if (!Files.exists(store)) {
                return 0;
            }
            try (RunStore begun = RunStore.open(store)) {
                return (int) begun.trials().stream()
                        .filter(trial -> trial.state() == TrialRow.State.FINISHED)
                        .map(trial -> trial.spec().id())
                        .distinct()
                        .count();
            }
        }

        private Optional<String> stored() {
            try (RunStore store = RunStore.open(folder.resolve(Lab.STORE_FILE))) {
                return store.study().map(StoredStudy::digest);
            }
        }

        PaperRun.PartRun read(List<String> here) {
            List<String> missing = new ArrayList<>(part.missing(here));
            if (!why.isEmpty()) {
                missing.add(why);
            }
            Optional<Analysis> analysis = Optional.empty();
            Optional<String> stored = Optional.empty();
            if (Files.exists(folder.resolve(Lab.STORE_FILE))) {
                Report report = Report.of(folder.resolve(Lab.STORE_FILE));
                report.writeTo(folder);
                analysis = Optional.of(report.analysis());
                stored = stored();
            }
            return new PaperRun.PartRun(part, scaled, analysis, String.join("; ", missing), stored);
        }
    }
}
