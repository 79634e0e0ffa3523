package dev.parley.lab;

import dev.parley.analysis.Warmth;
import dev.parley.limits.Confinement;
import dev.parley.load.Command;
import dev.parley.load.Event;
import dev.parley.load.Event.Phase;
import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.probe.MachineMood;
import dev.parley.process.Child;
import dev.parley.process.Ports;
import dev.parley.process.ProcessException;
import dev.parley.spi.Location;
import dev.parley.spi.Work;
import dev.rpcx.probe.ByteRelay;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.function.IntSupplier;

/**
 * One boot of a topology's services and the generator in front of them, for some trials. One thread. Closing ends all
 * of its processes.
 */
final class Deployment implements AutoCloseable {
    private static final Duration TO_ANSWER = Duration.ofSeconds(60);
    private static final int PORT_ATTEMPTS = 5;
    /** Requests of an open load that may wait for their replies at once. */
    private static final int MAX_IN_FLIGHT = 10_000;
    /** Bytes are counted over this many calls, after half as many that open connections and fill header tables. */
    private static final int MAX_COUNTED_CALLS = 20;
    /** Calls that take long are counted over fewer: theirs are the messages beside which headers weigh nothing. */
    private static final int MIN_COUNTED_CALLS = 4;

    private static final Duration COUNTING = Duration.ofSeconds(1);

    /** Right answers in a row after which services are taken to be done with what went before. */
    private static final int SETTLED_CALLS = 3;

    private final Plan.Boot boot;
    private final Installations installations;
    private final Path logs;
    private final LabListener listener;
    /** The services that were started, callees first. */
    private final List<ServiceProcess> services = new ArrayList<>();

    private final Map<String, Location> locations = new HashMap<>();
    private final Map<MessageSpec, List<FigureRow>> bytesByMessage = new HashMap<>();
    private final Generator generator;
    private final Confinement confinement;
    private final IntSupplier ports;
    private final Optional<Broker> broker;
    private final Databases databases;
    private final Ceiling ceiling;
    private final Observation observation;
    private final Rehearsal rehearsal;
    private final TrafficLedger ledger;
    /** The message of requests that may still be under way; empty where all were answered. */
    private Optional<MessageSpec> unanswered = Optional.empty();

    /** A trial's rows, to be appended together. */
    record Measured(
            TrialRow trial,
            List<SecondRow> seconds,
            List<HistogramRow> histograms,
            List<FigureRow> figures,
            Event.Finished finished) {}

    /**
     * @param broker that the boot's technology needs
     * @param ceiling of the load generator
     * @param ports where services listen, one at a time
     */
    Deployment(
            Plan.Boot boot,
            Installations installations,
            Path logs,
            long seed,
            LabListener listener,
            Optional<Broker> broker,
            Databases databases,
            Ceiling ceiling,
            Observation observation,
            IntSupplier ports)
            throws InterruptedException {
        this.ceiling = ceiling;
        this.broker = broker;
        this.databases = databases;
        this.observation = observation;
        this.rehearsal = new Rehearsal(
                new Rehearsal.Stage() {
                    @Override
                    public Rehearsal.Slice play(MessageSpec message, Load load, Duration length)
                            throws InterruptedException {
                        return Deployment.this.play(message, load, length);
                    }

                    @Override
                    public long nowNs() {
                        return System.nanoTime();
                    }
                },
                boot.rehearsalLeast(),
                boot.rehearsal(),
                boot.trials().size());
        this.ledger = new TrafficLedger(boot.topology(), Work.named(boot.work()), broker.isPresent());
        this.ports = ports;
        this.boot = boot;
        this.installations = installations;
        this.logs = logs;
        this.listener = listener;
        this.generator = new Generator(
                installations.generator(boot.technology(), boot.topology(), boot.work()), log("generator"));
        try {
            generator.ask(
                    new Command.Use(
                            Installations.entryTechnology(boot.technology(), boot.topology()),
                            boot.topology().text(),
                            boot.work(),
                            seed),
                    Event.Done.class,
                    TO_ANSWER);
            confinement = Confinement.of(boot.limits(), boot.topology());
            confinement.relax();
        } catch (RuntimeException | InterruptedException e) {
            generator.close();
            throw e;
        }
    }

