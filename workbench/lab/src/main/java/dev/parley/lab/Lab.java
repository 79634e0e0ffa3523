package dev.parley.lab;

import dev.parley.backend.Backends;
import dev.parley.limits.Confinement;
import dev.parley.limits.LimitsException;
import dev.parley.model.BadInput;
import dev.parley.model.FigureRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.MessageSpec;
import dev.parley.model.Rules;
import dev.parley.model.Run;
import dev.parley.model.Study;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.process.Children;
import dev.parley.process.Ports;
import dev.parley.process.ProcessException;
import dev.parley.spi.Location;
import dev.parley.spi.Work;
import dev.parley.store.RunStore;
import dev.parley.store.StoreException;
import dev.parley.store.StoredStudy;
import dev.parley.studies.StudyText;
import dev.rpcx.probe.MachineFacts;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** Carries out studies. One at a time in a process. */
public final class Lab {
    private static final String UNKNOWN = "unknown";

    public static final String STORE_FILE = "results.duckdb";
    private static final DateTimeFormatter RUN_ID = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH-mm-ss");

    private final Path home;
    private final Catalog catalog;
    private final Installations installations;
    private final LabListener listener;
    private final Map<String, Location.Socket> backends;
    private final boolean isObserved;
    private final Ceiling.Kept ceilings;

    /** Nothing is begun that would end after this; empty where there is time enough. */
    private Optional<Instant> until = Optional.empty();

    /**
     * How a run ended.
     *
     * @param left trials that were not begun, because there was no time
     */
    public record Ending(int finished, int failed, int voided, int left, Optional<String> firstFailure) {}

    public Lab(Catalog catalog, LabListener listener) {
        this(catalog, listener, Map.of());
    }

    /** @param backends that run already and are used instead of our own, by name */
    public Lab(Catalog catalog, LabListener listener, Map<String, Location.Socket> backends) {
        this(catalog, listener, backends, false);
    }

    /** @param isObserved whether services write a log line a call, and Prometheus is told where they are */
    public Lab(Catalog catalog, LabListener listener, Map<String, Location.Socket> backends, boolean isObserved) {
        this(catalog, listener, backends, isObserved, Ceiling.KEPT);
    }

    /** @param ceilings what the load generator reaches, measured where it is not known */
    Lab(
            Catalog catalog,
            LabListener listener,
            Map<String, Location.Socket> backends,
            boolean isObserved,
            Ceiling.Kept ceilings) {
        this.ceilings = ceilings;
        this.isObserved = isObserved;
        this.backends = Map.copyOf(backends);
        this.home = Installations.home();
        this.catalog = catalog;
        this.installations = new Installations(home, catalog);
        this.listener = listener;
    }

    /**
     * The same lab with so much time: services are not booted for what would end later, and a run that is stopped so
     * is gone on with by resuming it.
     */
    public Lab until(Optional<Instant> end) {
        until = end;
        return this;
    }

    private boolean hasTimeFor(Duration estimate) {
        return until.isEmpty() || Instant.now().plus(estimate).isBefore(until.get());
    }

    /**
     * The workbench's version in its checkout, with {@code -dirty} where files differ from it; {@code unknown} outside
     * of one. Pages that recordings write do not count, or else one recording would make the next one dirty.
     */
    public static String commit() {
        return commit(Installations.home());
    }

    static String commit(Path checkout) {
        String git = checkout.toString();
        String commit = said(List.of("git", "-C", git, "describe", "--always", "--exclude=*", "--abbrev=12"));
        List<String> changes =
                new ArrayList<>(List.of("git", "-C", git, "status", "--porcelain", "--untracked-files=no"));
        changes.addAll(List.of("--", ":/", ":(top,exclude)README.md", ":(top,exclude)docs/results"));
        String changed = said(changes);
        return commit.equals(UNKNOWN) || changed.isEmpty() ? commit : commit + "-dirty";
    }

