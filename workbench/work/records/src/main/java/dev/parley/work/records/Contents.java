package dev.parley.work.records;

import dev.parley.spi.records.Entry;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.StoredPhoto;
import java.lang.ref.SoftReference;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.stream.IntStream;

/** Records and photos that services and clients know alike, since both draw them from the same seeds. */
final class Contents {
    /**
     * The number of records in the table before the first request. They stay as they are, since no request changes
     * them.
     */
    static final int BASE = 100;
    /** Source: iwanowski, section 4.2: "875 kB". */
    static final int PHOTO_BYTES = 875_000;

    static final int PHOTOS = 16;

    private static final long BASE_SEED = 31;
    private static final int TITLE_CHARACTERS = 60;
    private static final int AUTHOR_CHARACTERS = 24;
    /** With title, author and id: 1 000 bytes. */
    private static final int BODY_CHARACTERS = 880;

    private static final List<Entry> BASE_ENTRIES =
            IntStream.range(0, BASE).mapToObj(i -> entry(BASE_SEED, i, 0)).toList();

    private Contents() {}

    static List<Entry> base() {
        return BASE_ENTRIES;
    }

    static String id(long seed, long index) {
        return UUID.nameUUIDFromBytes(ByteBuffer.allocate(2 * Long.BYTES)
                        .putLong(seed)
                        .putLong(index)
                        .array())
                .toString();
    }

    /** @param version 0 as it is added, 1 as it is edited */
    static Entry entry(long seed, long index, int version) {
        SplittableRandom random = new SplittableRandom(31 * (31 * seed + index) + version);
        return new Entry(
                id(seed, index),
                text(TITLE_CHARACTERS, random),
                text(AUTHOR_CHARACTERS, random),
                text(BODY_CHARACTERS, random));
    }

    private static String text(int characters, SplittableRandom random) {
        byte[] ascii = new byte[characters];
        for (int i = 0; i < characters; i++) {
            ascii[i] = (byte) (i % 8 == 7 ? ' ' : random.nextInt('a', 'z' + 1));
        }
        return new String(ascii, StandardCharsets.US_ASCII);
    }

    static String photoName(long index, int bytes) {
        return "photo-" + bytes + "-" + Math.floorMod(index, PHOTOS);
    }

    /** A photo of bytes that no compression makes smaller, as those of real photos. */
    static Photo photo(long index, int bytes) {
        byte[] content = new byte[bytes];
        new SplittableRandom(Math.floorMod(index, PHOTOS)).nextBytes(content);
        return new Photo(photoName(index, bytes), content);
    }

    /**
     * The photos of one size, with what a service says of each that it has stored.
     *
     * @param bytes of each photo
     */
    record Album(int bytes, List<Photo> photos, List<StoredPhoto> stored) {
        private static Album of(int bytes) {
            List<Photo> photos = IntStream.range(0, PHOTOS)
                    .mapToObj(index -> photo(index, bytes))
                    .toList();
            return new Album(
                    bytes,
                    photos,
                    photos.stream()
                            .map(p -> new StoredPhoto(p.name(), p.content().length, sha256(p.content())))
                            .toList());
        }
    }

    /**
     * The album that was asked for last, kept as long as there is memory: a study asks for the same one each time that
     * its messages are looked at.
     */
    private static volatile SoftReference<Album> last = new SoftReference<>(Album.of(0));

    static Album album(int bytes) {
        Album known = last.get();
        if (known == null || known.bytes() != bytes) {
            known = Album.of(bytes);
            last = new SoftReference<>(known);
        }
        return known;
    }

    static String sha256(byte[] content) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