    private Path log(String process) {
        return logs.resolve(boot.block() + "-" + boot.technology() + "-" + process + ".log");
    }

    /** Starts the services from the last to the first, each timed from outside, and tells the figures of the boot. */
    List<FigureRow> boot() throws InterruptedException {
        broker.ifPresent(Broker::mustBeAlive);
        List<FigureRow> figures = new ArrayList<>();
        int firstTrial = boot.firstTrial();
        databases.prepare(boot.topology());
        for (Topology.Node node : boot.topology().calleesFirst()) {
            Installation installation = installations.service(boot.technology(), boot.topology(), node, boot.work());
            ServiceProcess service = listening(node, installation);
            Event.Ready ready = readiness(node);
            ledger.givenUp(node, ready.attempts() - 1);
            double bootMs = (System.nanoTime() - service.startedNs()) / 1e6;
            figures.add(new FigureRow(firstTrial, Metric.BOOT_TIME, node.name(), bootMs));
            figures.add(new FigureRow(firstTrial, Metric.INSTALLED_SIZE, node.name(), installation.bytes() / 1e6));
            resident(service)
                    .ifPresent(bytes ->
                            figures.add(new FigureRow(firstTrial, Metric.MEMORY_AFTER_BOOT, node.name(), bytes / 1e6)));
            if (node.equals(boot.topology().entry())) {
                figures.add(new FigureRow(firstTrial, Metric.FIRST_CALL, FigureRow.SYSTEM, ready.firstCallNs() / 1e6));
            }
        }
        observation.booted(boot, services);
        return figures;
    }

    private String served(Topology.Node node) {
        return node.equals(boot.topology().entry())
                ? Installations.entryTechnology(boot.technology(), boot.topology())
                : boot.technology();
    }

    private ServiceProcess listening(Topology.Node node, Installation installation) throws InterruptedException {
        if (broker.isEmpty() || !served(node).equals(boot.technology())) {
            return listeningOnPort(node, installation);
        }
        locations.put(node.name(), broker.get().location(boot, node.name()));
        ServiceProcess service = start(node, installation);
        services.add(service);
        service.awaitListening();
        return service;
    }

    /**
     * A service that has its port: another program may take one between its choice and its use, and then another is
     * chosen.
     */
    private ServiceProcess listeningOnPort(Topology.Node node, Installation installation) throws InterruptedException {
        for (int attempt = 1; ; attempt++) {
            int port = ports.getAsInt();
            locations.put(node.name(), new Location.Socket(confinement.address(node.name()), port));
            ServiceProcess service = start(node, installation);
            try {
                service.awaitListening();
                services.add(service);
                // From here on this is where the service is called, no longer where it listens.
                confinement
                        .relayTo(node.name(), port)
                        .ifPresent(
                                relay -> locations.put(node.name(), new Location.Socket(relay.host(), relay.port())));
                return service;
            } catch (RuntimeException | InterruptedException e) {
                service.close();
                if (!(e instanceof ProcessException) || Ports.isFree(port)) {
                    throw e;
                }
                if (attempt == PORT_ATTEMPTS) {
                    throw new LabException(
                            node.name() + " found its port taken " + attempt + " times, at last " + port, e);
                }
                listener.note("port " + port + " was taken by another program: " + node.name() + " tries another");
            }
        }
    }

    private ServiceProcess start(Topology.Node node, Installation installation) {
        List<String> arguments = new ArrayList<>(List.of(
                "name=" + node.name(),
                "topology=" + boot.topology().text(),
                "work=" + boot.work(),
                "transport=" + served(node),
                "neighbour-transport=" + boot.technology(),
                "at=" + locations.get(node.name()),
                "timeout-ms=" + boot.callLimit().toMillis(),
                "health=0"));
        arguments.addAll(databases.arguments(node.name()));
        arguments.addAll(observation.arguments(boot, node.name()));
        for (String callee : node.calls()) {
            arguments.add("neighbour." + callee + "=" + locations.get(callee));
        }
        return new ServiceProcess(Child.java(
                node.name(),
                confinement.prefix(node.name()),
                ServiceJvm.flags(boot.limits().of(node.name())),
                observation.classPath(installation),
                ServiceJvm.SERVICE,
                arguments,
                log(node.name())));
    }

