package dev.parley.lab;

import dev.parley.backend.Backends;
import dev.parley.limits.Confinement;
import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Run;
import dev.parley.model.Study;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.process.Children;
import dev.parley.spi.Location;
import dev.parley.spi.Work;
import dev.parley.store.RunStore;
import dev.parley.store.StoredStudy;
import dev.parley.studies.StudyText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** Carries out studies. One at a time in a process. */
public final class Lab {
    public static final String STORE_FILE = "results.duckdb";
    /** In UTC, in which no time of day comes twice. */
    private static final DateTimeFormatter RUN_ID =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH-mm-ss").withZone(ZoneOffset.UTC);

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

    /** The root of the checkout or of the distribution that this is. */
    public static Path home() {
        return Installations.home();
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
            List<Technology> described = Description.of(study, installations, logs, listener);
            mustBeReachable(study, described);
            List<Technology> had = brokers.start(described);
            Study measured = only(had, study);
            Plan plan = Plan.of(measured);
            try (RunStore store = RunStore.create(
                    out.resolve(STORE_FILE),
                    here(study, command, had, brokers, databases),
                    new StoredStudy(StudyText.digest(study), StudyText.of(study)),
                    plan.trials())) {
                return carryOut(plan, measured, store, brokers, databases, out, logs);
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
            List<Technology> described = Description.of(study, installations, logs, listener);
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
                return carryOut(plan.without(finished), measured, store, brokers, databases, out, logs);
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
        try (Children.Hold _ = Children.hold();
                Folders.Temporary logs = Folders.temporary("parley-describe")) {
            mustBeReachable(study, Description.of(study, installations, logs.path(), listener));
        }
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
        Map<String, String> machine = Machine.facts();
        machine.putAll(brokers.facts());
        machine.putAll(databases.facts());
        if (isObserved) {
            machine.put("observed", "each service writes a log line a call");
        }
        Instant startedAt = Instant.now();
        return new Run(
                RUN_ID.format(startedAt),
                startedAt,
                command,
                study.seed(),
                Checkout.commit(),
                machine,
                System.getProperty("java.vendor") + " " + System.getProperty("java.vm.version"),
                ServiceJvm.FLAGS,
                technologies);
    }

    /** The same study of the technologies that can be had. */
    private static Study only(List<Technology> technologies, Study study) {
        return study.of(technologies.stream().map(Technology::name).toList());
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
                for (MessageSpec single : message.messages()) {
                    work.exchange(single, topology, topology.entry(), study.seed());
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

    private Ending carryOut(
            Plan plan, Study study, RunStore store, Brokers brokers, Databases databases, Path out, Path logs)
            throws InterruptedException {
        Observation observation = isObserved ? Observation.in(home, out) : Observation.none(home);
        PlanRun.Setting setting = new PlanRun.Setting(installations, listener, ceilings, until, logs);
        return new PlanRun(study, setting, store, brokers, databases, observation).of(plan);
    }

    private static Path folder(Path path) {
        try {
            return Files.createDirectories(path);
        } catch (IOException e) {
            throw new BadInput("--out", path, "a folder that can be written (" + e.getMessage() + ")");
        }
    }
}
