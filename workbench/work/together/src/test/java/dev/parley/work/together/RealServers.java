package dev.parley.work.together;

import static org.awaitility.Awaitility.await;

import dev.parley.backend.Backend;
import dev.parley.backend.BackendUnavailable;
import dev.parley.backend.Backends;
import dev.parley.spi.Location;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/**
 * The databases and brokers of this module's tests, each a process of its own, started by the first class that needs
 * it. They end with this JVM; their logs stay in {@code target/servers-PID}.
 */
final class RealServers {
    private static final Map<String, Backend.Running> RUNNING = new LinkedHashMap<>();
    private static final Path FOLDER =
            Path.of("target", "servers-" + ProcessHandle.current().pid()).toAbsolutePath();

    /** The repository's root: this module lies three folders below it. */
    static final Path HOME = Path.of("../../..").toAbsolutePath().normalize();

    private RealServers() {}

    /** Aborts the tests, with the reason, where one of them cannot be had. */
    static synchronized void start(String... names) throws InterruptedException {
        Backends backends = new Backends(HOME);
        for (String name : names) {
            if (RUNNING.containsKey(name)) {
                continue;
            }
            try {
                RUNNING.put(name, backends.named(name).start(FOLDER.resolve(name), line -> {}));
            } catch (BackendUnavailable e) {
                Assumptions.abort(e.getMessage());
            }
        }
    }

    static synchronized Map<String, Location> locations() {
        Map<String, Location> locations = new LinkedHashMap<>();
        RUNNING.forEach((name, server) -> locations.put(name, new Location.Socket(server.host(), server.port())));
        return locations;
    }

    static Path folder() {
        return FOLDER;
    }

    static synchronized int port(String name) {
        return RUNNING.get(name).port();
    }

    /** {@code STOP}: the port stays taken and nothing answers, as on a machine that hangs; {@code CONT} wakes it. */
    static void signal(String name, String signal) throws Exception {
        for (ProcessHandle process : RUNNING.get(name).processes()) {
            new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid()))
                    .start()
                    .waitFor();
            if (signal.equals("STOP")) {
                // each thread stops when it is next looked at, and may have answered until then
                await().ignoreExceptions().until(() -> isStopped(process.pid()));
            }
        }
    }

    /** Whether none of its threads runs; yes where the system does not tell. Source: proc(5), state of a task. */
    private static boolean isStopped(long pid) throws IOException {
        Path threads = Path.of("/proc", Long.toString(pid), "task");
        if (!Files.isDirectory(threads)) {
            return true;
        }
        try (Stream<Path> all = Files.list(threads)) {
            for (Path thread : (Iterable<Path>) all::iterator) {
                String stat = Files.readString(thread.resolve("stat"));
                if (stat.charAt(stat.lastIndexOf(')') + 2) != 'T') {
                    return false;
                }
            }
        }
        return true;
    }
}
