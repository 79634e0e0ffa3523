package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
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
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * The loads of the papers. In full form with {@code -Dparley.long=true}, which takes as long as the papers say; otherwise the same code with
 * time going by faster.
 */
class LoadsTest {
    private static final boolean IS_LONG = Boolean.getBoolean("parley.long");

    private final ScheduledExecutorService later = Executors.newScheduledThreadPool(2);

    @AfterEach
    void end() {
        later.shutdownNow();
    }

    /** {@code -Dparley.long=true} lets a load of the papers take its whole time. */
    private static Load inTime(String load, double factor) {
        Load full = Load.parse(load);
        return IS_LONG ? full : full.inTime(factor);
    }

    private static List<Event> run(Load load, Target target) throws InterruptedException {
        return run(load, target, Duration.ofMillis(100), Duration.ofSeconds(2));
    }

    private static List<Event> run(Load load, Target target, Duration warmUp, Duration callTimeout)
            throws InterruptedException {
        return run(Clock.SYSTEM, load, target, warmUp, callTimeout);
    }

    private static List<Event> run(Clock clock, Load load, Target target, Duration warmUp, Duration callTimeout)
            throws InterruptedException {
        List<Event> events = new ArrayList<>();
        new Engine(clock, events::add)
                .run(
                        new Engine.Trial(
                                1,
                                load,
                                new TrialSpec.Window(
                                        warmUp, warmUp, load.ownLength().orElse(Duration.ofSeconds(1))),
                                Duration.ofSeconds(1),
                                callTimeout,
                                10_000,
                                42),
                        target);
        return events;
    }

    private static <E extends Event> List<E> all(List<Event> events, Class<E> type) {
        return events.stream().filter(type::isInstance).map(type::cast).toList();
    }

    private static Event.Finished finished(List<Event> events) {
        return (Event.Finished) events.getLast();
    }

