package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Verdict.Kind;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/**
 * A/A comparisons from raw rows to the verdict: latencies with a long tail, seconds in which the collector or a neighbour takes the processor,
 * restarts that compile differently, a machine that grows slower by the hour. Ten restarts, interleaved, as the standard effort has them, and ten thousand
 * requests a window.
 */
class AgainstItselfTest {
    private static final int RESTARTS = 10;
    private static final int SECONDS = 30;
    private static final int PER_SECOND = 334;
    /** A hundred take a minute: {@code -Dparley.long=true}. */
    private static final int COMPARISONS = Boolean.getBoolean("parley.long") ? 100 : 10;

    private static final int DELAYED = Boolean.getBoolean("parley.long") ? 100 : 3;

    @Test
    void aTechnologyAgainstItselfIsEquivalentInAtLeast95Of100() {
        SplittableRandom random = new SplittableRandom(20261121);
        Map<Metric, Integer> equivalent = new EnumMap<>(Metric.class);
        for (int i = 0; i < COMPARISONS; i++) {
            verdicts(i, random, 1, Metric.LATENCY_MEDIAN, Metric.LATENCY_MEAN).forEach((metric, verdict) -> {
                assertThat(verdict.kind()).isIn(Kind.EQUIVALENT, Kind.UNDECIDED);
                equivalent.merge(metric, verdict.kind() == Kind.EQUIVALENT ? 1 : 0, Integer::sum);
            });
        }
        System.out.println("equivalent in A/A comparisons, of " + COMPARISONS + ": " + equivalent);
        assertThat(equivalent.values()).hasSize(2).allMatch(count -> count >= COMPARISONS * 95 / 100);
    }

    @Test
    void aDelayOfTwentyPercentAddedOnPurposeIsWorse() {
        SplittableRandom random = new SplittableRandom(7);
        int worse = 0;
        for (int i = 0; i < DELAYED; i++) {
            Map<Metric, Verdict> verdicts =
                    verdicts(i, random, 1.2, Metric.LATENCY_MEDIAN, Metric.LATENCY_MEAN, Metric.LATENCY_P99);
            assertThat(verdicts.values()).hasSize(3).allMatch(verdict -> verdict.kind() == Kind.WORSE);
            worse++;
        }
        System.out.println("worse by 20 % in median, mean and p99: " + worse + " of " + DELAYED);
    }

    /** For the technology whose latencies are {@code slower} times those of the other. */
    private static Map<Metric, Verdict> verdicts(long seed, SplittableRandom random, double slower, Metric... metrics) {
        List<TrialSpec> plan = new ArrayList<>();
        List<JudgedTrial> trials = new ArrayList<>();
        Map<Integer, List<SecondRow>> seconds = new LinkedHashMap<>();
        for (int restart = 1; restart <= RESTARTS; restart++) {
            // a machine that grows slower slows both, since they are interleaved
            double machine = 1 + 0.01 * restart;
            for (String technology : List.of("one", "other")) {
                TrialSpec spec = spec(plan.size(), technology, restart);
                plan.add(spec);
                trials.add(new JudgedTrial(
                        new TrialRow(spec, TrialRow.State.FINISHED, Instant.EPOCH, Instant.EPOCH, List.of(), ""),
                        List.of()));
                double typicalMs = 2 * machine * (1 + 0.02 * random.nextGaussian());
                seconds.put(spec.id(), rows(spec.id(), typicalMs * (technology.equals("one") ? slower : 1), random));
            }
        }
        RunRows rows = new RunRows(
                new Run(
                        "r",
                        Instant.EPOCH,
                        "c",
                        seed,
                        "x",
                        Map.of(),
                        "25",
                        List.of(),
                        List.of(named("one"), named("other"))),
                plan,
                trials,
                seconds,
                Map.of(),
                Map.of(),
                List.of());
        Map<String, CellSamples> cells = new LinkedHashMap<>();
        rows.cells()
                .forEach((cell, own) -> cells.put(
                        cell.technology(),
                        new CellSamples(
                                rows, cell, own, seed ^ cell.technology().hashCode())));
        Map<Metric, Verdict> verdicts = new EnumMap<>(Metric.class);
        for (Metric metric : metrics) {
            Map<String, Sample> samples = new LinkedHashMap<>();
            cells.forEach((technology, cell) -> samples.put(technology, cell.of(metric)));
            assertThat(samples)
                    .hasSize(2)
                    .allSatisfy((name, sample) -> assertThat(sample.count()).isEqualTo(RESTARTS));
            verdicts.put(
                    metric, new Contest(metric, seed).of(samples).getFirst().verdict());
        }
        return verdicts;
    }

    private static Technology named(String name) {
        return new Technology(name, name, Technology.Style.SYNCHRONOUS, Optional.empty(), List.of(), "", Map.of());
    }

    private static TrialSpec spec(int id, String technology, int restart) {
        return new TrialSpec(
                id,
                technology,
                Topology.parse("line:2"),
                "messages",
                MessageSpec.parse("text:10"),
                new Load.Open(PER_SECOND, Load.Arrivals.POISSON),
                restart,
                restart,
                new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofSeconds(SECONDS)),
                Duration.ofSeconds(1));
    }

    private static List<SecondRow> rows(int id, double typicalMs, SplittableRandom random) {
        List<SecondRow> rows = new ArrayList<>();
        for (int second = 0; second < SECONDS; second++) {
            double mood = 1 + 0.03 * random.nextGaussian();
            Histogram times = new Histogram(3);
            for (int i = 0; i < PER_SECOND; i++) {
                double ms = typicalMs * mood * Math.exp(0.3 * random.nextGaussian());
                // one request in fifty waits for a collection or for the processor
                ms += random.nextInt(50) == 0 ? typicalMs * (1 + random.nextDouble()) : 0;
                times.recordValue((long) (ms * 1e6));
            }
            rows.add(new SecondRow(id, second, PER_SECOND, 0, 0, 0, 0, Encoded.of(times)));
        }
        return rows;
    }
}
