package dev.parley.transport.thrift;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.json.Json;
import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import dev.parley.spi.json.Receipt;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TProtocol;

/** {@code json.thrift}. */
final class JsonStubs implements Stubs {
    @Override
    public TProcessor processor(Answering answering) {
        return new dev.parley.transport.thrift.generated.json.Json.Processor<>(new Service(answering));
    }

    @Override
    public Calling client(TProtocol protocol) {
        var client = new dev.parley.transport.thrift.generated.json.Json.Client(protocol);
        return (operation, request) -> switch (operation) {
            case "get" -> JsonConversions.toRecord(client.get(JsonConversions.toStruct((Nothing) request)));
            case "post" -> JsonConversions.toRecord(client.post(JsonConversions.toStruct((Order) request)));
            default -> throw new CallException(Code.NOT_FOUND, "no operation " + operation + " in json.thrift");
        };
    }

    @Override
    public TBase<?, ?> toStruct(Record value) {
        return switch (value) {
            case Nothing nothing -> JsonConversions.toStruct(nothing);
            case Order order -> JsonConversions.toStruct(order);
            case Receipt receipt -> JsonConversions.toStruct(receipt);
            default ->
                throw new CallException(Code.NOT_FOUND, value.getClass().getName() + " has no struct in json.thrift");
        };
    }

    /** The interface's implementation, as a user of Thrift writes it. */
    private record Service(Answering answering) implements dev.parley.transport.thrift.generated.json.Json.Iface {
        @Override
        public dev.parley.transport.thrift.generated.json.Nothing get(
                dev.parley.transport.thrift.generated.json.Nothing request) throws TException {
            return JsonConversions.toStruct(answering.answer(Json.GET, JsonConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.json.Receipt post(
                dev.parley.transport.thrift.generated.json.Order request) throws TException {
            return JsonConversions.toStruct(answering.answer(Json.POST, JsonConversions.toRecord(request)));
        }
    }
}
