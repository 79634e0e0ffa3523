package dev.parley.work.json;

import dev.parley.model.BadInput;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.json.Json;
import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** One service: checks, then passes on or answers. */
final class JsonNode implements Work.Node {
    private final String callee;
    private final @Nullable Neighbour neighbour;
    private final Duration timeout;

    JsonNode(Topology.Node self, Map<String, Neighbour> neighbours, Duration timeout) {
        this.timeout = timeout;
        this.callee = self.isLeaf() ? "" : self.calls().getFirst();
        this.neighbour = self.isLeaf() ? null : neighbours.get(callee);
        if (!self.isLeaf() && neighbour == null) {
            throw new BadInput("neighbours of " + self.name(), neighbours.keySet(), "also " + callee);
        }
    }

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        if (request instanceof Order order) {
            Orders.check(order);
        }
        return neighbour == null ? answer(operation, request) : passOn(neighbour, operation, request);
    }

    private <Q extends Record, R extends Record> R passOn(Neighbour next, Operation<Q, R> operation, Q request) {
        try {
            return next.call(operation, request, timeout);
        } catch (CallException e) {
            throw new CallException(e.code(), callee + ": " + e.getMessage(), e);
        }
    }

    private static <Q extends Record, R extends Record> R answer(Operation<Q, R> operation, Q request) {
        return operation
                .reply()
                .cast(
                        switch (request) {
                            case Nothing nothing -> nothing;
                            case Order order -> Orders.receipt(order);
                            default ->
                                throw new CallException(
                                        Code.NOT_FOUND,
                                        "no operation " + operation.name() + " in " + Json.CONTRACT.name());
                        });
    }
}
