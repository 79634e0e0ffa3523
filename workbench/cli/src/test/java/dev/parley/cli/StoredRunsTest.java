package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.FigureRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Rules;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.RunStore;
import dev.parley.store.StoredStudy;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Stores whose latencies are made up: what is tested is what the commands say of them. */
class StoredRunsTest {
    private static final Instant START = Instant.parse("2026-11-21T08:00:00Z");
    private static final int RESTARTS = 8;

    @TempDir
    Path folder;

    private Path run(String name, double ms, String cpu, String... voidReasons) throws IOException {
        return run(name, ms, Map.of("cpu", cpu), voidReasons);
    }

    private Path run(String name, double ms, Map<String, String> machine, String... voidReasons) throws IOException {
        return run(name, "rest", ms, machine, voidReasons);
    }

    private Path run(String name, String technology, double ms, Map<String, String> machine, String... voidReasons)
            throws IOException {
        return stored(name, technology, ms, machine, "study: made up\n", List.of(voidReasons));
    }

    private Path stored(
            String name,
            String technology,
            double ms,
            Map<String, String> machine,
            String study,
            List<String> voidReasons)
            throws IOException {
        Path run = Files.createDirectory(folder.resolve(name));
        Technology measured = new Technology(
                technology, "REST", Technology.Style.SYNCHRONOUS, Optional.empty(), List.of(), "", Map.of());
        Run described = new Run(name, START, "./parley " + name, 1, "x", machine, "25", List.of(), List.of(measured));
        SplittableRandom random = new SplittableRandom(name.hashCode());
        try (RunStore store = RunStore.create(run.resolve("results.duckdb"), described)) {
            List<TrialSpec> plan = new ArrayList<>();
            for (int restart = 1; restart <= RESTARTS; restart++) {
                plan.add(new TrialSpec(
                        restart - 1,
                        technology,
                        Topology.parse("line:2"),
                        "messages",
                        MessageSpec.parse("text:10"),
                        new Load.Open(1000, Load.Arrivals.EVEN),
                        restart,
                        restart,
                        new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(1), Duration.ofSeconds(2)),
                        Duration.ofSeconds(1)));
            }
            store.appendPlan(new StoredStudy("d1", study), plan);
            for (TrialSpec spec : plan) {
                double mood = ms * (0.99 + 0.02 * random.nextDouble());
                store.append(
                        new TrialRow(spec, TrialRow.State.FINISHED, START, START.plusSeconds(3), voidReasons, ""),
                        List.of(
                                new SecondRow(spec.id(), 0, 1000, 0, 0, 0, 0, times(mood)),
                                new SecondRow(spec.id(), 1, 1000, 0, 0, 0, 0, times(mood))),
                        List.of(),
                        List.of(new FigureRow(
                                spec.id(),
                                Metric.COMPILING_SHARE,
                                FigureRow.SYSTEM,
                                machine.containsValue("cold") ? 40 : 1)));
            }
        }
        return run;
    }

    private static byte[] times(double ms) {
        Histogram histogram = new Histogram(3);
        for (int i = 0; i < 1000; i++) {
            histogram.recordValue((long) (ms * 1e6 * (0.9 + 0.2 * i / 1000)));
        }
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        return Arrays.copyOf(buffer.array(), histogram.encodeIntoCompressedByteBuffer(buffer));
    }

    private static Typed gate(Path baseline, Path run, String... more) {
        List<String> line = new ArrayList<>(List.of("gate", "--baseline", baseline.toString(), run.toString()));
        line.addAll(List.of(more));
        return Typed.line(line.toArray(String[]::new));
    }

    private static Typed gate(Path run) {
        return Typed.line("gate", run.toString());
    }

    @Test
    void theGateOpensShutsAndSaysWhenItCannotTell() throws IOException {
        Path baseline = run("baseline", 10, "a");
        Typed same = gate(baseline, run("same", 10, "a"));
        assertThat(same.err()).isEmpty();
        assertThat(same.exitCode()).isZero();
        assertThat(same.out()).contains("equivalent");

        Path slower = run("slower", 12, "a");
        Typed worse = gate(baseline, slower);
        assertThat(worse.exitCode()).isEqualTo(3);
        assertThat(worse.out()).contains("latency_median").containsPattern("worse, × 1\\.(19|20)");
        assertThat(gate(slower, baseline).exitCode()).isZero();

        Path empty = Files.createDirectory(folder.resolve("no baseline yet"));
        assertThat(gate(empty, baseline).exitCode()).isEqualTo(2);
        Typed mistyped = gate(folder.resolve("none"), baseline);
        assertThat(mistyped.exitCode()).isEqualTo(1);
        assertThat(mistyped.err())
                .startsWith("parley: --baseline: " + folder.resolve("none") + " (expected: a folder with results.duckdb"
                        + " in it, or one that is empty ");
        assertThat(gate(baseline, folder.resolve("none")).exitCode()).isEqualTo(1);
        assertThat(gate(baseline, run("void", 10, "a", "swap seen")).exitCode()).isEqualTo(2);
        Path elsewhere = run("elsewhere", 10, "b");
        assertThat(gate(baseline, elsewhere).exitCode()).isEqualTo(2);
        assertThat(gate(baseline, elsewhere, "--other-machine").exitCode()).isZero();
    }

    @Test
    void aBrokerInOneOfTwoRunsIsNoOtherMachine() throws IOException {
        Path plain = run("plain", 10, Map.of("cpu", "a"));
        Path brokered = run("brokered", 10, Map.of("cpu", "a", "broker kafka", "4.0"));
        Path newer = run("newer", 10, Map.of("cpu", "a", "broker kafka", "4.1"));
        assertThat(gate(plain, brokered).exitCode()).isZero();
        assertThat(gate(brokered, plain).exitCode()).isZero();
        Typed result = gate(brokered, newer);
        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.out()).contains("not the same: broker kafka: 4.0 → 4.1");
        assertThat(result.err()).contains("machine, JDK or broker differ");
    }

    @Test
    void twoRunsOfNothingInCommonAreNoSuccess() throws IOException {
        Path rest = run("of rest", 10, "a");
        Path grpc = run("of grpc", "grpc", 10, Map.of("cpu", "a"));
        Typed result = Typed.line("compare", rest.toString(), grpc.toString());
        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.out()).contains("1 cells of the first run are not in the second", "nothing in common");
        assertThat(result.err())
                .isEqualTo(
                        "parley: the two runs have no figure in common that can be compared" + System.lineSeparator());
        assertThat(gate(rest, grpc).exitCode()).isEqualTo(2);
    }

    /** A disk that was full, or a copy that was stopped, leaves the beginning of a store. */
    @Test
    void aStoreThatWasCutShortIsOneLineThatSaysWhatToDo() throws IOException {
        Path run = run("cut", 10, "a");
        Path other = run("whole", 10, "a");
        Path store = run.resolve("results.duckdb");
        byte[] whole = Files.readAllBytes(store);
        Files.write(store, Arrays.copyOf(whole, whole.length / 2));
        String said = store + ": damaged or cut short, so that it cannot be read (expected: ";
        for (Typed result : List.of(
                Typed.line("show", run.toString()),
                Typed.line("report", run.toString()),
                Typed.line("compare", other.toString(), run.toString()),
                gate(run, other))) {
            assertThat(result.err()).startsWith("parley: " + said).hasLineCount(1);
            assertThat(result.exitCode()).isEqualTo(1);
        }
        assertThat(Typed.line("list", "--in", folder.toString()).out()).contains(run + "  ", other + "  8 of 8 trials");
    }

    @Test
    void runsByTwoRulesAreShownAndNotHeldAgainstEachOther() throws IOException {
        Path before = run("earlier", 10, Map.of("cpu", "a"));
        Path after = run("later", 20, Map.of("cpu", "a", Rules.FACT, "2"));
        assertThat(Typed.line("compare", before.toString(), after.toString()).out())
                .contains(
                        "not the same: " + Rules.FACT + ": unknown → 2",
                        "undecided (measured by other rules)",
                        "second run against the first: 3 undecided")
                .doesNotContain("worse", "void");
        for (Typed gate : List.of(gate(before, after), gate(before, after, "--other-machine"))) {
            assertThat(gate.err())
                    .startsWith("parley: not held against the baseline: rules of measuring differ: none → 2 ")
                    .doesNotContain("void");
            assertThat(gate.exitCode()).isEqualTo(2);
        }
    }

    @Test
    void aColdRunIsHeldAgainstNothing() throws IOException {
        Path warm = run("warm", 10, "a");
        Path cold = run("cold", 12, "cold");
        Typed result = gate(warm, cold, "--other-machine");
        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.out()).contains("3 cold").doesNotContain("×");
        assertThat(Typed.line("compare", warm.toString(), cold.toString()).out())
                .contains("3 cold")
                .doesNotContain("×", "worse");
        assertThat(gate(cold, warm, "--other-machine").exitCode()).isEqualTo(2);
    }

    @Test
    void twoRunsAreComparedAndNothingIsMeasured() throws IOException {
        Path before = run("before", 10, "a");
        Path after = run("after", 12, "b");
        Typed result = Typed.line("compare", before.toString(), after.toString());
        assertThat(result.exitCode()).isZero();
        assertThat(result.out())
                .contains("×: the median of the second run over that of the first, with its 95 % interval")
                .contains("not the same: cpu: a → b", "latency_p99", "2 worse")
                .containsPattern("worse, × 1\\.(19|20)");
        assertThat(Typed.line("compare", before.toString()).err())
                .contains("RUN: " + before + " (expected: two folders of stored runs and no options");
        assertThat(Typed.line("compare", "--quick", before.toString(), after.toString())
                        .exitCode())
                .isEqualTo(1);
    }

    /** Replies take from 0.9 to 1.1 times 10 ms, so that their 99th percentile is 11 ms. */
    @Test
    void theReportOfAStoredRunAnswersItsTarget() throws IOException {
        Path met = stored("met", "rest", 10, Map.of(), "target: {rate: 1000, p99: 20ms}\n", List.of());
        assertThat(Typed.line("report", "--help").out()).contains("targets.csv");
        assertThat(Typed.line("run", "--help").out()).contains("targets.csv");
        Typed report = Typed.line("report", met.toString());
        assertThat(report.err()).isEmpty();
        assertThat(report.exitCode()).isZero();
        assertThat(report.out())
                .contains("Target: 1000 requests/s, p99 at most 20 ms")
                .containsPattern("  rest  meets it   p99 1[01](\\.\\d)? ms of 20 ms, 4\\d % to spare; interval ");
        assertThat(Files.readAllLines(met.resolve("targets.csv"))).hasSize(2);
        Path missed = stored("missed", "rest", 10, Map.of(), "target: {rate: 1000, p99: 5ms}\n", List.of());
        Typed shown = Typed.line("show", missed.toString());
        assertThat(shown.exitCode()).isZero();
        assertThat(shown.out()).contains("  rest  does not   p99 1");
        Path none = run("none", 10, "a");
        assertThat(Typed.line("report", none.toString()).out()).doesNotContain("Target");
        assertThat(none.resolve("targets.csv")).doesNotExist();
    }

    @Test
    void theGateOpensToARunWhoseTechnologiesMeetTheirTarget() throws IOException {
        Path met = stored("met", "rest", 10, Map.of(), "target: {rate: 1000, p99: 20ms}\n", List.of());
        Typed good = gate(met);
        assertThat(good.err()).isEmpty();
        assertThat(good.exitCode()).isZero();
        assertThat(good.out().lines()).hasSize(2).first().isEqualTo("target: 1000 requests/s, p99 at most 20 ms");
        assertThat(good.out().lines().toList().getLast())
                .matches("rest {11}meets it   p99 1[01](\\.\\d)? ms of 20 ms, 4\\d % to spare; interval \\S+");

        Path missed = stored("missed", "rest", 10, Map.of(), "target: {rate: 1000, p99: 5ms}\n", List.of());
        Typed bad = gate(missed);
        assertThat(bad.exitCode()).isEqualTo(3);
        assertThat(bad.out()).contains("rest           does not   p99 1");
        assertThat(bad.err()).isEqualTo("parley: the target is not met: rest" + System.lineSeparator());

        Path untold = stored("untold", "rest", 10, Map.of(), "target: {rate: 1000, p99: 20ms}\n", List.of("swap seen"));
        Typed undecided = gate(untold);
        assertThat(undecided.exitCode()).isEqualTo(2);
        assertThat(undecided.out()).contains("rest           undecided  void: swap seen");
        assertThat(undecided.err())
                .isEqualTo("parley: whether the target is met is undecided: rest" + System.lineSeparator());
    }

    @Test
    void theGateAsksForBothTargetAndBaselineWhereThereAreBoth() throws IOException {
        Path baseline = run("baseline", 10, "a");
        Path empty = Files.createDirectory(folder.resolve("no baseline yet"));
        Map<String, String> machine = Map.of("cpu", "a");
        Path met = stored("met", "rest", 10, machine, "target: {rate: 1000, p99: 20ms}\n", List.of());
        Typed good = gate(baseline, met);
        assertThat(good.err()).isEmpty();
        assertThat(good.exitCode()).isZero();
        assertThat(good.out()).contains("meets it", "equivalent");
        assertThat(gate(empty, met).exitCode()).isEqualTo(2);

        Path missed = stored("missed", "rest", 10, machine, "target: {rate: 1000, p99: 5ms}\n", List.of());
        assertThat(gate(baseline, missed).exitCode()).isEqualTo(3);
        assertThat(gate(empty, missed).exitCode()).isEqualTo(3);

        Path slower = stored("slower", "rest", 12, machine, "target: {rate: 1000, p99: 20ms}\n", List.of());
        Typed worse = gate(baseline, slower);
        assertThat(worse.exitCode()).isEqualTo(3);
        assertThat(worse.out()).contains("meets it");
        assertThat(worse.err()).isEqualTo("parley: worse than the baseline" + System.lineSeparator());
    }

    @Test
    void aGateWithoutTargetAndBaselineIsAMistake() throws IOException {
        Path run = run("one", 10, "a");
        Typed result = gate(run);
        assertThat(result.err())
                .isEqualTo("parley: --baseline: none (expected: the folder of a run, since the study of " + run
                        + " has no target)" + System.lineSeparator());
        assertThat(result.exitCode()).isEqualTo(1);
    }

    @Test
    void runsAreListedAndShown() throws IOException {
        Path run = run("one", 10, "a");
        assertThat(Typed.line("list", "--in", folder.toString()).out())
                .isEqualTo(run + "  8 of 8 trials  rest  ./parley one\n");
        Path empty = Files.createDirectory(folder.resolve("empty"));
        assertThat(Typed.line("list", "--in", empty.toString()).out()).isEqualTo("no runs in " + empty + "\n");
        Typed nowhere = Typed.line("list", "--in", folder.resolve("nowhere").toString());
        assertThat(nowhere.err()).isEqualTo("parley: --in: " + folder.resolve("nowhere") + " (expected: a folder)\n");
        assertThat(nowhere.exitCode()).isEqualTo(1);
        Typed shown = Typed.line("show", run.toString());
        assertThat(shown.exitCode()).isZero();
        assertThat(shown.out()).contains("./parley one", "study: made up", "8 of 8 trials ended, 8 of them valid");
        assertThat(Typed.line("show", "--study", run.toString()).out()).isEqualTo("study: made up\n");
        assertThat(Typed.line("show", folder.toString()).exitCode()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"csv", "json", "parquet"})
    void aRunIsExported(String format) throws IOException {
        Path run = run("one", 10, "a");
        Path out = folder.resolve("it's out");
        Typed result = Typed.line("export", run.toString(), "--format", format, "--out", out.toString());
        assertThat(result.err()).isEmpty();
        assertThat(result.exitCode()).isZero();
        assertThat(result.out().lines())
                .hasSize(10)
                .contains(out.resolve("trial." + format).toString());
        byte[] trials = Files.readAllBytes(out.resolve("trial." + format));
        assertThat(trials).isNotEmpty();
        if (format.equals("csv")) {
            assertThat(Files.readAllLines(out.resolve("trial.csv"))).hasSize(1 + RESTARTS);
            assertThat(Files.readAllLines(out.resolve("second.csv")))
                    .hasSize(1 + 2 * RESTARTS)
                    .first()
                    .isEqualTo("trial_id,second,replied,late,wrong,failed,not_sent,response_times");
        } else if (format.equals("json")) {
            assertThat(new String(trials, java.nio.charset.StandardCharsets.UTF_8).strip())
                    .startsWith("[")
                    .endsWith("]");
        } else {
            assertThat(Arrays.copyOf(trials, 4)).isEqualTo("PAR1".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
        }
    }

    @Test
    void anUnknownFormatIsNamed() throws IOException {
        assertThat(Typed.line("export", run("one", 1, "a").toString(), "--format", "xls", "--out", folder.toString())
                        .err())
                .startsWith("parley: --format: xls (expected: csv, json or parquet)");
        assertThat(Typed.line("export", folder.resolve("one").toString(), "--format", "cvs", "--out", folder.toString())
                        .err())
                .startsWith("parley: --format: cvs (did you mean csv? expected: csv, json or parquet)");
    }
}