    /**
     * Measures, and leaves the store in {@code out}.
     *
     * @param out an existing, writable folder without a run in it
     * @param command as typed, for the record
     * @throws InterruptedException if the lab was told to end; finished trials are in the store, the one under way is
     *     marked
     */
    public Ending run(Study study, Path out, String command) throws InterruptedException {
        check(study);
        Path logs = folder(out.resolve("logs"));
        try (Children.Hold _ = Children.hold();
                Brokers brokers = new Brokers(home, backends, logs, listener);
                Databases databases = databases(study, logs)) {
            List<Technology> described = describe(study, logs);
            mustBeReachable(study, described);
            List<Technology> had = brokers.start(described);
            Study measured = only(had, study);
            Plan plan = Plan.of(measured);
            try (RunStore store =
                    RunStore.create(out.resolve(STORE_FILE), here(study, command, had, brokers, databases))) {
                store.appendPlan(new StoredStudy(StudyText.digest(study), StudyText.of(study)), plan.trials());
                return carryOut(plan, measured, store, brokers, databases, observation(out), logs);
            }
        }
    }

    /**
     * Goes on with a run that was stopped, at the next trial without a finished end; failed ones are tried again.
     *
     * @param given a study that must be the stored one, for a caller that has it; empty to take the stored one
     * @throws BadInput where the run in {@code out} is of another study, machine, JDK, broker or version of the
     *     workbench
     */
    public Ending resume(Optional<Study> given, Path out) throws InterruptedException {
        Path logs = folder(out.resolve("logs"));
        try (Children.Hold _ = Children.hold();
                RunStore store = RunStore.resume(out.resolve(STORE_FILE));
                Brokers brokers = new Brokers(home, backends, logs, listener)) {
            StoredStudy stored = store.study()
                    .orElseThrow(() -> new BadInput("--resume", out, "a run that keeps its study and its plan"));
            Study study = StudyText.read(stored.text(), catalog.names());
            Resumption.mustBeSame(out, stored, study, given);
            check(study);
            List<Technology> described = describe(study, logs);
            mustBeReachable(study, described);
            List<Technology> had = brokers.start(described);
            Study measured = only(had, study);
            Plan plan = Plan.of(measured);
            try (Databases databases = databases(study, logs)) {
                Run run = here(study, store.run().command(), had, brokers, databases);
                Resumption.mustBeSame(out, store.run(), run, store.plan(), plan.trials());
                Set<Integer> finished = store.trials().stream()
                        .filter(trial -> trial.state() == TrialRow.State.FINISHED)
                        .map(trial -> trial.spec().id())
                        .collect(Collectors.toSet());
                return carryOut(plan.without(finished), measured, store, brokers, databases, observation(out), logs);
            }
        }
    }

    /**
     * Finds technologies that cannot be reached within a study's limits. Asks each what it needs, in a process of a
     * second; only where the study has such limits.
     *
     * @throws BadInput naming the first
     */
    public void checkReach(Study study) throws InterruptedException {
        if (!study.limits().hasHosts() && study.limits().proxy().isEmpty()) {
            return;
        }
        Path logs;
        try {
            logs = Files.createTempDirectory("parley-describe");
        } catch (IOException e) {
            throw new LabException("no temporary folder can be made: " + e.getMessage(), e);
        }
        mustBeReachable(study, describe(study, logs));
    }

    /**
     * Brokers listen on this machine's loopback, where a service on a host of its own, or behind a relay, does not
     * find them.
     */
    private static void mustBeReachable(Study study, List<Technology> technologies) {
        if (study.limits().hasHosts() || study.limits().proxy().isPresent()) {
            technologies.stream()
                    .filter(technology -> technology.broker().isPresent())
                    .findFirst()
                    .ifPresent(technology -> {
                        throw new BadInput(
                                "limits",
                                "hosts, bandwidth or proxy for " + technology.name() + ", whose broker stands on none",
                                "technologies without a broker, or cores and memory only");
                    });
        }
    }

    private Databases databases(Study study, Path logs) throws InterruptedException {
        return Databases.start(Work.named(study.work()), study.topologies(), home, backends, logs, listener);
    }

