package dev.parley.store;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.HdrHistogram.Histogram;

/** A small run, the same every time. */
final class SampleRun {
    private static final Instant START = Instant.parse("2026-11-21T08:15:30.123456Z");

    private SampleRun() {}

    static Run run() {
        Map<String, String> machine = new LinkedHashMap<>();
        machine.put("kernel", "Linux 6.1");
        machine.put("cpu", "a \"quoted\" name; with, marks");
        machine.put("cores", "2");
        return new Run(
                "2026-11-21T08-15-30",
                START,
                "./parley compare --quick",
                42,
                "abc123",
                machine,
                "Temurin 25",
                List.of("-Xmx256m", "-XX:+UseSerialGC"),
                List.of(technology("rest", Optional.empty()), technology("kafka", Optional.of("kafka"))));
    }

    private static Technology technology(String name, Optional<String> broker) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("version", "1");
        settings.put("pool", "one connection");
        return new Technology(
                name,
                "Title of " + name,
                Technology.Style.SYNCHRONOUS,
                broker,
                List.of("a server", "a client"),
                "caller knows callee",
                settings);
    }

    static TrialSpec spec(int id) {
        return new TrialSpec(
                id,
                id % 2 == 0 ? "rest" : "kafka",
                Topology.parse("line:5"),
                "messages",
                MessageSpec.parse("text:1000"),
                id % 3 == 0 ? new Load.Open(0.5, Load.Arrivals.POISSON) : new Load.Closed(16),
                id / 2 + 1,
                1,
                new TrialSpec.Window(Duration.ofSeconds(2), Duration.ofSeconds(10), Duration.ofMillis(2500)),
                Duration.ofNanos(1_000_000_001));
    }

    static TrialRow ended(int id, TrialRow.State state, String... voidReasons) {
        return new TrialRow(
                spec(id),
                state,
                START.plusSeconds(10L * id),
                START.plusSeconds(10L * id + 5),
                List.of(voidReasons),
                state == TrialRow.State.FINISHED ? "" : "m3 died: exit 137");
    }

    static List<SecondRow> seconds(int id) {
        return List.of(
                new SecondRow(id, -1, 5, 0, 0, 0, 0, histogram(5)),
                new SecondRow(id, 0, 100, 1, 0, 2, 0, histogram(100)),
                new SecondRow(id, 1, 101, 0, 3, 0, 4, histogram(101)));
    }

    static List<HistogramRow> histograms(int id) {
        return List.of(new HistogramRow(id, HistogramRow.Kind.RESPONSE, "client", histogram(201)));
    }

    static List<FigureRow> figures(int id) {
        return List.of(
                new FigureRow(id, Metric.CPU_SHARE, "m1", 12.5 + id),
                new FigureRow(id, Metric.BOOT_TIME, FigureRow.EMPTY, 300));
    }

    private static byte[] histogram(int values) {
        Histogram histogram = new Histogram(3);
        for (int i = 1; i <= values; i++) {
            histogram.recordValue(i * 1_000_000L);
        }
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        return Arrays.copyOf(buffer.array(), length);
    }
}