    /**
     * Asks one service until it answers rightly. Behind a REST front the generator cannot speak to the others, so the
     * front's first right reply proves them all.
     */
    private Event.Ready readiness(Topology.Node node) throws InterruptedException {
        boolean isEntry = node.equals(boot.topology().entry());
        if (boot.topology().restFront() && !isEntry) {
            return new Event.Ready(node.name(), 0, 0);
        }
        return generator.ask(
                new Command.AwaitReady(
                        String.valueOf(locations.get(node.name())),
                        node.name(),
                        boot.trials().getFirst().message().toString(),
                        1,
                        TO_ANSWER.toMillis()),
                Event.Ready.class,
                TO_ANSWER.plusSeconds(10));
    }

    /**
     * What callers gave up waiting for is still served, and a broker keeps its requests: the next trial begins when
     * the services answer again, so that it does not pay for the one before.
     */
    private void settle() throws InterruptedException {
        if (unanswered.isEmpty()) {
            return;
        }
        String entry = boot.topology().entry().name();
        Event.Ready ready = generator.ask(
                new Command.AwaitReady(
                        entry().toString(), entry, unanswered.get().toString(), SETTLED_CALLS, TO_ANSWER.toMillis()),
                Event.Ready.class,
                TO_ANSWER.plusSeconds(10));
        ledger.givenUp(boot.topology().entry(), ready.attempts() - SETTLED_CALLS);
        unanswered = Optional.empty();
    }

    /**
     * Leaves services no more than their limits give them. It is called after booting and rehearsing, which would take
     * many times as long on a part of a core.
     */
    void confine() {
        confinement.tighten();
    }

    private static OptionalLong resident(ServiceProcess service) {
        return service.probe().residentBytes();
    }

    private Location entry() {
        Location entry = locations.get(boot.topology().entry().name());
        if (entry == null) {
            throw new LabException("the services are not booted");
        }
        return entry;
    }

    /**
     * Warms the services for each message of the boot. Bytes are counted first: the generator compiles again what it
     * opened and closed connections for, and was to be heard in the first seconds of the next trial.
     */
    void rehearse() throws InterruptedException {
        if (boot.rehearsal().isPositive()) {
            for (TrialSpec trial : boot.trials()) {
                try {
                    bytes(trial);
                } catch (LabException atItsOwnTrial) {
                    // It is tried again before that trial, which fails where it fails again, and no other with it.
                    listener.note(
                            "bytes of " + trial.message() + " were not counted yet: " + atItsOwnTrial.getMessage());
                }
            }
        }
        rehearsal.of(boot.trials().stream().map(TrialSpec::message).distinct().toList());
    }

    /** Time for which the services of this boot were rehearsed so far. */
    Duration rehearsed() {
        return rehearsal.spent();
    }

    /** Plays a stretch of load of which nothing is kept. */
    private Rehearsal.Slice play(MessageSpec message, Load load, Duration length) throws InterruptedException {
        TrialSpec first = boot.trials().getFirst();
        TrialSpec slice = new TrialSpec(
                first.id(),
                first.technology(),
                first.topology(),
                first.work(),
                message,
                load,
                first.restart(),
                first.block(),
                new TrialSpec.Window(Duration.ZERO, Duration.ZERO, length),
                first.limit());
        settle();
        Measured measured = measure(
                slice,
                "rehearsal",
                p -> listener.progress(
                        slice,
                        new Event.Progress(
                                p.trialId(),
                                Phase.WARM_UP,
                                p.elapsedMs(),
                                p.perSecond(),
                                p.p99Ms(),
                                p.errors(),
                                p.inFlight())));
        Glance glance = Glance.of(measured);
        return new Rehearsal.Slice(
                only(measured, Metric.COMPILING_SHARE),
                only(measured, Metric.GENERATOR_COMPILING),
                glance.medianMs(),
                glance.perSecond());
    }

