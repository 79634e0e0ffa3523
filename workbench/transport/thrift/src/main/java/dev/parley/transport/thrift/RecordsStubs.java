package dev.parley.transport.thrift;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.records.Entries;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Nothing;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import dev.parley.spi.records.StoredPhoto;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TProtocol;

/** {@code records.thrift}. */
final class RecordsStubs implements Stubs {
    @Override
    public TProcessor processor(Answering answering) {
        return new dev.parley.transport.thrift.generated.records.Records.Processor<>(new Service(answering));
    }

    @Override
    public Calling client(TProtocol protocol) {
        var client = new dev.parley.transport.thrift.generated.records.Records.Client(protocol);
        return (operation, request) -> switch (operation) {
            case "all" -> RecordsConversions.toRecord(client.all(RecordsConversions.toStruct((Nothing) request)));
            case "add" -> RecordsConversions.toRecord(client.add(RecordsConversions.toStruct((Entry) request)));
            case "edit" -> RecordsConversions.toRecord(client.edit(RecordsConversions.toStruct((Entry) request)));
            case "delete" -> RecordsConversions.toRecord(client.remove(RecordsConversions.toStruct((EntryId) request)));
            case "upload" -> RecordsConversions.toRecord(client.upload(RecordsConversions.toStruct((Photo) request)));
            case "download" ->
                RecordsConversions.toRecord(client.download(RecordsConversions.toStruct((PhotoName) request)));
            default -> throw new CallException(Code.NOT_FOUND, "no operation " + operation + " in records.thrift");
        };
    }

    @Override
    public TBase<?, ?> toStruct(Record value) {
        return switch (value) {
            case Entries entries -> RecordsConversions.toStruct(entries);
            case Entry entry -> RecordsConversions.toStruct(entry);
            case EntryId entryId -> RecordsConversions.toStruct(entryId);
            case Nothing nothing -> RecordsConversions.toStruct(nothing);
            case Photo photo -> RecordsConversions.toStruct(photo);
            case PhotoName photoName -> RecordsConversions.toStruct(photoName);
            case StoredPhoto storedPhoto -> RecordsConversions.toStruct(storedPhoto);
            default ->
                throw new CallException(
                        Code.NOT_FOUND, value.getClass().getName() + " has no struct in records.thrift");
        };
    }

    /** The interface's implementation, as a user of Thrift writes it. */
    private record Service(Answering answering) implements dev.parley.transport.thrift.generated.records.Records.Iface {
        @Override
        public dev.parley.transport.thrift.generated.records.Entries all(
                dev.parley.transport.thrift.generated.records.Nothing request) throws TException {
            return RecordsConversions.toStruct(answering.answer(Records.ALL, RecordsConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.records.Entry add(
                dev.parley.transport.thrift.generated.records.Entry request) throws TException {
            return RecordsConversions.toStruct(answering.answer(Records.ADD, RecordsConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.records.Entry edit(
                dev.parley.transport.thrift.generated.records.Entry request) throws TException {
            return RecordsConversions.toStruct(answering.answer(Records.EDIT, RecordsConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.records.EntryId remove(
                dev.parley.transport.thrift.generated.records.EntryId request) throws TException {
            return RecordsConversions.toStruct(answering.answer(Records.DELETE, RecordsConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.records.StoredPhoto upload(
                dev.parley.transport.thrift.generated.records.Photo request) throws TException {
            return RecordsConversions.toStruct(answering.answer(Records.UPLOAD, RecordsConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.records.Photo download(
                dev.parley.transport.thrift.generated.records.PhotoName request) throws TException {
            return RecordsConversions.toStruct(
                    answering.answer(Records.DOWNLOAD, RecordsConversions.toRecord(request)));
        }
    }
}
