package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import java.util.function.LongUnaryOperator;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The whole engine against servers whose every latency is known, in simulated time: what it says must be what was. {@code -Dparley.long=true}
 * simulates more of it.
 */
class ProofTest {
    private static final boolean IS_LONG = Boolean.getBoolean("parley.long");
    private static final long SECOND_NS = 1_000_000_000;

    private final SimulatedClock clock = new SimulatedClock();

    /**
     * Answers each request after so many nanoseconds as a function of its moment says. It asks the function under a
     * lock, since clients begin together.
     */
    private final class Server implements Target {
        private final LongUnaryOperator latencyNs;

        Server(LongUnaryOperator latencyNs) {
            this.latencyNs = latencyNs;
        }

        private synchronized long latencyNs() {
            return latencyNs.applyAsLong(clock.nowNs());
        }

        @Override
        public boolean call(int step, long index) {
            try {
                clock.awaitNs(clock.nowNs() + latencyNs());
                return true;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return false;
            }
        }

        @Override
        public void send(int step, long index, Asker asker) {
            clock.at(clock.nowNs() + latencyNs(), () -> asker.ended(true, null));
        }
    }

    private void run(String load, Duration window, Target server, Consumer<Event> events) throws InterruptedException {
        new Engine(clock, events)
                .run(
                        new Engine.Trial(
                                1,
                                Load.parse(load),
                                new TrialSpec.Window(Duration.ZERO, Duration.ZERO, window),
                                Duration.ofSeconds(10),
                                Duration.ofSeconds(20),
                                100_000,
                                3),
                        server);
    }