    private Run here(Study study, String command, List<Technology> technologies, Brokers brokers, Databases databases) {
        Map<String, String> machine = new LinkedHashMap<>(MachineFacts.read());
        machine.put(Rules.FACT, Integer.toString(Rules.VERSION));
        machine.put(
                "pacer of open loads",
                said(List.of("chrt", "--rr", "1", "echo", "real-time")).equals("real-time")
                        ? "real-time thread"
                        : "waits for a core like any thread");
        // Every JVM reads these, on top of its own flags.
        for (String name : List.of("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")) {
            Optional.ofNullable(System.getenv(name)).ifPresent(options -> machine.put(name, options));
        }
        machine.putAll(brokers.facts());
        machine.putAll(databases.facts());
        if (isObserved) {
            machine.put("observed", "each service writes a log line a call");
        }
        return new Run(
                LocalDateTime.now().format(RUN_ID),
                Instant.now(),
                command,
                study.seed(),
                commit(),
                machine,
                System.getProperty("java.vendor") + " " + System.getProperty("java.vm.version"),
                ServiceJvm.FLAGS,
                technologies);
    }

    /** The same study of the technologies that can be had. */
    private static Study only(List<Technology> technologies, Study study) {
        return study.of(technologies.stream().map(Technology::name).toList());
    }

    /** Technologies whose modules are not packaged here. */
    public static List<String> unbuilt(Catalog catalog) {
        Path workbench = Installations.home().resolve("workbench");
        return catalog.names().stream()
                .filter(name ->
                        !Files.exists(workbench.resolve(catalog.module(name)).resolve("target/runtime.classpath")))
                .toList();
    }

    private List<Technology> describe(Study study, Path logs) throws InterruptedException {
        List<Description> asked = new ArrayList<>();
        try {
            for (String name : study.technologies()) {
                asked.add(new Description(name, installation(name, study), logs.resolve("describe-" + name + ".log")));
            }
            List<Technology> technologies = new ArrayList<>();
            for (Description description : asked) {
                Technology technology = description.answer();
                if (description.carries(study.work())) {
                    technologies.add(technology);
                } else {
                    listener.note(technology.name() + " is left out: it has no interface for the work " + study.work());
                }
            }
            if (technologies.isEmpty()) {
                throw new LabException("no technology is left to measure: none of "
                        + String.join(", ", study.technologies()) + " has an interface for the work " + study.work());
            }
            return technologies;
        } finally {
            asked.forEach(Description::close);
        }
    }

    private Installation installation(String technology, Study study) {
        Topology topology = study.topologies().getFirst();
        return installations.service(technology, topology, topology.nodes().getLast(), study.work());
    }

    /**
     * Finds everything in a question that cannot be used, before anything is started or written.
     *
     * @throws BadInput naming it
     */
    public void check(Study study) {
        Confinement.check(study.limits());
        study.technologies().forEach(catalog::module);
        Work work = Work.named(study.work());
        if (study.limits().hasHosts() && !work.backends().isEmpty()) {
            throw new BadInput(
                    "limits",
                    "hosts or bandwidth for the work " + work.name() + ", whose databases stand on none",
                    "a work without databases, or cores and memory only");
        }
        for (Topology topology : study.topologies()) {
            for (MessageSpec message : study.messages()) {
                for (MessageSpec step : message.steps()) {
                    work.exchange(step, topology, topology.entry(), study.seed());
                }
            }
        }
    }

    /**
     * Finds backends that were named and that none of these studies uses. Asks each technology what it needs, in a
     * process of a second, where a broker was named.
     *
     * @throws BadInput naming one
     */
    public void checkBackends(List<Study> studies) throws InterruptedException {
        Set<String> works = studies.stream().map(Study::work).collect(Collectors.toCollection(LinkedHashSet::new));
        Set<String> databases = works.stream()
                .flatMap(work -> Work.named(work).backends().stream())
                .collect(Collectors.toCollection(LinkedHashSet::new));
        Set<String> brokers = new LinkedHashSet<>();
        if (backends.keySet().stream().anyMatch(Backends.BROKERS::contains)) {
            List<String> technologies = studies.stream()
                    .flatMap(study -> study.technologies().stream())
                    .distinct()
                    .toList();
            new Inventory(catalog)
                    .of(technologies)
                    .forEach(entry -> entry.technology().broker().ifPresent(brokers::add));
        }
        backends.forEach((name, at) -> {
            boolean isBroker = Backends.BROKERS.contains(name);
            Set<String> used = isBroker ? brokers : databases;
            if (!used.contains(name)) {
                throw new BadInput(
                        "--backend",
                        name + "=" + at,
                        (isBroker
                                        ? "a broker that one of the technologies uses: "
                                        : "a database that the work " + String.join(", ", works) + " uses: ")
                                + (used.isEmpty() ? "none" : String.join(", ", used)));
            }
        });
    }

