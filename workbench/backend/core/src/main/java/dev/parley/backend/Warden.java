package dev.parley.backend;

import dev.parley.process.Child;
import dev.parley.process.ProcessException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A server that ends with this process, however that ends. Its program does not read its standard input, so it runs in
 * a process group of its own under a shell that does.
 *
 * @param name of the backend; its log is {@code name.log} in the folder
 */
record Warden(String name, Child child, Path folder) {
    private static final Duration BETWEEN_TRIES = Duration.ofMillis(100);

    /** The signal by which a server is told to end. */
    enum End {
        /** At once: what it holds is of no use afterwards. */
        KILL,
        /** With time to leave nothing over that outlives it, such as shared memory. */
        QUIT,
        TERM
    }

    /** One attempt to use the server. */
    @FunctionalInterface
    interface RoundTrip {
        /** @throws Exception not ready yet; the message is shown if it never is */
        void make() throws Exception;
    }

    /** @param folder the server's own, which exists */
    static Warden start(String name, Path folder, End end, List<String> command, Map<String, String> environment) {
        Path script = resource(name, "warden.sh", folder);
        List<String> line = new ArrayList<>(List.of("setsid", "-w", "sh", script.toString(), end.name(), "2"));
        line.addAll(command);
        return new Warden(name, Child.start(name, line, environment, folder.resolve(name + ".log")), folder);
    }

    /** A script of this package, copied to where a shell can read it. */
    static Path resource(String name, String script, Path folder) {
        Path copy = folder.resolve(script);
        try (InputStream text = Warden.class.getResourceAsStream(script)) {
            if (text == null) {
                throw new BackendUnavailable(name + ": " + script + " is missing from the jar: build again");
            }
            Files.copy(text, copy, StandardCopyOption.REPLACE_EXISTING);
            return copy;
        } catch (IOException e) {
            throw new BackendUnavailable(name + ": " + folder + " cannot be written: " + e.getMessage(), e);
        }
    }

    /**
     * Returns when a round trip has succeeded. If none does, or the server ends by itself, all processes are ended.
     */
    void await(RoundTrip trip, Duration within) throws InterruptedException {
        long untilNs = System.nanoTime() + within.toNanos();
        String last = "";
        try {
            while (System.nanoTime() < untilNs) {
                if (!child.isAlive()) {
                    throw new ProcessException(child.howItEnded());
                }
                try {
                    trip.make();
                    return;
                } catch (InterruptedException e) {
                    throw e;
                } catch (Exception notYet) {
                    last = String.valueOf(notYet.getMessage());
                    Thread.sleep(BETWEEN_TRIES);
                }
            }
            throw new ProcessException(
                    name + " was not ready within " + within.toSeconds() + " s (" + last + "); logs: " + folder);
        } catch (RuntimeException | InterruptedException e) {
            child.close();
            throw e;
        }
    }

    /** The server as a backend that is up. */
    Backend.Running running(int port, String version) {
        return new Up(child, port, version);
    }

    private record Up(Child child, int port, String version) implements Backend.Running {
        @Override
        public String host() {
            return "127.0.0.1";
        }

        @Override
        public List<ProcessHandle> processes() {
            try (Stream<ProcessHandle> below = child.handle().descendants()) {
                return below.toList();
            }
        }

        @Override
        public void close() {
            child.close();
        }
    }
}
