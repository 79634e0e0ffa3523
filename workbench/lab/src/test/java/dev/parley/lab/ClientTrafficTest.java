package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.parley.backend.BackendUnavailable;
import dev.parley.model.FigureRow;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.store.RunStore;
import dev.parley.studies.Paper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * What passes between clients and the first service of niswar, in its own topologies with its own messages, over real
 * processes and databases. With {@code -Dparley.long=true} over every technology of the paper, and every other one that
 * needs no broker and carries the work.
 */
class ClientTrafficTest {
    @TempDir
    static Path folder;

    /** What every part of the paper measures. */
    private static final List<String> OF_ALL_PARTS = List.of("rest", "graphql", "grpc");

    /** Bytes of a reply by technology and message. */
    private static final Map<String, Double> PAYLOADS = new LinkedHashMap<>();

    private static final Map<String, Double> WIRE = new LinkedHashMap<>();
    private static final Set<String> MESSAGES = new LinkedHashSet<>();

    /** One run for each topology of the study, with all technologies and messages that its parts have there. */
    @BeforeAll
    // all services of two topologies boot: 100 s alone, more beside others
    @Timeout(600)
    static void measure() throws Exception {
        TinyRun.needPackages();
        Map<Topology, Set<String>> technologies = new LinkedHashMap<>();
        Map<Topology, Set<MessageSpec>> messages = new LinkedHashMap<>();
        for (Paper.Part part : Paper.named("niswar").parts()) {
            Study study = part.study(part.technologies()).orElseThrow();
            for (Topology topology : study.topologies()) {
                technologies
                        .computeIfAbsent(topology, _ -> new LinkedHashSet<>())
                        .addAll(WireBytesTest.IS_LONG ? study.technologies() : OF_ALL_PARTS);
                messages.computeIfAbsent(topology, _ -> new LinkedHashSet<>()).addAll(study.messages());
            }
        }
        if (WireBytesTest.IS_LONG) {
            technologies
                    .values()
                    .forEach(all -> WireBytesTest.directTechnologies().forEach(all::add));
        }
        for (Map.Entry<Topology, Set<MessageSpec>> one : messages.entrySet()) {
            one.getValue().forEach(message -> MESSAGES.add(message.toString()));
            measure(
                    one.getKey(),
                    List.copyOf(technologies.getOrDefault(one.getKey(), Set.of())),
                    List.copyOf(one.getValue()));
        }
    }

    private static void measure(Topology topology, List<String> technologies, List<MessageSpec> messages)
            throws Exception {
        Study study = new Study(
                "client traffic",
                technologies,
                List.of(topology),
                "lecturers",
                messages,
                List.of(new Load.Closed(1)),
                new Study.Effort(
                        "own", 1, Duration.ZERO, Duration.ofMillis(10), Duration.ofMillis(10), Duration.ofMillis(300)),
                1,
                Duration.ofSeconds(20),
                7,
                Limits.NONE);
        Path out = Files.createDirectories(folder.resolve(topology.entry().name()));
        Lab.Ending ending = run(study, out);
        assertThat(ending.firstFailure()).isEmpty();
        try (RunStore store = RunStore.open(out.resolve(Lab.STORE_FILE))) {
            for (TrialRow trial : store.trials()) {
                String cell = trial.spec().technology() + " " + trial.spec().message();
                PAYLOADS.put(cell, figure(store, trial, Metric.PAYLOAD_BACK, FigureRow.SYSTEM));
                WIRE.put(cell, figure(store, trial, Metric.WIRE_BACK, FigureRow.SYSTEM));
            }
            // each service its own cache and database
            for (Topology.Node service : topology.nodes()) {
                for (String kind : List.of("mysql", "redis")) {
                    String own = service.name() + "." + kind;
                    assertThat(store.run().machine()).containsKey("database " + own);
                    assertThat(figure(store, store.trials().getFirst(), Metric.DATABASE_MEMORY, own))
                            .isPositive();
                }
            }
        }
    }

    /** Aborts the tests, with the reason, where a database cannot be had. */
    private static Lab.Ending run(Study study, Path out) throws InterruptedException {
        try {
            return TinyRun.lab(new TinyRun.Listener()).run(study, out, "a test");
        } catch (LabException e) {
            assumeFalse(e.getCause() instanceof BackendUnavailable, e::getMessage);
            throw e;
        }
    }

    private static double figure(RunStore store, TrialRow trial, Metric metric, String subject) {
        return store.figures().stream()
                .filter(f -> f.trialId() == trial.spec().id()
                        && f.metric() == metric
                        && f.subject().equals(subject))
                .mapToDouble(FigureRow::value)
                .findFirst()
                .orElseThrow();
    }

    /** Names of fields stand in each JSON reply as often as there are profiles, and in no Protobuf reply. */
    @Test
    void clientsAreAnsweredInTheTechnologyUnderTest() {
        for (String message : MESSAGES) {
            double rest = PAYLOADS.get("rest " + message);
            assertThat(PAYLOADS.get("grpc " + message)).as("gRPC, " + message).isLessThan(0.8 * rest);
            assertThat(PAYLOADS.get("graphql " + message))
                    .as("GraphQL, " + message)
                    .isCloseTo(rest, withinPercentage(1));
        }
        assertThat(MESSAGES).containsExactlyInAnyOrder("flat:100", "flat:2221", "nested:100", "nested:2221");
    }

    /** Two technologies may write the same JSON, but not with the same bytes around it. */
    @Test
    void noTwoTechnologiesHaveTheSameBytesOnTheWire() {
        for (String message : MESSAGES) {
            assertThat(OF_ALL_PARTS.stream().map(t -> WIRE.get(t + " " + message)))
                    .as(message)
                    .doesNotHaveDuplicates();
        }
        if (WireBytesTest.IS_LONG) {
            assertThat(WIRE).containsKeys("rest-h2 flat:2221", "rest-jetty flat:2221");
        }
        // payloads are of the first page, and bytes on the wire of twenty others
        WIRE.forEach(
                (cell, bytes) -> assertThat(bytes).as(cell).isGreaterThan(0.97 * PAYLOADS.getOrDefault(cell, 0.0)));
    }
}
