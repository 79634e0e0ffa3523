package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.model.Topology;
import dev.parley.protocol.Event;
import dev.parley.protocol.ServiceEvent.Served;
import dev.parley.spi.Work;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Counts of the two ends of the same requests: what honest ones may differ by, and that nothing more passes. */
class TrafficTest {
    private static final Work ALL_CALL_ALL = Work.named("messages");
    private static final List<String> TOPOLOGIES =
            List.of("line:1", "line:5", "star", "tree", "pair", "graph:m1>m2,m3;m2>m4;m3>m4&m2");

    /** Several loads on one boot, requests of which some are given up and reach a service in a later load, or never. */
    private static final class History {
        private final SplittableRandom random;
        private final Topology topology;
        private final long[] sent;
        private final long[] answered;
        private final List<Map<String, long[]>> served = new ArrayList<>();

        History(long seed) {
            random = new SplittableRandom(seed);
            topology = Topology.parse(TOPOLOGIES.get(random.nextInt(TOPOLOGIES.size())));
            int loads = 1 + random.nextInt(4);
            sent = new long[loads];
            answered = new long[loads];
            for (int i = 0; i < loads; i++) {
                served.add(new HashMap<>());
            }
            for (int load = 0; load < loads; load++) {
                int requests = random.nextInt(30);
                double lost = random.nextInt(3) * 0.2;
                for (int i = 0; i < requests; i++) {
                    sent[load]++;
                    if (random.nextDouble() < lost) {
                        giveUp(topology.entry(), load);
                    } else {
                        answered[load]++;
                        answer(topology.entry(), load);
                    }
                }
            }
        }

        private void count(Topology.Node at, int load, boolean isAnswered) {
            long[] counts = served.get(load).computeIfAbsent(at.name(), name -> new long[2]);
            counts[0]++;
            counts[1] += isAnswered ? 1 : 0;
        }

        private void answer(Topology.Node at, int load) {
            count(at, load, true);
            at.calls().forEach(callee -> answer(topology.node(callee), load));
        }

        /** Reaches the service now, later or never, and those behind it no earlier and not all of them. */
        private void giveUp(Topology.Node at, int load) {
            int later = load + random.nextInt(3) * random.nextInt(2);
            if (later < sent.length && random.nextInt(4) > 0) {
                count(at, later, random.nextBoolean());
                at.calls().forEach(callee -> giveUp(topology.node(callee), later));
            }
        }

        Map<String, Served> until(int load) {
            Map<String, Served> all = new HashMap<>();
            for (Topology.Node node : topology.nodes()) {
                long[] sum = new long[2];
                for (Map<String, long[]> part : served.subList(0, load)) {
                    long[] counts = part.getOrDefault(node.name(), new long[2]);
                    sum[0] += counts[0];
                    sum[1] += counts[1];
                }
                all.put(node.name(), new Served(sum[0], sum[1], 0));
            }
            return all;
        }

        List<Traffic> told() {
            TrafficLedger ledger = new TrafficLedger(topology, ALL_CALL_ALL, false);
            List<Traffic> told = new ArrayList<>();
            for (int load = 0; load < sent.length; load++) {
                told.add(ledger.load(until(load), until(load + 1), sent[load], answered[load]));
            }
            return told;
        }
    }

    @RepeatedTest(300)
    void honestCountsNeverContradictOneAnotherWhereverALoadEnds(RepetitionInfo repetition) {
        History history = new History(repetition.getCurrentRepetition());
        assertThat(history.told())
                .allSatisfy(t -> assertThat(t.contradictions()).isEmpty());
    }