    private static Histogram decoded(byte[] bytes) throws Exception {
        return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(bytes), 0);
    }

    private Behaviour after(long micros) {
        return index -> {
            CompletableFuture<Boolean> reply = new CompletableFuture<>();
            later.schedule(() -> reply.complete(true), micros, TimeUnit.MICROSECONDS);
            return reply;
        };
    }

    /** Whatever the load: every request that was due has one outcome, and steps, seconds and the whole agree. */
    private static void everyRequestHasOneOutcome(List<Event> events, AtomicLong sent, long sentInWarmUp) {
        Event.Finished whole = finished(events);
        assertThat(whole.due() - whole.notSent()).isEqualTo(sent.get() - sentInWarmUp);
        assertThat(all(events, Event.Second.class).stream()
                        .map(Event.Second::row)
                        .mapToLong(s -> s.replied() + s.late() + s.wrong() + s.failed() + s.notSent())
                        .sum())
                .isEqualTo(whole.due());
        assertThat(all(events, Event.Step.class).stream()
                        .filter(Event.Step::isCounted)
                        .mapToLong(s -> s.replied() + s.late() + s.wrong() + s.failed() + s.notSent())
                        .sum())
                .isEqualTo(whole.due());
    }

    private static Behaviour counting(AtomicLong sent, Behaviour behaviour) {
        return index -> {
            sent.incrementAndGet();
            return behaviour.answer(index);
        };
    }

    @Test
    void theStaircaseOfThePaperClimbsStepByStep() throws Exception {
        AtomicLong sent = new AtomicLong();
        AtomicInteger most = new AtomicInteger();
        AtomicInteger inside = new AtomicInteger();
        Behaviour fiveMilliseconds = after(20_000);
        Behaviour watched = counting(sent, index -> {
            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
            return fiveMilliseconds.answer(index).whenComplete((right, failure) -> inside.decrementAndGet());
        });
        Load staircase = inTime("staircase:10-200:+10:30s", 0.005);
        List<Event> events = run(staircase, watched, Duration.ZERO, Duration.ofSeconds(2));
        List<Event.Step> steps = all(events, Event.Step.class);
        assertThat(steps).hasSize(20);
        assertThat(steps)
                .extracting(Event.Step::to)
                .containsExactly(java.util.stream.IntStream.rangeClosed(1, 20)
                        .mapToObj(i -> i * 10.0)
                        .toArray(Double[]::new));
        // No step is shorter than it should be, and all of the window's time belongs to one.
        assertThat(steps)
                .allSatisfy(step -> assertThat(step.lengthNs())
                        .isGreaterThanOrEqualTo(
                                staircase.ownLength().orElseThrow().toNanos() / 20));
        assertThat(steps.stream().mapToLong(Event.Step::lengthNs).sum())
                .isCloseTo(finished(events).windowNs(), within(50_000_000L));
        assertThat(most.get()).isEqualTo(200);
        assertThat(steps.get(15).replied()).isGreaterThan(2 * steps.get(1).replied());
        everyRequestHasOneOutcome(events, sent, 0);
    }

    @Test
    void usersArriveAtTheirRateAndGoThroughWithTheirScenario() throws Exception {
        AtomicLong sent = new AtomicLong();
        Behaviour one = counting(sent, after(500));
        Load users = inTime("users:300:60s:10", 1 / 60.0);
        long seconds = users.ownLength().orElseThrow().toSeconds();
        List<Event> events = run(users, one, Duration.ZERO, Duration.ofSeconds(2));
        assertThat(sent.get()).isEqualTo(300 * seconds * 10);
        assertThat(finished(events).due()).isEqualTo(300 * seconds * 10);
        assertThat(finished(events).replied() + finished(events).late()).isEqualTo(300 * seconds * 10);
        Histogram scenarios = decoded(all(events, Event.Step.class).getFirst().scenarioTimes());
        assertThat(scenarios.getTotalCount()).isEqualTo(300 * seconds);
        // ten requests of half a millisecond each, one after the other
        assertThat(scenarios.getMinValue()).isGreaterThan(5_000_000);
        everyRequestHasOneOutcome(events, sent, 0);
    }

    @Test
    void aRampOfUsersHasTheWholeOfItsArrivals() throws Exception {
        AtomicLong sent = new AtomicLong();
        Load ramp = inTime("users:100-1200:60s:5", 1 / 60.0);
        List<Event> events = run(
                ramp,
                counting(sent, index -> CompletableFuture.completedFuture(true)),
                Duration.ZERO,
                Duration.ofSeconds(2));
        assertThat(finished(events).due())
                .isEqualTo(650 * ramp.ownLength().orElseThrow().toSeconds() * 5);
        everyRequestHasOneOutcome(events, sent, 0);
    }

    @Test
    void aRampOfRatesHasTheWholeOfItsArrivals() throws Exception {
        AtomicLong sent = new AtomicLong();
        Load ramp = inTime("ramp:100-1200:60s:even", 1 / 60.0);
        List<Event> events = run(
                ramp,
                counting(sent, index -> CompletableFuture.completedFuture(true)),
                Duration.ZERO,
                Duration.ofSeconds(2));
        assertThat(finished(events).due())
                .isEqualTo(650 * ramp.ownLength().orElseThrow().toSeconds());
        everyRequestHasOneOutcome(events, sent, 0);
    }

    @Test
    void aUserOverAClientOfItsOwnClosesItWhenItLeaves() throws Exception {
        AtomicInteger opened = new AtomicInteger();
        AtomicInteger closed = new AtomicInteger();
        Target owning = new Owning(opened, closed);
        run(Load.parse("users:50:1s:3:even:per-user"), owning, Duration.ZERO, Duration.ofSeconds(2));
        assertThat(opened.get()).isEqualTo(50);
        assertThat(closed.get()).isEqualTo(50);
        run(Load.parse("rounds:5x30:3:10s:per-call"), owning, Duration.ZERO, Duration.ofSeconds(2));
        assertThat(opened.get()).isEqualTo(50 + 3 * 30);
        assertThat(closed.get()).isEqualTo(50 + 3 * 30);
    }

    /** Counts the clients it is asked for. */
    private record Owning(AtomicInteger opened, AtomicInteger closed) implements Behaviour {
        @Override
        public CompletableFuture<Boolean> answer(long index) {
            return CompletableFuture.completedFuture(true);
        }

        @Override
        public Target ownClient() {
            opened.incrementAndGet();
            return new Behaviour() {
                @Override
                public CompletableFuture<Boolean> answer(long index) {
                    return Owning.this.answer(index);
                }

                @Override
                public void close() {
                    closed.incrementAndGet();
                }
            };
        }
    }

    @Test
    void heldUsersAreReplacedWhenTheyLeave() throws Exception {
        AtomicLong sent = new AtomicLong();
        AtomicInteger most = new AtomicInteger();
        AtomicInteger inside = new AtomicInteger();
        Behaviour slow = after(5_000);
        Load held = inTime("held:2-100:60s:2", 1 / 30.0);
        List<Event> events = run(
                held,
                counting(sent, index -> {
                    most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                    return slow.answer(index).whenComplete((right, failure) -> inside.decrementAndGet());
                }),
                Duration.ZERO,
                Duration.ofSeconds(2));
        assertThat(most.get()).isBetween(80, 100);
        Histogram scenarios = decoded(all(events, Event.Step.class).getFirst().scenarioTimes());
        assertThat(scenarios.getTotalCount())
                .isBetween(finished(events).due() / 2 - 100, finished(events).due() / 2);
        everyRequestHasOneOutcome(events, sent, 0);
    }

    @Test
    void aBurstIsDueAtOneInstantAndTheNextWhenAllHaveEnded() throws Exception {
        AtomicLong sent = new AtomicLong();
        AtomicInteger inside = new AtomicInteger();
        List<Integer> found = java.util.Collections.synchronizedList(new ArrayList<>());
        Behaviour slow = after(30_000);
        List<Event> events = run(
                Load.parse("burst:500:10"),
                counting(sent, index -> {
                    found.add(inside.incrementAndGet());
                    return slow.answer(index).whenComplete((right, failure) -> inside.decrementAndGet());
                }),
                Duration.ZERO,
                Duration.ofSeconds(2));
        List<Event.Step> iterations = all(events, Event.Step.class);
        assertThat(iterations)
                .hasSize(10)
                .allSatisfy(i -> assertThat(i.replied()).isEqualTo(500));
        assertThat(found).allMatch(n -> n <= 500);
        assertThat(all(events, Event.Second.class)).hasSize(10);
        assertThat(finished(events).windowNs())
                .isEqualTo(iterations.stream().mapToLong(Event.Step::lengthNs).sum());
        everyRequestHasOneOutcome(events, sent, 0);
    }

    @Test
    void theFirstRoundOfAGridsCellIsToldButNotCounted() throws Exception {
        AtomicLong sent = new AtomicLong();
        // the first round's calls are slower, as where classes are still loaded
        Behaviour slow = index -> after(index < 100 ? 40_000 : 1_000).answer(index);
        Load cell = Load.parseAll("grid:10-990+980:100-900+800:10:600s:shared").getFirst();
        List<Event> events = run(cell, counting(sent, slow), Duration.ZERO, Duration.ofSeconds(2));
        List<Event.Step> rounds = all(events, Event.Step.class);
        assertThat(rounds).hasSize(10);
        assertThat(rounds)
                .extracting(Event.Step::isCounted)
                .startsWith(false, true)
                .containsOnlyOnce(false);
        long shortestNs = rounds.stream().mapToLong(Event.Step::lengthNs).min().orElseThrow();
        assertThat(rounds.getFirst().lengthNs()).isGreaterThan(2 * shortestNs);
        assertThat(finished(events).replied()).isEqualTo(900);
        everyRequestHasOneOutcome(events, sent, 100);
    }

    @Test
    void aRoundThatTakesTooLongFailsAndEndsTheCell() throws Exception {
        AtomicLong sent = new AtomicLong();
        Behaviour never = counting(
                sent,
                index -> index < 5
                        ? CompletableFuture.completedFuture(true)
                        : new CompletableFuture<Boolean>().orTimeout(300, TimeUnit.MILLISECONDS));
        List<Event> events =
                run(Load.parse("rounds:2x5:10:200ms:shared"), never, Duration.ZERO, Duration.ofMillis(300));
        List<Event.Step> rounds = all(events, Event.Step.class);
        assertThat(rounds).hasSize(2);
        assertThat(rounds.get(1).isCut()).isTrue();
        assertThat(rounds.get(1).failed() + rounds.get(1).notSent()).isEqualTo(5);
        assertThat(rounds.get(1).notSent()).isPositive();
        everyRequestHasOneOutcome(events, sent, 5);
    }

    @Test
    void aSearchFindsTheRateAtWhichAServerGivesOut() throws Exception {
        // answers at once up to 100 requests in any tenth of a second, and after that too late
        AtomicLong slot = new AtomicLong();
        AtomicInteger inSlot = new AtomicInteger();
        SimulatedClock clock = new SimulatedClock();
        Behaviour limited = index -> {
            long now = clock.nowNs() / 100_000_000;
            if (slot.getAndSet(now) != now) {
                inSlot.set(0);
            }
            if (inSlot.incrementAndGet() <= 100) {
                return CompletableFuture.completedFuture(true);
            }
            CompletableFuture<Boolean> late = new CompletableFuture<>();
            clock.at(clock.nowNs() + 120_000_000, () -> late.complete(true));
            return late;
        };
        List<Event> events = run(
                clock,
                Load.parse("highest:100-100000:p90:50ms:5s"),
                limited,
                Duration.ofMillis(100),
                Duration.ofSeconds(2));
        // Poisson arrivals at 1 000/s fill a tenth of a second with more than 100 half of the time
        assertThat(finished(events).highestRate()).isBetween(700.0, 1200.0);
        List<Event.Step> tries = all(events, Event.Step.class);
        assertThat(tries).hasSizeBetween(5, 15);
        assertThat(tries).filteredOn(t -> t.from() >= 1600).noneMatch(Event.Step::isCounted);
    }

    @Test
    void oneStallDoesNotEndASearch() throws Exception {
        // all that comes in the third second is answered too late: in the second try, whose rate is then tried again
        SimulatedClock clock = new SimulatedClock();
        AtomicLong began = new AtomicLong(-1);
        Behaviour stalling = index -> {
            began.compareAndSet(-1, clock.nowNs());
            if ((clock.nowNs() - began.get()) / 1_000_000_000 != 2) {
                return CompletableFuture.completedFuture(true);
            }
            CompletableFuture<Boolean> late = new CompletableFuture<>();
            clock.at(clock.nowNs() + 120_000_000, () -> late.complete(true));
            return late;
        };
        List<Event> events =
                run(clock, Load.parse("highest:100-800:p90:50ms:2s"), stalling, Duration.ZERO, Duration.ofSeconds(2));
        assertThat(finished(events).highestRate()).isEqualTo(800);
        assertThat(all(events, Event.Step.class))
                .extracting(Event.Step::from, Event.Step::isCounted)
                .containsExactly(
                        tuple(100.0, true),
                        tuple(200.0, false),
                        tuple(200.0, true),
                        tuple(400.0, true),
                        tuple(800.0, true));
    }

    @Test
    void aScenarioIsCarriedOutStepAfterStep() throws Exception {
        List<String> order = java.util.Collections.synchronizedList(new ArrayList<>());
        Target three = new Target() {
            @Override
            public int requests() {
                return 3;
            }

            @Override
            public boolean call(int step, long index) {
                order.add(index + "/" + step);
                return step != 1;
            }

            @Override
            public void send(int step, long index, Asker asker) {
                order.add(index + "/" + step);
                later.execute(() -> asker.ended(step != 1, null));
            }
        };
        List<Event> events = run(Load.parse("users:20:1s:2"), three, Duration.ZERO, Duration.ofSeconds(1));
        assertThat(finished(events).due()).isEqualTo(20 * 2 * 3);
        assertThat(finished(events).wrong()).isEqualTo(20 * 2);
        for (int index = 0; index < 40; index++) {
            String of = index + "/";
            assertThat(order.stream().filter(o -> o.startsWith(of))).containsExactly(of + 0, of + 1, of + 2);
        }
    }

    @Test
    void aScenarioWhoseRepliesComeAtOnceDoesNotPileUpTheStack() throws Exception {
        List<Event> events = run(
                Load.parse("users:1:1s:100000"),
                (Behaviour) index -> CompletableFuture.completedFuture(true),
                Duration.ZERO,
                Duration.ofSeconds(1));
        assertThat(finished(events).due()).isEqualTo(100_000);
        assertThat(finished(events).replied()).isEqualTo(100_000);
    }

    @Test
    void aRequestThatEndsTwiceHasOneOutcomeAndIsNotPassedOver() throws Exception {
        Target twice = new Target() {
            @Override
            public boolean call(int step, long index) {
                return true;
            }

            @Override
            public void send(int step, long index, Asker asker) {
                asker.ended(true, null);
                asker.ended(false, new CallException(CallException.Code.REMOTE_ERROR, "planted"));
            }
        };
        Event.Finished finished = finished(run(Load.parse("open:100:even"), twice));
        assertThat(finished.due()).isEqualTo(100);
        assertThat(finished.replied()).isEqualTo(100);
        assertThat(finished.voidReasons()).contains("100 requests ended twice");
    }

    @Test
    void aReplyThatNeverComesIsAFailureOnceAndOnlyOnce() throws Exception {
        List<Target.Asker> forgotten = java.util.Collections.synchronizedList(new ArrayList<>());
        Target deaf = new Target() {
            @Override
            public boolean call(int step, long index) {
                return true;
            }

            @Override
            public void send(int step, long index, Asker asker) {
                if (index % 2 == 0) {
                    asker.ended(true, null);
                } else {
                    forgotten.add(asker);
                }
            }
        };
        List<Event> events = run(Load.parse("open:100:even"), deaf, Duration.ZERO, Duration.ofMillis(200));
        // told after the trial: no one asks any more
        forgotten.forEach(asker -> asker.ended(true, null));
        assertThat(finished(events).due()).isEqualTo(100);
        assertThat(finished(events).replied()).isEqualTo(50);
        assertThat(finished(events).failed()).isEqualTo(50);
        assertThat(finished(events).firstFailure()).contains("never ended");
    }

    @Test
    void littlesLawHoldsWhereRequestsFailAndWhereTheyAreLongerThanTheWindow() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        Behaviour half = index -> asked.incrementAndGet() % 2 == 0
                ? after(10_000).answer(index)
                : new CompletableFuture<Boolean>().orTimeout(20, TimeUnit.MILLISECONDS);
        Event.Finished failing = finished(run(Load.parse("closed:8"), half));
        assertThat(failing.failed()).isPositive();
        assertThat(failing.littlesLaw()).isBetween(0.95, 1.05);
        Event.Finished slow = finished(run(Load.parse("closed:3"), after(900_000)));
        assertThat(slow.littlesLaw()).isBetween(0.95, 1.05);
    }

    @Test
    void timesOfAWindowAreOfItsCountedPartsOnly() throws Exception {
        Behaviour slowAtFirst = index -> after(index < 10 ? 50_000 : 500).answer(index);
        List<Event> events =
                run(Load.parse("rounds:10x10:4:10s:shared"), slowAtFirst, Duration.ZERO, Duration.ofSeconds(1));
        for (Event.Distribution d : all(events, Event.Distribution.class)) {
            if (d.row().kind() == HistogramRow.Kind.RESPONSE) {
                assertThat(decoded(d.row().histogram()).getTotalCount()).isEqualTo(30);
                assertThat(decoded(d.row().histogram()).getMaxValue()).isLessThan(50_000_000);
            }
        }
    }
}
