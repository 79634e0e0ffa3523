package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import dev.parley.process.Ports;
import dev.parley.spi.Work;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Real processes on loopback: each service counts what it serves, under every form of load. */
class ServedTest {
    @TempDir
    Path out;

    @BeforeAll
    static void services() {
        TinyRun.needPackages();
    }

    /** Not a request more or less than the load generator counted, at any service, and so no complaint. */
    static void assertBothEndsCounted(List<FigureRow> figures, List<String> voidReasons) {
        double sent = value(figures, Metric.REQUESTS_SENT, "generator");
        assertThat(sent).isPositive();
        assertThat(value(figures, Metric.REPLIES_COUNTED, "generator")).isEqualTo(sent);
        assertThat(value(figures, Metric.REQUESTS_SERVED, "m1")).isEqualTo(sent);
        assertThat(value(figures, Metric.REQUESTS_SERVED, "m2")).isEqualTo(sent);
        assertThat(voidReasons).noneMatch(reason -> reason.matches("impossible: m\\d .*"));
    }

    /** Two of three rounds of twenty requests count. Tries of a search cannot be told apart in one distribution. */
    private static void assertThatHopsAreOfWhatCounts(Load load, List<HistogramRow> histograms) {
        List<HistogramRow> hops = histograms.stream()
                .filter(row -> row.kind() == HistogramRow.Kind.HOP)
                .toList();
        if (load.isSearch()) {
            assertThat(hops).isEmpty();
        } else {
            assertThat(hops).singleElement().satisfies(row -> {
                long calls = Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(row.histogram()), 0)
                        .getTotalCount();
                if (load instanceof Load.Rounds) {
                    // Those that ended before the service was told of the edge are not among them.
                    assertThat(calls).isLessThanOrEqualTo(40);
                } else {
                    assertThat(calls).isPositive();
                }
            });
        }
    }

    private static double value(List<FigureRow> figures, Metric metric, String subject) {
        return figures.stream()
                .filter(f -> f.metric() == metric && f.subject().equals(subject))
                .mapToDouble(FigureRow::value)
                .findFirst()
                .orElseThrow();
    }

    @ParameterizedTest
    @ValueSource(strings = {"rest", "rpcx"})
    void theGeneratorAndEveryServiceCountTheSameRequestsUnderEveryFormOfLoad(String technology)
            throws InterruptedException {
        Study study = new Study(
                "a test",
                List.of(technology),
                List.of(Topology.parse("line:2")),
                "messages",
                List.of(MessageSpec.parse("text:10")),
                Stream.of("closed:4", "users:20:300ms:3", "rounds:4x20:3:10s:shared", "highest:50-100:p99:50ms:300ms")
                        .map(Load::parse)
                        .toList(),
                new Study.Effort(
                        "own",
                        1,
                        Duration.ofMillis(100),
                        Duration.ofMillis(100),
                        Duration.ofMillis(200),
                        Duration.ofMillis(300)),
                1,
                Duration.ofSeconds(1),
                7,
                Limits.NONE);
        Plan.Boot boot = Plan.of(study).boots().getFirst();
        assertThat(boot.trials()).hasSize(4);
        TinyRun.Listener listener = new TinyRun.Listener();
        try (Databases none =
                        Databases.start(Work.named("messages"), List.of(), TinyRun.home(), Map.of(), out, listener);
                TrialPath path = new TrialPath(
                        boot,
                        new Installations(TinyRun.home(), Catalog.read()),
                        out,
                        1,
                        listener,
                        Optional.empty(),
                        none,
                        new Ceiling(1e9),
                        Observation.none(TinyRun.home()),
                        Ports::free)) {
            path.boot();
            for (TrialSpec trial : boot.trials()) {
                TrialRows rows = path.run(trial);
                assertBothEndsCounted(rows.figures(), rows.trial().voidReasons());
                assertThatHopsAreOfWhatCounts(trial.load(), rows.histograms());
            }
        }
    }
}
