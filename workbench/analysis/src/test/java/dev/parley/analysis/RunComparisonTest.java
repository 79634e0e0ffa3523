package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.FigureRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Rules;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.RunStore;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two stored runs, held against each other as a build does it. */
class RunComparisonTest {
    private static final Instant START = Instant.parse("2026-11-21T08:00:00Z");

    @TempDir
    Path folder;

    private static Run run(Map<String, String> machine, String jdk, List<String> flags) {
        return new Run("r", START, "c", 1, "x", machine, jdk, flags, List.of());
    }

    private static final Map<String, String> MACHINE = Map.of("cpu", "a", Rules.FACT, "4");

    private static final Run RUN = run(MACHINE, "25", List.of());

    /** One technology's trial in a restart: its latency, and what is said against it. */
    private record Trial(String technology, int restart, double ms, String... reasons) {}

    private static List<Trial> trials(String technology, double... ms) {
        List<Trial> trials = new ArrayList<>();
        for (double one : ms) {
            trials.add(new Trial(technology, trials.size() + 1, one));
        }
        return trials;
    }

    private RunStore store(String name, Run run, List<Trial> trials) {
        return store(name, run, trials, List.of());
    }

    /** @param used processor time of a service in each trial, in percent; empty where it was not read */
    private RunStore store(String name, Run run, List<Trial> trials, List<Double> used) {
        RunStore store = RunStore.create(folder.resolve(name + ".duckdb"), run);
        List<TrialSpec> plan = new ArrayList<>();
        for (Trial trial : trials) {
            plan.add(new TrialSpec(
                    plan.size(),
                    trial.technology(),
                    Topology.parse("line:2"),
                    "messages",
                    MessageSpec.parse("text:10"),
                    new Load.Open(500, Load.Arrivals.EVEN),
                    trial.restart(),
                    trial.restart(),
                    new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofSeconds(2)),
                    Duration.ofSeconds(1)));
        }
        store.appendPlan(plan);
        for (TrialSpec spec : plan) {
            Trial trial = trials.get(spec.id());
            long[] times = new long[500];
            Arrays.fill(times, (long) (trial.ms() * 1e6));
            store.append(
                    new TrialRow(spec, TrialRow.State.FINISHED, START, START, List.of(trial.reasons()), ""),
                    List.of(
                            new SecondRow(spec.id(), 0, 500, 0, 0, 0, 0, Encoded.of(times)),
                            new SecondRow(spec.id(), 1, 500, 0, 0, 0, 0, Encoded.of(times))),
                    List.of(),
                    figures(spec.id(), used));
        }
        return store;
    }

    private static List<FigureRow> figures(int trial, List<Double> used) {
        List<FigureRow> figures = new ArrayList<>();
        figures.add(new FigureRow(trial, Metric.COMPILING_SHARE, FigureRow.SYSTEM, 2));
        used.forEach(percent -> figures.add(new FigureRow(trial, Metric.CPU_SHARE, "m1", percent)));
        return figures;
    }

    private RunComparison compared(Run before, List<Trial> baseline, Run after, List<Trial> now) {
        try (RunStore first = store("baseline", before, baseline);
                RunStore second = store("run", after, now)) {
            return RunComparison.of(first, second);
        }
    }

    private RunComparison compared(List<Trial> baseline, List<Trial> now) {
        return compared(RUN, baseline, RUN, now);
    }

    private static RunComparison.Row row(RunComparison comparison, String technology, Metric metric) {
        return comparison.rows().stream()
                .filter(row -> row.technology().equals(technology) && row.metric() == metric)
                .reduce((a, b) -> {
                    throw new AssertionError("twice: " + a + " and " + b);
                })
                .orElseThrow();
    }

    @Test
    void eachTechnologyIsHeldAgainstItselfInTheRunBefore() {
        List<Trial> before = new ArrayList<>(trials("rest", 10, 10.1, 9.9));
        before.addAll(trials("grpc", 4, 4.1, 3.9));
        before.addAll(trials("rpcx", 1, 1, 1));
        List<Trial> after = new ArrayList<>(trials("rest", 20, 20.3, 19.9));
        after.addAll(trials("grpc", 2, 2.1, 1.9));
        RunComparison comparison = compared(before, after);
        RunComparison.Row rest = row(comparison, "rest", Metric.LATENCY_MEDIAN);
        assertThat(rest.baseline().value()).isCloseTo(10, within(0.01));
        assertThat(rest.run().value()).isCloseTo(20, within(0.02));
        assertThat(rest.ratio().value()).isCloseTo(2, within(0.002));
        assertThat(rest.verdict().kind()).isEqualTo(Verdict.Kind.WORSE);
        assertThat(rest.survivors()).isEmpty();
        assertThat(rest.situation().message()).isEqualTo("text:10");
        assertThat(row(comparison, "grpc", Metric.LATENCY_MEDIAN).verdict().kind())
                .isEqualTo(Verdict.Kind.BETTER);
        assertThat(row(comparison, "grpc", Metric.THROUGHPUT).verdict().kind()).isEqualTo(Verdict.Kind.EQUIVALENT);
        assertThat(comparison.rows())
                .as("three metrics of two technologies: processor time was not measured")
                .hasSize(6);
        assertThat(comparison.uncommon()).as("the run had no RPCX").isEqualTo(1);
        assertThat(comparison.baseline()).isEqualTo(RUN);
        assertThat(comparison.run()).isEqualTo(RUN);
        assertThat(comparison.differences()).isEmpty();
    }

    @Test
    void whatOnlyTheRunHasIsLeftOut() {
        List<Trial> after = new ArrayList<>(trials("rest", 10, 10.1, 9.9));
        after.addAll(trials("grpc", 4, 4.1, 3.9));
        RunComparison comparison = compared(trials("rest", 10, 10, 10), after);
        assertThat(comparison.rows())
                .hasSize(3)
                .allMatch(row -> row.technology().equals("rest"));
        assertThat(comparison.uncommon()).isZero();
    }

    /** The whole run's rows of a metric are corrected together: one in ten has to be ten times as sure. */
    @Test
    void rowsOfOneMetricAreCorrectedTogether() {
        List<Trial> before = new ArrayList<>();
        List<Trial> after = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            before.addAll(trials("t" + i, 10, 10.3, 9.8));
            after.addAll(trials("t" + i, i == 0 ? 11.5 : 10, i == 0 ? 12.2 : 10.3, i == 0 ? 11.3 : 9.8));
        }
        RunComparison alone = compared(before.subList(0, 3), after.subList(0, 3));
        assertThat(row(alone, "t0", Metric.LATENCY_MEDIAN).verdict().kind()).isEqualTo(Verdict.Kind.WORSE);
        try (RunStore first = store("baselines", RUN, before);
                RunStore second = store("runs", RUN, after)) {
            assertThat(row(RunComparison.of(first, second), "t0", Metric.LATENCY_MEDIAN)
                            .verdict()
                            .kind())
                    .isEqualTo(Verdict.Kind.UNDECIDED);
        }
    }

    @Test
    void aSideThatDoesNotCountHasNoRatio() {
        List<Trial> cold = new ArrayList<>();
        List<Trial> wrong = new ArrayList<>();
        for (int restart = 1; restart <= 3; restart++) {
            cold.add(new Trial("rest", restart, 20, "cold: compilers"));
            wrong.add(new Trial("rest", restart, 20, "3 wrong replies"));
        }
        List<Trial> sound = trials("rest", 10, 10.1, 9.9);
        RunComparison.Row now = row(compared(sound, cold), "rest", Metric.LATENCY_MEDIAN);
        assertThat(now.verdict()).isEqualTo(new Verdict(Verdict.Kind.COLD, 0));
        assertThat(now.ratio().isPresent()).isFalse();
        assertThat(now.baseline().value()).isCloseTo(10, within(0.01));
        assertThat(now.run().value()).as("kept").isCloseTo(20, within(0.02));
        try (RunStore first = store("wrong", RUN, wrong);
                RunStore second = store("sound", RUN, sound)) {
            RunComparison.Row before = row(RunComparison.of(first, second), "rest", Metric.LATENCY_MEDIAN);
            assertThat(before.verdict()).isEqualTo(new Verdict(Verdict.Kind.VOID, 0));
            assertThat(before.baseline().value()).isCloseTo(20, within(0.02));
        }
    }

    @Test
    void survivorsOfEitherRunAreTold() {
        List<Trial> before = new ArrayList<>(trials("rest", 10, 10.1, 9.9, 10));
        before.add(new Trial("rest", 5, 10, "swap seen"));
        List<Trial> after = new ArrayList<>(trials("rest", 10, 10.1, 9.9));
        after.add(new Trial("rest", 4, 10, "swap seen"));
        assertThat(row(compared(before, after), "rest", Metric.LATENCY_MEDIAN).survivors())
                .isEqualTo("4 of 5 restarts → 3 of 4 restarts");
        try (RunStore first = store("four", RUN, before);
                RunStore second = store("four again", RUN, before)) {
            assertThat(row(RunComparison.of(first, second), "rest", Metric.LATENCY_MEDIAN)
                            .survivors())
                    .as("the same of both is told once")
                    .isEqualTo("4 of 5 restarts");
        }
    }

    @Test
    void runsByTwoRulesAreNotHeldAgainstEachOther() {
        Run older = run(Map.of("cpu", "a", Rules.FACT, "3"), "25", List.of());
        RunComparison comparison = compared(older, trials("rest", 10, 10, 10), RUN, trials("rest", 20, 20, 20));
        assertThat(comparison.rows())
                .hasSize(3)
                .allSatisfy(row -> assertThat(row.ratio().isPresent()).isFalse())
                .allSatisfy(row -> assertThat(row.verdict()).hasToString("undecided (measured by other rules)"));
        assertThat(comparison.isByOneRule()).isFalse();
        assertThat(comparison.differences()).containsExactly(Rules.FACT + ": 3 → 4");
    }

    @Test
    void whatDiffersBetweenTheMachinesIsSaid() {
        Run before = run(Map.of("cpu", "a", "cores", "2", Rules.FACT, "4"), "25", List.of("-Xmx1g"));
        Run after = run(Map.of("cpu", "b", "governor", "powersave", Rules.FACT, "4"), "26", List.of());
        assertThat(compared(before, trials("rest", 10), after, trials("rest", 10))
                        .differences())
                .containsExactly(
                        "cores: 2 → unknown",
                        "cpu: a → b",
                        "governor: unknown → powersave",
                        "jdk: 25 → 26",
                        "jvm flags: [-Xmx1g] → []");
    }

    /** One machine and one JDK, and technologies with a broker in one of the runs only. */
    @Test
    void aBrokerThatOneRunHasIsNoDifferenceBetweenTheirMachines() {
        Run plain = run(MACHINE, "25", List.of());
        Run brokered = run(
                Map.of("cpu", "a", Rules.FACT, "4", "broker kafka", "4.0", "database mysql", "8.0"), "25", List.of());
        Run newer = run(
                Map.of("cpu", "a", Rules.FACT, "4", "broker kafka", "4.1", "broker rabbitmq", "4.2"), "25", List.of());
        assertThat(compared(plain, trials("rest", 10), brokered, trials("rest", 10))
                        .differences())
                .isEmpty();
        try (RunStore first = store("brokered", brokered, trials("rest", 10));
                RunStore second = store("newer", newer, trials("rest", 10))) {
            assertThat(RunComparison.of(first, second).differences())
                    .as("of a broker that both have")
                    .containsExactly("broker kafka: 4.0 → 4.1");
        }
    }

    @Test
    void runsOfNothingInCommonAreComparedInNothing() {
        RunComparison comparison = compared(trials("rest", 10, 10, 10), trials("grpc", 10, 10, 10));
        assertThat(comparison.rows()).isEmpty();
        assertThat(comparison.isOfSomething()).isFalse();
        try (RunStore first = store("sound", RUN, trials("rest", 10, 10, 10));
                RunStore second = store("again", RUN, trials("rest", 10, 10, 10))) {
            assertThat(RunComparison.of(first, second).isOfSomething()).isTrue();
        }
    }

    /** A service that used no processor time that its clock can tell has no ratio. */
    @Test
    void aFigureOfNothingIsVoid() {
        List<Trial> trials = trials("rest", 10, 10, 10);
        try (RunStore first = store("idle", RUN, trials, List.of(0.0));
                RunStore second = store("busy", RUN, trials, List.of(30.0));
                RunStore third = store("busier", RUN, trials, List.of(60.0))) {
            assertThat(row(RunComparison.of(first, second), "rest", Metric.CPU_PER_REQUEST)
                            .verdict())
                    .isEqualTo(new Verdict(Verdict.Kind.VOID, 0));
            assertThat(row(RunComparison.of(second, third), "rest", Metric.CPU_PER_REQUEST)
                            .verdict()
                            .kind())
                    .isEqualTo(Verdict.Kind.WORSE);
        }
    }
}
