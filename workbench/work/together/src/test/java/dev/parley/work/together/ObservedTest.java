package dev.parley.work.together;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.awaitility.Awaitility.await;

import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.process.Child;
import dev.parley.protocol.Protocol;
import dev.parley.protocol.ServiceCommand;
import dev.parley.protocol.ServiceEvent;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import dev.parley.work.lecturers.LecturersWork;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Two services as processes of their own, watched by a real Prometheus with the shipped configuration, and their log
 * lines read by the rules of the shipped pipeline: all show what the service itself measured, which is what the store
 * keeps.
 */
@Timeout(120)
class ObservedTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final Topology LINE = Topology.parse("line:2");
    private static final JsonMapper JSON = JsonMapper.shared();

    private final List<AutoCloseable> open = new ArrayList<>();
    private final HttpClient http = HttpClient.newHttpClient();
    private final Path folder = RealServers.folder().resolve("prometheus");
    private final Path calls = folder.resolve("calls.ndjson");

    private static Path shipped(String file) {
        Path root = Path.of("").toAbsolutePath();
        while (!Files.isDirectory(root.resolve("docs/observing"))) {
            root = root.getParent();
        }
        return root.resolve("docs/observing").resolve(file);
    }

    @AfterEach
    void end() throws Exception {
        for (AutoCloseable one : open.reversed()) {
            one.close();
        }
        http.close();
    }

    private Child service(String name, Location at, String... more) throws Exception {
        List<String> arguments = new ArrayList<>(
                List.of("name=" + name, "topology=line:2", "work=lecturers", "transport=rpcx", "at=" + at));
        RealServers.locations().forEach((backend, place) -> arguments.add("backend." + backend + "=" + place));
        arguments.addAll(List.of(more));
        Child child = Child.java(
                name,
                List.of(
                        "-XX:TieredStopAtLevel=1",
                        "-XX:+UseSerialGC",
                        "-Xmx256m",
                        "--enable-native-access=ALL-UNNAMED"),
                System.getProperty("java.class.path"),
                "dev.parley.service.ServiceMain",
                arguments,
                folder.resolve(name + ".log"));
        open.add(child);
        child.tell(Protocol.greeting());
        assertThat(child.line(TIMEOUT)).contains(Protocol.greeting());
        return child;
    }

    private static ServiceEvent said(Child service) throws InterruptedException {
        return Protocol.read(service.line(TIMEOUT).orElseThrow(), ServiceEvent.class);
    }

    private static String health(Child service) throws InterruptedException {
        return "127.0.0.1:" + ((ServiceEvent.Listening) said(service)).healthPort();
    }

    /** What Prometheus answers; empty for no or not a number. */
    private OptionalDouble query(String expression) throws Exception {
        HttpResponse<String> answer = http.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + RealServers.port("prometheus")
                                + "/api/v1/query?query=" + URLEncoder.encode(expression, StandardCharsets.UTF_8)))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        assertThat(answer.statusCode()).as(expression + ": " + answer.body()).isEqualTo(200);
        JsonNode first = JSON.readTree(answer.body()).at("/data/result/0/value/1");
        return first.isMissingNode() || first.asString().equals("NaN")
                ? OptionalDouble.empty()
                : OptionalDouble.of(Double.parseDouble(first.asString()));
    }

    @Test
    void dashboardAndLogPipelineAgreeWithWhatTheServiceMeasured() throws Exception {
        RealServers.start("mysql", "redis");
        LecturersWork work = new LecturersWork();
        work.prepare(LINE, node -> RealServers.locations());
        Files.createDirectories(folder);
        Location.Socket m1At = (Location.Socket) Services.freeLocation();
        Location m2At = Services.freeLocation();
        Child m2 = service("m2", m2At);
        Child m1 = service("m1", m1At, "neighbour.m2=" + m2At, "log=" + calls);
        Files.copy(shipped("prometheus.yml"), folder.resolve("prometheus.yml"));
        Files.write(
                folder.resolve("targets.json"),
                JSON.writeValueAsBytes(List.of(
                        Map.of("targets", List.of(health(m2)), "labels", Map.of("service", "m2", "technology", "rpcx")),
                        Map.of(
                                "targets",
                                List.of(health(m1)),
                                "labels",
                                Map.of("service", "m1", "technology", "rpcx")))));
        RealServers.start("prometheus");
        // seen before the first call, so that a rate is of all calls
        await().atMost(TIMEOUT)
                .until(() -> query("parley_hop_seconds_count").isPresent()
                        && query("process_cpu_seconds_total{service=\"m2\"}").isPresent());
        m1.tell(Protocol.line(new ServiceCommand.ResetHops("7")));
        load(work, m1At);
        Histogram measured = hop(m1);
        double count = measured.getTotalCount();
        await().atMost(TIMEOUT).until(() -> query("parley_hop_seconds_count").orElse(0) == count);

        double meanMs = measured.getMean() / 1e6;
        List<String> silent = new ArrayList<>();
        for (JsonNode panel : JSON.readTree(Files.readString(shipped("grafana-dashboard.json")))
                .get("panels")) {
            for (JsonNode target : panel.get("targets")) {
                String expression = target.get("expr").asString().replace("$__rate_interval", "2m");
                if (query(expression).isEmpty()) {
                    silent.add(expression);
                }
                if (panel.get("title").asString().equals("Mean time between services")) {
                    assertThat(query(expression).orElse(0) * 1e3).isCloseTo(meanMs, within(0.02 * meanMs));
                }
            }
        }
        assertThat(silent).as("panels without a figure").isEmpty();
        assertThat(query("parley_work_cache_hits_total{service=\"m1\"}").orElse(0))
                .isPositive();

        m1.endInput();
        m1.handle().onExit().join();
        List<Double> logged = Pipeline.read(shipped("logstash.conf")).milliseconds(calls);
        assertThat(logged).hasSize((int) count);
        assertThat(logged.stream().mapToDouble(d -> d).average().orElse(0)).isCloseTo(meanMs, within(0.002 * meanMs));
    }

    /** Four clients, until Prometheus has looked often enough. */
    private void load(LecturersWork work, Location at) {
        Neighbour client = TransportProvider.named("rpcx").connect("client", work.contract(), at);
        open.add(client::close);
        Work.Exchange<?, ?> exchange = work.exchange(MessageSpec.parse("flat:5"), LINE, LINE.entry(), 1);
        exchange.enter(client, TIMEOUT);
        AtomicBoolean ended = new AtomicBoolean();
        try (ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int number = 0; number < 4; number++) {
                long from = number * 1_000_000L;
                clients.submit(() -> {
                    for (long index = from; !ended.get(); index++) {
                        ask(client, exchange, index);
                    }
                });
            }
            await().atMost(TIMEOUT)
                    .until(() -> query("count_over_time(parley_hop_seconds_count[2m])")
                                    .orElse(0)
                            >= 4);
            ended.set(true);
        }
    }

    private static <Q extends Record, R extends Record> void ask(
            Neighbour client, Work.Exchange<Q, R> exchange, long index) {
        client.call(exchange.operation(), exchange.request(index), TIMEOUT);
    }

    private static Histogram hop(Child service) throws Exception {
        service.tell(Protocol.line(new ServiceCommand.TellHops(7)));
        byte[] times = ((ServiceEvent.Hops) said(service)).rows().getFirst().histogram();
        return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(times), 0);
    }

    /**
     * What the filters of the shipped {@code logstash.conf} do to a line, read from the file: which windows it keeps,
     * which field it takes the time from, and what it divides it by.
     */
    private record Pipeline(Pattern kept, String field, double divisor) {
        private static final Pattern KEPT = Pattern.compile("if \\[labels]\\[window] !~ /(.+)/ \\{\\s+drop");
        private static final Pattern TIME = Pattern.compile("event\\.get\\(\"\\[(\\w+)]\\[(\\w+)]\"\\) / (\\S+)\\)");

        static Pipeline read(Path file) throws Exception {
            String text = Files.readString(file);
            Matcher kept = KEPT.matcher(text);
            Matcher time = TIME.matcher(text);
            assertThat(kept.find() && time.find()).as("the rules in " + file).isTrue();
            return new Pipeline(
                    Pattern.compile(kept.group(1)),
                    time.group(1) + "." + time.group(2),
                    Double.parseDouble(time.group(3)));
        }

        List<Double> milliseconds(Path log) throws Exception {
            List<Double> times = new ArrayList<>();
            for (String line : Files.readAllLines(log)) {
                JsonNode event = JSON.readTree(line);
                if (kept.matcher(event.get("labels.window").asString()).find()
                        && event.get("event.outcome").asString().equals("success")) {
                    assertThat(event.get("service.target.name").asString()).isEqualTo("m2");
                    assertThat(event.get("@timestamp").asString()).matches("\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z");
                    times.add(event.get(field).asLong() / divisor);
                }
            }
            return times;
        }
    }
}
