package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.BadInput;
import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import dev.parley.spi.CallException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.zip.DataFormatException;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/**
 * Whole trials in simulated time, told moment by moment. Arrivals and replies are laid so that no two things happen at
 * the same nanosecond: each trial has one true account, which arithmetic gives.
 */
class EngineToldTest {
    private static final long MS = 1_000_000;

    private final SimulatedClock clock = new SimulatedClock();
    private final List<Event> events = new ArrayList<>();
    private Duration callTimeout = Duration.ofSeconds(2);

    /** How a request ends, by its scenario's index. */
    private interface Ending {
        long afterNs(long index);

        default boolean isRight(long index) {
            return true;
        }

        default boolean fails(long index) {
            return false;
        }
    }

    private class Server implements Target {
        private final Ending ending;
        private final int steps;
        final AtomicLong asked = new AtomicLong();
        final AtomicReference<Thread> lastSender = new AtomicReference<>();

        Server(Ending ending, int steps) {
            this.ending = ending;
            this.steps = steps;
        }

        Server(Ending ending) {
            this(ending, 1);
        }

        @Override
        public int requests() {
            return steps;
        }

        @Override
        public boolean call(int step, long index) {
            asked.incrementAndGet();
            lastSender.set(Thread.currentThread());
            try {
                clock.awaitNs(clock.nowNs() + ending.afterNs(index));
            } catch (InterruptedException e) {
                throw new CallException(CallException.Code.UNAVAILABLE, "interrupted");
            }
            if (ending.fails(index)) {
                throw new CallException(CallException.Code.REMOTE_ERROR, "planted");
            }
            return ending.isRight(index);
        }

        @Override
        public void send(int step, long index, Asker asker) {
            asked.incrementAndGet();
            lastSender.set(Thread.currentThread());
            clock.at(
                    clock.nowNs() + ending.afterNs(index),
                    () -> asker.ended(
                            ending.isRight(index),
                            ending.fails(index)
                                    ? new CallException(CallException.Code.REMOTE_ERROR, "planted")
                                    : null));
        }
    }

    /** The settings of a trial that tests differ in. */
    private record Setting(String load, long warmUpLeastMs, long warmUpMostMs, long windowMs, int inFlightMost) {
        static Setting of(String load, long warmUpMs, long windowMs) {
            return new Setting(load, warmUpMs, warmUpMs, windowMs, 1_000);
        }
    }

    private void run(Setting setting, Target target) throws InterruptedException {
        run(setting, target, _ -> {});
    }

    private void run(Setting setting, Target target, Consumer<Event> meanwhile) throws InterruptedException {
        // a clock's beginning is no moment of a trial
        clock.awaitNs(clock.nowNs() + 5_000 * MS);
        new Engine(clock, event -> {
                    events.add(event);
                    meanwhile.accept(event);
                })
                .run(
                        new Engine.Trial(
                                7,
                                Load.parse(setting.load()),
                                new TrialSpec.Window(
                                        Duration.ofMillis(setting.warmUpLeastMs()),
                                        Duration.ofMillis(setting.warmUpMostMs()),
                                        Duration.ofMillis(setting.windowMs())),
                                Duration.ofMillis(200),
                                callTimeout,
                                setting.inFlightMost(),
                                5),
                        target);
    }

    /**
     * All that was told, a line an event, without what the machine's own time has to say, and without the edges of
     * probes, which have tests of their own.
     */
    private List<String> told() {
        return events.stream()
                .filter(event -> !(event instanceof Event.ProbeBegins || event instanceof Event.ProbeEnds))
                .map(EngineToldTest::line)
                .toList();
    }

    /** Replies until each edge between which processes are measured. */
    private List<Long> edges() {
        return Stream.concat(
                        all(Event.ProbeBegins.class).stream().map(Event.ProbeBegins::answered),
                        all(Event.ProbeEnds.class).stream().map(Event.ProbeEnds::answered))
                .toList();
    }

    /** The lines that begin with one of these words. */
    private List<String> told(String... beginnings) {
        return told().stream()
                .filter(line -> Arrays.stream(beginnings).anyMatch(line::startsWith))
                .toList();
    }

    private static String line(Event event) {
        return switch (event) {
            case Event.Progress p ->
                text(
                        "%s %d ms: %.0f/s, p99 %.1f ms, %d errors, %d in flight",
                        p.phase(), p.elapsedMs(), p.perSecond(), p.p99Ms(), p.errors(), p.inFlight());
            case Event.Second(SecondRow s) ->
                text(
                        "second %d: %d right, %d late, %d wrong, %d failed, %d not sent",
                        s.second(), s.replied(), s.late(), s.wrong(), s.failed(), s.notSent());
            case Event.Step s ->
                text(
                        "step %d, %s, %.1f to %.1f%s%s, %.3f ms: %d right, %d late, %d wrong, %d failed, %d not sent,"
                                + " %d scenarios",
                        s.step(),
                        s.label(),
                        s.from(),
                        s.to(),
                        s.isCounted() ? "" : ", not counted",
                        s.isCut() ? ", cut" : "",
                        s.lengthNs() / 1e6,
                        s.replied(),
                        s.late(),
                        s.wrong(),
                        s.failed(),
                        s.notSent(),
                        decoded(s.scenarioTimes()).getTotalCount());
            case Event.Uncounted u -> text("besides: %d sent, %d answered", u.sent(), u.answered());
            case Event.Distribution(HistogramRow d) -> {
                Histogram times = decoded(d.histogram());
                yield text("%s: %d, up to %.1f ms", d.kind().key(), times.getTotalCount(), times.getMaxValue() / 1e6);
            }
            case Event.Finished f ->
                text(
                        "%.3f ms after %d ms%s: %d right, %d late, %d wrong, %d failed, %d not sent; sent late by"
                                + " %.1f, %.1f ms; law %.2f; first failure at %d; highest %.1f; %s",
                        f.windowNs() / 1e6,
                        f.warmUpMs(),
                        f.isStable() ? ", level" : "",
                        f.replied(),
                        f.late(),
                        f.wrong(),
                        f.failed(),
                        f.notSent(),
                        f.latenessP50Ns() / 1e6,
                        f.latenessP99Ns() / 1e6,
                        f.littlesLaw(),
                        f.usersAtFirstFailure(),
                        f.highestRate(),
                        f.firstFailure());
            default -> event.toString();
        };
    }