    private static OptionalDouble only(Measured measured, Metric metric) {
        return measured.figures().stream()
                .filter(f -> f.metric() == metric)
                .mapToDouble(FigureRow::value)
                .findFirst();
    }

    /** Carries out one trial. */
    Measured run(TrialSpec trial) throws InterruptedException {
        settle();
        List<FigureRow> bytes = bytes(trial);
        rehearsal.before(trial);
        settle();
        Measured measured =
                measure(trial, Integer.toString(trial.id()), progress -> listener.progress(trial, progress));
        measured.figures().addAll(bytes);
        return measured;
    }

    /** @param name of the window in the call logs */
    private Measured measure(TrialSpec trial, String name, Consumer<Event.Progress> progressed)
            throws InterruptedException {
        List<FigureRow> figures = new ArrayList<>();
        Instant startedAt = Instant.now();
        TrialSpec.Window window = trial.window();
        Map<String, ServiceProcess.Served> servedBefore = served();
        generator.tell(new Command.RunTrial(
                trial.id(),
                entry().toString(),
                trial.message().toString(),
                trial.load().toString(),
                window.warmUpLeast().toMillis(),
                window.warmUpMost().toMillis(),
                window.length().toMillis(),
                trial.limit().toMillis(),
                boot.callLimit().toMillis(),
                MAX_IN_FLIGHT));
        List<SecondRow> seconds = new ArrayList<>();
        List<HistogramRow> histograms = new ArrayList<>();
        List<Event.Step> steps = new ArrayList<>();
        Event.Uncounted uncounted = new Event.Uncounted(trial.id(), 0, 0);
        WindowProbe probe = new WindowProbe(generator, services, broker, databases);
        long silentMostNs = TO_ANSWER.plus(boot.callLimit()).toNanos();
        long silentUntilNs = System.nanoTime() + silentMostNs;
        while (true) {
            Optional<Event> event = generator.event(Duration.ofMillis(250));
            for (ServiceProcess service : services) {
                service.mustBeAlive();
            }
            broker.ifPresent(Broker::mustBeAlive);
            if (event.isEmpty()) {
                if (System.nanoTime() > silentUntilNs) {
                    throw new LabException("the load generator was silent for " + silentMostNs / 1_000_000_000 + " s");
                }
                continue;
            }
            silentUntilNs = System.nanoTime() + silentMostNs;
            switch (event.get()) {
                case Event.Progress progress -> {
                    if (progress.phase() == Phase.WINDOW && progress.elapsedMs() == 0) {
                        probe.begin();
                        services.forEach(service -> service.resetHops(name));
                    } else if (progress.phase() == Phase.LAST_REPLIES
                            && !trial.load().isOpen()) {
                        probe.end();
                    }
                    probe.lookAtCompilers();
                    progressed.accept(progress);
                }
                case Event.Second s ->
                    seconds.add(new SecondRow(
                            s.trialId(),
                            s.second(),
                            s.replied(),
                            s.late(),
                            s.wrong(),
                            s.failed(),
                            s.notSent(),
                            s.responseTimes()));
                case Event.Step step -> steps.add(step);
                case Event.Uncounted u -> uncounted = u;
                case Event.Distribution d ->
                    histograms.add(new HistogramRow(
                            d.trialId(),
                            HistogramRow.Kind.valueOf(d.kind().toUpperCase(java.util.Locale.ROOT)),
                            "client",
                            d.histogram()));
                case Event.Finished finished -> {
                    if (trial.load().isOpen()) {
                        // Replies that come after the window count, and so does the processor time that they take.
                        probe.end();
                    }
                    if (finished.replied() < finished.due()) {
                        unanswered = Optional.of(trial.message());
                    }
                    for (ServiceProcess service : services) {
                        for (ServiceProcess.Hop hop : service.hops()) {
                            histograms.add(new HistogramRow(
                                    trial.id(), HistogramRow.Kind.HOP, hop.subject(), hop.histogram()));
                        }
                    }
                    figures.addAll(probe.figures(trial.id(), finished));
                    figures.addAll(StepFigures.of(trial, steps, finished));
                    Traffic traffic = ledger.load(
                            servedBefore, served(), Traffic.sent(steps, uncounted), Traffic.answered(steps, uncounted));
                    figures.addAll(traffic.figures(trial.id()));
                    List<String> reasons = new ArrayList<>(finished.voidReasons());
                    reasons.addAll(probe.complaints());
                    figures.add(new FigureRow(trial.id(), Metric.GENERATOR_CEILING, "generator", ceiling.perSecond()));
                    ceiling.complaint(finished).ifPresent(reasons::add);
                    reasons.addAll(new Impossible(ceiling, seconds, steps, finished, figures, traffic).reasons());
                    figures.add(new FigureRow(
                            trial.id(),
                            Metric.REHEARSAL_TIME,
                            FigureRow.SYSTEM,
                            rehearsal.spent().toNanos() / 1e9));
                    rehearsal
                            .reachedMs(trial)
                            .ifPresent(ms -> figures.add(
                                    new FigureRow(trial.id(), Metric.REHEARSED_MEDIAN, FigureRow.SYSTEM, ms)));
                    reasons.addAll(Warmth.reasons(trial, seconds, histograms, figures));
                    TrialRow row = new TrialRow(
                            trial, TrialRow.State.FINISHED, startedAt, Instant.now(), reasons, finished.firstFailure());
                    return new Measured(row, seconds, histograms, figures, finished);
                }
                case Event.Done d -> throw unexpected(d);
                case Event.Ready r -> throw unexpected(r);
                case Event.Counted c -> throw unexpected(c);
                case Event.Ceiling c -> throw unexpected(c);
                case Event.Failed f -> throw unexpected(f);
            }
        }
    }

