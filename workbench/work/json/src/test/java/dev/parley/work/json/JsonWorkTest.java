package dev.parley.work.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.Work;
import dev.parley.spi.json.Json;
import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonWorkTest {
    private static final Topology PAIR = Topology.parse("pair");
    private final JsonWork work = new JsonWork();

    @ParameterizedTest
    @ValueSource(ints = {111, 112, 113, 500, 1000, 5000, 100_000})
    void orderAndReceiptHaveExactlyTheBytesAskedFor(int bytes) {
        for (Order order : Orders.ofBytes(bytes, 7)) {
            Orders.check(order);
            assertThat(JsonCodec.encode(order).length).isEqualTo(bytes);
            assertThat(JsonCodec.encode(Orders.receipt(order)).length).isEqualTo(bytes);
        }
    }

    @Test
    void theSameSeedGivesTheSameOrders() {
        assertThat(Orders.ofBytes(1000, 3)).isEqualTo(Orders.ofBytes(1000, 3)).isNotEqualTo(Orders.ofBytes(1000, 4));
    }

    @ParameterizedTest
    @ValueSource(strings = {"get", "json:1k", "json:5k"})
    void theAnswerOfTheLastServiceIsRightAndOneOfAnotherRequestIsNot(String message) {
        assertAnswered(work.exchange(MessageSpec.parse(message), PAIR, PAIR.entry(), 1));
    }

    private <Q extends Record, R extends Record> void assertAnswered(Work.Exchange<Q, R> exchange) {
        try (Work.Node last = work.node(PAIR.nodes().getLast(), Map.of())) {
            for (long index = 0; index < 20; index++) {
                Q request = exchange.request(index);
                R reply = last.handle(exchange.operation(), request);
                assertThat(exchange.isRight(request, reply)).isTrue();
                Q other = exchange.request(index + 1);
                assertThat(exchange.isRight(other, reply)).isEqualTo(other.equals(request));
            }
        }
    }

    @Test
    void whatBreaksARuleIsRefusedInTheFront() {
        Work.Node last = work.node(PAIR.nodes().getLast(), Map.of());
        assertThat(last.handle(Json.GET, new Nothing())).isEqualTo(new Nothing());
        for (Order wrong : List.of(
                new Order("", "c", List.of(new Order.Line("s", 1, 1)), ""),
                new Order("1", "c", List.of(), ""),
                new Order("1", "c", List.of(new Order.Line("s", 0, 1)), ""),
                new Order("1", "c", List.of(new Order.Line("s", 1, -1)), ""))) {
            assertThatThrownBy(() -> last.handle(Json.POST, wrong))
                    .isInstanceOfSatisfying(
                            CallException.class, e -> assertThat(e.code()).isEqualTo(CallException.Code.INVALID))
                    .hasMessageContaining("expected: ");
        }
    }

    @Test
    void aMessageThatItDoesNotKnowIsBadInput() {
        for (String message : List.of("text:10", "json:10", "json")) {
            assertThatThrownBy(() -> work.exchange(MessageSpec.parse(message), PAIR, PAIR.entry(), 1))
                    .isInstanceOf(BadInput.class);
        }
    }
}
