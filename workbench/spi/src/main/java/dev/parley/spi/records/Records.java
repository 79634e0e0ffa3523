package dev.parley.spi.records;

import dev.parley.spi.Contract;
import dev.parley.spi.Operation;
import dev.parley.spi.Operation.Kind;
import java.util.List;

/** Operations of the work {@code records}. */
public final class Records {
    public static final Operation<Nothing, Entries> ALL =
            new Operation<>("all", Kind.FETCH, Nothing.class, Entries.class);
    public static final Operation<Entry, Entry> ADD = new Operation<>("add", Kind.MUTATION, Entry.class, Entry.class);
    public static final Operation<Entry, Entry> EDIT = new Operation<>("edit", Kind.MUTATION, Entry.class, Entry.class);
    public static final Operation<EntryId, EntryId> DELETE =
            new Operation<>("delete", Kind.MUTATION, EntryId.class, EntryId.class);
    /** Stores a photo, in place of one of the same name. */
    public static final Operation<Photo, StoredPhoto> UPLOAD =
            new Operation<>("upload", Kind.MUTATION, Photo.class, StoredPhoto.class);

    public static final Operation<PhotoName, Photo> DOWNLOAD =
            new Operation<>("download", Kind.QUERY, PhotoName.class, Photo.class);

    public static final Contract CONTRACT = new Contract("records", List.of(ALL, ADD, EDIT, DELETE, UPLOAD, DOWNLOAD));

    private Records() {}
}
