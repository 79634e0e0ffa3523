package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.Load.Arrivals;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import dev.parley.spi.CallException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EngineTest {
    private final ScheduledExecutorService later = Executors.newScheduledThreadPool(1);

    @AfterEach
    void end() {
        later.shutdownNow();
    }

    private static Engine.Trial trial(Load load, Duration window, int inFlightMost) {
        return new Engine.Trial(
                7,
                load,
                new TrialSpec.Window(Duration.ofMillis(300), Duration.ofMillis(300), window),
                Duration.ofMillis(200),
                Duration.ofSeconds(2),
                inFlightMost,
                1);
    }

    private static List<Event> run(Engine.Trial trial, Target target) throws Exception {
        return Undisturbed.run(() -> {
            List<Event> events = new ArrayList<>();
            new Engine(Clock.SYSTEM, events::add).run(trial, target);
            return events;
        });
    }

    private static Event.Finished finished(List<Event> events) {
        return (Event.Finished) events.getLast();
    }

    private static Histogram histogram(List<Event> events, HistogramRow.Kind kind) throws Exception {
        for (Event event : events) {
            if (event instanceof Event.Distribution(HistogramRow d) && d.kind() == kind) {
                return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(d.histogram()), 0);
            }
        }
        throw new AssertionError("no distribution " + kind);
    }

    @ParameterizedTest
    @ValueSource(ints = {1_000, 10_000})
    void openArrivalsAreCountedExactly(int perSecond) throws Exception {
        Event.Finished finished =
                finished(run(trial(new Load.Open(perSecond, Arrivals.EVEN), Duration.ofSeconds(1), 100_000), (Behaviour)
                        index -> CompletableFuture.completedFuture(true)));
        assertThat(finished.due()).isEqualTo(perSecond);
        assertThat(finished.wrong() + finished.failed()).isZero();
    }

    @Test
    void aFrozenServerIsSeenInFullUnderOpenLoadAndHiddenByAClosedOne() throws Exception {
        // a server that answers at once, but for one half of each second
        Behaviour frozen = index -> {
            long now = System.nanoTime();
            long intoSecond = now % 1_000_000_000;
            if (intoSecond < 500_000_000) {
                LockSupport.parkNanos(500_000_000 - intoSecond);
            }
            return CompletableFuture.completedFuture(true);
        };
        Engine.Trial open = new Engine.Trial(
                1,
                new Load.Open(200, Arrivals.EVEN),
                new TrialSpec.Window(Duration.ofMillis(300), Duration.ofMillis(300), Duration.ofSeconds(1)),
                Duration.ofSeconds(1),
                Duration.ofSeconds(2),
                1000,
                1);
        Engine.Trial closed = new Engine.Trial(
                2, new Load.Closed(1), open.window(), open.limit(), open.callTimeout(), open.inFlightMost(), 1);
        Histogram seen = histogram(run(open, frozen), HistogramRow.Kind.RESPONSE);
        Histogram hidden = histogram(run(closed, frozen), HistogramRow.Kind.RESPONSE);
        // half of all requests fall due in a freeze: their wait is 250 ms in the mean
        assertThat(seen.getValueAtPercentile(75)).isGreaterThan(100_000_000);
        assertThat(seen.getValueAtPercentile(99)).isGreaterThan(400_000_000);
        assertThat(hidden.getValueAtPercentile(99)).isLessThan(1_000_000);
    }

    @Test
    void everyKindOfEndIsCountedAsWhatItIs() throws Exception {
        // of ten requests: one wrong, one late, one dropped, one refused, six right
        Behaviour mixed = index -> switch ((int) (index % 10)) {
            case 0 -> CompletableFuture.completedFuture(false);
            case 1 -> {
                CompletableFuture<Boolean> late = new CompletableFuture<>();
                later.schedule(() -> late.complete(true), 300, TimeUnit.MILLISECONDS);
                yield late;
            }
            case 2 -> new CompletableFuture<Boolean>().orTimeout(400, TimeUnit.MILLISECONDS);
            case 3 -> CompletableFuture.failedFuture(new CallException(CallException.Code.REMOTE_ERROR, "planted"));
            default -> CompletableFuture.completedFuture(true);
        };
        Event.Finished finished =
                finished(run(trial(new Load.Open(500, Arrivals.EVEN), Duration.ofSeconds(1), 10_000), mixed));
        assertThat(finished.due()).isEqualTo(500);
        assertThat(finished.wrong()).isBetween(49L, 51L);
        assertThat(finished.late()).isBetween(49L, 51L);
        assertThat(finished.failed()).isBetween(99L, 101L);
        assertThat(finished.voidReasons()).anyMatch(reason -> reason.contains("wrong replies"));
        assertThat(finished.firstFailure()).isNotEmpty();
    }

    @Test
    void whatCannotBeSentIsCountedAndNotSentLater() throws Exception {
        List<CompletableFuture<Boolean>> held = new ArrayList<>();
        AtomicLong sent = new AtomicLong();
        Behaviour holding = index -> {
            sent.incrementAndGet();
            CompletableFuture<Boolean> never = new CompletableFuture<Boolean>().orTimeout(1500, TimeUnit.MILLISECONDS);
            held.add(never);
            return never;
        };
        Event.Finished finished =
                finished(run(trial(new Load.Open(100, Arrivals.EVEN), Duration.ofSeconds(1), 5), holding));
        assertThat(finished.due()).isEqualTo(100);
        assertThat(finished.notSent()).isGreaterThan(80);
        assertThat(finished.voidReasons()).anyMatch(reason -> reason.contains("could not be sent"));
    }

    @Test
    void closedClientsObeyLittlesLaw() throws Exception {
        Behaviour fiveMilliseconds = index -> {
            CompletableFuture<Boolean> reply = new CompletableFuture<>();
            later.schedule(() -> reply.complete(true), 5, TimeUnit.MILLISECONDS);
            return reply;
        };
        Event.Finished finished = finished(run(trial(new Load.Closed(8), Duration.ofSeconds(1), 0), fiveMilliseconds));
        assertThat(finished.littlesLaw()).isBetween(0.95, 1.05);
        assertThat(finished.replied()).isBetween(500L, 1600L);
    }

    @Test
    void littlesLawOfOpenLoadsTellsTimesThatAreMissingOrTooLong() {
        List<Event> events = new ArrayList<>();
        for (double recorded : new double[] {1, 0.9, 1.1}) {
            Tally tally = new Tally(1, events::add);
            Stretch part = Stretch.held("open", 1000, 1_000_000_000, new Outcomes(Long.MAX_VALUE));
            tally.open(part);
            for (long i = 0; i < 1000; i++) {
                long dueNs = i * 1_000_000;
                part.outcomes.due(1);
                part.outcomes.entered(dueNs);
                part.outcomes.left(dueNs + 5_000_000);
                part.outcomes.answered(0, true, dueNs, dueNs, dueNs + (long) (5_000_000 * recorded));
            }
            tally.take();
            tally.closeAll(false, 2_000_000_000, new IllegalStateException("none is left"));
            assertThat(tally.littlesLaw()).isCloseTo(recorded, within(0.001));
            VoidReasons reasons = new VoidReasons(
                    new Load.Open(1000, Arrivals.EVEN), tally.counts(), 1000, 0, 0, 0, 0, tally.littlesLaw());
            assertThat(reasons.all()).hasSize(recorded == 1 ? 0 : 1);
        }
    }

    @Test
    void secondsAddUpToTheWindow() throws Exception {
        List<Event> events =
                run(trial(new Load.Open(1000, Arrivals.POISSON), Duration.ofSeconds(2), 10_000), (Behaviour)
                        index -> CompletableFuture.completedFuture(true));
        long bySecond = events.stream()
                .filter(Event.Second.class::isInstance)
                .mapToLong(e -> ((Event.Second) e).row().replied())
                .sum();
        assertThat(events.stream().filter(Event.Second.class::isInstance)).hasSize(2);
        assertThat(finished(events).replied()).isEqualTo(bySecond);
    }

    /** A server that grows faster in the middle of each window: one of a second, and one of less. */
    @ParameterizedTest
    @ValueSource(ints = {400, 1_000, 1_500})
    void aSteadyWindowIsToldInItsTwoHalves(int windowMs) throws Exception {
        AtomicLong beganNs = new AtomicLong();
        Behaviour fallsInTheMiddle = index -> {
            CompletableFuture<Boolean> reply = new CompletableFuture<>();
            boolean isEarly = beganNs.get() == 0 || System.nanoTime() - beganNs.get() < windowMs * 500_000L;
            later.schedule(() -> reply.complete(true), isEarly ? 20 : 1, TimeUnit.MILLISECONDS);
            return reply;
        };
        List<Event> events = new ArrayList<>();
        new Engine(Clock.SYSTEM, event -> {
                    events.add(event);
                    if (event instanceof Event.Progress p && p.phase() == Event.Phase.WINDOW && p.elapsedMs() == 0) {
                        beganNs.set(System.nanoTime());
                    }
                })
                .run(trial(new Load.Open(200, Arrivals.EVEN), Duration.ofMillis(windowMs), 1_000), fallsInTheMiddle);
        Histogram first = histogram(events, HistogramRow.Kind.FIRST_HALF);
        Histogram second = histogram(events, HistogramRow.Kind.SECOND_HALF);
        assertThat(first.getTotalCount() + second.getTotalCount())
                .isEqualTo(finished(events).replied());
        assertThat(first.getValueAtPercentile(50)).isGreaterThan(19_000_000);
        assertThat(second.getValueAtPercentile(25)).isLessThan(15_000_000);
    }

    @Test
    void aLoadThatChangesHasNoHalves() throws Exception {
        List<Event> events =
                run(trial(new Load.Staircase(1, 2, 1, Duration.ofMillis(100)), Duration.ofMillis(200), 100), (Behaviour)
                        index -> CompletableFuture.completedFuture(true));
        assertThat(events)
                .filteredOn(e ->
                        e instanceof Event.Distribution(HistogramRow d) && d.kind() == HistogramRow.Kind.FIRST_HALF)
                .isEmpty();
    }

    @Test
    void aKnownDistributionIsRecoveredWithinOnePercent() {
        // answers are not slept but told: recorder and percentiles are what is tested, not the machine's timers
        Outcomes outcomes = new Outcomes(Long.MAX_VALUE);
        java.util.Random random = new java.util.Random(5);
        int n = 400_000;
        long[] truth = new long[n];
        for (int i = 0; i < n; i++) {
            truth[i] = (long) (1_000_000 * Math.exp(random.nextGaussian()));
            outcomes.answered(i, true, 0, 0, truth[i]);
        }
        java.util.Arrays.sort(truth);
        Histogram recorded = new Histogram(Outcomes.DIGITS);
        outcomes.takeResponses(recorded);
        for (double p : new double[] {50, 90, 99, 99.9}) {
            long expected = truth[(int) Math.ceil(p / 100 * n) - 1];
            assertThat((double) recorded.getValueAtPercentile(p) / expected).isBetween(0.99, 1.01);
        }
    }
}