    private Map<String, ServiceProcess.Served> served() throws InterruptedException {
        Map<String, ServiceProcess.Served> served = new HashMap<>();
        for (ServiceProcess service : services) {
            served.put(service.name(), service.served());
        }
        return served;
    }

    private static LabException unexpected(Event event) {
        return new LabException("the load generator said " + event + " in the middle of a trial");
    }

    /** Bytes of a message on the first hop, counted once a boot: they do not depend on the load. */
    private List<FigureRow> bytes(TrialSpec trial) throws InterruptedException {
        List<FigureRow> known = bytesByMessage.get(trial.message());
        if (known == null) {
            known = count(trial);
            bytesByMessage.put(trial.message(), known);
        }
        return known.stream()
                .map(f -> new FigureRow(trial.id(), f.metric(), f.subject(), f.value()))
                .toList();
    }

    private List<FigureRow> count(TrialSpec trial) throws InterruptedException {
        Location entry = entry();
        Optional<ByteRelay> before = entry instanceof Location.AtBroker
                ? broker.flatMap(Broker::relay)
                : Optional.of(ByteRelay.to(entry.host(), entry.port()));
        return before.isEmpty() ? List.of() : count(trial, entry, before.get());
    }

    private List<FigureRow> count(TrialSpec trial, Location entry, ByteRelay counter) throws InterruptedException {
        try (ByteRelay relay = counter) {
            Location relayed = switch (entry) {
                case Location.Socket s -> new Location.Socket("127.0.0.1", relay.port());
                case Location.AtBroker b -> new Location.AtBroker("127.0.0.1", relay.port(), b.service());
            };
            String message = trial.message().toString();
            Duration within = TO_ANSWER.multipliedBy(2);
            generator.ask(counting(relayed, message, MAX_COUNTED_CALLS / 2), Event.Counted.class, within);
            ByteRelay.Counts before = relay.settled();
            Event.Counted counted =
                    generator.ask(counting(relayed, message, MAX_COUNTED_CALLS), Event.Counted.class, within);
            ByteRelay.Counts bytes = relay.settled().since(before);
            generator.ask(new Command.Release(relayed.toString()), Event.Done.class, TO_ANSWER);
            int id = trial.id();
            return List.of(
                    new FigureRow(id, Metric.WIRE_OUT, FigureRow.SYSTEM, (double) bytes.out() / counted.calls()),
                    new FigureRow(id, Metric.WIRE_BACK, FigureRow.SYSTEM, (double) bytes.back() / counted.calls()),
                    new FigureRow(id, Metric.PAYLOAD_OUT, FigureRow.SYSTEM, counted.payloadOut()),
                    new FigureRow(id, Metric.PAYLOAD_BACK, FigureRow.SYSTEM, counted.payloadBack()));
        }
    }

