package dev.parley.backend;

import dev.parley.process.Child;
import dev.parley.process.Packaged;
import dev.parley.process.ProcessException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/** Kafka in KRaft mode, one JVM, from Maven artifacts. */
final class KafkaBackend implements Backend {
    private static final Duration TO_START = Duration.ofSeconds(90);
    private static final List<String> FLAGS = List.of("-Xms128m", "-Xmx256m", "--sun-misc-unsafe-memory-access=allow");

    private final Path home;

    KafkaBackend(Path home) {
        this.home = home;
    }

    @Override
    public String name() {
        return "kafka";
    }

    @Override
    public Running start(Path folder, Consumer<String> told) throws InterruptedException {
        int[] ports = FreePorts.in(folder, 4);
        try {
            Files.createDirectories(folder);
        } catch (IOException e) {
            throw new BackendUnavailable("kafka: " + folder + " cannot be written: " + e.getMessage(), e);
        }
        String classPath = classPath();
        told.accept("starting Kafka");
        Child child = Child.java(
                "kafka",
                FLAGS,
                classPath,
                "dev.parley.backend.kafka.KafkaServerMain",
                List.of(
                        folder.toAbsolutePath().toString(),
                        Integer.toString(ports[0]),
                        Integer.toString(ports[1]),
                        Integer.toString(ports[2]),
                        Integer.toString(ports[3])),
                folder.resolve("kafka.log"));
        try {
            String line = child.line(TO_START)
                    .orElseThrow(() -> new ProcessException("kafka was not ready within " + TO_START.toSeconds()
                            + " s; log: " + folder.resolve("kafka.log")));
            return new Broker(child, ports[0], new RelayPorts(ports[3], ports[2]), line.replace("ready ", ""));
        } catch (RuntimeException | InterruptedException e) {
            child.close();
            throw e;
        }
    }

    private record Broker(Child child, int port, RelayPorts way, String version) implements Running {
        @Override
        public String host() {
            return "127.0.0.1";
        }

        @Override
        public Optional<RelayPorts> relay() {
            return Optional.of(way);
        }

        @Override
        public List<ProcessHandle> processes() {
            return List.of(child.handle());
        }

        @Override
        public void close() {
            child.close();
        }
    }

    /**
     * A broker that runs already. A process of ours proves it by a round trip, and deletes the topics and groups of the
     * run when it ends.
     *
     * @param prefix that the names of the run's topics and groups begin with
     */
    Running external(String host, int port, String prefix, Path folder) throws InterruptedException {
        String broker = host + ":" + port;
        Child child = Child.java(
                "kafka-guest",
                FLAGS,
                classPath(),
                "dev.parley.backend.kafka.KafkaGuestMain",
                List.of(broker, prefix),
                folder.resolve("kafka-guest.log"));
        try {
            String line = child.line(TO_START).orElse("no answer within " + TO_START.toSeconds() + " s");
            if (!line.equals("ready")) {
                throw new BackendUnavailable("no Kafka broker that can be used: " + line);
            }
            return new External(child, host, port);
        } catch (RuntimeException | InterruptedException e) {
            child.close();
            throw e;
        }
    }

    /**
     * A broker that somebody else runs. No relay can stand before it, since clients connect to whatever address it
     * advertises.
     */
    private record External(Child child, String host, int port) implements Running {
        @Override
        public String version() {
            return "as it runs at " + host + ":" + port;
        }

        @Override
        public Optional<RelayPorts> relay() {
            return Optional.empty();
        }

        @Override
        public List<ProcessHandle> processes() {
            return List.of();
        }

        @Override
        public boolean isAlive() {
            return true;
        }

        @Override
        public void close() {
            child.close();
        }
    }

    private String classPath() {
        try {
            return Packaged.classPath(home, List.of("backend/kafka-server"));
        } catch (ProcessException e) {
            throw new BackendUnavailable("kafka: " + e.getMessage(), e);
        }
    }
}
