package dev.parley.transport.thrift;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.parley.transport.thrift.generated.fault.Fault;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TProtocol;

/** What Thrift's compiler made of {@code messages.thrift}, spoken to in the contract's records. */
final class Stubs {
    private Stubs() {}

    /** The generated processor, around an implementation of the interface that asks for each answer. */
    static TProcessor processor(Answering answering) {
        return new dev.parley.transport.thrift.generated.messages.Messages.Processor<>(new Service(answering));
    }

    /** The generated client on one connection. */
    static Calling client(TProtocol protocol) {
        var client = new dev.parley.transport.thrift.generated.messages.Messages.Client(protocol);
        return (operation, request) -> switch (operation) {
            case "onlyText" ->
                MessagesConversions.toRecord(
                        client.onlyText(MessagesConversions.toStruct((TestModelOnlyText) request)));
            case "allTypes" ->
                MessagesConversions.toRecord(
                        client.allTypes(MessagesConversions.toStruct((TestModelAllTypesList) request)));
            case "gatherText" ->
                MessagesConversions.toRecord(
                        client.gatherText(MessagesConversions.toStruct((TestModelOnlyText) request)));
            case "gatherTypes" ->
                MessagesConversions.toRecord(
                        client.gatherTypes(MessagesConversions.toStruct((TestModelAllTypesList) request)));
            default -> throw new CallException(Code.NOT_FOUND, "no operation " + operation + " in messages.thrift");
        };
    }

    static TBase<?, ?> toStruct(Record value) {
        return switch (value) {
            case GatheredText gatheredText -> MessagesConversions.toStruct(gatheredText);
            case GatheredTypes gatheredTypes -> MessagesConversions.toStruct(gatheredTypes);
            case TestModelAllTypesList testModelAllTypesList -> MessagesConversions.toStruct(testModelAllTypesList);
            case TestModelOnlyText testModelOnlyText -> MessagesConversions.toStruct(testModelOnlyText);
            default ->
                throw new CallException(
                        Code.NOT_FOUND, value.getClass().getName() + " has no struct in messages.thrift");
        };
    }

    interface Answering {
        <Q extends Record, R extends Record> R answer(Operation<Q, R> operation, Q request) throws Fault;
    }

    interface Calling {
        /** @param operation the contract's name of it */
        Record call(String operation, Record request) throws TException;
    }

    /** The interface's implementation, as a user of Thrift writes it. */
    private record Service(Answering answering)
            implements dev.parley.transport.thrift.generated.messages.Messages.Iface {
        @Override
        public dev.parley.transport.thrift.generated.messages.TestModelOnlyText onlyText(
                dev.parley.transport.thrift.generated.messages.TestModelOnlyText request) throws TException {
            return MessagesConversions.toStruct(
                    answering.answer(Messages.ONLY_TEXT, MessagesConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.messages.TestModelAllTypesList allTypes(
                dev.parley.transport.thrift.generated.messages.TestModelAllTypesList request) throws TException {
            return MessagesConversions.toStruct(
                    answering.answer(Messages.ALL_TYPES, MessagesConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.messages.GatheredText gatherText(
                dev.parley.transport.thrift.generated.messages.TestModelOnlyText request) throws TException {
            return MessagesConversions.toStruct(
                    answering.answer(Messages.GATHER_TEXT, MessagesConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.messages.GatheredTypes gatherTypes(
                dev.parley.transport.thrift.generated.messages.TestModelAllTypesList request) throws TException {
            return MessagesConversions.toStruct(
                    answering.answer(Messages.GATHER_TYPES, MessagesConversions.toRecord(request)));
        }
    }
}
