package dev.parley.lab;

import dev.parley.backend.BackendUnavailable;
import dev.parley.backend.Backends;
import dev.parley.model.Run;
import dev.parley.model.Technology;
import dev.parley.process.Children;
import dev.parley.process.ProcessException;
import dev.parley.spi.Location;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * The brokers that a run's technologies need, each started once and proved by a message's round trip. One thread. Closing ends them; their
 * data go, and their logs stay only where something failed.
 */
final class Brokers implements AutoCloseable {
    private final Backends backends;
    private final Map<String, Location.Socket> external;
    private final Path folder;
    private final LabListener listener;
    private final String prefix =
            "parley-%08x-".formatted(ThreadLocalRandom.current().nextInt());
    private final Map<String, Broker> running = new LinkedHashMap<>();
    private final Map<String, String> brokerOf = new LinkedHashMap<>();
    private final Map<String, String> missing = new LinkedHashMap<>();

    /** @param external brokers that run already, by name */
    Brokers(Path home, Map<String, Location.Socket> external, Path logs, LabListener listener) {
        this.backends = new Backends(home);
        this.external = external;
        this.folder = logs.resolve("backends");
        this.listener = listener;
    }

    /**
     * Starts what is needed, and tells which technologies can be measured. One whose broker cannot be had is left out with a line that says
     * why.
     *
     * @throws LabException if a broker that was named cannot be used, or no technology is left
     */
    List<Technology> start(List<Technology> technologies) throws InterruptedException {
        for (Technology technology : technologies) {
            String name = technology.broker().orElse("");
            brokerOf.put(technology.name(), name);
            if (!name.isEmpty() && !running.containsKey(name) && !missing.containsKey(name)) {
                start(name);
            }
        }
        List<Technology> left = technologies.stream()
                .filter(t -> t.broker().map(running::containsKey).orElse(true))
                .toList();
        for (Technology technology : technologies) {
            if (!left.contains(technology)) {
                listener.note(technology.name() + " is left out: "
                        + missing.get(technology.broker().orElseThrow()));
            }
        }
        if (left.isEmpty()) {
            throw new LabException("no technology is left to measure: " + String.join("; ", missing.values()));
        }
        return left;
    }

    private void start(String name) throws InterruptedException {
        Path own = folder.resolve(name);
        Location.Socket at = external.get(name);
        // what a lab that was killed has left
        delete(own);
        try {
            Files.createDirectories(own);
            Broker broker = new Broker(
                    name,
                    at == null
                            ? backends.named(name).start(own, listener::note)
                            : backends.external(name, at.host(), at.port(), prefix, own),
                    prefix);
            running.put(name, broker);
        } catch (BackendUnavailable | ProcessException e) {
            if (Children.isShuttingDown(Duration.ofMillis(300))) {
                throw (InterruptedException) new InterruptedException("told to end").initCause(e);
            }
            if (at != null) {
                throw new LabException("--backend " + name + "=" + at + ": " + e.getMessage(), e);
            }
            String why = String.valueOf(e.getMessage());
            missing.put(
                    name,
                    why.contains("--backend")
                            ? why
                            : why + "; or name one that runs already with --backend " + name + "=HOST:PORT");
        } catch (IOException e) {
            throw new UncheckedIOException("logs of " + name, e);
        }
    }

    /** The broker of a technology; empty for one that needs none. */
    Optional<Broker> of(String technology) {
        return Optional.ofNullable(brokerOf.get(technology)).map(running::get);
    }

    /** What is known of each, for the run's record. */
    Map<String, String> facts() {
        Map<String, String> facts = new LinkedHashMap<>();
        running.forEach((name, broker) -> facts.put(
                Run.BROKER + name,
                broker.running().version()
                        + (external.containsKey(name) ? ", not ours" : ", one process on this machine")));
        return facts;
    }

    @Override
    public void close() {
        running.forEach((name, broker) -> {
            boolean ended = !broker.running().isAlive() && !Children.isShuttingDown();
            List<ProcessHandle> processes = broker.running().processes();
            broker.running().close();
            processes.forEach(Brokers::awaitEnd);
            delete(ended ? folder.resolve(name).resolve("data") : folder.resolve(name));
        });
        String[] kept = folder.toFile().list();
        if (kept != null && kept.length == 0) {
            delete(folder);
        }
    }

    /** What is being killed may still write a file. */
    private static void awaitEnd(ProcessHandle process) {
        process.onExit().completeOnTimeout(process, 3, TimeUnit.SECONDS).join();
    }

    private void delete(Path below) {
        try {
            Folders.delete(below);
        } catch (IOException e) {
            listener.note("data of a broker stay in " + below + ": " + e.getMessage());
        }
    }
}
