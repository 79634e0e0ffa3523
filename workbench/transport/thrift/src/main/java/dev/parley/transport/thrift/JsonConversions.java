package dev.parley.transport.thrift;

import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import dev.parley.spi.json.Receipt;

/** The records of {@link dev.parley.spi.json} and their generated namesakes, which stand here with their package. */
final class JsonConversions {
    private JsonConversions() {}

    static dev.parley.transport.thrift.generated.json.Nothing toStruct(Nothing value) {
        return new dev.parley.transport.thrift.generated.json.Nothing();
    }

    static Nothing toRecord(dev.parley.transport.thrift.generated.json.Nothing struct) {
        return new Nothing();
    }

    static dev.parley.transport.thrift.generated.json.OrderLine toStruct(Order.Line value) {
        return new dev.parley.transport.thrift.generated.json.OrderLine(value.sku(), value.quantity(), value.price());
    }

    static Order.Line toRecord(dev.parley.transport.thrift.generated.json.OrderLine struct) {
        return new Order.Line(struct.getSku(), struct.getQuantity(), struct.getPrice());
    }

    static dev.parley.transport.thrift.generated.json.Order toStruct(Order value) {
        return new dev.parley.transport.thrift.generated.json.Order(
                value.id(),
                value.customer(),
                value.lines().stream().map(JsonConversions::toStruct).toList(),
                value.note());
    }

    static Order toRecord(dev.parley.transport.thrift.generated.json.Order struct) {
        return new Order(
                struct.getId(),
                struct.getCustomer(),
                struct.getLines().stream().map(JsonConversions::toRecord).toList(),
                struct.getNote());
    }

    static dev.parley.transport.thrift.generated.json.ReceiptLine toStruct(Receipt.Line value) {
        return new dev.parley.transport.thrift.generated.json.ReceiptLine(value.sku(), value.quantity(), value.total());
    }

    static Receipt.Line toRecord(dev.parley.transport.thrift.generated.json.ReceiptLine struct) {
        return new Receipt.Line(struct.getSku(), struct.getQuantity(), struct.getTotal());
    }

    static dev.parley.transport.thrift.generated.json.Receipt toStruct(Receipt value) {
        return new dev.parley.transport.thrift.generated.json.Receipt(
                value.id(),
                value.customer(),
                value.lines().stream().map(JsonConversions::toStruct).toList(),
                value.note());
    }

    static Receipt toRecord(dev.parley.transport.thrift.generated.json.Receipt struct) {
        return new Receipt(
                struct.getId(),
                struct.getCustomer(),
                struct.getLines().stream().map(JsonConversions::toRecord).toList(),
                struct.getNote());
    }
}
