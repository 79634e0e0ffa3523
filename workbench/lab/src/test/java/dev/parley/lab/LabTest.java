package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.analysis.Distribution;
import dev.parley.limits.Confinement;
import dev.parley.model.BadInput;
import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Study;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialRow.State;
import dev.parley.model.TrialSpec;
import dev.parley.process.Ports;
import dev.parley.protocol.Event;
import dev.parley.protocol.Event.Phase;
import dev.parley.spi.Work;
import dev.parley.store.RunStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.assertj.core.data.Offset;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Real processes on loopback, windows under a second. */
class LabTest {
    private static final Duration WINDOW = Duration.ofMillis(600);

    @TempDir
    Path out;

    @BeforeAll
    static void services() {
        TinyRun.needPackages();
    }

    /** The lines of a trial's window have the store's mean. */
    private void assertLogSaysTheSame(HistogramRow hop) {
        long[] took;
        try (Stream<Path> logs = Files.list(out.resolve("observed/calls"))) {
            took = logs.flatMap(LabTest::lines)
                    .filter(line -> line.contains("\"labels.window\":\"" + hop.trialId() + "\"")
                            && line.contains("\"event.outcome\":\"success\""))
                    .mapToLong(line -> Long.parseLong(line.replaceAll(".*\"event.duration\":(\\d+).*", "$1")))
                    .toArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        Distribution stored = Distribution.merged(List.of(hop.histogram()));
        double mean = Arrays.stream(took).average().orElse(0);
        assertThat(mean).isCloseTo(stored.meanNs(), Offset.offset(0.01 * stored.meanNs()));
    }

    private static Stream<String> lines(Path file) {
        try {
            return Files.readAllLines(file).stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void everyTrialLeavesItsRowsAndEveryBootItsFigures() throws InterruptedException {
        TinyRun.Listener listener = new TinyRun.Listener();
        Lab observed = new Lab(Catalog.read(), listener, Map.of(), true);
        Lab.Ending ending = observed.run(TinyRun.rehearsed(List.of("grpc", "rpcx"), 1, WINDOW), out, "a test");

        assertThat(ending.finished()).isEqualTo(4);
        assertThat(ending.failed()).isZero();
        assertThat(listener.glances).hasSize(4).allSatisfy(glance -> {
            assertThat(glance.perSecond()).isPositive();
            assertThat(glance.p99Ms()).isGreaterThanOrEqualTo(glance.medianMs());
            assertThat(glance.unsuccessful()).isZero();
        });
        try (RunStore store = RunStore.open(out.resolve(Lab.STORE_FILE))) {
            assertThat(store.run().technologies()).extracting(t -> t.name()).containsExactly("grpc", "rpcx");
            assertThat(store.run().technologies())
                    .allSatisfy(t -> assertThat(t.settings()).isNotEmpty());
            assertThat(store.run().jvmFlags()).contains("-Xmx1024m");
            // null where there are none
            assertThat(store.run().machine().get("JAVA_TOOL_OPTIONS")).isEqualTo(System.getenv("JAVA_TOOL_OPTIONS"));
            assertThat(store.libraries()).extracting(l -> l.technology()).contains("grpc", "rpcx", FigureRow.EMPTY);
            assertThat(store.trials()).extracting(TrialRow::state).containsOnly(State.FINISHED);
            for (HistogramRow hop : store.histograms()) {
                if (hop.kind() == HistogramRow.Kind.HOP) {
                    assertLogSaysTheSame(hop);
                }
            }
            for (TrialSpec trial : store.plan()) {
                assertThat(store.histograms())
                        .filteredOn(h -> h.trialId() == trial.id())
                        .extracting(h -> h.kind() + " " + h.subject())
                        .contains("RESPONSE client", "SERVICE client", "HOP m1>m2");
                assertThat(store.seconds())
                        .filteredOn(s -> s.trialId() == trial.id() && s.second() >= 0)
                        .isNotEmpty();
                assertThat(metrics(store, trial.id()))
                        .contains(
                                Metric.WIRE_OUT,
                                Metric.WIRE_BACK,
                                Metric.PAYLOAD_OUT,
                                Metric.PAYLOAD_BACK,
                                Metric.CPU_SHARE,
                                Metric.CPU_PER_REQUEST,
                                Metric.ALLOCATED_PER_REQUEST,
                                Metric.COMPILING_SHARE,
                                Metric.REHEARSAL_TIME,
                                Metric.REHEARSED_MEDIAN,
                                Metric.MEMORY_AFTER_LOAD,
                                Metric.GENERATOR_CPU,
                                Metric.GENERATOR_COMPILING,
                                Metric.GENERATOR_CEILING);
                // measured for this run, with a generator and a server of its own
                assertThat(value(store, trial.id(), Metric.GENERATOR_CEILING, "generator"))
                        .isBetween(1_000.0, 1e8);
                assertThat(value(store, trial.id(), Metric.WIRE_OUT, FigureRow.SYSTEM))
                        .isGreaterThan(value(store, trial.id(), Metric.PAYLOAD_OUT, FigureRow.SYSTEM));
            }
            for (int firstOfBoot : List.of(0, 2)) {
                assertThat(metrics(store, firstOfBoot))
                        .contains(Metric.BOOT_TIME, Metric.FIRST_CALL, Metric.INSTALLED_SIZE, Metric.MEMORY_AFTER_BOOT);
                assertThat(value(store, firstOfBoot, Metric.INSTALLED_SIZE, "m1"))
                        .isGreaterThan(value(store, 0, Metric.INSTALLED_SIZE, FigureRow.EMPTY));
            }
            assertThat(value(store, 0, Metric.BOOT_TIME, FigureRow.EMPTY)).isPositive();
            assertThat(value(store, 0, Metric.MEMORY_AFTER_BOOT, FigureRow.EMPTY))
                    .isPositive();
            Set<String> kinds = store.histograms().stream()
                    .map(HistogramRow::kind)
                    .map(HistogramRow.Kind::key)
                    .collect(Collectors.toSet());
            assertThat(kinds)
                    .contains("response", "service", "send_delay", "error", "hop", "first_half", "second_half");
        }
        assertThat(ProcessHandle.current().descendants()).isEmpty();
    }

    @Test
    void aServiceKilledInMidTrialFailsThatTrialAloneAndTheRunGoesOnWithServicesStartedAnew()
            throws InterruptedException {
        TinyRun.Listener listener = new TinyRun.Listener() {
            private boolean isDone;

            @Override
            public void progress(TrialSpec trial, Event.Progress progress) {
                if (!isDone && progress.phase() == Phase.WINDOW) {
                    isDone = true;
                    assertThat(service("m2").destroyForcibly()).isTrue();
                }
            }
        };
        Lab.Ending ending = TinyRun.lab(listener).run(TinyRun.study(List.of("rpcx"), 1, WINDOW), out, "a test");

        assertThat(ending.failed()).isEqualTo(1);
        assertThat(ending.finished()).isEqualTo(1);
        assertThat(ending.firstFailure().orElseThrow())
                .contains("m2", "exit code 137", "log: ")
                .doesNotContain("\n");
        assertThat(listener.notes).containsExactly("the services are started anew for what is left of this restart");
        try (RunStore store = RunStore.open(out.resolve(Lab.STORE_FILE))) {
            assertThat(store.trials()).extracting(TrialRow::state).containsExactly(State.FAILED, State.FINISHED);
        }
        assertThat(ProcessHandle.current().descendants()).isEmpty();
    }

    @Test
    void limitsHoldForTheServicesOfATrial() throws InterruptedException {
        Study free = TinyRun.study(List.of("rpcx"), 1, WINDOW);
        Limits limits = new Limits(
                new Limits.Share(Optional.of(1.0), Optional.of(600_000_000L)),
                Map.of(),
                Map.of("left", List.of("m1"), "right", List.of("m2")),
                Optional.of(new Limits.Bandwidth(10_000_000)),
                Optional.of(new Limits.Proxy(Duration.ofMillis(5), Optional.empty(), Optional.empty())));
        try {
            Confinement.check(limits);
        } catch (BadInput why) {
            assumeTrue(false, why.getMessage());
        }
        Study limited = new Study(
                "limited",
                free.technologies(),
                free.topologies(),
                free.work(),
                free.messages(),
                List.of(new Load.Closed(1)),
                free.effort(),
                1,
                free.limit(),
                1,
                limits);
        TinyRun.Listener listener = new TinyRun.Listener();
        Lab.Ending ending = TinyRun.lab(listener).run(limited, out, "a test");
        assertThat(ending.firstFailure()).isEmpty();
        assertThat(ending.finished()).isEqualTo(1);
        // a delay of 5 ms each way on two hops
        assertThat(listener.glances.getFirst().medianMs()).isBetween(20.0, 200.0);
        assertThat(listener.glances.getFirst().unsuccessful()).isZero();
    }

    @Test
    void aTakenPortIsReplacedByAnother() throws IOException, InterruptedException {
        TinyRun.Listener listener = new TinyRun.Listener();
        Plan.Boot boot =
                Plan.of(TinyRun.study(List.of("rpcx"), 1, WINDOW)).boots().getFirst();
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Iterator<Integer> ports =
                    List.of(taken.getLocalPort(), Ports.free(), Ports.free()).iterator();
            try (Databases none = Databases.start(
                            Work.named("messages"), List.of(), TinyRun.home(), Map.of(), out, listener);
                    TrialPath path = new TrialPath(
                            boot,
                            new Installations(TinyRun.home(), Catalog.read()),
                            out,
                            1,
                            listener,
                            Optional.empty(),
                            none,
                            Ceiling.NONE,
                            Observation.none(TinyRun.home()),
                            ports::next)) {
                assertThat(path.boot()).isNotEmpty();
            }
            assertThat(listener.notes)
                    .containsExactly(
                            "port " + taken.getLocalPort() + " was taken by another program: m2 tries another");
        }
    }

    @Test
    void aLabThatIsKilledInMidTrialLeavesNoProcessAndGoesOnWithoutLosingDoublingOrMixingATrial()
            throws IOException, InterruptedException {
        Process lab = labThatSaid("under way 1", 2);
        List<ProcessHandle> children = lab.descendants().toList();
        assertThat(children).hasSizeGreaterThanOrEqualTo(3);
        lab.destroyForcibly();

        nothingIsLeft(lab, children);
        try (RunStore store = RunStore.open(out.resolve(Lab.STORE_FILE))) {
            assertThat(store.trials()).extracting(TrialRow::state).containsExactly(State.FINISHED);
            assertThat(store.unfinished()).isNotEmpty();
        }

        Study study = TinyRun.study(List.of("rpcx"), 2, TinyRun.PRINTED_WINDOW);
        TinyRun.Listener listener = new TinyRun.Listener();
        assertThatThrownBy(() -> TinyRun.lab(listener)
                        .resume(Optional.of(TinyRun.study(List.of("rpcx"), 3, TinyRun.PRINTED_WINDOW)), out))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("digest");
        Lab.Ending ending = TinyRun.lab(listener).resume(Optional.of(study), out);
        assertThat(ending.finished()).isEqualTo(3);
        assertThat(listener.ended).extracting(row -> row.spec().id()).containsExactly(1, 2, 3);
        assertThat(TinyRun.lab(listener).resume(Optional.<Study>empty(), out).finished())
                .isZero();
        try (RunStore store = RunStore.open(out.resolve(Lab.STORE_FILE))) {
            assertThat(store.plan()).isEqualTo(Plan.of(study).trials());
            assertThat(store.unfinished()).isEmpty();
            assertThat(store.trials())
                    .extracting(row -> row.spec().id() + " " + row.state())
                    .containsExactly("0 FINISHED", "1 FINISHED", "2 FINISHED", "3 FINISHED");
            assertThat(store.histograms())
                    .filteredOn(h -> h.kind() == HistogramRow.Kind.RESPONSE)
                    .extracting(HistogramRow::trialId)
                    .containsExactly(0, 1, 2, 3);
            assertThat(store.seconds())
                    .extracting(s -> s.trialId() + "/" + s.second())
                    .doesNotHaveDuplicates();
            assertThat(store.figures())
                    .filteredOn(f -> f.metric() == Metric.BOOT_TIME)
                    .extracting(f -> f.trialId() + " " + f.subject())
                    .containsExactlyInAnyOrder("0 empty", "0 m1", "0 m2", "2 empty", "2 m1", "2 m2");
        }
    }

    @Test
    void aLabThatIsToldToEndMarksTheTrialUnderWay() throws IOException, InterruptedException {
        Process lab = labThatSaid("ended 0", 100);
        List<ProcessHandle> children = lab.descendants().toList();
        assertThat(children).hasSizeGreaterThanOrEqualTo(3);
        lab.destroy();

        nothingIsLeft(lab, children);
        try (RunStore store = RunStore.open(out.resolve(Lab.STORE_FILE))) {
            assertThat(store.trials()).extracting(TrialRow::state).contains(State.FINISHED);
            assertThat(store.trials().getLast().state()).isEqualTo(State.INTERRUPTED);
        }
    }

    private Process labThatSaid(String awaited, int restarts) throws IOException {
        Process lab = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-XX:TieredStopAtLevel=1",
                        "-Dparley.home=" + TinyRun.home(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        TinyRun.class.getName(),
                        out.toString(),
                        Integer.toString(restarts))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        List<String> said = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(lab.getInputStream(), StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            said.add(line);
            if (line.startsWith(awaited)) {
                return lab;
            }
        }
        throw new AssertionError("the lab ended by itself: " + said);
    }

    private static void nothingIsLeft(Process lab, List<ProcessHandle> children) throws InterruptedException {
        assertThat(lab.waitFor(20, TimeUnit.SECONDS)).isTrue();
        Awaitility.await()
                .atMost(Duration.ofSeconds(10))
                .until(() -> children.stream().noneMatch(ProcessHandle::isAlive));
    }

    private static ProcessHandle service(String name) {
        return ProcessHandle.current()
                .children()
                .filter(child -> commandLine(child).contains("name=" + name))
                .findFirst()
                .orElseThrow();
    }

    /** Whole: the JDK gives no arguments for a command line as long as a class path. */
    private static String commandLine(ProcessHandle process) {
        try {
            return Files.readString(Path.of("/proc", Long.toString(process.pid()), "cmdline"));
        } catch (IOException elsewhere) {
            return process.info().commandLine().orElse("");
        }
    }

    private static List<Metric> metrics(RunStore store, int trialId) {
        return store.figures().stream()
                .filter(f -> f.trialId() == trialId)
                .map(FigureRow::metric)
                .toList();
    }

    private static double value(RunStore store, int trialId, Metric metric, String subject) {
        return store.figures().stream()
                .filter(f -> f.trialId() == trialId
                        && f.metric() == metric
                        && f.subject().equals(subject))
                .mapToDouble(FigureRow::value)
                .findFirst()
                .orElseThrow();
    }
}
