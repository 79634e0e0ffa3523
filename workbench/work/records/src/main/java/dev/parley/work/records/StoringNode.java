package dev.parley.work.records;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.records.Entries;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Nothing;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import dev.parley.spi.records.StoredPhoto;
import java.util.Map;
import java.util.UUID;

/** A service at the end of the line: it checks what it is sent, and keeps it. */
final class StoringNode implements Work.Node {
    private static final int MAX_TITLE_CHARACTERS = 200;
    private static final int MAX_AUTHOR_CHARACTERS = 100;
    private static final int MAX_BODY_CHARACTERS = 100_000;
    private static final int MAX_NAME_CHARACTERS = 200;
    private static final int MAX_PHOTO_BYTES = 10_000_000;

    private final Postgres postgres;

    StoringNode(Postgres postgres) {
        this.postgres = postgres;
    }

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        return operation
                .reply()
                .cast(
                        switch (request) {
                            case Nothing nothing -> new Entries(postgres.all());
                            case Entry entry when operation.name().equals(Records.ADD.name()) -> add(entry);
                            case Entry entry -> edit(entry);
                            case EntryId id -> delete(id);
                            case Photo photo -> upload(photo);
                            case PhotoName name -> download(name);
                            default ->
                                throw new CallException(
                                        Code.NOT_FOUND,
                                        "no operation " + operation.name() + " in " + Records.CONTRACT.name());
                        });
    }

    private Entry add(Entry entry) {
        check(entry);
        postgres.add(entry);
        return entry;
    }

    private Entry edit(Entry entry) {
        check(entry);
        if (!postgres.edit(entry)) {
            throw new CallException(Code.NOT_FOUND, "no record " + entry.id());
        }
        return entry;
    }

    private EntryId delete(EntryId id) {
        if (!postgres.delete(uuid(id.id()))) {
            throw new CallException(Code.NOT_FOUND, "no record " + id.id());
        }
        return id;
    }

    private StoredPhoto upload(Photo photo) {
        length("name", photo.name(), 1, MAX_NAME_CHARACTERS);
        if (photo.content().length > MAX_PHOTO_BYTES) {
            throw new CallException(
                    Code.TOO_LARGE,
                    "content: " + photo.content().length + " bytes (expected: at most " + MAX_PHOTO_BYTES + ")");
        }
        postgres.keep(photo);
        return new StoredPhoto(photo.name(), photo.content().length, Contents.sha256(photo.content()));
    }

    private Photo download(PhotoName name) {
        return postgres.photo(name.name())
                .orElseThrow(() -> new CallException(Code.NOT_FOUND, "no photo " + name.name()));
    }

    private static void check(Entry entry) {
        UUID id = uuid(entry.id());
        if (!id.toString().equals(entry.id())) {
            throw new CallException(Code.INVALID, "id: " + entry.id() + " (expected: " + id + ")");
        }
        length("title", entry.title(), 1, MAX_TITLE_CHARACTERS);
        length("author", entry.author(), 1, MAX_AUTHOR_CHARACTERS);
        if (entry.body().length() > MAX_BODY_CHARACTERS) {
            throw new CallException(
                    Code.TOO_LARGE,
                    "body: " + entry.body().length() + " characters (expected: at most " + MAX_BODY_CHARACTERS + ")");
        }
        for (String text : new String[] {entry.title(), entry.author(), entry.body()}) {
            noNul(text);
        }
    }

    private static UUID uuid(String id) {
        try {
            return UUID.fromString(id);
        } catch (IllegalArgumentException e) {
            throw new CallException(Code.INVALID, "id: " + id + " (expected: a UUID)", e);
        }
    }

    private static void length(String what, String text, int least, int most) {
        if (text.length() < least || text.length() > most) {
            throw new CallException(
                    Code.INVALID,
                    what + ": " + text.length() + " characters (expected: " + least + " to " + most + ")");
        }
        noNul(text);
    }

    /** Source: PostgreSQL, section 8.3: "the character with code zero cannot be stored". */
    private static void noNul(String text) {
        if (text.indexOf('\0') >= 0) {
            throw new CallException(Code.INVALID, "a character with code zero (expected: none)");
        }
    }

    @Override
    public Map<String, Double> figures() {
        return postgres.figures();
    }

    @Override
    public void close() {
        postgres.close();
    }
}
