package dev.parley.backend;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
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
        Optional<String> installed = DebianPackages.onPath("rabbitmq-server");
        Optional<String> epmd = DebianPackages.onPath("epmd");
        if (installed.isPresent() && epmd.isPresent()) {
            return new RabbitMqInstallation(installedVersion(), installed.get(), epmd.get(), Map.of());
        }
        return unpacked(
                new DebianPackages("rabbitmq", "35 MB", HOW).unpacked(PACKAGES, RabbitMqInstallation::relocate, told));
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
}
