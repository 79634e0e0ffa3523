package dev.parley.analysis;

import dev.parley.model.FigureRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Run;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.RunStore;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/** Rows of a run of REST and gRPC over two services, as the store keeps them. */
final class SampleRows {
    static final Instant START = Instant.parse("2026-11-21T08:00:00Z");

    static final Run RUN = new Run(
            "r",
            START,
            "c",
            1,
            "x",
            Map.of(),
            "25",
            List.of(),
            Stream.of("rest", "grpc").map(SampleRows::technology).toList());

    private SampleRows() {}

    private static Technology technology(String name) {
        return new Technology(name, name, Technology.Style.SYNCHRONOUS, Optional.empty(), List.of(), "", Map.of());
    }

    /** A new store in the folder, without a plan. */
    static RunStore store(Path folder) {
        return RunStore.create(folder.resolve("results.duckdb"), RUN);
    }

    /** @param seconds that the window takes */
    static TrialSpec spec(int id, String technology, String message, Load load, int restart, int seconds) {
        return new TrialSpec(
                id,
                technology,
                Topology.parse("line:2"),
                "messages",
                MessageSpec.parse(message),
                load,
                restart,
                restart,
                new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofSeconds(seconds)),
                Duration.ofSeconds(1));
    }

    /** @param reasons that were stored against it */
    static TrialRow ended(TrialSpec spec, TrialRow.State state, List<String> reasons) {
        return new TrialRow(spec, state, START, START.plusSeconds(3), reasons, "");
    }

    /** Times in nanoseconds that are all the same. */
    static long[] times(int count, double ms) {
        long[] times = new long[count];
        Arrays.fill(times, (long) (ms * 1e6));
        return times;
    }

    /** What compilers took of the services' processor time: a trial is cold above 10 %. */
    static FigureRow compiling(int trialId, double percent) {
        return new FigureRow(trialId, Metric.COMPILING_SHARE, FigureRow.SYSTEM, percent);
    }
}
