package dev.parley.encoding.protobuf;

import com.google.protobuf.UnsafeByteOperations;
import dev.parley.spi.records.Entries;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Nothing;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.StoredPhoto;
import java.util.ArrayList;
import java.util.List;

/**
 * Converts between the records of {@link dev.parley.spi.records} and the generated messages of the same names, which
 * are written here with their package.
 */
final class RecordsConversions {
    static final List<ProtobufCodec<?, ?>> CODECS = List.of(
            new ProtobufCodec<>(
                    Nothing.class,
                    dev.parley.encoding.protobuf.records.Nothing.getDefaultInstance(),
                    RecordsConversions::toMessage,
                    RecordsConversions::toRecord),
            new ProtobufCodec<>(
                    Entry.class,
                    dev.parley.encoding.protobuf.records.Entry.getDefaultInstance(),
                    RecordsConversions::toMessage,
                    RecordsConversions::toRecord),
            new ProtobufCodec<>(
                    EntryId.class,
                    dev.parley.encoding.protobuf.records.EntryId.getDefaultInstance(),
                    RecordsConversions::toMessage,
                    RecordsConversions::toRecord),
            new ProtobufCodec<>(
                    Entries.class,
                    dev.parley.encoding.protobuf.records.Entries.getDefaultInstance(),
                    RecordsConversions::toMessage,
                    RecordsConversions::toRecord),
            new ProtobufCodec<>(
                    PhotoName.class,
                    dev.parley.encoding.protobuf.records.PhotoName.getDefaultInstance(),
                    RecordsConversions::toMessage,
                    RecordsConversions::toRecord),
            new ProtobufCodec<>(
                    StoredPhoto.class,
                    dev.parley.encoding.protobuf.records.StoredPhoto.getDefaultInstance(),
                    RecordsConversions::toMessage,
                    RecordsConversions::toRecord),
            new ProtobufCodec<>(
                    Photo.class,
                    dev.parley.encoding.protobuf.records.Photo.getDefaultInstance(),
                    RecordsConversions::toMessage,
                    RecordsConversions::toRecord));

    private RecordsConversions() {}

    private static dev.parley.encoding.protobuf.records.Nothing toMessage(Nothing nothing) {
        return dev.parley.encoding.protobuf.records.Nothing.getDefaultInstance();
    }

    private static Nothing toRecord(dev.parley.encoding.protobuf.records.Nothing message) {
        return new Nothing();
    }

    private static dev.parley.encoding.protobuf.records.Entry toMessage(Entry value) {
        return dev.parley.encoding.protobuf.records.Entry.newBuilder()
                .setId(value.id())
                .setTitle(value.title())
                .setAuthor(value.author())
                .setBody(value.body())
                .build();
    }

    private static Entry toRecord(dev.parley.encoding.protobuf.records.Entry message) {
        return new Entry(message.getId(), message.getTitle(), message.getAuthor(), message.getBody());
    }

    private static dev.parley.encoding.protobuf.records.EntryId toMessage(EntryId value) {
        return dev.parley.encoding.protobuf.records.EntryId.newBuilder()
                .setId(value.id())
                .build();
    }

    private static EntryId toRecord(dev.parley.encoding.protobuf.records.EntryId message) {
        return new EntryId(message.getId());
    }

    private static dev.parley.encoding.protobuf.records.Entries toMessage(Entries value) {
        var message = dev.parley.encoding.protobuf.records.Entries.newBuilder();
        for (Entry item : value.entries()) {
            message.addEntries(toMessage(item));
        }
        return message.build();
    }

    private static Entries toRecord(dev.parley.encoding.protobuf.records.Entries message) {
        List<Entry> items = new ArrayList<>(message.getEntriesCount());
        for (var item : message.getEntriesList()) {
            items.add(toRecord(item));
        }
        return new Entries(items);
    }

    private static dev.parley.encoding.protobuf.records.PhotoName toMessage(PhotoName value) {
        return dev.parley.encoding.protobuf.records.PhotoName.newBuilder()
                .setName(value.name())
                .build();
    }

    private static PhotoName toRecord(dev.parley.encoding.protobuf.records.PhotoName message) {
        return new PhotoName(message.getName());
    }

    private static dev.parley.encoding.protobuf.records.StoredPhoto toMessage(StoredPhoto value) {
        return dev.parley.encoding.protobuf.records.StoredPhoto.newBuilder()
                .setName(value.name())
                .setBytes(value.bytes())
                .setSha256(value.sha256())
                .build();
    }

    private static StoredPhoto toRecord(dev.parley.encoding.protobuf.records.StoredPhoto message) {
        return new StoredPhoto(message.getName(), message.getBytes(), message.getSha256());
    }

    private static dev.parley.encoding.protobuf.records.Photo toMessage(Photo value) {
        return dev.parley.encoding.protobuf.records.Photo.newBuilder()
                .setName(value.name())
                .setContent(UnsafeByteOperations.unsafeWrap(value.content()))
                .build();
    }

    private static Photo toRecord(dev.parley.encoding.protobuf.records.Photo message) {
        return new Photo(message.getName(), message.getContent().toByteArray());
    }
}
