package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.model.FigureRow;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.store.RunStore;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The bytes that a run tells, held against a packet capture of all that the first service sent and received from its start to the end of
 * its last trial, over all requests that it counted. What opens a connection is in the capture, and is small over so many.
 */
class WireBytesTest {
    static final boolean IS_LONG = Boolean.getBoolean("parley.long");
    private static final Pattern AT = Pattern.compile("\0at=127.0.0.1:(\\d+)");
    private static final Pattern REQUESTS = Pattern.compile("(?m)^parley_requests_total (\\d+)");

    @TempDir
    static Path folder;

    private static final Sampler SAMPLER = new Sampler();

    /** One run: an account of the generator's own speed, and of an empty service, is enough for all. */
    @BeforeAll
    static void measure() throws InterruptedException {
        TinyRun.needPackages();
        assumeTrue(
                Capture.isPossible(),
                "tcpdump is not installed or may not capture: bytes on the wire were not held against a capture");
        Lab.Ending ending = TinyRun.lab(SAMPLER).run(study(directTechnologies().toList()), folder, "a test");
        assertThat(ending.firstFailure()).isEmpty();
    }

    /** Calls of the others pass through a broker, and the first service's connection to it carries its own calls too. */
    static Stream<String> directTechnologies() {
        Catalog catalog = Catalog.read();
        // out of the box; with -Dparley.long=true variants too, and what has the wire of another: the server of
        // openfeign is that of rest-spring, and grpc-spring speaks as grpc does
        return (IS_LONG ? catalog.names() : catalog.select("all"))
                .stream()
                        .filter(name -> IS_LONG || !name.equals("openfeign") && !name.equals("grpc-spring"))
                        .filter(name -> !name.startsWith("rabbitmq") && !name.startsWith("kafka"))
                        .filter(name -> !catalog.unbuilt().contains(name));
    }

    @ParameterizedTest
    @MethodSource("directTechnologies")
    void bytesAgreeWithACapture(String technology) {
        Counted counted = SAMPLER.counted.get(technology);
        assertThat(counted).isNotNull();
        double out = (double) counted.toPort() / counted.requests();
        double back = (double) counted.fromPort() / counted.requests();
        assertThat(counted.requests()).isGreaterThan(50);
        try (RunStore store = RunStore.open(folder.resolve(Lab.STORE_FILE))) {
            assertThat(figure(store, counted, Metric.WIRE_OUT)).isCloseTo(out, within(out * 0.02));
            assertThat(figure(store, counted, Metric.WIRE_BACK)).isCloseTo(back, within(back * 0.02));
            assertThat(figure(store, counted, Metric.PAYLOAD_OUT)).isLessThan(figure(store, counted, Metric.WIRE_OUT));
        }
    }

    private static Study study(List<String> technologies) {
        return new Study(
                "bytes on the wire",
                technologies,
                List.of(Topology.parse("line:1")),
                "messages",
                List.of(MessageSpec.parse("text:1000")),
                List.of(new Load.Closed(1)),
                new Study.Effort(
                        "own", 1, Duration.ZERO, Duration.ofMillis(500), Duration.ofMillis(500), Duration.ofSeconds(1)),
                1,
                Duration.ofSeconds(1),
                7,
                Limits.NONE);
    }

    private static double figure(RunStore store, Counted counted, Metric metric) {
        return store.figures().stream()
                .filter(f -> f.trialId() == counted.trialId()
                        && f.metric() == metric
                        && f.subject().equals(FigureRow.SYSTEM))
                .mapToDouble(FigureRow::value)
                .findFirst()
                .orElseThrow();
    }

    /** What a boot's only trial sent and received, requests as the service counted them. */
    private record Counted(int trialId, long requests, long toPort, long fromPort) {}

    /** Captures from before a boot's first call, and reads both accounts when its trial has ended. */
    private static final class Sampler extends TinyRun.Listener {
        private final Map<String, Counted> counted = new HashMap<>();
        private CompletableFuture<Capture> capturing = new CompletableFuture<>();

        @Override
        public void booting(Plan.Boot boot, int bootIndex) {
            CompletableFuture<Capture> next = new CompletableFuture<>();
            capturing = next;
            Thread.ofPlatform().daemon().start(() -> {
                try {
                    List<Integer> port = await().atMost(Duration.ofMinutes(1))
                            .pollInterval(Duration.ofMillis(5))
                            .until(() -> m1().map(WireBytesTest::ports).orElse(List.of()), found -> !found.isEmpty());
                    next.complete(Capture.of(port.getFirst()));
                } catch (RuntimeException e) {
                    next.completeExceptionally(e);
                }
            });
        }

        @Override
        public void trialEnded(TrialRow row, Optional<Glance> glance) {
            try (Capture capture = capturing.join()) {
                m1().ifPresent(service -> {
                    long requests = requests(service);
                    long[] seen = {-1};
                    await().pollInterval(Duration.ofMillis(200)).until(() -> seen[0] == (seen[0] = capture.toPort()));
                    counted.put(
                            row.spec().technology(),
                            new Counted(row.spec().id(), requests, capture.toPort(), capture.fromPort()));
                });
            }
        }
    }

    private static Optional<ProcessHandle> m1() {
        return ProcessHandle.current()
                .children()
                .filter(child -> commandLine(child).contains("name=m1"))
                .findFirst();
    }

    private static int port(ProcessHandle service) {
        return ports(service).getFirst();
    }

    /** The one that its transport listens on; none where the process has just ended. */
    private static List<Integer> ports(ProcessHandle service) {
        return find(AT, commandLine(service)).stream().map(Integer::parseInt).toList();
    }

    private static long requests(ProcessHandle service) {
        // of the two that it listens on, the one that is not its transport's is for health
        int health =
                find(Pattern.compile("127.0.0.1\\]?:(\\d+) .*pid=" + service.pid() + ","), output("ss", "-tlnpH"))
                        .stream()
                        .map(Integer::parseInt)
                        .filter(port -> port != port(service))
                        .findFirst()
                        .orElseThrow();
        return Long.parseLong(find(REQUESTS, metrics(health)).getFirst());
    }

    private static String metrics(int port) {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                            HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/metrics"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString())
                    .body();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    private static List<String> find(Pattern pattern, String text) {
        List<String> found = new ArrayList<>();
        Matcher matcher = pattern.matcher(text);
        while (matcher.find()) {
            found.add(matcher.group(1));
        }
        return found;
    }

    private static String commandLine(ProcessHandle process) {
        try {
            return Files.readString(Path.of("/proc", Long.toString(process.pid()), "cmdline"));
        } catch (IOException gone) {
            return "";
        }
    }

    private static String output(String... command) {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