    private List<Event> run(String load, Duration window, Target server) throws InterruptedException {
        List<Event> events = new ArrayList<>();
        run(load, window, server, events::add);
        return events;
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
    @ValueSource(strings = {"open:500:poisson", "open:500:even", "closed:3"})
    void aKnownDistributionIsRecoveredWithinOnePercent(String load) throws Exception {
        SplittableRandom random = new SplittableRandom(11);
        List<Long> truth = new ArrayList<>();
        // log-normal with a median of 5 ms: p99.9 is 20 times that
        List<Event> events = run(load, Duration.ofSeconds(IS_LONG ? 600 : 60), new Server(now -> {
            long latencyNs = (long) (5_000_000 * Math.exp(random.nextGaussian()));
            truth.add(latencyNs);
            return latencyNs;
        }));
        long[] sorted = truth.stream().mapToLong(Long::longValue).sorted().toArray();
        Histogram seen = histogram(events, HistogramRow.Kind.RESPONSE);
        assertThat(seen.getTotalCount()).isEqualTo(sorted.length).isGreaterThan(10_000);
        for (double p : new double[] {50, 90, 99, 99.9}) {
            long expected = sorted[(int) Math.ceil(p / 100 * sorted.length) - 1];
            assertThat((double) seen.getValueAtPercentile(p) / expected)
                    .as("p" + p)
                    .isCloseTo(1, within(0.01));
        }
        assertThat(finished(events).littlesLaw()).isCloseTo(1, within(0.001));
        assertThat(finished(events).latenessP99Ns()).isZero();
    }

    @Test
    void aFreezeIsSeenInFullUnderOpenLoadAndHiddenByAClosedOne() throws Exception {
        // answers after 1 ms, but freezes from the 9th second to the 12th
        long thawNs = clock.nowNs() + 12 * SECOND_NS;
        LongUnaryOperator freezing =
                now -> now > thawNs - 3 * SECOND_NS && now < thawNs ? thawNs - now + 1_000_000 : 1_000_000;
        List<Event> open = run("open:1000:even", Duration.ofSeconds(20), new Server(freezing));
        Histogram seen = histogram(open, HistogramRow.Kind.RESPONSE);
        // 3 000 of 20 000 fell due in the freeze, their waits spread evenly over 0 to 3 s: 200 of them waited over 2.8
        // s
        assertThat(seen.getValueAtPercentile(99) / 1e9).isCloseTo(2.8, within(0.01));
        assertThat(seen.getMaxValue() / 1e9).isCloseTo(3.0, within(0.01));
        assertThat(finished(open).littlesLaw()).isCloseTo(1, within(0.001));

        ProofTest other = new ProofTest();
        long otherThawNs = other.clock.nowNs() + 12 * SECOND_NS;
        List<Event> closed = other.run(
                "closed:1",
                Duration.ofSeconds(20),
                other.new Server(now -> now > otherThawNs - 3 * SECOND_NS && now < otherThawNs
                        ? otherThawNs - now + 1_000_000
                        : 1_000_000));
        Histogram hidden = histogram(closed, HistogramRow.Kind.RESPONSE);
        assertThat(hidden.getValueAtPercentile(99)).isLessThan(1_100_000);
        assertThat(hidden.getMaxValue() / 1e9).isCloseTo(3.0, within(0.01));
    }

    @Test
    void responseTimeRunsFromTheIntendedMomentAndServiceTimeFromTheActualOne() throws Exception {
        // a target that holds the pacer up for 10 ms, once in a hundred: what is due meanwhile is sent late, at once
        // and in order
        long[] sent = {0};
        Target holding = new Target() {
            @Override
            public boolean call(int step, long index) {
                return true;
            }

            @Override
            public void send(int step, long index, Asker asker) {
                if (sent[0]++ % 100 == 0) {
                    try {
                        clock.awaitNs(clock.nowNs() + 10_000_000);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }
                clock.at(clock.nowNs() + 2_000_000, () -> asker.ended(true, null));
            }
        };
        List<Event> events = run("open:1000:even", Duration.ofSeconds(10), holding);
        assertThat(finished(events).due()).isEqualTo(10_000);
        assertThat(finished(events).replied()).isEqualTo(10_000);
        assertThat(histogram(events, HistogramRow.Kind.SEND_DELAY).getMaxValue() / 1e6)
                .isCloseTo(9, within(0.1));
        assertThat(histogram(events, HistogramRow.Kind.RESPONSE).getValueAtPercentile(95) / 1e6)
                .isGreaterThan(6);
        assertThat(histogram(events, HistogramRow.Kind.SERVICE).getValueAtPercentile(95) / 1e6)
                .isCloseTo(2, within(0.1));
        assertThat(finished(events).voidReasons()).anyMatch(reason -> reason.startsWith("requests were sent late"));
    }

    @Test
    void memoryStaysConstantOverHours() throws Exception {
        int hours = IS_LONG ? 48 : 1;
        Runtime runtime = Runtime.getRuntime();
        long[] usedBytes = new long[2];
        long[] counted = new long[1];
        run("open:20:poisson", Duration.ofHours(hours), new Server(now -> 3_000_000 + now % 7_000_000), event -> {
            if (event instanceof Event.Second(SecondRow second)) {
                counted[0] += second.replied();
                if (second.second() == 900 || second.second() == hours * 3600 - 2) {
                    System.gc();
                    usedBytes[second.second() == 900 ? 0 : 1] = runtime.totalMemory() - runtime.freeMemory();
                }
            }
        });
        assertThat(counted[0]).isBetween(hours * 71_000L, hours * 73_000L);
        assertThat(usedBytes[1] - usedBytes[0]).isLessThan(2_000_000);
    }

    @ParameterizedTest
    @ValueSource(ints = {1_000, 10_000})
    void everyArrivalIsCountedHoweverManyThereAre(int perSecond) throws Exception {
        int seconds = IS_LONG ? 60 : 5;
        List<Event> events =
                run("open:" + perSecond + ":even", Duration.ofSeconds(seconds), new Server(now -> 500_000));
        assertThat(finished(events).due()).isEqualTo((long) perSecond * seconds);
        assertThat(finished(events).replied()).isEqualTo((long) perSecond * seconds);
        long[] bySecond = events.stream()
                .filter(Event.Second.class::isInstance)
                .mapToLong(e -> ((Event.Second) e).row().replied())
                .toArray();
        assertThat(bySecond).hasSize(seconds);
        assertThat(Arrays.stream(bySecond)).allSatisfy(n -> assertThat(n).isCloseTo((long) perSecond, within(10L)));
    }
}
