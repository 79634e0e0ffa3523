package dev.parley.work.json;

import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Callees;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.json.Json;
import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import java.time.Duration;
import java.util.Map;

/** One service: it checks a request, and then passes it on or answers it. */
final class JsonNode implements Work.Node {
    private final Callees callees;

    JsonNode(Topology.Node self, Map<String, Neighbour> neighbours, Duration timeout) {
        this.callees = new Callees(self, neighbours, timeout);
    }

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        if (request instanceof Order order) {
            Orders.check(order);
        }
        return callees.size() == 0 ? answer(operation, request) : callees.first(operation, request);
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

    @Override
    public void close() {
        callees.close();
    }
}
