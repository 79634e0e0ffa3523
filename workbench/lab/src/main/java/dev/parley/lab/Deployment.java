package dev.parley.lab;

import dev.parley.limits.Confinement;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import dev.parley.protocol.ServiceEvent.Served;
import dev.parley.spi.Location;
import dev.parley.spi.Work;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What is under way for one boot: its services and where each is called, the load generator in front of them, the
 * limits that they run under, the broker and the databases that they use. It takes no step of a trial itself. One
 * thread. Closing ends all processes of the boot.
 */
final class Deployment implements AutoCloseable {
    /** The load generator answers within this time, and longer where it is asked for something that takes longer. */
    static final Duration TO_ANSWER = Duration.ofSeconds(60);

    private final Plan.Boot boot;
    private final Path logs;
    private final Optional<Broker> broker;
    private final Databases databases;
    private final TrafficLedger ledger;
    private final Generator generator;
    private final Confinement confinement;
    /** The services that were started, callees first. */
    private final List<ServiceProcess> services = new ArrayList<>();

    private final Map<String, Location> locations = new HashMap<>();

    /**
     * Starts the load generator. Services have whole cores until the limits are tightened.
     *
     * @param broker that the boot's technology needs
     */
    Deployment(
            Plan.Boot boot,
            Installations installations,
            Path logs,
            long seed,
            Optional<Broker> broker,
            Databases databases)
            throws InterruptedException {
        this.boot = boot;
        this.logs = logs;
        this.broker = broker;
        this.databases = databases;
        this.ledger = new TrafficLedger(boot.topology(), Work.named(boot.work()), broker.isPresent());
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

    /** Where a process says what goes wrong. */
    Path log(String process) {
        return logs.resolve(boot.block() + "-" + boot.technology() + "-" + process + ".log");
    }

    Plan.Boot boot() {
        return boot;
    }

    Optional<Broker> broker() {
        return broker;
    }

    Databases databases() {
        return databases;
    }

    Generator generator() {
        return generator;
    }

    Confinement confinement() {
        return confinement;
    }

    TrafficLedger ledger() {
        return ledger;
    }

    /** A service is there from here on, and ends with the others. */
    void add(ServiceProcess service) {
        services.add(service);
    }

    /** The services that were started, callees first. */
    List<ServiceProcess> services() {
        return Collections.unmodifiableList(services);
    }

    /** A service is called there from here on. */
    void place(String service, Location at) {
        locations.put(service, at);
    }

    /** Where a service is called. */
    Location location(String service) {
        Location location = locations.get(service);
        if (location == null) {
            throw new LabException("the services are not booted");
        }
        return location;
    }

    /** Where clients call. */
    Location entry() {
        return location(boot.topology().entry().name());
    }

    /**
     * Asks a service until it gave so many right answers in a row. Requests that it took beyond these were given up,
     * and may be served later.
     */
    Event.Ready awaitReady(Topology.Node asked, MessageSpec message, int times) throws InterruptedException {
        Event.Ready ready = generator.ask(
                new Command.AwaitReady(
                        location(asked.name()).toString(),
                        asked.name(),
                        message.toString(),
                        times,
                        TO_ANSWER.toMillis()),
                Event.Ready.class,
                TO_ANSWER.plusSeconds(10));
        ledger.givenUp(asked, ready.attempts() - times);
        return ready;
    }

    /** What each service's work was asked so far, by the service's name. */
    Map<String, Served> served() throws InterruptedException {
        Map<String, Served> served = new HashMap<>();
        for (ServiceProcess service : services) {
            served.put(service.name(), service.served());
        }
        return served;
    }

    /** Says how a service or the broker ended, where one of them has. */
    void mustBeAlive() throws InterruptedException {
        for (ServiceProcess service : services) {
            service.mustBeAlive();
        }
        broker.ifPresent(Broker::mustBeAlive);
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
