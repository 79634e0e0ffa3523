package dev.parley.transport.thrift;

import dev.parley.spi.records.Entries;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Nothing;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.StoredPhoto;
import java.nio.ByteBuffer;

/** The records of {@link dev.parley.spi.records} and their generated namesakes, which stand here with their package. */
final class RecordsConversions {
    private RecordsConversions() {}

    static dev.parley.transport.thrift.generated.records.Nothing toStruct(Nothing value) {
        return new dev.parley.transport.thrift.generated.records.Nothing();
    }

    static Nothing toRecord(dev.parley.transport.thrift.generated.records.Nothing struct) {
        return new Nothing();
    }

    static dev.parley.transport.thrift.generated.records.Entry toStruct(Entry value) {
        return new dev.parley.transport.thrift.generated.records.Entry(
                value.id(), value.title(), value.author(), value.body());
    }

    static Entry toRecord(dev.parley.transport.thrift.generated.records.Entry struct) {
        return new Entry(struct.getId(), struct.getTitle(), struct.getAuthor(), struct.getBody());
    }

    static dev.parley.transport.thrift.generated.records.EntryId toStruct(EntryId value) {
        return new dev.parley.transport.thrift.generated.records.EntryId(value.id());
    }

    static EntryId toRecord(dev.parley.transport.thrift.generated.records.EntryId struct) {
        return new EntryId(struct.getId());
    }

    static dev.parley.transport.thrift.generated.records.Entries toStruct(Entries value) {
        return new dev.parley.transport.thrift.generated.records.Entries(
                value.entries().stream().map(RecordsConversions::toStruct).toList());
    }

    static Entries toRecord(dev.parley.transport.thrift.generated.records.Entries struct) {
        return new Entries(
                struct.getEntries().stream().map(RecordsConversions::toRecord).toList());
    }

    static dev.parley.transport.thrift.generated.records.PhotoName toStruct(PhotoName value) {
        return new dev.parley.transport.thrift.generated.records.PhotoName(value.name());
    }

    static PhotoName toRecord(dev.parley.transport.thrift.generated.records.PhotoName struct) {
        return new PhotoName(struct.getName());
    }

    static dev.parley.transport.thrift.generated.records.StoredPhoto toStruct(StoredPhoto value) {
        return new dev.parley.transport.thrift.generated.records.StoredPhoto(
                value.name(), value.bytes(), value.sha256());
    }

    static StoredPhoto toRecord(dev.parley.transport.thrift.generated.records.StoredPhoto struct) {
        return new StoredPhoto(struct.getName(), struct.getBytes(), struct.getSha256());
    }

    static dev.parley.transport.thrift.generated.records.Photo toStruct(Photo value) {
        return new dev.parley.transport.thrift.generated.records.Photo(value.name(), ByteBuffer.wrap(value.content()));
    }

    static Photo toRecord(dev.parley.transport.thrift.generated.records.Photo struct) {
        return new Photo(struct.getName(), struct.getContent());
    }
}
