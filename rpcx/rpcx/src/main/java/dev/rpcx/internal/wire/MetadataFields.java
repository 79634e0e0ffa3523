package dev.rpcx.internal.wire;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.FrozenMap;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BiConsumer;

/**
 * Writes and reads {@link Metadata} in a request: the length of all entries in bytes, and then each entry as in a
 * Protobuf map with field number 1.
 */
public final class MetadataFields {
    /** Memory in bytes of an entry without its characters: its node in the map, and two strings. */
    private static final int ENTRY_BYTES = 160;

    private static final int KEY_TAG = 1 << 3 | 2;
    private static final int VALUE_TAG = 2 << 3 | 2;

    private MetadataFields() {}

    /**
     * Appends the length and the entries to {@code out}. Values that are computed for each attempt are computed now.
     * Called for each attempt of a call, and once more if the request of an attempt is sent late.
     *
     * @throws RPCXException if there are too many entries, if they are too large, or if one has no UTF-8 form; in these
     *     cases nothing has been appended
     */
    public static void write(ByteBuf out, Metadata metadata) {
        Map<String, String> entries = metadata.forAttempt().entries();
        Size size = new Size();
        entries.forEach(size);
        if (size.characters > Metadata.MAX_BYTES) {
            throw RPCXException.refused(
                    RPCXException.Code.TOO_LARGE,
                    "metadata of at least " + size.characters + " bytes (expected: at most " + Metadata.MAX_BYTES
                            + ")");
        }
        if (size.bytes > Metadata.MAX_BYTES) {
            throw RPCXException.refused(
                    RPCXException.Code.TOO_LARGE,
                    "metadata of " + size.bytes + " bytes (expected: at most " + Metadata.MAX_BYTES + ")");
        }
        if (entries.size() > Metadata.MAX_ENTRIES) {
            throw RPCXException.refused(
                    RPCXException.Code.TOO_LARGE,
                    "metadata of " + entries.size() + " entries (expected: at most " + Metadata.MAX_ENTRIES + ")");
        }
        Varint.write(out, size.bytes);
        entries.forEach((name, value) -> {
            out.writeByte(KEY_TAG);
            Varint.write(out, entryBytes(name, value));
            writeText(out, KEY_TAG, name);
            writeText(out, VALUE_TAG, value);
        });
    }

    /** Counts the encoded bytes of the entries, and refuses an entry that has no UTF-8 form. */
    private static final class Size implements BiConsumer<String, String> {
        private int bytes;

        /**
         * Number of characters so far. Each takes at least one byte, so once there are more than the allowed bytes, the
         * bytes are not counted any more: their number might not fit an {@code int}.
         */
        private long characters;

        @Override
        public void accept(String name, String value) {
            characters += (long) name.length() + value.length();
            if (characters > Metadata.MAX_BYTES) {
                return;
            }
            refuseHalfPair(name, name);
            refuseHalfPair(value, name);
            int entryBytes = entryBytes(name, value);
            bytes += 1 + Varint.size(entryBytes) + entryBytes;
        }
    }

    /** Refuses a text with half a surrogate pair. It has no UTF-8 form: another character would be sent. */
    private static void refuseHalfPair(String text, String name) {
        for (int i = 0; i < text.length(); i++) {
            if (Character.isSurrogate(text.charAt(i))) {
                if (i + 1 == text.length() || !Character.isSurrogatePair(text.charAt(i), text.charAt(i + 1))) {
                    throw RPCXException.refused(
                            RPCXException.Code.INVALID,
                            "the metadata entry \"" + name
                                    + "\": half a surrogate pair, for which there is no UTF-8 (expected: a text)");
                }
                i++;
            }
        }
    }

    private static int entryBytes(String name, String value) {
        int nameBytes = ByteBufUtil.utf8Bytes(name);
        int valueBytes = ByteBufUtil.utf8Bytes(value);
        return 2 + Varint.size(nameBytes) + nameBytes + Varint.size(valueBytes) + valueBytes;
    }

    private static void writeText(ByteBuf out, int tag, String text) {
        out.writeByte(tag);
        Varint.write(out, ByteBufUtil.utf8Bytes(text));
        out.writeCharSequence(text, StandardCharsets.UTF_8);
    }

    /**
     * Reads metadata that {@link #write} has written. Checks the length before it allocates anything.
     *
     * @throws WireFault if the bytes are not metadata, or if the metadata exceeds a limit
     */
    public static Metadata read(ByteBuf in) {
        int bytes = Varint.readLength(in, Metadata.MAX_BYTES, "metadata");
        int end = in.readerIndex() + bytes;
        LinkedHashMap<String, String> entries = new LinkedHashMap<>();
        int count = 0;
        while (in.readerIndex() < end) {
            ProtoFields.expect(Varint.read(in), KEY_TAG, "metadata");
            if (++count > Metadata.MAX_ENTRIES) {
                throw new WireFault("more than " + Metadata.MAX_ENTRIES + " entries of metadata");
            }
            int entryEnd = Varint.readLength(in, end - in.readerIndex(), "metadata entry") + in.readerIndex();
            String key = "";
            String value = "";
            while (in.readerIndex() < entryEnd) {
                int tag = ProtoFields.tag(in);
                if (tag == KEY_TAG) {
                    key = ProtoFields.text(in, entryEnd, "metadata name");
                } else if (tag == VALUE_TAG) {
                    value = ProtoFields.text(in, entryEnd, "metadata value");
                } else {
                    ProtoFields.skip(in, tag, entryEnd);
                }
            }
            ProtoFields.expectEnd(in, entryEnd);
            entries.put(key, value);
        }
        ProtoFields.expectEnd(in, end);
        return Metadata.of(new FrozenMap<>(entries));
    }

    /**
     * Returns how many bytes of memory the metadata takes at most, if it was read from {@code encodedBytes} bytes: two
     * for each of these, and a fixed number for each entry.
     */
    public static int cost(Metadata metadata, int encodedBytes) {
        return 2 * encodedBytes + ENTRY_BYTES * metadata.entries().size();
    }
}
