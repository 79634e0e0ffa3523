package dev.parley.lab;

import dev.parley.backend.Backend;
import dev.parley.backend.BackendUnavailable;
import dev.parley.backend.Backends;
import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.model.Run;
import dev.parley.model.Topology;
import dev.parley.process.Children;
import dev.parley.process.ProcessException;
import dev.parley.spi.CallException;
import dev.parley.spi.Location;
import dev.parley.spi.Work;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The databases that a run's work needs, each started once and proved by a round trip: one of a kind for all services,
 * or one for each service where the work says so. One thread. Closing ends them; their data go, and their logs stay
 * only where one of them failed.
 */
final class Databases implements AutoCloseable {
    private final Work work;
    private final Path folder;
    private final LabListener listener;
    /** Databases by name: {@code mysql}, or {@code flat.mysql} where each service has its own. */
    private final Map<String, Backend.Running> running = new LinkedHashMap<>();
    /** Locations by service, then by backend. */
    private final Map<String, Map<String, Location>> locations = new LinkedHashMap<>();
    /** Locations that were given, by name, of databases that run already. */
    private final Map<String, Location> others = new LinkedHashMap<>();

    private Databases(Work work, Path folder, LabListener listener) {
        this.work = work;
        this.folder = folder;
        this.listener = listener;
    }

    /**
     * Starts what the work needs; nothing for a work that keeps nothing.
     *
     * @param topologies between whose services the work will run
     * @param external databases that run already, by name; the work puts its tables into them, and services share them
     * @throws LabException if one of them cannot be had
     */
    static Databases start(
            Work work,
            List<Topology> topologies,
            Path home,
            Map<String, Location.Socket> external,
            Path logs,
            LabListener listener)
            throws InterruptedException {
        return start(work, topologies, new Backends(home)::named, external, logs, listener);
    }

    /** @param backends by name */
    static Databases start(
            Work work,
            List<Topology> topologies,
            Function<String, Backend> backends,
            Map<String, Location.Socket> external,
            Path logs,
            LabListener listener)
            throws InterruptedException {
        Databases databases = new Databases(work, logs.resolve("backends"), listener);
        try {
            for (String name : work.backends()) {
                databases.add(backends.apply(name), services(topologies), external.get(name));
            }
            return databases;
        } catch (RuntimeException | InterruptedException e) {
            databases.close();
            throw e;
        }
    }

    /** The names of all that are in one topology or more. */
    private static Set<String> services(List<Topology> topologies) {
        Set<String> services = new LinkedHashSet<>();
        topologies.forEach(topology -> topology.nodes().forEach(node -> services.add(node.name())));
        return services;
    }

    private void add(Backend backend, Set<String> services, Location.@Nullable Socket external)
            throws InterruptedException {
        String name = backend.name();
        if (external == null && work.hasBackendsEach()) {
            for (String service : services) {
                put(service, name, started(backend, service + "." + name));
            }
            return;
        }
        if (external != null) {
            others.put(name, external);
        }
        Location shared = external != null ? external : started(backend, name);
        services.forEach(service -> put(service, name, shared));
    }

    private void put(String service, String backend, Location at) {
        locations.computeIfAbsent(service, _ -> new LinkedHashMap<>()).put(backend, at);
    }

    private Location started(Backend backend, String name) throws InterruptedException {
        Path own = folder.resolve(name);
        // A lab that was killed has left it, perhaps with data that were not prepared to their end.
        delete(own);
        try {
            Backend.Running up = backend.start(own, listener::note);
            running.put(name, up);
            return new Location.Socket(up.host(), up.port());
        } catch (BackendUnavailable | ProcessException e) {
            if (Children.isShuttingDown(Duration.ofMillis(300))) {
                throw (InterruptedException) new InterruptedException("told to end").initCause(e);
            }
            throw new LabException("the work " + work.name() + " needs " + backend.name() + ": " + e.getMessage(), e);
        }
    }

    /** Puts the data in order for services that are about to start. */
    void prepare(Topology topology) {
        if (locations.isEmpty()) {
            return;
        }
        try {
            work.prepare(topology, node -> locations.getOrDefault(node.name(), Map.of()));
        } catch (CallException e) {
            throw new LabException("the data of " + work.name() + " could not be put in order: " + e.getMessage(), e);
        }
    }

    /** What a service is told. */
    List<String> arguments(String service) {
        List<String> arguments = new ArrayList<>();
        locations.getOrDefault(service, Map.of()).forEach((name, at) -> arguments.add("backend." + name + "=" + at));
        return arguments;
    }

    /** What is known of each, for the run's record. */
    Map<String, String> facts() {
        Map<String, String> facts = new LinkedHashMap<>();
        running.forEach((name, up) -> facts.put(Run.DATABASE + name, up.version() + ", one process on this machine"));
        others.forEach((name, at) -> facts.put(Run.DATABASE + name, "as it runs at " + at + ", not ours"));
        return facts;
    }

    /** What they use between the edges of a window: each by its name, and all together. Says nothing of those that are not ours. */
    static final class WindowProbe {
        private final Map<String, ServerProbe> servers;

        private WindowProbe(Map<String, ServerProbe> servers) {
            this.servers = servers;
        }

        void begin() {
            servers.values().forEach(ServerProbe::begin);
        }

        void end() {
            servers.values().forEach(ServerProbe::end);
        }

        List<FigureRow> figures(int trialId, long answered) {
            List<FigureRow> figures = new ArrayList<>();
            double usedMs = 0;
            double residentMb = 0;
            for (Map.Entry<String, ServerProbe> server : servers.entrySet()) {
                double own = server.getValue().proportionalMb();
                usedMs += server.getValue().usedMs();
                residentMb += own;
                figures.add(new FigureRow(trialId, Metric.DATABASE_MEMORY, server.getKey(), own));
                if (answered > 0) {
                    figures.add(new FigureRow(
                            trialId,
                            Metric.DATABASE_CPU_PER_REQUEST,
                            server.getKey(),
                            server.getValue().usedMs() / answered));
                }
            }
            if (!servers.isEmpty()) {
                figures.add(new FigureRow(trialId, Metric.DATABASE_MEMORY, FigureRow.SYSTEM, residentMb));
                if (answered > 0) {
                    figures.add(new FigureRow(
                            trialId, Metric.DATABASE_CPU_PER_REQUEST, FigureRow.SYSTEM, usedMs / answered));
                }
            }
            return figures;
        }
    }

    WindowProbe windowProbe() {
        Map<String, ServerProbe> servers = new LinkedHashMap<>();
        running.forEach((name, server) -> servers.put(name, ServerProbe.of(server)));
        return new WindowProbe(servers);
    }

    @Override
    public void close() {
        boolean failed = !Children.isShuttingDown()
                && running.values().stream()
                        .anyMatch(up -> up.processes().stream().noneMatch(ProcessHandle::isAlive));
        running.values().forEach(Backend.Running::close);
        running.keySet().forEach(name -> {
            Path own = folder.resolve(name);
            delete(failed ? own.resolve("data") : own);
        });
        if (!failed && !running.isEmpty()) {
            folder.toFile().delete();
        }
    }

    private void delete(Path below) {
        try {
            Folders.delete(below);
        } catch (IOException e) {
            listener.note("data of a database stay in " + below + ": " + e.getMessage());
        }
    }
}
