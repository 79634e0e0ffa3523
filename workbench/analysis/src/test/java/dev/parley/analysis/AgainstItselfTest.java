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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A/A comparisons from raw rows to the verdict: latencies with a long tail, seconds in which the collector or a neighbour takes the processor,
 * restarts that compile differently, a machine that grows slower by the hour. Ten restarts, interleaved, as the standard effort has them, and ten thousand
 * requests a window.
 */
class AgainstItselfTest {
    private static final int RESTARTS = 10;
    private static final int SECONDS = 30;
    private static final int PER_SECOND = 334;
    /** A hundred take minutes: {@code -Dparley.long=true}. */
    private static final int COMPARISONS = Boolean.getBoolean("parley.long") ? 100 : 20;

    @ParameterizedTest
    @CsvSource({"LATENCY_MEDIAN", "LATENCY_MEAN"})
    void aTechnologyAgainstItselfIsEquivalentInAtLeast95Of100(Metric metric) {
        SplittableRandom random = new SplittableRandom(20261121);
        int equivalent = 0;
        for (int i = 0; i < COMPARISONS; i++) {
            Verdict verdict = verdict(metric, i, random, 1);
            equivalent += verdict.kind() == Kind.EQUIVALENT ? 1 : 0;
            assertThat(verdict.kind()).isIn(Kind.EQUIVALENT, Kind.UNDECIDED);
        }
        assertThat(equivalent).isGreaterThanOrEqualTo(COMPARISONS * 95 / 100);
    }

    @ParameterizedTest
    @CsvSource({"LATENCY_MEDIAN", "LATENCY_MEAN", "LATENCY_P99"})
    void aDelayOfTwentyPercentAddedOnPurposeIsWorse(Metric metric) {
        SplittableRandom random = new SplittableRandom(7);
        for (int i = 0; i < 5; i++) {
            assertThat(verdict(metric, i, random, 1.2).kind()).isEqualTo(Kind.WORSE);
        }
    }

    /** For the technology whose latencies are {@code slower} times those of the other. */
    private static Verdict verdict(Metric metric, long seed, SplittableRandom random, double slower) {
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
        Map<String, Sample> samples = new LinkedHashMap<>();
        rows.cells()
                .forEach((cell, own) -> samples.put(
                        cell.technology(),
                        new CellSamples(
                                        rows,
                                        cell,
                                        own,
                                        seed ^ cell.technology().hashCode())
                                .of(metric)));
        assertThat(samples)
                .hasSize(2)
                .allSatisfy((name, sample) -> assertThat(sample.count()).isEqualTo(RESTARTS));
        return new Contest(metric, seed).of(samples).getFirst().verdict();
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
