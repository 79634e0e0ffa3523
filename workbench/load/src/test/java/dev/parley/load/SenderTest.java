package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Load.ClientUse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/**
 * What senders and callers make of each request, by a clock that the test turns: every request that was due has one
 * outcome.
 */
class SenderTest {
    private final HandClock clock = new HandClock();
    private final Outcomes outcomes = new Outcomes(1_000_000);
    private final long begin = clock.nowNs;

    /** A scenario of some steps; what was asked waits until the test says how it ended. */
    private static final class Holding implements Target {
        private record Asked(int step, long index, Asker asker) {}

        private final List<Asked> asked = new ArrayList<>();
        private final int steps;

        Holding(int steps) {
            this.steps = steps;
        }

        @Override
        public int requests() {
            return steps;
        }

        @Override
        public boolean call(int step, long index) {
            throw new IllegalStateException("only sends");
        }

        @Override
        public void send(int step, long index, Asker asker) {
            asked.add(new Asked(step, index, asker));
        }
    }

    /** A target that takes so long for each call, by the test's clock. */
    private class Taking implements Target {
        final List<String> calls = new ArrayList<>();
        final AtomicInteger closed = new AtomicInteger();
        int clients;

        @Override
        public int requests() {
            return 2;
        }

        @Override
        public boolean call(int step, long index) {
            calls.add(index + "." + step);
            clock.nowNs += 100;
            return true;
        }

        @Override
        public void send(int step, long index, Asker asker) {
            throw new IllegalStateException("only calls");
        }

        @Override
        public Target ownClient() {
            clients++;
            clock.nowNs += 40;
            return this;
        }

        @Override
        public void close() {
            closed.incrementAndGet();
        }
    }

    private Histogram responses() {
        Histogram all = new Histogram(Outcomes.DIGITS);
        outcomes.takeResponses(all);
        return all;
    }

    @Test
    void anArrivalGoesThroughItsScenarioAndEachStepIsTimedFromTheEndOfTheOneBefore() {
        Holding target = new Holding(2);
        Sender sender = new Sender(target, 2, clock);
        assertThat(sender.places()).isEqualTo(4);
        clock.nowNs = begin + 30;
        sender.arrive(outcomes, begin);
        assertThat(sender.underWay()).isEqualTo(1);
        assertThat(outcomes.due()).isEqualTo(4);
        long[] takes = {100, 200, 300, 400};
        for (int i = 0; i < takes.length; i++) {
            assertThat(target.asked).hasSize(i + 1);
            assertThat(target.asked.get(i).step()).isEqualTo(i % 2);
            assertThat(target.asked.get(i).index()).isEqualTo(i / 2);
            clock.nowNs += takes[i];
            target.asked.get(i).asker().ended(true, null);
        }
        assertThat(sender.underWay()).isZero();
        Histogram responses = responses();
        assertThat(responses.getTotalCount()).isEqualTo(4);
        // the first from when it was due, 30 ns before it went out
        assertThat(responses.getMinNonZeroValue()).isEqualTo(130);
        assertThat(responses.getMaxValue()).isEqualTo(400);
        assertThat(outcomes.serviceTimes().getMinNonZeroValue()).isEqualTo(100);
        Histogram delays = outcomes.sendDelays();
        assertThat(delays.getTotalCount()).isEqualTo(1);
        assertThat(delays.getMaxValue()).isEqualTo(30);
        Histogram scenarios = outcomes.scenarioTimes();
        assertThat(scenarios.getTotalCount()).isEqualTo(1);
        assertThat(scenarios.getMaxValue()).isEqualTo(1030);
        // 130 + 200 + 300 + 400
        assertThat(outcomes.inSystemNs()).isEqualTo(1030);
        assertThat(outcomes.counts()).isEqualTo(Outcomes.Counts.NONE);
    }

    @Test
    void aSingleRequestIsNoScenario() {
        Holding target = new Holding(1);
        new Sender(target, 1, clock).arrive(outcomes, begin);
        target.asked.getFirst().asker().ended(true, null);
        assertThat(outcomes.scenarioTimes().getTotalCount()).isZero();
    }

