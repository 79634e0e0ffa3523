package dev.parley.encoding.protobuf;

import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import dev.parley.spi.json.Receipt;
import java.util.ArrayList;
import java.util.List;

/**
 * Converts between the records of {@link dev.parley.spi.json} and the generated messages of the same names, which are
 * written here with their package.
 */
final class JsonConversions {
    static final List<ProtobufCodec<?, ?>> CODECS = List.of(
            new ProtobufCodec<>(
                    Nothing.class,
                    dev.parley.encoding.protobuf.json.Nothing.getDefaultInstance(),
                    nothing -> dev.parley.encoding.protobuf.json.Nothing.getDefaultInstance(),
                    message -> new Nothing()),
            new ProtobufCodec<>(
                    Order.class,
                    dev.parley.encoding.protobuf.json.Order.getDefaultInstance(),
                    JsonConversions::toMessage,
                    JsonConversions::toRecord),
            new ProtobufCodec<>(
                    Receipt.class,
                    dev.parley.encoding.protobuf.json.Receipt.getDefaultInstance(),
                    JsonConversions::toMessage,
                    JsonConversions::toRecord));

    private JsonConversions() {}

    private static dev.parley.encoding.protobuf.json.Order toMessage(Order order) {
        var message = dev.parley.encoding.protobuf.json.Order.newBuilder()
                .setId(order.id())
                .setCustomer(order.customer())
                .setNote(order.note());
        for (Order.Line line : order.lines()) {
            message.addLines(dev.parley.encoding.protobuf.json.Order.Line.newBuilder()
                    .setSku(line.sku())
                    .setQuantity(line.quantity())
                    .setPrice(line.price()));
        }
        return message.build();
    }

    private static Order toRecord(dev.parley.encoding.protobuf.json.Order order) {
        List<Order.Line> lines = new ArrayList<>(order.getLinesCount());
        for (var line : order.getLinesList()) {
            lines.add(new Order.Line(line.getSku(), line.getQuantity(), line.getPrice()));
        }
        return new Order(order.getId(), order.getCustomer(), lines, order.getNote());
    }

    private static dev.parley.encoding.protobuf.json.Receipt toMessage(Receipt receipt) {
        var message = dev.parley.encoding.protobuf.json.Receipt.newBuilder()
                .setId(receipt.id())
                .setCustomer(receipt.customer())
                .setNote(receipt.note());
        for (Receipt.Line line : receipt.lines()) {
            message.addLines(dev.parley.encoding.protobuf.json.Receipt.Line.newBuilder()
                    .setSku(line.sku())
                    .setQuantity(line.quantity())
                    .setTotal(line.total()));
        }
        return message.build();
    }

    private static Receipt toRecord(dev.parley.encoding.protobuf.json.Receipt receipt) {
        List<Receipt.Line> lines = new ArrayList<>(receipt.getLinesCount());
        for (var line : receipt.getLinesList()) {
            lines.add(new Receipt.Line(line.getSku(), line.getQuantity(), line.getTotal()));
        }
        return new Receipt(receipt.getId(), receipt.getCustomer(), lines, receipt.getNote());
    }
}
