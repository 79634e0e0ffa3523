package dev.parley.transport.grpc;

import dev.parley.encoding.protobuf.json.Order;
import dev.parley.encoding.protobuf.json.Receipt;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Callees;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import java.time.Duration;
import java.util.Map;

/** A service of the work {@code json}, written on generated messages: the same rules and answers as that work's own. */
final class OwnJsonNode implements Work.Node {
    private final Callees callees;

    OwnJsonNode(Topology.Node self, Map<String, Neighbour> neighbours, Duration timeout) {
        this.callees = new Callees(self, neighbours, timeout);
    }

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        Order order = ((Own<?>) request).message() instanceof Order sent ? sent : null;
        if (order != null) {
            check(order);
        }
        return callees.size() > 0
                ? callees.first(operation, request)
                : operation.reply().cast(order == null ? request : new Own<>(receipt(order)));
    }

    /** @throws CallException {@link Code#INVALID} with the first rule that is broken */
    private static void check(Order order) {
        if (order.getId().isEmpty() || order.getId().length() > 36) {
            throw invalid("id", "'" + order.getId() + "'", "1 to 36 characters");
        }
        if (order.getLinesCount() == 0) {
            throw invalid("lines", "none", "at least one");
        }
        for (Order.Line line : order.getLinesList()) {
            if (line.getSku().isEmpty()) {
                throw invalid("sku", "''", "not empty");
            }
            if (line.getQuantity() < 1 || line.getQuantity() > 1000) {
                throw invalid("quantity of " + line.getSku(), line.getQuantity(), "1 to 1000");
            }
            if (line.getPrice() < 0 || line.getPrice() > 1_000_000) {
                throw invalid("price of " + line.getSku(), line.getPrice(), "0 to 1000000 cents");
            }
        }
    }

    private static CallException invalid(String what, Object value, String expected) {
        return new CallException(Code.INVALID, what + ": " + value + " (expected: " + expected + ")");
    }

    private static Receipt receipt(Order order) {
        Receipt.Builder receipt = Receipt.newBuilder()
                .setId(order.getId())
                .setCustomer(order.getCustomer())
                .setNote(order.getNote());
        for (Order.Line line : order.getLinesList()) {
            receipt.addLines(Receipt.Line.newBuilder()
                    .setSku(line.getSku())
                    .setQuantity(line.getQuantity())
                    .setTotal(line.getQuantity() * line.getPrice()));
        }
        return receipt.build();
    }

    @Override
    public void close() {
        callees.close();
    }
}
