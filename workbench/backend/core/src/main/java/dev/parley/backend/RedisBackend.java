package dev.parley.backend;

import dev.parley.process.Ports;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Redis as a cache: of the PATH, or from Debian's packages unpacked below the user's cache folder. Nothing is saved to
 * disk, and it listens on loopback only; all other settings are its own defaults.
 */
final class RedisBackend implements Backend {
    private static final String HOW = "install redis-server, or name a running one with --backend redis=host:port";
    private static final int PROBE_MS = 2000;

    private record Installed(String server, Map<String, String> environment) {}

    @Override
    public String name() {
        return "redis";
    }

    @Override
    public Running start(Path folder, Consumer<String> told) throws InterruptedException {
        return start(folder, Ports.free(), told);
    }

    /** Starts an empty server on a given port, so that a server can come back. */
    Running start(Path folder, int port, Consumer<String> told) throws InterruptedException {
        Installed installed = find(told);
        Path own = Database.folder(name(), folder);
        told.accept("starting Redis");
        Warden warden = Warden.start(
                name(),
                own,
                Warden.End.KILL,
                List.of(
                        installed.server(),
                        "--port",
                        Integer.toString(port),
                        "--bind",
                        "127.0.0.1",
                        "--dir",
                        own.toString(),
                        "--save",
                        "",
                        "--appendonly",
                        "no"),
                installed.environment());
        String[] version = new String[1];
        warden.await(() -> version[0] = roundTrip(port), Database.TO_START);
        return warden.running(port, version[0]);
    }

    private static Installed find(Consumer<String> told) throws InterruptedException {
        Optional<String> server = DebianPackages.onPath("redis-server");
        if (server.isPresent()) {
            return new Installed(server.get(), Map.of());
        }
        Path root = new DebianPackages("redis", "2 MB", HOW).unpackedWithDependencies("redis-server", told);
        return new Installed(root.resolve("usr/bin/redis-server").toString(), DebianPackages.libraries(root));
    }

    /**
     * Writes a key, reads it back, and gives the server's version. Inline commands: redis.io, "Redis serialization
     * protocol".
     */
    private static String roundTrip(int port) throws IOException {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("127.0.0.1", port), PROBE_MS);
            socket.setSoTimeout(PROBE_MS);
            BufferedReader in =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            socket.getOutputStream()
                    .write("SET parley-probe 42\r\nGET parley-probe\r\nDEL parley-probe\r\nINFO server\r\nQUIT\r\n"
                            .getBytes(StandardCharsets.US_ASCII));
            List<String> said = in.lines().toList();
            if (said.size() < 3 || !said.get(0).equals("+OK") || !said.get(2).equals("42")) {
                throw new IOException("what was written could not be read: "
                        + said.stream().limit(3).toList());
            }
            return said.stream()
                    .filter(line -> line.startsWith("redis_version:"))
                    .map(line -> line.substring("redis_version:".length()))
                    .findFirst()
                    .orElse("unknown");
        }
    }
}
