package dev.parley.backend;

import dev.parley.process.Ports;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Prometheus: of the PATH, or from Debian's package unpacked below the user's cache folder. No work uses it: it watches
 * services. It reads the {@code prometheus.yml} of its folder, and listens on loopback only.
 */
final class PrometheusBackend implements Backend {
    private static final String HOW = "install prometheus";
    private static final Duration TO_ANSWER = Duration.ofSeconds(2);
    private static final Pattern VERSION = Pattern.compile("\"version\":\"([^\"]+)\"");

    @Override
    public String name() {
        return "prometheus";
    }

    @Override
    public Running start(Path folder, Consumer<String> told) throws InterruptedException {
        Path own = Database.folder(name(), folder);
        Path config = own.resolve("prometheus.yml");
        if (!Files.isRegularFile(config)) {
            throw new BackendUnavailable("prometheus: " + config + " is missing (expected: what it is to watch)");
        }
        String program = DebianPackages.onPath("prometheus").orElse("");
        if (program.isEmpty()) {
            // one program without libraries; what else the package asks for is its web console
            program = new DebianPackages(name(), "19 MB", HOW)
                    .unpacked(List.of("prometheus"), DebianPackages.Relocation.none(), told)
                    .resolve("usr/bin/prometheus")
                    .toString();
        }
        int port = Ports.free();
        told.accept("starting Prometheus");
        Warden warden = Warden.start(
                name(),
                own,
                Warden.End.KILL,
                List.of(
                        program,
                        "--config.file=" + config,
                        "--storage.tsdb.path=" + own.resolve("data"),
                        "--web.listen-address=127.0.0.1:" + port,
                        "--log.level=warn"),
                java.util.Map.of());
        String[] version = new String[1];
        warden.await(() -> version[0] = roundTrip(port), Database.TO_START);
        return warden.running(port, version[0]);
    }

    /** Has Prometheus compute something, and returns its version. */
    private static String roundTrip(int port) throws IOException, InterruptedException {
        try (HttpClient http = HttpClient.newHttpClient()) {
            String answer = get(http, port, "/api/v1/query?query=vector(42)");
            if (!answer.contains("\"42\"")) {
                throw new IOException("it computed " + answer + " (expected: 42)");
            }
            Matcher version = VERSION.matcher(get(http, port, "/api/v1/status/buildinfo"));
            return version.find() ? version.group(1) : "unknown";
        }
    }

    private static String get(HttpClient http, int port, String path) throws IOException, InterruptedException {
        HttpResponse<String> answer = http.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .timeout(TO_ANSWER)
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new IOException("status " + answer.statusCode());
        }
        return answer.body();
    }
}