    private static Command counting(Location relayed, String message, int mostCalls) {
        return new Command.Count(relayed.toString(), message, MIN_COUNTED_CALLS, mostCalls, COUNTING.toMillis());
    }

    /** What the services used between the edges of a window. */
    private static final class WindowProbe {
        private final Generator generator;
        private final List<ServiceProcess> services;
        private final Optional<Broker.WindowProbe> broker;
        private final Databases.WindowProbe databases;
        private final Map<String, ProcessorUse> cpuBefore = new LinkedHashMap<>();
        private final Map<String, ProcessorUse> cpu = new LinkedHashMap<>();
        private MachineMood moodBefore = MachineMood.now();
        private List<String> complaints = List.of();
        private long beganNs;
        private long lengthNs;
        private ProcessorUse generatorBefore = ProcessorUse.NONE;
        private ProcessorUse ofGenerator = ProcessorUse.NONE;

        WindowProbe(Generator generator, List<ServiceProcess> services, Optional<Broker> broker, Databases databases) {
            this.generator = generator;
            this.services = services;
            this.databases = databases.windowProbe();
            this.broker = broker.map(Broker::windowProbe);
        }

        void begin() {
            moodBefore = MachineMood.now();
            beganNs = System.nanoTime();
            services.forEach(s -> cpuBefore.put(s.name(), used(s)));
            generatorBefore = new ProcessorUse(0, generator.compilersNs());
            broker.ifPresent(Broker.WindowProbe::begin);
            databases.begin();
        }

        /**
         * A compiler's thread that begins and ends between two looks is never seen, and its time would be taken for the
         * service's own.
         */
        void lookAtCompilers() {
            services.forEach(s -> s.probe().compilersCpuNs());
            generator.compilersNs();
        }

        private static ProcessorUse used(ServiceProcess service) {
            return new ProcessorUse(
                    service.probe().cpuNs().orElse(0), service.probe().compilersCpuNs());
        }

        void end() {
            lengthNs = System.nanoTime() - beganNs;
            services.forEach(
                    s -> cpu.put(s.name(), used(s).since(cpuBefore.getOrDefault(s.name(), ProcessorUse.NONE))));
            ofGenerator = new ProcessorUse(0, generator.compilersNs()).since(generatorBefore);
            broker.ifPresent(Broker.WindowProbe::end);
            databases.end();
            complaints = MachineMood.now().complaintsSince(moodBefore);
        }

        List<String> complaints() {
            return complaints;
        }

        List<FigureRow> figures(int trialId, Event.Finished finished) {
            List<FigureRow> figures = new ArrayList<>();
            long answered = finished.replied() + finished.late();
            figures.addAll(ProcessorUse.figures(trialId, cpu, lengthNs, answered));
            for (ServiceProcess service : services) {
                resident(service)
                        .ifPresent(bytes -> figures.add(
                                new FigureRow(trialId, Metric.MEMORY_AFTER_LOAD, service.name(), bytes / 1e6)));
            }
            broker.ifPresent(b -> figures.addAll(b.figures(trialId, answered)));
            figures.addAll(databases.figures(trialId, answered));
            figures.add(new FigureRow(trialId, Metric.GENERATOR_CPU, "generator", finished.cpuShare() * 100));
            ofGenerator
                    .compilersNs()
                    .ifPresent(ns -> figures.add(new FigureRow(
                            trialId, Metric.GENERATOR_COMPILING, "generator", 100.0 * ns / Math.max(1, lengthNs))));
            figures.add(
                    new FigureRow(trialId, Metric.GENERATOR_LATENESS_P99, "generator", finished.latenessP99Ns() / 1e6));
            return figures;
        }
    }

    @Override
    public void close() {
        generator.close();
        // Callers end before callees, so that no service sees its neighbour go; all are told at once, so that it takes
        // the time of one.
        services.reversed().forEach(ServiceProcess::endInput);
        services.reversed().forEach(ServiceProcess::close);
        confinement.close();
    }
}
