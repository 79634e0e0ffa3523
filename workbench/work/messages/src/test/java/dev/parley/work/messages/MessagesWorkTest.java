package dev.parley.work.messages;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class MessagesWorkTest {
    private final MessagesWork work = new MessagesWork(Duration.ofSeconds(5));

    @ParameterizedTest
    @CsvSource({
        "line:1, text:0",
        "line:1, types:10",
        "line:5, text:1000",
        "line:5, types:100",
        "star, text:10",
        "star, types:10",
        "tree, text:1000",
        "tree, types:1000",
        "pair, text:10",
        "star:1, text:10",
        "'graph:a>b&c;b>d;c>d', types:10"
    })
    void everyTopologyAnswersRight(String topology, String message) {
        assertThat(rightAnswers(Topology.parse(topology), MessageSpec.parse(message), Map.of()))
                .isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"m2", "m4", "m5", "m6"})
    void aServiceThatAnswersWronglyIsFound(String liar) {
        Work.Node lie = new Work.Node() {
            @Override
            public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
                return operation.reply().cast(new GatheredText(List.of()));
            }
        };
        assertThat(rightAnswers(Topology.parse("tree"), MessageSpec.parse("text:10"), Map.of(liar, lie)))
                .isFalse();
    }

    @Test
    void aServiceThatAnswersAnotherRequestIsFound() {
        Topology star = Topology.parse("star");
        Work.Node stale = new Work.Node() {
            @Override
            public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
                return operation
                        .reply()
                        .cast(new GatheredText(
                                List.of(new GatheredText.Part("m4", new TestModelOnlyText("0123456789")))));
            }
        };
        assertThat(rightAnswers(star, MessageSpec.parse("text:10"), Map.of("m4", stale)))
                .isFalse();
    }

    @Test
    void aSharedLeafAnswersOnceForEachCaller() {
        Topology tree = Topology.parse("tree");
        assertThat(MessagesWork.leaves(tree, tree.entry())).containsExactly("m4", "m5", "m5", "m6");
        assertThat(MessagesWork.leaves(tree, tree.node("m5"))).containsExactly("m5");
    }

    @ParameterizedTest
    @ValueSource(strings = {"line:3", "star", "tree"})
    void aNeighboursFailureIsTheGatewaysOwn(String text) {
        Topology topology = Topology.parse(text);
        String leaf = MessagesWork.leaves(topology, topology.entry()).getLast();
        Work.Node failing = new Work.Node() {
            @Override
            public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
                throw new CallException(CallException.Code.UNAUTHENTICATED, "who are you");
            }
        };
        assertThatThrownBy(() -> rightAnswers(topology, MessageSpec.parse("text:10"), Map.of(leaf, failing)))
                .isInstanceOfSatisfying(
                        CallException.class, e -> assertThat(e.code()).isEqualTo(CallException.Code.UNAUTHENTICATED))
                .hasMessageEndingWith(leaf + ": who are you");
    }

    @Test
    void aStarCallsItsLeavesAtOnce() {
        Topology star = Topology.parse("star:4");
        CyclicBarrier all = new CyclicBarrier(3);
        Map<String, Neighbour> leaves = new HashMap<>();
        for (String leaf : star.entry().calls()) {
            Work.Node node = work.node(star.node(leaf), Map.of());
            leaves.put(leaf, new Direct(node) {
                @Override
                void arrived() throws Exception {
                    all.await(5, TimeUnit.SECONDS);
                }
            });
        }
        try (Work.Node gateway = work.node(star.entry(), leaves)) {
            GatheredText gathered = gateway.handle(Messages.GATHER_TEXT, new TestModelOnlyText("x"));
            assertThat(gathered.parts().stream().map(GatheredText.Part::service))
                    .containsExactly("m2", "m3", "m4");
        }
    }

    @Test
    void echoAtAGatewayIsAnInvalidRequest() {
        Topology star = Topology.parse("star:3");
        Neighbour none = new Direct(work.node(star.node("m2"), Map.of()));
        try (Work.Node gateway = work.node(star.entry(), Map.of("m2", none, "m3", none))) {
            assertThatThrownBy(() -> gateway.handle(Messages.ONLY_TEXT, new TestModelOnlyText("x")))
                    .hasMessageContaining("m1, which has 2 neighbours");
        }
    }

    @ParameterizedTest
    @CsvSource({"10,1", "100,11", "1000,111", "10000,1111"})
    void typesCountProperties(int properties, int items) {
        var exchange = work.exchange(
                new MessageSpec("types", properties),
                Topology.line(1),
                Topology.line(1).entry(),
                1);
        assertThat(((TestModelAllTypesList) exchange.request(0)).items()).hasSize(items);
    }

    @ParameterizedTest
    @ValueSource(strings = {"types:0", "types:11", "types:9", "types:1000000", "text:10000001", "xml:10"})
    void anUnknownMessageSaysWhatIsExpected(String message) {
        Topology line = Topology.line(1);
        assertThatThrownBy(() -> work.exchange(MessageSpec.parse(message), line, line.entry(), 1))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("(expected: ");
    }

    @Test
    void theSeedDecidesEveryRequest() {
        Topology line = Topology.line(1);
        for (String message : List.of("text:1000", "types:100")) {
            MessageSpec spec = MessageSpec.parse(message);
            var first = work.exchange(spec, line, line.entry(), 7);
            var same = work.exchange(spec, line, line.entry(), 7);
            var other = work.exchange(spec, line, line.entry(), 8);
            assertThat(first.request(3)).isEqualTo(same.request(3)).isNotEqualTo(other.request(3));
            assertThat(first.request(3)).isNotEqualTo(first.request(4));
        }
    }

    @Test
    void textIsPrintableAsciiOfTheLengthAskedFor() {
        Topology line = Topology.line(1);
        for (int length : new int[] {0, 1, 10, 1_000_000}) {
            var exchange = work.exchange(new MessageSpec("text", length), line, line.entry(), 1);
            String text = ((TestModelOnlyText) exchange.request(0)).textField();
            assertThat(text).hasSize(length);
            assertThat(text.chars()).allMatch(c -> c >= 0x20 && c < 0x7f);
        }
    }

    @Test
    void isFoundByItsName() {
        assertThat(Work.named("messages")).isInstanceOf(MessagesWork.class);
    }

    /**
     * Runs every service of the topology in this process, some of them replaced; true if the first few answers are
     * right.
     */
    private boolean rightAnswers(Topology topology, MessageSpec message, Map<String, Work.Node> replaced) {
        Map<String, Work.Node> nodes = new LinkedHashMap<>();
        for (Topology.Node node : topology.calleesFirst()) {
            Map<String, Neighbour> neighbours = new LinkedHashMap<>();
            node.calls().forEach(callee -> neighbours.put(callee, new Direct(nodes.get(callee))));
            nodes.put(node.name(), replaced.getOrDefault(node.name(), work.node(node, neighbours)));
        }
        try {
            return rightAnswers(
                    work.exchange(message, topology, topology.entry(), 42),
                    nodes.get(topology.entry().name()));
        } finally {
            nodes.values().forEach(Work.Node::close);
        }
    }

    private static <Q extends Record, R extends Record> boolean rightAnswers(
            Work.Exchange<Q, R> exchange, Work.Node entry) {
        for (long index = 0; index < 5; index++) {
            Q request = exchange.request(index);
            if (!exchange.isRight(request, entry.handle(exchange.operation(), request))) {
                return false;
            }
        }
        return true;
    }

    /** A neighbour in the same process. */
    private static class Direct implements Neighbour {
        private final Work.Node node;

        Direct(Work.Node node) {
            this.node = node;
        }

        void arrived() throws Exception {}

        @Override
        public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
            try {
                arrived();
            } catch (Exception e) {
                throw new CallException(CallException.Code.DEADLINE_EXCEEDED, "the others never came", e);
            }
            return node.handle(operation, request);
        }

        @Override
        public long payloadBytes(Record message) {
            return 0;
        }

        @Override
        public void close() {}
    }
}
