package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Load;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Rates are counts over their own time, whatever the load's form and length: held against what the target itself has
 * seen.
 */
class RatesTest {
    private final ScheduledExecutorService later = Executors.newScheduledThreadPool(2);

    @AfterEach
    void end() {
        later.shutdownNow();
    }

    /** A target that notes when each request came and when its answer left, and answers so many at once at the most. */
    private final class Noting implements Behaviour {
        private final Queue<long[]> served = new ConcurrentLinkedQueue<>();
        private final long micros;
        private final int atOnce;
        private final AtomicInteger busy = new AtomicInteger();
        private final Queue<Runnable> waiting = new ConcurrentLinkedQueue<>();

        Noting(long micros, int atOnce) {
            this.micros = micros;
            this.atOnce = atOnce;
        }

        @Override
        public CompletableFuture<Boolean> answer(long index) {
            long cameNs = System.nanoTime();
            CompletableFuture<Boolean> reply = new CompletableFuture<>();
            waiting.add(() -> later.schedule(
                    () -> {
                        served.add(new long[] {cameNs, System.nanoTime()});
                        busy.decrementAndGet();
                        reply.complete(true);
                        next();
                    },
                    micros,
                    TimeUnit.MICROSECONDS));
            next();
            return reply;
        }

        private void next() {
            while (!waiting.isEmpty()) {
                if (busy.incrementAndGet() > atOnce) {
                    busy.decrementAndGet();
                    return;
                }
                Runnable request = waiting.poll();
                if (request == null) {
                    busy.decrementAndGet();
                } else {
                    request.run();
                }
            }
        }

        /** The most that it can serve in a second. */
        double mostPerSecond() {
            return atOnce * 1e6 / micros;
        }
    }

    private static List<Event> run(Load load, Target target, Duration window, int trial) throws Exception {
        return Undisturbed.run(() -> {
            List<Event> events = new ArrayList<>();
            new Engine(Clock.SYSTEM, events::add)
                    .run(
                            new Engine.Trial(
                                    trial,
                                    load,
                                    new TrialSpec.Window(
                                            Duration.ZERO,
                                            Duration.ZERO,
                                            load.ownLength().orElse(window)),
                                    Duration.ofSeconds(60),
                                    Duration.ofSeconds(60),
                                    10_000,
                                    Schedule.derived(7, trial)),
                            target);
            return events;
        });
    }

    private static double rate(List<Event> events) {
        Event.Finished whole = (Event.Finished) events.getLast();
        return whole.replied() * 1e9 / whole.windowNs();
    }

    private static List<Event.Step> steps(List<Event> events) {
        return events.stream()
                .filter(Event.Step.class::isInstance)
                .map(Event.Step.class::cast)
                .toList();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "closed:4 50ms",
                "closed:4 1500ms",
                "open:400:even 50ms",
                "open:400:even 1200ms",
                "open:3000:poisson 300ms",
                "ramp:100-900:200ms:even 200ms",
                "users:400:50ms:3 50ms",
                "users:300:500ms:2 500ms",
                "held:2-10:300ms:2 300ms",
                "burst:50:4 100ms",
                "rounds:4x40:4:10s:shared 100ms",
                "staircase:2-10:+2:60ms 300ms",
                "rates:400-2000:+800:60ms 180ms",
                "highest:50-3200:p99:50ms:200ms 100ms"
            })
    void noRateIsAboveWhatTheTargetCanServe(String loadAndWindow) throws Exception {
        String[] parts = loadAndWindow.split(" ");
        Noting target = new Noting(5_000, 4);
        List<Event> events =
                run(Load.parse(parts[0]), target, Duration.ofMillis(Long.parseLong(parts[1].replace("ms", ""))), 1);
        Event.Finished whole = (Event.Finished) events.getLast();
        assertThat(whole.replied()).isPositive().isLessThanOrEqualTo(target.served.size());
        // Those under way at a closed load's end belong to it, and they are at most as many as its clients.
        double mostCounted = target.mostPerSecond() + atEdges(parts[0]) * 1e9 / whole.windowNs();
        assertThat(rate(events)).isLessThanOrEqualTo(mostCounted);
        for (Event.Step step : steps(events)) {
            assertThat(step.lengthNs()).as(step.label()).isPositive();
            assertThat(step.replied() * 1e9 / step.lengthNs())
                    .as(step.label())
                    .isLessThanOrEqualTo(target.mostPerSecond() + atEdges(parts[0]) * 1e9 / step.lengthNs());
        }
    }

    private static double atEdges(String load) {
        return load.startsWith("closed") ? 4 : load.startsWith("staircase") || load.startsWith("held") ? 10 : 0;
    }

    @Test
    void anOpenLoadThatIsAnsweredInTimeHasTheRateThatWasAskedFor() throws Exception {
        List<Event> events = run(Load.parse("open:500:even"), new Noting(500, 64), Duration.ofSeconds(1), 1);
        assertThat(rate(events)).isBetween(450.0, 501.0);
    }

    @Test
    void aStepHasItsWholeLengthAlsoWhenItBeginsLate() throws Exception {
        // Telling an event takes longer than a step: the next one begins late, which it did not bear before.
        List<Event> events = new ArrayList<>();
        Load load = Load.parse("staircase:1-6:+1:20ms");
        Noting target = new Noting(1_000, 64);
        new Engine(Clock.SYSTEM, event -> {
                    events.add(event);
                    if (event instanceof Event.Step) {
                        long untilNs = System.nanoTime() + 60_000_000;
                        while (System.nanoTime() < untilNs) {
                            Thread.onSpinWait();
                        }
                    }
                })
                .run(
                        new Engine.Trial(
                                1,
                                load,
                                new TrialSpec.Window(
                                        Duration.ZERO,
                                        Duration.ZERO,
                                        load.ownLength().orElseThrow()),
                                Duration.ofSeconds(1),
                                Duration.ofSeconds(2),
                                100,
                                1),
                        target);
        assertThat(steps(events))
                .hasSize(6)
                .allSatisfy(step -> assertThat(step.lengthNs()).isGreaterThanOrEqualTo(20_000_000));
    }

    @Test
    void restartsDrawArrivalsOfTheirOwn() throws Exception {
        List<Long> due = new ArrayList<>();
        for (int trial = 1; trial <= 12; trial++) {
            List<Event> events =
                    run(Load.parse("open:400:poisson"), new Noting(100, 64), Duration.ofMillis(250), trial);
            due.add(((Event.Finished) events.getLast()).due());
        }
        assertThat(due.stream().distinct().count())
                .as("counts of twelve restarts: " + due)
                .isGreaterThan(4);
        // Twelve Poisson counts of 100 each: their mean has a standard deviation of 2.9.
        assertThat(due.stream().mapToLong(n -> n).average().orElseThrow()).isBetween(86.0, 114.0);
    }
}
