package dev.parley.work.json;

import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.Contract;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Work;
import dev.parley.spi.json.Json;
import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import dev.parley.spi.json.Receipt;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * {@code get} sends nothing and gets nothing back but a status; {@code json:n} sends a document of n bytes of JSON and
 * gets one of n bytes back. A service with a neighbour checks what it was sent and passes it on; the last one builds
 * the answer.
 */
public final class JsonWork implements Work {
    /** How long a service waits for its neighbour. */
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    @Override
    public String name() {
        return Json.CONTRACT.name();
    }

    @Override
    public Contract contract() {
        return Json.CONTRACT;
    }

    @Override
    public boolean callsEachNeighbourOnce(Topology.Node self) {
        return true;
    }

    @Override
    public Node node(Topology.Node self, Map<String, Neighbour> neighbours) {
        if (self.calls().size() > 1) {
            throw new BadInput(
                    "topology", self.name() + " with " + self.calls().size() + " neighbours", "pair or line:n");
        }
        return new JsonNode(self, neighbours, TIMEOUT);
    }

    @Override
    public Exchange<?, ?> exchange(MessageSpec message, Topology topology, Topology.Node asked, long seed) {
        return switch (message.kind()) {
            case "get" -> new Fixed<>(Json.GET, List.of(new Nothing()), List.of(new Nothing()));
            case "json" -> {
                List<Order> orders = Orders.ofBytes(message.size(), seed);
                List<Receipt> receipts = orders.stream().map(Orders::receipt).toList();
                yield new Fixed<>(Json.POST, orders, receipts);
            }
            default -> throw new BadInput("message", message, "get, or json:n (bytes of JSON), such as json:1k");
        };
    }

    /** Fixed requests, sent in turn, each with the one answer that is right. */
    private record Fixed<Q extends Record, R extends Record>(
            dev.parley.spi.Operation<Q, R> operation, List<Q> requests, List<R> replies) implements Exchange<Q, R> {
        @Override
        public Q request(long index) {
            return requests.get(Math.floorMod(index, requests.size()));
        }

        @Override
        public boolean isRight(Q request, R reply) {
            // there are few requests, and their first field tells them apart
            int known = requests.indexOf(request);
            return known >= 0 && replies.get(known).equals(reply);
        }
    }
}