    /** Without requests that were given up both counts are the same, and a difference of one is seen. */
    @RepeatedTest(300)
    void oneReplyOrOneRequestTooManyIsSeenAtOnce(RepetitionInfo repetition) {
        History history = new History(repetition.getCurrentRepetition());
        for (Traffic honest : history.told()) {
            Traffic.Service first = honest.services().getFirst();
            long replies = first.served().answered() + 1;
            assertThat(new Traffic(Math.max(honest.sent(), replies), replies, honest.services()).contradictions())
                    .anyMatch(reason -> reason.startsWith("impossible: m1 answered " + (replies - 1) + " requests"));
            for (int i = 0; i < honest.services().size(); i++) {
                Traffic.Service lying = honest.services().get(i);
                long most = (i == 0
                                ? honest.sent()
                                : first.served().begun() * lying.calls().orElseThrow())
                        + lying.leftOver();
                List<Traffic.Service> services = new ArrayList<>(honest.services());
                services.set(
                        i,
                        new Traffic.Service(
                                lying.name(),
                                new Served(most + 1, lying.served().answered(), 0),
                                lying.calls(),
                                lying.leftOver(),
                                true));
                assertThat(new Traffic(honest.sent(), honest.answered(), services).contradictions())
                        .anyMatch(
                                reason -> reason.startsWith("impossible: " + lying.name() + " was sent " + (most + 1)));
            }
            if (Arrays.equals(history.sent, history.answered)) {
                assertThat(honest.services()).allSatisfy(s -> {
                    assertThat(s.leftOver()).isZero();
                    assertThat(s.served().answered())
                            .isEqualTo(honest.sent() * s.calls().orElseThrow());
                });
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "line:5, m5, 1",
        "star, m1, 1",
        "star, m6, 1",
        "tree, m4, 1",
        "'graph:m1>m2,m3;m2>m4;m3>m4&m2', m4, 3",
        "'graph:m1>m2;m3>m4', m4, 0"
    })
    void aServiceIsCalledOnceForEachWayThatLeadsToIt(String topology, String service, long calls) {
        Topology parsed = Topology.parse(topology);
        assertThat(TrafficLedger.callsFrom(parsed, parsed.entry()).getOrDefault(service, 0L))
                .isEqualTo(calls);
    }

    private static Traffic line(String work, boolean isOverBroker, String topology, long begunByEach) {
        Topology parsed = Topology.parse(topology);
        Map<String, Served> after = new HashMap<>();
        parsed.nodes().forEach(node -> after.put(node.name(), new Served(begunByEach, begunByEach, 0)));
        return new TrafficLedger(parsed, Work.named(work), isOverBroker).load(Map.of(), after, 10, 10);
    }

    @Test
    void aBrokerMaySendAgainButNotLoseWhatWasAnswered() {
        assertThat(line("messages", true, "line:2", 12).contradictions()).isEmpty();
        assertThat(line("messages", true, "line:2", 9).contradictions()).hasSize(2);
        // clients reach the first of a pair without the broker
        assertThat(line("messages", true, "pair", 12).contradictions())
                .singleElement()
                .asString()
                .contains(" m1 ");
    }

    @Test
    void aWorkThatChoosesWhomItCallsIsHeldToItsFirstServiceAlone() {
        assertThat(line("lecturers", false, "line:2", 9).contradictions())
                .singleElement()
                .asString()
                .contains(" m1 ");
        assertThat(line("lecturers", false, "line:2", 12).contradictions())
                .singleElement()
                .asString()
                .contains(" m1 ");
    }

    @Test
    void attemptsThatWereGivenUpBeforeALoadMayBeServedInIt() {
        Topology two = Topology.parse("line:2");
        TrafficLedger ledger = new TrafficLedger(two, ALL_CALL_ALL, false);
        ledger.givenUp(two.entry(), 3);
        ledger.givenUp(two.entry(), -1);
        Map<String, Served> thirteen = Map.of("m1", new Served(13, 13, 0), "m2", new Served(13, 13, 0));
        assertThat(ledger.load(Map.of(), thirteen, 10, 10).contradictions()).isEmpty();
        Map<String, Served> more = Map.of("m1", new Served(24, 24, 0), "m2", new Served(24, 24, 0));
        assertThat(ledger.load(thirteen, more, 10, 10).contradictions())
                .containsExactly(
                        "impossible: m1 was sent 11 requests, the 10 of the load generator and 0 left over from before"
                                + " make at most 10");
    }

    private static Event.Step step(long replied, long late, long wrong, long failed, long notSent) {
        return new Event.Step(
                1, 0, "a step", 1, 1, true, false, 1, replied, late, wrong, failed, notSent, new byte[0], new byte[0]);
    }

    /** What was not sent reached nobody, and what failed was sent all the same. */
    @Test
    void requestsAndRepliesOfATrialAreThoseOfItsStepsAndOfItsWarmUp() {
        List<Event.Step> steps = List.of(step(1, 2, 4, 8, 1_000), step(16, 32, 64, 128, 1_000));
        Event.Uncounted warmUp = new Event.Uncounted(1, 2_000, 1_500);
        assertThat(Traffic.sent(steps, warmUp)).isEqualTo(2_000 + 255);
        assertThat(Traffic.answered(steps, warmUp)).isEqualTo(1_500 + 119);
    }

    @Test
    void countsOfBothEndsAreFigures() {
        Traffic traffic = new Traffic(
                14,
                12,
                List.of(
                        new Traffic.Service("m1", new Served(15, 13, 0), OptionalLong.of(1), 0, true),
                        new Traffic.Service("m2", new Served(16, 11, 0), OptionalLong.of(1), 0, true)));
        assertThat(traffic.figures(3))
                .containsExactly(
                        new FigureRow(3, Metric.REQUESTS_SENT, "generator", 14),
                        new FigureRow(3, Metric.REPLIES_COUNTED, "generator", 12),
                        new FigureRow(3, Metric.REQUESTS_SERVED, "m1", 13),
                        new FigureRow(3, Metric.REQUESTS_SERVED, "m2", 11));
    }

    /** 24 000 and 12 000 bytes for twelve replies. */
    @Test
    void whatServicesAllocateIsToldForOneReplyOfEachAndOfAll() {
        List<Traffic.Service> services = List.of(
                new Traffic.Service(
                        "m1", new Served(20, 18, 31_000).since(new Served(5, 5, 7_000)), OptionalLong.of(1), 0, true),
                new Traffic.Service("m2", new Served(16, 11, 12_000), OptionalLong.of(1), 0, true));
        assertThat(new Traffic(14, 12, services).figures(3))
                .filteredOn(figure -> figure.metric() == Metric.ALLOCATED_PER_REQUEST)
                .containsExactly(
                        new FigureRow(3, Metric.ALLOCATED_PER_REQUEST, "m1", 2),
                        new FigureRow(3, Metric.ALLOCATED_PER_REQUEST, "m2", 1),
                        new FigureRow(3, Metric.ALLOCATED_PER_REQUEST, FigureRow.SYSTEM, 3));
        assertThat(new Traffic(14, 0, services).figures(3))
                .as("no reply that they were allocated for")
                .noneMatch(figure -> figure.metric() == Metric.ALLOCATED_PER_REQUEST);
    }

    /** The last of a graph is called by two services for each request, and no more often than by each once. */
    @Test
    void aServiceThatIsCalledTwiceAnswersTwiceAsMany() {
        Topology graph = Topology.parse("graph:m1>m2,m3;m2>m4;m3>m4&m2");
        long calls = TrafficLedger.callsFrom(graph, graph.entry()).getOrDefault("m4", 0L);
        assertThat(calls).isGreaterThan(1);
        Traffic oneShort = new Traffic(
                10,
                10,
                List.of(
                        new Traffic.Service("m1", new Served(10, 10, 0), OptionalLong.of(1), 0, true),
                        new Traffic.Service(
                                "m4", new Served(10 * calls, 10 * calls - 1, 0), OptionalLong.of(calls), 0, true)));
        assertThat(oneShort.contradictions())
                .containsExactly("impossible: m4 answered " + (10 * calls - 1) + " requests, the 10 replies that the"
                        + " load generator counted took " + 10 * calls);
        TrafficLedger ledger = new TrafficLedger(graph, ALL_CALL_ALL, false);
        ledger.givenUp(graph.entry(), 5);
        assertThat(ledger.load(Map.of(), Map.of(), 0, 0).services())
                .filteredOn(service -> service.name().equals("m4"))
                .singleElement()
                .satisfies(service -> assertThat(service.leftOver()).isEqualTo(5 * calls));
    }
}