    private Observation observation(Path out) {
        return isObserved ? Observation.in(home, out) : Observation.none(home);
    }

    private Ending carryOut(
            Plan plan,
            Study study,
            RunStore store,
            Brokers brokers,
            Databases databases,
            Observation observation,
            Path logs)
            throws InterruptedException {
        if (store.libraries().isEmpty()) {
            List<LibraryRow> libraries = new ArrayList<>(installations.empty().libraries(FigureRow.EMPTY));
            for (String name : study.technologies()) {
                libraries.addAll(installation(name, study).libraries(name));
            }
            store.appendLibraries(libraries);
        }
        listener.planned(plan);
        RehearsalTime rehearsals = new RehearsalTime(plan);
        Tally tally = new Tally(store.trials());
        for (int i = 0; i < plan.boots().size(); i++) {
            Plan.Boot planned = plan.boots().get(i);
            Plan.Boot boot = planned.rehearsing(rehearsals.next(planned));
            Duration rehearsed = Duration.ZERO;
            if (hasTimeFor(tally.times.longest(boot))) {
                listener.booting(boot, i);
                if (boot.opensBlock()) {
                    emptyService(boot, store, logs);
                }
                rehearsed = carryOut(
                        boot,
                        study,
                        store,
                        brokers.of(boot.technology()),
                        databases,
                        ceiling(logs),
                        observation,
                        logs,
                        tally);
            } else {
                tally.left += boot.trials().size();
            }
            rehearsals.took(rehearsed);
        }
        store.buildViews();
        return new Ending(tally.finished, tally.failed, tally.voided, tally.left, tally.firstFailure);
    }

    private Ceiling ceiling(Path logs) throws InterruptedException {
        try {
            return Ceiling.current(ceilings, installations.bareGenerator(), logs);
        } catch (LabException e) {
            if (isToldToEnd()) {
                throw told(e);
            }
            throw e;
        }
    }

    /**
     * Requests a second that the load generator itself reaches on this machine, against a server that does nothing.
     * Takes some six seconds.
     *
     * @param logs an existing folder
     * @throws LabException where it cannot be measured
     */
    public static double generatorCeiling(Catalog catalog, Path logs) throws InterruptedException {
        return Ceiling.current(Ceiling.KEPT, new Installations(Installations.home(), catalog).bareGenerator(), logs)
                .perSecond();
    }

    /** What became of the trials so far. One thread. */
    private static final class Tally {
        private int finished;
        private int failed;
        private int voided;
        private int left;
        private Optional<String> firstFailure = Optional.empty();
        private final TrialTimes times;

        Tally(List<TrialRow> done) {
            times = new TrialTimes(done);
        }
    }

    private void emptyService(Plan.Boot boot, RunStore store, Path logs) throws InterruptedException {
        try {
            store.appendFigures(EmptyService.measure(
                    installations.empty(), boot.trials().getFirst().id(), logs.resolve(boot.block() + "-empty.log")));
        } catch (LabException | ProcessException e) {
            if (isToldToEnd()) {
                throw told(e);
            }
            listener.note("no figures of an empty service in restart " + boot.block() + ": " + e.getMessage());
        }
    }

