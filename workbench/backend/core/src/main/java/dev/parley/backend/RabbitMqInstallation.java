package dev.parley.backend;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Where RabbitMQ's programs are, and what their environment must say. */
record RabbitMqInstallation(String version, String server, String epmd, Map<String, String> environment) {
    private static final List<String> PACKAGES = List.of(
            "rabbitmq-server",
            "erlang-base",
            "erlang-asn1",
            "erlang-crypto",
            "erlang-eldap",
            "erlang-ftp",
            "erlang-inets",
            "erlang-mnesia",
            "erlang-os-mon",
            "erlang-parsetools",
            "erlang-public-key",
            "erlang-runtime-tools",
            "erlang-snmp",
            "erlang-ssl",
            "erlang-syntax-tools",
            "erlang-tftp",
            "erlang-tools",
            "erlang-xmerl");
    private static final String HOW =
            "install rabbitmq-server and put it on the PATH, or name a running one with --backend rabbitmq=host:port";
    private static final Pattern HOME = Pattern.compile("rabbitmq_server-([\\d.]+)");

    /** The PATH first, then what an earlier run unpacked, then the package manager. */
    static RabbitMqInstallation find(Consumer<String> told) throws InterruptedException {
        Optional<String> installed = onPath("rabbitmq-server");
        if (installed.isPresent() && onPath("epmd").isPresent()) {
            return new RabbitMqInstallation(
                    installedVersion(), installed.get(), onPath("epmd").orElseThrow(), Map.of());
        }
        Path root = cache().resolve("rabbitmq");
        if (!Files.isDirectory(root)) {
            unpack(root, told);
        }
        return unpacked(root);
    }

    private static String installedVersion() throws InterruptedException {
        try (Stream<Path> homes = Files.list(Path.of("/usr/lib/rabbitmq/lib"))) {
            return homes.map(home -> HOME.matcher(home.getFileName().toString()))
                    .filter(Matcher::matches)
                    .map(m -> m.group(1))
                    .findFirst()
                    .orElse("of the PATH");
        } catch (IOException elsewhere) {
            return "of the PATH";
        }
    }

    private static RabbitMqInstallation unpacked(Path root) {
        try (Stream<Path> homes = Files.list(root.resolve("usr/lib/rabbitmq/lib"));
                Stream<Path> erts = Files.list(root.resolve("usr/lib/erlang"))) {
            Path home = homes.findFirst().orElseThrow();
            Path runtime = erts.filter(folder -> folder.getFileName().toString().startsWith("erts-"))
                    .findFirst()
                    .orElseThrow();
            Matcher version = HOME.matcher(home.getFileName().toString());
            return new RabbitMqInstallation(
                    version.matches() ? version.group(1) : "unknown",
                    home.resolve("sbin/rabbitmq-server").toString(),
                    runtime.resolve("bin/epmd").toString(),
                    Map.of(
                            "PATH",
                            root.resolve("usr/lib/erlang/bin") + ":" + System.getenv("PATH"),
                            "RABBITMQ_HOME",
                            home.toString()));
        } catch (IOException e) {
            throw new BackendUnavailable(
                    "rabbitmq: what was unpacked to " + root + " is not whole; remove it and try again", e);
        }
    }

    private static void unpack(Path root, Consumer<String> told) throws InterruptedException {
        if (onPath("apt-get").isEmpty() || onPath("dpkg-deb").isEmpty()) {
            throw new BackendUnavailable(
                    "rabbitmq: no rabbitmq-server on the PATH and no Debian packages here: " + HOW);
        }
        told.accept("fetching RabbitMQ from Debian's packages (35 MB, once)");
        try {
            Files.createDirectories(cache());
            Path work = Files.createTempDirectory(cache(), "rabbitmq-");
            List<String> download = new ArrayList<>(List.of("apt-get", "download", "-q"));
            download.addAll(PACKAGES);
            String said = run(work, download);
            if (!said.isEmpty()) {
                // a machine that never asked for its package lists
                run(work, List.of("apt-get", "update", "-q"));
                said = run(work, download);
            }
            if (!said.isEmpty()) {
                throw new BackendUnavailable("rabbitmq: its packages could not be fetched (" + said + "): " + HOW);
            }
            Path unpacked = Files.createDirectory(work.resolve("root"));
            try (Stream<Path> files = Files.list(work)) {
                for (Path file :
                        files.filter(f -> f.toString().endsWith(".deb")).toList()) {
                    String trouble = run(work, List.of("dpkg-deb", "-x", file.toString(), unpacked.toString()));
                    if (!trouble.isEmpty()) {
                        throw new BackendUnavailable(
                                "rabbitmq: " + file.getFileName() + " could not be unpacked: " + trouble);
                    }
                    Files.delete(file);
                }
            }
            relocate(unpacked, root);
            Files.setPosixFilePermissions(unpacked, PosixFilePermissions.fromString("rwxr-xr-x"));
            try {
                Files.move(unpacked, root, java.nio.file.StandardCopyOption.ATOMIC_MOVE);
            } catch (FileAlreadyExistsException | AtomicMoveNotSupportedException another) {
                // another run was quicker
            }
        } catch (IOException e) {
            throw new BackendUnavailable(
                    "rabbitmq: could not be unpacked to " + root + " (" + e.getMessage() + "): " + HOW, e);
        }
    }

    /** Erlang's start script and RabbitMQ's have the folder they were packaged for written into them. */
    private static void relocate(Path unpacked, Path root) throws IOException {
        String erlang = root.resolve("usr/lib/erlang").toString();
        try (Stream<Path> erts = Files.list(unpacked.resolve("usr/lib/erlang"))) {
            List<Path> scripts = new ArrayList<>(List.of(unpacked.resolve("usr/lib/erlang/bin/erl")));
            erts.filter(folder -> folder.getFileName().toString().startsWith("erts-"))
                    .forEach(folder -> scripts.add(folder.resolve("bin/erl")));
            for (Path script : scripts) {
                if (Files.isRegularFile(script)) {
                    String text = Files.readString(script).replace("ROOTDIR=/usr/lib/erlang", "ROOTDIR=" + erlang);
                    Files.writeString(script, text);
                }
            }
        }
    }

    /** What it said if it failed; empty if it went well. */
    private static String run(Path folder, List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectErrorStream(true)
                .start();
        process.getOutputStream().close();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() == 0) {
            return "";
        }
        return said.lines()
                .filter(line -> line.startsWith("E:"))
                .findFirst()
                .orElse(command.getFirst() + " ended with exit code " + process.exitValue());
    }

    private static Path cache() {
        String xdg = System.getenv("XDG_CACHE_HOME");
        Path base = xdg == null || xdg.isEmpty() ? Path.of(System.getProperty("user.home"), ".cache") : Path.of(xdg);
        return base.resolve("parley");
    }

    private static Optional<String> onPath(String program) {
        return Arrays.stream(System.getenv().getOrDefault("PATH", "").split(":"))
                .map(folder -> Path.of(folder, program))
                .filter(Files::isExecutable)
                .map(Path::toString)
                .findFirst();
    }
}
