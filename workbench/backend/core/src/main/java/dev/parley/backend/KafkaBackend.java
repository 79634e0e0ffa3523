package dev.parley.backend;

import dev.parley.process.Child;
import dev.parley.process.ProcessException;
import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
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
        int[] ports = FreePorts.in(folder, 2);
        return start(folder, ports[0], ports[1], told);
    }

    /** On given ports, with what is in the folder: a broker that comes back. */
    Running start(Path folder, int port, int controllerPort, Consumer<String> told) throws InterruptedException {
        try {
            Files.createDirectories(folder);
        } catch (IOException e) {
            throw new BackendUnavailable("kafka: " + folder + " cannot be written: " + e.getMessage(), e);
        }
        told.accept("starting Kafka");
        Child child = Child.java(
                "kafka",
                FLAGS,
                classPath(),
                "dev.parley.backend.kafka.KafkaServerMain",
                List.of(folder.toAbsolutePath().toString(), Integer.toString(port), Integer.toString(controllerPort)),
                folder.resolve("kafka.log"));
        try {
            String line = child.line(TO_START)
                    .orElseThrow(() -> new ProcessException("kafka was not ready within " + TO_START.toSeconds()
                            + " s; log: " + folder.resolve("kafka.log")));
            return new Broker(child, port, line.replace("ready ", ""));
        } catch (RuntimeException | InterruptedException e) {
            child.close();
            throw e;
        }
    }

    private record Broker(Child child, int port, String version) implements Running {
        @Override
        public String host() {
            return "127.0.0.1";
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

    private String classPath() {
        Path target = home.resolve("workbench/backend/kafka-server/target");
        try (DirectoryStream<Path> jars = Files.newDirectoryStream(target, "parley-backend-kafka-server-*.jar")) {
            String libraries =
                    Files.readString(target.resolve("runtime.classpath")).strip();
            for (Path jar : jars) {
                return jar + File.pathSeparator + libraries;
            }
            throw new BackendUnavailable("kafka: " + target + " holds no jar: run ./parley, or mvn package");
        } catch (IOException e) {
            throw new BackendUnavailable("kafka: " + target + " is not built: run ./parley, or mvn package", e);
        }
    }
}