    @Test
    void anEndThatIsToldTwiceCountsOnce() {
        Holding target = new Holding(1);
        Sender sender = new Sender(target, 1, clock);
        sender.arrive(outcomes, begin);
        target.asked.getFirst().asker().ended(false, new IllegalStateException("planted"));
        target.asked.getFirst().asker().ended(true, null);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 0, 1, 0));
        assertThat(outcomes.twice()).isEqualTo(1);
        assertThat(responses().getTotalCount()).isZero();
        assertThat(outcomes.inSystemNs()).isZero();
        assertThat(sender.underWay()).isZero();
    }

    @Test
    void whatAStoppedSenderHasLeftIsNotSent() {
        Holding target = new Holding(2);
        Sender sender = new Sender(target, 3, clock);
        sender.arrive(outcomes, begin);
        target.asked.getFirst().asker().ended(true, null);
        sender.stop();
        target.asked.get(1).asker().ended(false, null);
        assertThat(target.asked).hasSize(2);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 1, 0, 4));
        assertThat(sender.underWay()).isZero();
        assertThat(outcomes.scenarioTimes().getTotalCount()).isZero();
    }

    @Test
    void aTargetThatThrowsHasFailed() {
        Target throwing = (Behaviour) index -> {
            throw new IllegalStateException("planted");
        };
        Sender sender = new Sender(throwing, 3, clock);
        sender.arrive(outcomes, begin);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 0, 3, 0));
        assertThat(outcomes.firstFailure()).contains("planted");
        assertThat(sender.underWay()).isZero();
        sender.arrive(outcomes, begin);
        assertThat(outcomes.due()).isEqualTo(6);
    }

    @Test
    void aVisitGoesThroughItsScenariosAndTimesEachCall() throws Exception {
        Taking target = new Taking();
        Occupancy occupancy = new Occupancy();
        occupancy.begin(begin);
        Caller caller = new Caller(target, ClientUse.SHARED, occupancy, clock);
        assertThat(caller.visit(0, 2, () -> outcomes, () -> true)).isEqualTo(4);
        assertThat(target.calls).containsExactly("0.0", "0.1", "1.0", "1.1");
        assertThat(outcomes.due()).isEqualTo(4);
        assertThat(responses().getMaxValue()).isEqualTo(100);
        Histogram scenarios = outcomes.scenarioTimes();
        assertThat(scenarios.getTotalCount()).isEqualTo(1);
        assertThat(scenarios.getMaxValue()).isEqualTo(400);
        assertThat(outcomes.inSystemNs()).isEqualTo(400);
        assertThat(caller.inFlight()).isZero();
        assertThat(target.closed).hasValue(0);
        occupancy.there(begin, clock.nowNs);
        assertThat(occupancy.share()).isEqualTo(1);
    }

    @Test
    void aUsersOwnClientIsPartOfTheFirstRequestAndIsClosed() throws Exception {
        Taking target = new Taking();
        Caller caller = new Caller(target, ClientUse.PER_USER, new Occupancy(), clock);
        assertThat(caller.visit(0, 1, () -> outcomes, () -> true)).isEqualTo(2);
        assertThat(target.clients).isEqualTo(1);
        assertThat(target.closed).hasValue(1);
        Histogram responses = responses();
        assertThat(responses.getMaxValue()).isEqualTo(140);
        assertThat(responses.getMinNonZeroValue()).isEqualTo(100);
    }

    @Test
    void aClientForEachCallIsPartOfEachRequest() throws Exception {
        Taking target = new Taking() {
            private final Target over = this;

            @Override
            public Target ownClient() {
                clients++;
                clock.nowNs += 40;
                return new Taking() {
                    @Override
                    public boolean call(int step, long index) {
                        return over.call(step, index);
                    }

                    @Override
                    public void close() {
                        over.close();
                    }
                };
            }
        };
        new Caller(target, ClientUse.PER_CALL, new Occupancy(), clock).visit(0, 1, () -> outcomes, () -> true);
        assertThat(target.clients).isEqualTo(2);
        assertThat(target.closed).hasValue(2);
        assertThat(responses().getMinNonZeroValue()).isEqualTo(140);
        assertThat(outcomes.serviceTimes().getMinNonZeroValue()).isEqualTo(140);
    }

    @Test
    void aVisitEndsWhenItIsToldTo() throws Exception {
        Taking target = new Taking();
        Caller caller = new Caller(target, ClientUse.SHARED, new Occupancy(), clock);
        assertThat(caller.visit(0, 5, () -> outcomes, () -> target.calls.size() < 3))
                .isEqualTo(3);
        assertThat(outcomes.due()).isEqualTo(3);
        assertThat(outcomes.scenarioTimes().getTotalCount()).isZero();
    }

    @Test
    void aClientRestsAfterAFailureAndTheRestIsNotPartOfItsTime() throws Exception {
        Taking target = new Taking() {
            @Override
            public boolean call(int step, long index) {
                super.call(step, index);
                throw new IllegalStateException("planted");
            }
        };
        Occupancy occupancy = new Occupancy();
        occupancy.begin(begin);
        Caller caller = new Caller(target, ClientUse.SHARED, occupancy, clock);
        caller.callOnce(0, outcomes);
        assertThat(target.calls).containsExactly("0.0", "0.1");
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 0, 2, 0));
        assertThat(outcomes.errorTimes().getMaxValue()).isEqualTo(100);
        assertThat(outcomes.inSystemNs()).isEqualTo(200);
        // 10 ms of rest each: the client is busy with it, by intention
        assertThat(clock.nowNs - begin).isEqualTo(2 * (100 + 10_000_000));
        occupancy.there(begin, clock.nowNs);
        assertThat(occupancy.share()).isEqualTo(1);
        caller.callOnce(0, outcomes);
        assertThat(target.calls).endsWith("1.0", "1.1");
        assertThat(caller.inFlight()).isZero();
    }

    @Test
    void aCallUnderWayIsInFlightAndASingleOneIsNoScenario() throws Exception {
        AtomicInteger seen = new AtomicInteger();
        Caller[] caller = new Caller[1];
        Target one = new Taking() {
            @Override
            public int requests() {
                return 1;
            }

            @Override
            public boolean call(int step, long index) {
                seen.set(caller[0].inFlight());
                return super.call(step, index);
            }
        };
        caller[0] = new Caller(one, ClientUse.SHARED, new Occupancy(), clock);
        assertThat(caller[0].visit(0, 1, () -> outcomes, () -> true)).isEqualTo(1);
        assertThat(seen).hasValue(1);
        assertThat(outcomes.scenarioTimes().getTotalCount()).isZero();
    }
}
