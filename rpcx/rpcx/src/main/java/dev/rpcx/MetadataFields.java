package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BiConsumer;

/** Bytes of {@link Metadata} in a request: their length, and the entries, each a Protobuf map entry of field 1. */
final class MetadataFields {
    /** What an entry costs beside its characters: its place in the map and two strings. */
    private static final int ENTRY_BYTES = 160;

    private static final int KEY_TAG = 1 << 3 | 2;
    private static final int VALUE_TAG = 2 << 3 | 2;

    private MetadataFields() {}

    /**
     * Appends the length and the entries, with a value for each that is computed. Once for each attempt of a call.
     *
     * @throws RPCXException if they are too many or too large, or one has no bytes: then nothing has been appended
     */
    static void write(ByteBuf out, Metadata metadata) {
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

    /** Adds up the bytes of entries, and refuses those that have none. */
    private static final class Size implements BiConsumer<String, String> {
        private int bytes;

        /** Each takes a byte at least. Of too many the bytes are not counted: they may be more than an int holds. */
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

    /** A surrogate without its other half has no UTF-8, and would be sent as another character. */
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
     * Reads what {@link #write} wrote. The length is checked against what is there and against the limit first.
     *
     * @throws WireFault if it is no metadata, or more of it than the limits allow
     */
    static Metadata read(ByteBuf in) {
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

    /** Bytes of memory that metadata takes once it was read from so many bytes; a character may take two. */
    static int cost(Metadata metadata, int encodedBytes) {
        return 2 * encodedBytes + ENTRY_BYTES * metadata.entries().size();
    }
}