    private static String text(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }

    private static Histogram decoded(byte[] bytes) {
        try {
            return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(bytes), 0);
        } catch (DataFormatException e) {
            throw new AssertionError(e);
        }
    }

    private Event.Finished finished() {
        return (Event.Finished) events.getLast();
    }

    private <E extends Event> List<E> all(Class<E> type) {
        return events.stream().filter(type::isInstance).map(type::cast).toList();
    }

    @Test
    void anOpenTrialIsToldMomentByMoment() throws Exception {
        run(Setting.of("open:33.4:even", 1_000, 2_000), new Server(_ -> 3 * MS));
        assertThat(told())
                .containsExactly(
                        "WARM_UP 500 ms: 34/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "WARM_UP 1000 ms: 34/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "WINDOW 500 ms: 34/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "WINDOW 1000 ms: 34/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "second 0: 34 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "WINDOW 1500 ms: 32/s, p99 3.0 ms, 0 errors, 1 in flight",
                        "LAST_REPLIES 2000 ms: 34/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "second 1: 33 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 0, 33.4 per second, 33.4 to 33.4, 2000.000 ms: 67 right, 0 late, 0 wrong, 0 "
                                + "failed, 0 not sent, 0 scenarios",
                        "besides: 34 sent, 34 answered",
                        "response: 67, up to 3.0 ms",
                        "service: 67, up to 3.0 ms",
                        "send_delay: 67, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "first_half: 34, up to 3.0 ms",
                        "second_half: 33, up to 3.0 ms",
                        "2000.000 ms after 1000 ms: 67 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late "
                                + "by 0.0, 0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    @Test
    void aClosedTrialIsToldMomentByMoment() throws Exception {
        run(Setting.of("closed:2", 0, 1_200), new Server(_ -> 7 * MS));
        assertThat(told())
                .containsExactly(
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "WINDOW 500 ms: 284/s, p99 7.0 ms, 0 errors, 2 in flight",
                        "WINDOW 1000 ms: 284/s, p99 7.0 ms, 0 errors, 2 in flight",
                        "second 0: 284 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "LAST_REPLIES 1200 ms: 290/s, p99 7.0 ms, 0 errors, 2 in flight",
                        "second 1: 60 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 0, 2 clients, 2.0 to 2.0, 1200.000 ms: 344 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "besides: 0 sent, 0 answered",
                        "response: 344, up to 7.0 ms",
                        "service: 344, up to 7.0 ms",
                        "send_delay: 0, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "first_half: 170, up to 7.0 ms",
                        "second_half: 174, up to 7.0 ms",
                        "1200.000 ms after 0 ms: 344 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late by "
                                + "0.0, 0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    /** One client is answered each 7 ms: 71 times in half a second, and 157 times in the 1.1 s until it is stopped. */
    @Test
    void processesAreMeasuredUnderAClosedLoadUntilItIsStopped() throws Exception {
        run(Setting.of("closed:1", 500, 600), new Server(_ -> 7 * MS));
        assertThat(edges()).containsExactly(500L / 7, 1_100L / 7);
    }

    /** Of 516 requests sent the last three are under way when clients are stopped; the warm-up had a hundred. */
    @Test
    void processesAreMeasuredUnderAStaircaseOverAllOfItsSteps() throws Exception {
        run(Setting.of("staircase:1-3:+1:600ms", 700, 1_800), new Server(_ -> 7 * MS));
        assertThat(edges()).containsExactly(100L, 100L + 86 + 172 + 258 - 3);
    }

    /**
     * 34 requests are due in each second, 29.9 ms apart, and are answered in 150 ms: the last five of the warm-up in the
     * window, and the last five of the window after it.
     */
    @Test
    void processesAreMeasuredUnderAnOpenLoadUntilItsLastReply() throws Exception {
        run(Setting.of("open:33.4:even", 1_000, 1_000), new Server(_ -> 150 * MS));
        assertThat(edges()).containsExactly(34L - 5, 34L + 34);
        assertThat(events.indexOf(all(Event.ProbeEnds.class).getFirst()))
                .isGreaterThan(events.lastIndexOf(all(Event.Progress.class).getLast()));
    }

    /** Three rounds of five requests, the first of which does not count. */
    @Test
    void processesAreMeasuredFromTheFirstRoundThatCounts() throws Exception {
        run(Setting.of("rounds:2x5:3:200ms:shared", 0, 1_000), new Server(_ -> 2_300_000));
        assertThat(edges()).containsExactly(5L, 15L);
        assertThat(finished().replied()).isEqualTo(10);
    }

    @Test
    void noRoundIsMeasuredWhereTheFirstIsCut() throws Exception {
        run(
                Setting.of("rounds:2x5:4:200ms:shared", 0, 1_000),
                new Server(_ -> Duration.ofDays(900).toNanos()));
        assertThat(all(Event.Step.class)).singleElement().matches(Event.Step::isCut);
        assertThat(edges()).containsExactly(0L, 0L);
    }

    @Test
    void processesAreMeasuredOverAllBursts() throws Exception {
        run(Setting.of("burst:5:3", 0, 1_000), new Server(_ -> 2_700_000));
        assertThat(edges()).containsExactly(0L, 15L);
    }

    @Test
    void processesAreMeasuredOverAllStepsOfRates() throws Exception {
        run(Setting.of("rates:50-100:+50:1s", 0, 2_000), new Server(_ -> 3 * MS));
        assertThat(edges()).containsExactly(0L, 50L + 100);
    }

    /** Services did the work of a reply that is wrong or late too; a request that failed has no reply. */
    @Test
    void wrongAndLateRepliesAreAnsweredBetweenTheEdges() throws Exception {
        run(Setting.of("burst:10:1", 0, 1_000), new Server(new Ending() {
            @Override
            public long afterNs(long index) {
                return (index == 1 ? 250 : 3) * MS;
            }

            @Override
            public boolean isRight(long index) {
                return index != 2;
            }

            @Override
            public boolean fails(long index) {
                return index == 3;
            }
        }));
        assertThat(List.of(
                        finished().replied(),
                        finished().late(),
                        finished().wrong(),
                        finished().failed()))
                .containsExactly(7L, 1L, 1L, 1L);
        assertThat(edges()).containsExactly(0L, 9L);
    }

    /** Telling the second tick takes 300 ms, in which the window's end passes: clients go on until they are stopped. */
    @Test
    void whatClosedClientsSendUntilTheyAreStoppedIsOverItsOwnTime() throws Exception {
        run(Setting.of("closed:2", 0, 1_200), new Server(_ -> 7 * MS), event -> {
            if (event instanceof Event.Progress p && p.elapsedMs() == 1_000) {
                spend(300);
            }
        });
        assertThat(finished().windowNs()).isEqualTo(1_300 * MS);
        assertThat(all(Event.Step.class))
                .singleElement()
                .satisfies(step -> assertThat(step.lengthNs()).isEqualTo(1_300 * MS));
        assertThat(finished().due()).isEqualTo(2 * (1_300 / 7 + 1));
        assertThat(finished().littlesLaw()).isCloseTo(1, within(1e-9));
    }

    private void spend(long ms) {
        try {
            clock.awaitNs(clock.nowNs() + ms * MS);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Replies that come in 150 ms are those of a service that is behind: the rate is over the time until the last. */
    @Test
    void anOpenLoadsRateIsOverTheTimeUntilTheLastRightReply() throws Exception {
        run(Setting.of("open:33.4:even", 0, 1_000), new Server(_ -> 150 * MS));
        // the 34th is due at 33 / 33.4 s, and its reply is looked for each millisecond
        double lastMs = 33 / 33.4 * 1000 + 150;
        assertThat(finished().windowNs() / 1e6).isBetween(lastMs, lastMs + 1.001);
        assertThat(all(Event.Step.class))
                .singleElement()
                .satisfies(
                        step -> assertThat(step.lengthNs()).isEqualTo(finished().windowNs()));
    }

    @Test
    void aStaircaseIsToldStepByStep() throws Exception {
        run(Setting.of("staircase:1-3:+1:600ms", 700, 1_800), new Server(_ -> 7 * MS));
        assertThat(told())
                .containsExactly(
                        "WARM_UP 500 ms: 142/s, p99 7.0 ms, 0 errors, 1 in flight",
                        "WARM_UP 700 ms: 140/s, p99 7.0 ms, 0 errors, 1 in flight",
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "WINDOW 500 ms: 142/s, p99 7.0 ms, 0 errors, 1 in flight",
                        "WINDOW 1000 ms: 256/s, p99 7.0 ms, 0 errors, 2 in flight",
                        "second 0: 199 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 0, 1 clients, 1.0 to 1.0, 600.000 ms: 86 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "WINDOW 1500 ms: 370/s, p99 7.0 ms, 0 errors, 3 in flight",
                        "LAST_REPLIES 1800 ms: 430/s, p99 7.0 ms, 0 errors, 3 in flight",
                        "second 1: 317 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 1, 2 clients, 2.0 to 2.0, 600.000 ms: 172 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "step 2, 3 clients, 3.0 to 3.0, 600.000 ms: 258 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "besides: 100 sent, 100 answered",
                        "response: 516, up to 7.0 ms",
                        "service: 516, up to 7.0 ms",
                        "send_delay: 0, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "1800.000 ms after 701 ms: 516 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late "
                                + "by 0.0, 0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    /**
     * The last request of each step is due 598.8 ms after its beginning and answered 3 ms later, which is looked for
     * each millisecond: a step of 600 ms takes 602.
     */
    @Test
    void stepsOfRatesAreToldStepByStep() throws Exception {
        run(Setting.of("rates:33.4-100.2:+33.4:600ms", 0, 1_800), new Server(_ -> 3 * MS));
        assertThat(told("step", "second", "besides", "response", "first_half", "1806"))
                .containsExactly(
                        "second 0: 21 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 0, 33.4 per second, 33.4 to 33.4, 602.000 ms: 21 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "second 1: 41 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 1, 66.8 per second, 66.8 to 66.8, 602.000 ms: 41 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "second 2: 61 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 2, 100.2 per second, 100.2 to 100.2, 602.000 ms: 61 right, 0 late, 0 wrong, 0 failed, 0 "
                                + "not sent, 0 scenarios",
                        "besides: 0 sent, 0 answered",
                        "response: 123, up to 3.0 ms",
                        "1806.000 ms after 0 ms: 123 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late by 0.0, "
                                + "0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    @Test
    void stepsOfRatesMayMultiplyAndAreWarmedUpWithTheFirst() throws Exception {
        run(Setting.of("rates:33.4-150:x2:300ms", 500, 900), new Server(_ -> 3 * MS));
        assertThat(told("WARM_UP")).containsExactly("WARM_UP 500 ms: 34/s, p99 3.0 ms, 0 errors, 0 in flight");
        assertThat(all(Event.Step.class)).extracting(Event.Step::from).containsExactly(33.4, 66.8, 133.6, 150.0);
        assertThat(all(Event.Step.class)).extracting(Event.Step::replied).containsExactly(11L, 21L, 41L, 45L);
        assertThat(all(Event.Step.class))
                .extracting(Event.Step::label)
                .containsExactly("33.4 per second", "66.8 per second", "133.6 per second", "150 per second");
    }

    /**
     * One after the other, 10.13 ms each: the thirty of the first step take 303.9 ms, and the 32 of the second 324.2. A
     * queue of those 103.9 ms would have made the second's last ones late.
     */
    @Test
    void aStepOfRatesThatIsTooMuchHasNoCreditForItAndLeavesNoQueueToTheNext() throws Exception {
        AtomicLong freeNs = new AtomicLong();
        Server queueing = new Server(_ ->
                freeNs.updateAndGet(free -> Math.max(free, clock.nowNs()) + 10_130_000) - clock.nowNs());
        run(Setting.of("rates:150-160:+10:200ms", 0, 400), queueing);
        assertThat(all(Event.Step.class)).extracting(Event.Step::replied).containsExactly(30L, 32L);
        assertThat(all(Event.Step.class)).extracting(Event.Step::lengthNs).containsExactly(304 * MS, 325 * MS);
        assertThat(finished().windowNs()).isEqualTo(629 * MS);
    }

    @Test
    void ratesWithoutAStepOrWithTooManyAreRefused() {
        for (String wrong : List.of(
                "rates:50-10:+10:1s",
                "rates:50-90:+0:1s",
                "rates:50-90:x1:1s",
                "rates:50-90:x0.5:1s",
                "rates:50-90:10:1s",
                "rates:1-1000000:+0.1:1s",
                "rates:50:+10:1s")) {
            assertThatThrownBy(() -> Load.parse(wrong)).as(wrong).isInstanceOf(BadInput.class);
        }
        assertThat(Load.parse("rates:0.1-0.5:+0.1:1s"))
                .isInstanceOfSatisfying(
                        Load.Rates.class, rates -> assertThat(rates.steps()).containsExactly(0.1, 0.2, 0.3, 0.4, 0.5));
        assertThat(Load.parse("rates:50-50:x2:1s").ownLength()).contains(Duration.ofSeconds(1));
    }

    @Test
    void aRampIsToldMomentByMoment() throws Exception {
        run(Setting.of("ramp:33.4-77.7:1500ms:even", 700, 1_500), new Server(_ -> 3 * MS));
        // when the thread of the warm-up sees that it is over is the machine's affair
        assertThat(told())
                .map(line -> line.replaceFirst("after 70[0-9] ms", "after 70_ ms"))
                .containsExactly(
                        "WARM_UP 500 ms: 34/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "WARM_UP 700 ms: 35/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "WINDOW 500 ms: 42/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "WINDOW 1000 ms: 54/s, p99 3.0 ms, 0 errors, 1 in flight",
                        "second 0: 48 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "LAST_REPLIES 1500 ms: 72/s, p99 3.0 ms, 0 errors, 0 in flight",
                        "second 1: 36 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 0, ramp, 33.4 to 77.7, 1500.000 ms: 84 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "besides: 24 sent, 24 answered",
                        "response: 84, up to 3.0 ms",
                        "service: 84, up to 3.0 ms",
                        "send_delay: 84, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "1500.000 ms after 70_ ms: 84 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late by "
                                + "0.0, 0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    @Test
    void heldUsersAreToldMomentByMoment() throws Exception {
        run(Setting.of("held:1-3:1300ms:4", 0, 1_300), new Server(_ -> 7 * MS));
        assertThat(told())
                .containsExactly(
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "WINDOW 500 ms: 142/s, p99 7.0 ms, 0 errors, 1 in flight",
                        "WINDOW 1000 ms: 240/s, p99 7.0 ms, 0 errors, 2 in flight",
                        "second 0: 191 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "LAST_REPLIES 1300 ms: 287/s, p99 7.0 ms, 0 errors, 3 in flight",
                        "second 1: 89 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 0, held, 1.0 to 3.0, 1300.000 ms: 280 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 69 scenarios",
                        "besides: 0 sent, 0 answered",
                        "response: 280, up to 7.0 ms",
                        "service: 280, up to 7.0 ms",
                        "send_delay: 0, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "1300.000 ms after 0 ms: 280 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late by "
                                + "0.0, 0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    /** Of three users one leaves after half of the time and one at its end: 93 and twice 186 requests of 7 ms begin. */
    @Test
    void heldUsersLeaveOneAfterTheOther() throws Exception {
        List<Integer> there = new ArrayList<>();
        run(Setting.of("held:3-1:1300ms:4", 0, 1_300), new Server(_ -> 7 * MS), event -> {
            if (event instanceof Event.Progress p) {
                there.add(p.inFlight());
            }
        });
        assertThat(finished().due()).isEqualTo(93 + 2 * 186);
        assertThat(finished().windowNs()).isEqualTo(1_300 * MS);
        assertThat(finished().littlesLaw()).isCloseTo(1, within(1e-9));
        assertThat(there).containsExactly(0, 3, 2, 2);
    }

    @Test
    void usersAreToldMomentByMoment() throws Exception {
        run(Setting.of("users:33.4:1200ms:3", 700, 1_200), new Server(_ -> 11 * MS, 2));
        assertThat(told())
                .containsExactly(
                        "WARM_UP 500 ms: 1440/s, p99 11.0 ms, 0 errors, 16 in flight",
                        "WARM_UP 700 ms: 1440/s, p99 11.0 ms, 0 errors, 16 in flight",
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "WINDOW 500 ms: 190/s, p99 11.0 ms, 0 errors, 2 in flight",
                        "WINDOW 1000 ms: 202/s, p99 11.0 ms, 0 errors, 2 in flight",
                        "second 0: 196 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "LAST_REPLIES 1264 ms: 189/s, p99 11.0 ms, 0 errors, 0 in flight",
                        "second 1: 50 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 0, users, 33.4 to 33.4, 1264.000 ms: 246 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 41 scenarios",
                        "besides: 1024 sent, 1024 answered",
                        "response: 246, up to 11.0 ms",
                        "service: 246, up to 11.0 ms",
                        "send_delay: 41, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "1264.000 ms after 704 ms: 246 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late "
                                + "by 0.0, 0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    @Test
    void aBurstIsToldMomentByMoment() throws Exception {
        run(Setting.of("burst:5:3", 700, 1_000), new Server(_ -> 2_700_000));
        assertThat(told())
                .containsExactly(
                        "WARM_UP 500 ms: 1850/s, p99 2.7 ms, 0 errors, 5 in flight",
                        "WARM_UP 700 ms: 1850/s, p99 2.7 ms, 0 errors, 5 in flight",
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "second 0: 5 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 0, iteration 1, 5.0 to 5.0, 2.700 ms: 5 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "second 1: 5 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 1, iteration 2, 5.0 to 5.0, 2.700 ms: 5 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "LAST_REPLIES 9 ms: 1667/s, p99 2.7 ms, 0 errors, 0 in flight",
                        "second 2: 5 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 2, iteration 3, 5.0 to 5.0, 2.700 ms: 5 right, 0 late, 0 wrong, 0 failed, 0 not "
                                + "sent, 0 scenarios",
                        "besides: 1300 sent, 1300 answered",
                        "response: 15, up to 2.7 ms",
                        "service: 15, up to 2.7 ms",
                        "send_delay: 15, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "8.100 ms after 702 ms: 15 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late by "
                                + "0.0, 0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    @Test
    void aRoundIsToldMomentByMoment() throws Exception {
        run(Setting.of("rounds:2x5:3:200ms:shared", 700, 1_000), new Server(_ -> 2_300_000));
        assertThat(told())
                .containsExactly(
                        "WARM_UP 500 ms: 868/s, p99 2.3 ms, 0 errors, 2 in flight",
                        "WARM_UP 700 ms: 870/s, p99 2.3 ms, 0 errors, 2 in flight",
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "step 0, round 0, 2.0 to 2.0, not counted, 6.900 ms: 5 right, 0 late, 0 wrong, 0 failed, "
                                + "0 not sent, 0 scenarios",
                        "second 0: 5 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 1, round 1, 2.0 to 2.0, 6.900 ms: 5 right, 0 late, 0 wrong, 0 failed, 0 not sent, "
                                + "0 scenarios",
                        "LAST_REPLIES 21 ms: 714/s, p99 2.3 ms, 0 errors, 0 in flight",
                        "second 1: 5 right, 0 late, 0 wrong, 0 failed, 0 not sent",
                        "step 2, round 2, 2.0 to 2.0, 6.900 ms: 5 right, 0 late, 0 wrong, 0 failed, 0 not sent, "
                                + "0 scenarios",
                        "besides: 610 sent, 610 answered",
                        "response: 10, up to 2.3 ms",
                        "service: 10, up to 2.3 ms",
                        "send_delay: 0, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "13.800 ms after 702 ms: 10 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late by "
                                + "0.0, 0.0 ms; law 1.00; first failure at 0; highest 0.0; ");
    }

    @Test
    void aRoundThatTakesTooLongIsCutAndTheLast() throws Exception {
        run(
                Setting.of("rounds:2x5:4:200ms:shared", 0, 1_000),
                new Server(index -> index < 6 ? 2_300_000 : Duration.ofDays(900).toNanos()));
        assertThat(all(Event.Step.class)).hasSize(2).last().satisfies(round -> {
            assertThat(round.isCut()).isTrue();
            assertThat(round.lengthNs() / 1e6).isBetween(200.0, 202.0);
            assertThat(round.replied()).isEqualTo(1);
            assertThat(round.failed()).isEqualTo(2);
            assertThat(round.notSent()).isEqualTo(2);
        });
        assertThat(finished().windowNs())
                .isEqualTo(all(Event.Step.class).getLast().lengthNs());
        assertThat(finished().due()).isEqualTo(5);
        assertThat((clock.nowNs() - 5_000 * MS) / 1e6)
                .as("nothing is waited for after the cut")
                .isBetween(200.0, 1_000.0);
    }

    /** Telling takes so long that the second step begins 200 ms late: the window is longer, and has no more seconds. */
    @Test
    void aWindowHasAsManySecondsAsItWasToLast() throws Exception {
        run(Setting.of("staircase:1-2:+1:1s", 0, 2_000), new Server(_ -> 7 * MS), event -> {
            if (event instanceof Event.Progress p && p.elapsedMs() == 500) {
                spend(700);
            }
        });
        assertThat(all(Event.Step.class)).extracting(Event.Step::lengthNs).containsExactly(1_200 * MS, 1_000 * MS);
        assertThat(all(Event.Second.class))
                .extracting(second -> second.row().second())
                .containsExactly(0, 1);
        assertThat(finished().windowNs()).isEqualTo(2_200 * MS);
    }

    /** Sending one takes 40 ms, and the next is due after 30. */
    @Test
    void whatIsSentLateIsTold() throws Exception {
        Server holding = new Server(_ -> 3 * MS) {
            @Override
            public void send(int step, long index, Asker asker) {
                spend(40);
                super.send(step, index, asker);
            }
        };
        run(Setting.of("open:33.4:even", 0, 1_000), holding);
        double eachMs = 40 - 1_000 / 33.4;
        assertThat(finished().due()).isEqualTo(34);
        assertThat(finished().latenessP50Ns() / 1e6).isCloseTo(16 * eachMs, within(1.0));
        assertThat(finished().latenessP99Ns() / 1e6).isCloseTo(33 * eachMs, within(1.0));
        assertThat(finished().voidReasons()).anyMatch(reason -> reason.startsWith("requests were sent late"));
    }

    /** Two scenarios of two steps are waited for four times as long as a call may take, and a second for each. */
    @Test
    void usersAreWaitedForAsLongAsTheirCallsMayTake() throws Exception {
        Server deaf = new Server(_ -> Duration.ofDays(900).toNanos(), 2);
        run(Setting.of("users:33.4:300ms:2", 0, 300), deaf);
        assertThat(all(Event.Step.class)).singleElement().satisfies(step -> {
            assertThat(step.isCut()).isTrue();
            assertThat(step.lengthNs() / 1e6).isBetween(12_300.0, 12_303.0);
        });
    }

    private void endsWithItsTrial(Thread thread, String name) throws InterruptedException {
        assertThat(thread.getName()).startsWith(name);
        thread.join(20_000);
        assertThat(thread.isAlive()).isFalse();
    }

    private int inFlightAfterHalfASecond() {
        return all(Event.Progress.class).stream()
                .filter(p -> p.phase() == Event.Phase.WINDOW && p.elapsedMs() == 500)
                .findFirst()
                .orElseThrow()
                .inFlight();
    }

    @Test
    void whatIsUnderWayInABurstOrARoundIsTold() throws Exception {
        Server slow = new Server(_ -> 607 * MS);
        run(Setting.of("burst:5:1", 0, 1_000), slow);
        assertThat(inFlightAfterHalfASecond()).isEqualTo(5);
        events.clear();
        run(Setting.of("rounds:2x2:2:10s:shared", 0, 1_000), slow);
        assertThat(inFlightAfterHalfASecond()).isEqualTo(2);
        endsWithItsTrial(slow.lastSender.get(), "round-");
    }

    /** A burst is cut after as long as a call may take and a second; its late replies are late, and not lost. */
    @Test
    void repliesThatComeAfterTheCutAreStillCounted() throws Exception {
        callTimeout = Duration.ofMillis(1);
        run(Setting.of("burst:5:1", 0, 1_000), new Server(_ -> 1_200 * MS));
        assertThat(all(Event.Step.class)).singleElement().satisfies(burst -> {
            assertThat(burst.isCut()).isTrue();
            assertThat(burst.lengthNs() / 1e6).isBetween(1_001.0, 1_003.0);
        });
        assertThat(finished().late()).isEqualTo(5);
        assertThat(finished().failed()).isZero();
    }

    /** A reply that comes when the trial is over begins no further step, and nobody waits for it. */
    @Test
    void aBurstSendsNoMoreWhenItsTrialIsOver() throws Exception {
        List<Target.Asker> waiting = new ArrayList<>();
        Server deaf = new Server(_ -> 3 * MS, 2) {
            @Override
            public void send(int step, long index, Asker asker) {
                asked.incrementAndGet();
                lastSender.set(Thread.currentThread());
                waiting.add(asker);
            }
        };
        callTimeout = Duration.ofMillis(1);
        run(Setting.of("burst:5:1", 0, 1_000), deaf);
        endsWithItsTrial(deaf.lastSender.get(), "burst");
        waiting.forEach(asker -> asker.ended(true, null));
        assertThat(deaf.asked).hasValue(5);
        assertThat(finished().due()).isEqualTo(10);
    }

    @Test
    void eachStepOfARoundsScenariosIsARequest() throws Exception {
        run(Setting.of("rounds:2x5:2:200ms:shared", 0, 1_000), new Server(_ -> 2_300_000, 2));
        assertThat(all(Event.Step.class)).extracting(Event.Step::replied).containsExactly(10L, 10L);
        assertThat(told("step 0", "LAST"))
                .as("a round is told once all of its requests are")
                .element(0)
                .asString()
                .startsWith("step 0");
        events.clear();
        // the sixth and the seventh of all scenarios hang, and three of the second round do not begin
        run(
                Setting.of("rounds:2x6:3:200ms:shared", 0, 1_000),
                new Server(index -> index < 7 ? 2_300_000 : Duration.ofDays(900).toNanos(), 2));
        Event.Step cut = all(Event.Step.class).getLast();
        assertThat(cut.isCut()).isTrue();
        assertThat(cut.replied()).isEqualTo(2);
        assertThat(cut.notSent()).isEqualTo(6);
        assertThat(finished().due()).isEqualTo(12);
    }

    /** A client that ended in silence would lower the load without a word. */
    @Test
    void aHeldUserWhoGetsNoClientHasFailed() throws Exception {
        Server refusing = new Server(_ -> 7 * MS) {
            @Override
            public Target ownClient() {
                throw new CallException(CallException.Code.UNAVAILABLE, "refused");
            }
        };
        run(Setting.of("held:3:300ms:2:per-user", 0, 300), refusing);
        assertThat(finished().due()).isEqualTo(3);
        assertThat(finished().failed()).isEqualTo(3);
        assertThat(finished().firstFailure()).contains("refused");
        events.clear();
        run(Setting.of("held:3:300ms:2:per-user", 100, 300), refusing);
        assertThat(all(Event.Uncounted.class)).containsExactly(new Event.Uncounted(7, 3, 0));
    }

    @Test
    void aSearchIsToldTryByTry() throws Exception {
        // one after the other, 10 ms each: a hundred a second are too many
        AtomicLong freeNs = new AtomicLong();
        Server queueing =
                new Server(_ -> freeNs.updateAndGet(free -> Math.max(free, clock.nowNs()) + 10 * MS) - clock.nowNs());
        run(Setting.of("highest:50-150:p90:50ms:700ms", 0, 1_000), queueing);
        assertThat(edges())
                .as("all tries, those that missed the latency too")
                .containsExactly(0L, 36L + 72 + 75 + 39 + 62 + 59 + 62 + 75 + 59);
        assertThat(told("step", "2854"))
                .containsExactly(
                        "step 0, try 1: 50 per second, 50.0 to 50.0, 709.000 ms: 36 right, 0 late, 0 wrong, 0 "
                                + "failed, 0 not sent, 0 scenarios",
                        "step 1, try 2: 100 per second, 100.0 to 100.0, not counted, 793.000 ms: 72 right, 0 "
                                + "late, 0 wrong, 0 failed, 0 not sent, 0 scenarios",
                        "step 2, try 3: 100 per second, 100.0 to 100.0, not counted, 783.000 ms: 75 right, 0 "
                                + "late, 0 wrong, 0 failed, 0 not sent, 0 scenarios",
                        "step 3, try 4: 70.7 per second, 70.7 to 70.7, 715.000 ms: 39 right, 0 late, 0 wrong, 0 "
                                + "failed, 0 not sent, 0 scenarios",
                        "step 4, try 5: 84.1 per second, 84.1 to 84.1, not counted, 753.000 ms: 62 right, 0 "
                                + "late, 0 wrong, 0 failed, 0 not sent, 0 scenarios",
                        "step 5, try 6: 84.1 per second, 84.1 to 84.1, 714.000 ms: 59 right, 0 late, 0 wrong, 0 "
                                + "failed, 0 not sent, 0 scenarios",
                        "step 6, try 7: 91.7 per second, 91.7 to 91.7, not counted, 723.000 ms: 62 right, 0 "
                                + "late, 0 wrong, 0 failed, 0 not sent, 0 scenarios",
                        "step 7, try 8: 91.7 per second, 91.7 to 91.7, not counted, 763.000 ms: 75 right, 0 "
                                + "late, 0 wrong, 0 failed, 0 not sent, 0 scenarios",
                        "step 8, try 9: 87.8 per second, 87.8 to 87.8, 716.000 ms: 59 right, 0 late, 0 wrong, 0 "
                                + "failed, 0 not sent, 0 scenarios",
                        "2854.000 ms after 0 ms: 193 right, 0 late, 0 wrong, 0 failed, 0 not sent; sent late by "
                                + "0.0, 0.0 ms; law 1.00; first failure at 0; highest 87.8; ");
    }

    @Test
    void everyOutcomeIsTold() throws Exception {
        run(Setting.of("open:33.4:even", 0, 1_000), new Server(new Ending() {
            @Override
            public long afterNs(long index) {
                return index % 5 == 1 ? 250 * MS : 3 * MS;
            }

            @Override
            public boolean isRight(long index) {
                return index % 5 != 2;
            }

            @Override
            public boolean fails(long index) {
                return index % 5 == 3;
            }
        }));
        assertThat(told())
                .containsExactly(
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "WINDOW 500 ms: 14/s, p99 3.0 ms, 8 errors, 2 in flight",
                        "LAST_REPLIES 1000 ms: 12/s, p99 3.0 ms, 19 errors, 2 in flight",
                        "second 0: 13 right, 7 late, 7 wrong, 7 failed, 0 not sent",
                        "step 0, 33.4 per second, 33.4 to 33.4, 1000.000 ms: 13 right, 7 late, 7 wrong, 7 "
                                + "failed, 0 not sent, 0 scenarios",
                        "besides: 0 sent, 0 answered",
                        "response: 13, up to 3.0 ms",
                        "service: 13, up to 3.0 ms",
                        "send_delay: 34, up to 0.0 ms",
                        "error: 21, up to 250.1 ms",
                        "first_half: 7, up to 3.0 ms",
                        "second_half: 6, up to 3.0 ms",
                        "1000.000 ms after 0 ms: 13 right, 7 late, 7 wrong, 7 failed, 0 not sent; sent late by "
                                + "0.0, 0.0 ms; law 1.00; first failure at 2; highest 0.0; REMOTE_ERROR: planted");
    }

    @Test
    void whatCannotBeSentIsToldAsNotSent() throws Exception {
        run(new Setting("open:33.4:even", 0, 0, 1_000, 3), new Server(_ -> 190 * MS));
        assertThat(told())
                .containsExactly(
                        "WINDOW 0 ms: 0/s, p99 0.0 ms, 0 errors, 0 in flight",
                        "WINDOW 500 ms: 12/s, p99 190.1 ms, 8 errors, 3 in flight",
                        "LAST_REPLIES 1000 ms: 12/s, p99 190.1 ms, 19 errors, 3 in flight",
                        "second 0: 15 right, 0 late, 0 wrong, 0 failed, 19 not sent",
                        "step 0, 33.4 per second, 33.4 to 33.4, 1089.000 ms: 15 right, 0 late, 0 wrong, 0 "
                                + "failed, 19 not sent, 0 scenarios",
                        "besides: 0 sent, 0 answered",
                        "response: 15, up to 190.1 ms",
                        "service: 15, up to 190.1 ms",
                        "send_delay: 15, up to 0.0 ms",
                        "error: 0, up to 0.0 ms",
                        "first_half: 6, up to 190.1 ms",
                        "second_half: 9, up to 190.1 ms",
                        "1089.000 ms after 0 ms: 15 right, 0 late, 0 wrong, 0 failed, 19 not sent; sent late by "
                                + "0.0, 0.0 ms; law 1.00; first failure at 3; highest 0.0; ");
    }

    @Test
    void aWarmUpEndsWhenItIsLevelButNotBeforeItsLeast() throws Exception {
        run(new Setting("closed:2", 2_200, 9_000, 600, 0), new Server(_ -> 7 * MS));
        assertThat(finished().isStable()).isTrue();
        assertThat(finished().warmUpMs()).isEqualTo(2_500);
        assertThat(all(Event.Progress.class))
                .filteredOn(p -> p.phase() == Event.Phase.WARM_UP)
                .extracting(Event.Progress::elapsedMs)
                .containsExactly(500L, 1_000L, 1_500L, 2_000L, 2_500L);
    }

    @Test
    void aWarmUpThatIsLevelAtItsLeastEndsThere() throws Exception {
        run(new Setting("closed:2", 2_000, 9_000, 600, 0), new Server(_ -> 7 * MS));
        assertThat(finished().isStable()).isTrue();
        assertThat(finished().warmUpMs()).isEqualTo(2_000);
    }

    @Test
    void aWarmUpThatIsNeverLevelEndsAtItsMost() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        run(
                new Setting("closed:1", 0, 2_700, 600, 0),
                new Server(_ -> (clock.nowNs() / (500 * MS) % 2 == 0 ? 2 : 20) * MS + asked.incrementAndGet()));
        assertThat(finished().isStable()).isFalse();
        assertThat(finished().warmUpMs()).isEqualTo(2_700);
    }

    /** Half a second without a reply is not level, and its mean is no number that four could agree on. */
    @Test
    void aWarmUpWithoutARightReplyIsNotLevel() throws Exception {
        run(new Setting("closed:1", 0, 2_700, 600, 0), new Server(new Ending() {
            @Override
            public long afterNs(long index) {
                return 7 * MS;
            }

            @Override
            public boolean isRight(long index) {
                return false;
            }
        }));
        assertThat(finished().isStable()).isFalse();
        assertThat(all(Event.Progress.class))
                .filteredOn(p -> p.phase() == Event.Phase.WARM_UP)
                .allSatisfy(p -> assertThat(p.perSecond()).isZero())
                .allSatisfy(p -> assertThat(p.p99Ms()).isZero())
                .extracting(Event.Progress::errors)
                .startsWith(71L);
    }

    /** One call of the warm-up hangs: it is waited for as long as a call may take and a second, and then given up. */
    @Test
    void aClientThatHangsInTheWarmUpIsGivenUpBeforeTheWindow() throws Exception {
        CountDownLatch givenUp = new CountDownLatch(1);
        AtomicInteger calls = new AtomicInteger();
        Server hanging = new Server(
                _ -> calls.incrementAndGet() == 2 ? Duration.ofDays(900).toNanos() : 7 * MS) {
            @Override
            public boolean call(int step, long index) {
                try {
                    return super.call(step, index);
                } catch (CallException interrupted) {
                    givenUp.countDown();
                    throw interrupted;
                }
            }
        };
        run(Setting.of("staircase:2-3:+1:300ms", 700, 600), hanging);
        assertThat(givenUp.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(finished().warmUpMs()).isEqualTo(3_700);
        assertThat(finished().due()).isEqualTo(finished().replied());
    }

    @Test
    void theThreadOfAnOpenLoadEndsWithItsTrial() throws Exception {
        Server server = new Server(_ -> 3 * MS);
        run(Setting.of("open:33.4:even", 0, 300), server);
        endsWithItsTrial(server.lastSender.get(), "pacer");
    }

    /** A reply that comes when the trial is over begins no further request. */
    @Test
    void usersSendNoMoreWhenTheirTrialIsOver() throws Exception {
        List<Target.Asker> waiting = new ArrayList<>();
        Server deaf = new Server(_ -> 3 * MS) {
            @Override
            public void send(int step, long index, Asker asker) {
                asked.incrementAndGet();
                waiting.add(asker);
            }
        };
        run(Setting.of("users:33.4:300ms:3", 0, 300), deaf);
        assertThat(deaf.asked.get()).isEqualTo(11);
        waiting.forEach(asker -> asker.ended(true, null));
        assertThat(deaf.asked.get()).isEqualTo(11);
        assertThat(told("LAST", "second 9", "step", "error", "9302"))
                .containsExactly(
                        "LAST_REPLIES 9302 ms: 0/s, p99 0.0 ms, 0 errors, 11 in flight",
                        "second 9: 0 right, 0 late, 0 wrong, 33 failed, 0 not sent",
                        "step 0, users, 33.4 to 33.4, cut, 9302.000 ms: 0 right, 0 late, 0 wrong, 33 failed, 0 "
                                + "not sent, 0 scenarios",
                        "error: 33, up to 12306.1 ms",
                        "9302.000 ms after 0 ms: 0 right, 0 late, 0 wrong, 33 failed, 0 not sent; sent late by "
                                + "0.0, 0.0 ms; law 3.02; first failure at 0; highest 0.0; DEADLINE_EXCEEDED: never ended, "
                                + "not even by its time-out");
    }

    /** Telling takes processor time too, and the generator's share is that of the window alone. */
    @Test
    void theGeneratorsShareIsOfItsWindowAlone() throws Exception {
        AtomicLong atStartNs = new AtomicLong();
        AtomicLong atLastTickNs = new AtomicLong();
        AtomicLong atEndNs = new AtomicLong();
        run(Setting.of("open:33.4:even", 1_000, 2_100), new Server(_ -> 3 * MS), event -> {
            if (event instanceof Event.Progress p && p.phase() == Event.Phase.WINDOW) {
                if (p.elapsedMs() == 0) {
                    atStartNs.set(OwnCpu.ns());
                } else if (p.elapsedMs() == 500) {
                    long untilNs = OwnCpu.ns() + 300 * MS;
                    while (OwnCpu.ns() < untilNs) {
                        Thread.onSpinWait();
                    }
                } else if (p.elapsedMs() == 2_000) {
                    atLastTickNs.set(OwnCpu.ns());
                }
            } else if (event instanceof Event.Progress p && p.phase() == Event.Phase.LAST_REPLIES) {
                atEndNs.set(OwnCpu.ns());
            }
        });
        double usedNs = finished().cpuShare() * 2_100 * MS;
        // what compilers used is told in hundredths of a second, and is taken off
        assertThat(usedNs)
                .isLessThanOrEqualTo(atEndNs.get() - atStartNs.get() + 20 * MS)
                .isGreaterThanOrEqualTo((atLastTickNs.get() - atStartNs.get()) * 0.8 - 20 * MS);
    }

    @Test
    void usersWhoLogInAreToldBesideTheWarmUp() throws Exception {
        Server entering = new Server(_ -> 7 * MS) {
            @Override
            public long entering() {
                return 40;
            }

            @Override
            public long entered() {
                return 30;
            }
        };
        run(Setting.of("closed:1", 500, 600), entering);
        // 72 of 7 ms begin in half a second, and the last of them belongs to the warm-up although it ends in the window
        assertThat(all(Event.Uncounted.class)).containsExactly(new Event.Uncounted(7, 72 + 40, 72 + 30));
        assertThat(edges()).containsExactly(71L + 30, 157L + 30);
    }
}
