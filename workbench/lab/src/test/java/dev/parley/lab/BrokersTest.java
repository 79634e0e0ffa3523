package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import dev.parley.process.Ports;
import dev.parley.spi.Location;
import dev.parley.store.RunStore;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BrokersTest {
    @TempDir
    Path out;

    private final TinyRun.Listener listener = new TinyRun.Listener();

    private static Technology technology(String name, Optional<String> broker) {
        return new Technology(name, name, Technology.Style.SYNCHRONOUS, broker, List.of("x"), "x", Map.of());
    }

    private static final Technology REST = technology("rest", Optional.empty());
    private static final Technology KAFKA = technology("kafka", Optional.of("kafka"));

    @Test
    void aTechnologyWhoseBrokerCannotBeHadIsLeftOutWithALineThatSaysHowToGetIt() throws InterruptedException {
        Path nothingIsBuiltHere = out;
        try (Brokers brokers = new Brokers(nothingIsBuiltHere, Map.of(), out, listener)) {
            assertThat(brokers.start(List.of(KAFKA, REST))).containsExactly(REST);
            assertThat(brokers.of("kafka")).isEmpty();
        }
        assertThat(listener.notes)
                .hasSize(1)
                .allSatisfy(line -> assertThat(line)
                        .startsWith("kafka is left out: ")
                        .contains("is not built")
                        .contains("--backend kafka=HOST:PORT"));
        try (Brokers brokers = new Brokers(nothingIsBuiltHere, Map.of(), out, listener)) {
            assertThatThrownBy(() -> brokers.start(List.of(KAFKA)))
                    .isInstanceOf(LabException.class)
                    .hasMessageContaining("no technology is left");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"rabbitmq", "kafka"})
    void aBrokerThatWasNamedAndIsNotThereEndsTheRun(String name) {
        var nobody = new Location.Socket("127.0.0.1", Ports.free());
        try (Brokers brokers = new Brokers(out, Map.of(name, nobody), out, listener)) {
            assertThatThrownBy(() -> brokers.start(List.of(technology(name, Optional.of(name)))))
                    .isInstanceOf(LabException.class)
                    .hasMessageContaining("--backend " + name + "=" + nobody)
                    .hasMessageContaining("nobody listens there");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"rabbitmq", "kafka"})
    void aRunOverABrokerMeasuresItApartAndLeavesNothing(String name) throws InterruptedException {
        TinyRun.needPackages();
        Lab.Ending ending;
        try {
            ending = TinyRun.lab(listener).run(TinyRun.study(List.of(name), 1, Duration.ofSeconds(2)), out, "a test");
        } catch (LabException e) {
            Assumptions.abort(e.getMessage());
            throw e;
        }
        assertThat(ending.firstFailure()).isEmpty();
        assertThat(ending.finished()).isEqualTo(2);
        try (RunStore store = RunStore.open(out.resolve(Lab.STORE_FILE))) {
            assertThat(store.run().machine()).containsKey("broker " + name);
            for (int trial = 0; trial < 2; trial++) {
                assertThat(value(store, trial, Metric.BROKER_MEMORY)).isGreaterThan(20);
                assertThat(value(store, trial, Metric.BROKER_CPU_PER_REQUEST)).isNotNegative();
                assertThat(value(store, trial, Metric.WIRE_OUT)).isGreaterThan(value(store, trial, Metric.PAYLOAD_OUT));
                int id = trial;
                ServedTest.assertBothEndsCounted(
                        store.figures().stream().filter(f -> f.trialId() == id).toList(),
                        store.trials().get(id).voidReasons());
            }
        }
        assertThat(out.resolve("logs/backends")).doesNotExist();
        Awaitility.await()
                .until(() -> ProcessHandle.current().descendants().findAny().isEmpty());
    }

    private static double value(RunStore store, int trialId, Metric metric) {
        return store.figures().stream()
                .filter(f -> f.trialId() == trialId && f.metric() == metric)
                .mapToDouble(FigureRow::value)
                .findFirst()
                .orElseThrow();
    }
}
