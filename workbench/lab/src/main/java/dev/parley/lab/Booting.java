package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.model.Topology;
import dev.parley.process.Child;
import dev.parley.process.Ports;
import dev.parley.process.ProcessException;
import dev.parley.protocol.Event;
import dev.parley.spi.Location;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntSupplier;

/** Starts the services of a boot from the last to the first, each timed from outside. One thread. */
final class Booting {
    private static final int PORT_ATTEMPTS = 5;

    private final Deployment deployment;
    private final Plan.Boot boot;
    private final Installations installations;
    private final Observation observation;
    private final LabListener listener;
    private final IntSupplier ports;

    /** @param ports where services listen, one at a time */
    Booting(
            Deployment deployment,
            Installations installations,
            Observation observation,
            LabListener listener,
            IntSupplier ports) {
        this.deployment = deployment;
        this.boot = deployment.boot();
        this.installations = installations;
        this.observation = observation;
        this.listener = listener;
        this.ports = ports;
    }

    /** The figures of the boot, once every service has answered rightly. */
    List<FigureRow> boot() throws InterruptedException {
        deployment.broker().ifPresent(Broker::mustBeAlive);
        List<FigureRow> figures = new ArrayList<>();
        int firstTrial = boot.firstTrial();
        deployment.databases().prepare(boot.topology());
        for (Topology.Node node : boot.topology().calleesFirst()) {
            Installation installation = installations.service(boot.technology(), boot.topology(), node, boot.work());
            ServiceProcess service = listening(node, installation);
            Optional<Event.Ready> ready = readiness(node);
            double bootMs = (System.nanoTime() - service.startedNs()) / 1e6;
            figures.add(new FigureRow(firstTrial, Metric.BOOT_TIME, node.name(), bootMs));
            figures.add(new FigureRow(firstTrial, Metric.INSTALLED_SIZE, node.name(), installation.bytes() / 1e6));
            service.probe()
                    .residentBytes()
                    .ifPresent(bytes ->
                            figures.add(new FigureRow(firstTrial, Metric.MEMORY_AFTER_BOOT, node.name(), bytes / 1e6)));
            if (node.equals(boot.topology().entry())) {
                ready.ifPresent(first -> figures.add(
                        new FigureRow(firstTrial, Metric.FIRST_CALL, FigureRow.SYSTEM, first.firstCallNs() / 1e6)));
            }
        }
        return figures;
    }

    /** The technology that a service is called over. */
    private String served(Topology.Node node) {
        return node.equals(boot.topology().entry())
                ? Installations.entryTechnology(boot.technology(), boot.topology())
                : boot.technology();
    }

    private ServiceProcess listening(Topology.Node node, Installation installation) throws InterruptedException {
        Optional<Broker> broker = deployment.broker();
        if (broker.isEmpty() || !served(node).equals(boot.technology())) {
            return listeningOnPort(node, installation);
        }
        deployment.place(node.name(), broker.get().location(boot, node.name()));
        ServiceProcess service = start(node, installation);
        deployment.add(service);
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
            deployment.place(
                    node.name(), new Location.Socket(deployment.confinement().address(node.name()), port));
            ServiceProcess service = start(node, installation);
            try {
                service.awaitListening();
                deployment.add(service);
                // From here on this is where the service is called, no longer where it listens.
                deployment
                        .confinement()
                        .relayTo(node.name(), port)
                        .ifPresent(relay ->
                                deployment.place(node.name(), new Location.Socket(relay.host(), relay.port())));
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
                "at=" + deployment.location(node.name()),
                "timeout-ms=" + boot.callLimit().toMillis(),
                "health=0"));
        arguments.addAll(deployment.databases().arguments(node.name()));
        arguments.addAll(observation.arguments(boot, node.name()));
        for (String callee : node.calls()) {
            arguments.add("neighbour." + callee + "=" + deployment.location(callee));
        }
        return new ServiceProcess(Child.java(
                node.name(),
                deployment.confinement().prefix(node.name()),
                ServiceJvm.flags(boot.limits().of(node.name())),
                observation.classPath(installation),
                ServiceJvm.SERVICE,
                arguments,
                deployment.log(node.name())));
    }

    /**
     * Asks one service until it answers rightly. Empty behind a REST front, where the generator cannot speak to it: the
     * front's first right reply proves them all.
     */
    private Optional<Event.Ready> readiness(Topology.Node node) throws InterruptedException {
        boolean isEntry = node.equals(boot.topology().entry());
        if (boot.topology().restFront() && !isEntry) {
            return Optional.empty();
        }
        return Optional.of(deployment.awaitReady(node, boot.trials().getFirst().message(), 1));
    }
}