    /**
     * A failure ends its trial; the others of the boot get services that are started anew. Only services that do not
     * boot end all of their trials. Nothing but a store that cannot be written ends the run.
     *
     * @return how long its services were rehearsed
     */
    private Duration carryOut(
            Plan.Boot boot,
            Study study,
            RunStore store,
            Optional<Broker> broker,
            Databases databases,
            Ceiling ceiling,
            Observation observation,
            Path logs,
            Tally tally)
            throws InterruptedException {
        List<TrialSpec> left = new ArrayList<>(boot.trials());
        boolean isBooted = false;
        Duration rehearsed = Duration.ZERO;
        while (!left.isEmpty()) {
            Instant startedAt = Instant.now();
            Duration before = rehearsed;
            boolean isServing = false;
            try (Deployment deployment = new Deployment(
                    boot.again(left),
                    installations,
                    logs,
                    study.seed(),
                    listener,
                    broker,
                    databases,
                    ceiling,
                    observation,
                    Ports::free)) {
                List<FigureRow> figures = deployment.boot();
                if (!isBooted) {
                    store.appendFigures(figures);
                    isBooted = true;
                }
                isServing = true;
                try {
                    deployment.rehearse();
                    deployment.confine();
                    while (!left.isEmpty()) {
                        if (!hasTimeFor(tally.times.longest(left.getFirst()))) {
                            tally.left += left.size();
                            return before.plus(deployment.rehearsed());
                        }
                        startedAt = Instant.now();
                        Deployment.Measured measured = deployment.run(left.getFirst());
                        store.append(measured.trial(), measured.seconds(), measured.histograms(), measured.figures());
                        left.removeFirst();
                        tally.finished++;
                        tally.times.took(measured.trial());
                        tally.voided += measured.trial().isValid() ? 0 : 1;
                        listener.trialEnded(measured.trial(), Optional.of(Glance.of(measured)));
                    }
                } finally {
                    // A trial that fails has used its rehearsal's time too.
                    rehearsed = before.plus(deployment.rehearsed());
                }
            } catch (StoreException e) {
                throw e;
            } catch (RuntimeException e) {
                if (isToldToEnd()) {
                    // The others never began.
                    store.append(ended(left.getFirst(), TrialRow.State.INTERRUPTED, startedAt, "interrupted"));
                    throw told(e);
                }
                String what = e instanceof LabException || e instanceof ProcessException || e instanceof LimitsException
                        ? String.valueOf(e.getMessage())
                        : e.toString();
                TrialSpec first = left.removeFirst();
                fail(first, what, startedAt, store, tally);
                if (!isServing) {
                    String why = "not begun, because trial " + (first.id() + 1) + " failed: " + what;
                    for (TrialSpec trial : left) {
                        fail(trial, why, startedAt, store, tally);
                    }
                    left.clear();
                } else if (!left.isEmpty()) {
                    listener.note("the services are started anew for what is left of this restart");
                }
            }
        }
        return rehearsed;
    }

    private void fail(TrialSpec trial, String why, Instant startedAt, RunStore store, Tally tally) {
        TrialRow row = ended(trial, TrialRow.State.FAILED, startedAt, why);
        store.append(row);
        listener.trialEnded(row, Optional.<Glance>empty());
        tally.failed++;
        tally.firstFailure = tally.firstFailure.or(() -> Optional.of(why));
    }

    /**
     * Ctrl-C reaches every process of a terminal at once: a service may be seen to end before this process knows why.
     */
    private static boolean isToldToEnd() throws InterruptedException {
        return Children.isShuttingDown(Duration.ofMillis(300));
    }

    private static InterruptedException told(RuntimeException e) {
        return (InterruptedException) new InterruptedException("told to end").initCause(e);
    }

    private static TrialRow ended(TrialSpec trial, TrialRow.State state, Instant startedAt, String why) {
        return new TrialRow(trial, state, startedAt, Instant.now(), List.of(), why);
    }

    private static Path folder(Path path) {
        try {
            return Files.createDirectories(path);
        } catch (IOException e) {
            throw new BadInput("--out", path, "a folder that can be written (" + e.getMessage() + ")");
        }
    }

    /** What a short command printed; {@code unknown} where it cannot be run. */
    private static String said(List<String> command) {
        try {
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            return process.waitFor(5, TimeUnit.SECONDS) && process.exitValue() == 0 ? text : UNKNOWN;
        } catch (IOException notHere) {
            return UNKNOWN;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return UNKNOWN;
        }
    }
}
