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
 * Encoding of {@link Metadata} in a request: the length in bytes, then the entries, each a Protobuf map entry of field
 * 1.
 */
public final class MetadataFields {
    /** Memory in bytes that an entry takes in addition to its characters: its node in the map and two strings. */
    private static final int ENTRY_BYTES = 160;

    private static final int KEY_TAG = 1 << 3 | 2;
    private static final int VALUE_TAG = 2 << 3 | 2;

    private MetadataFields() {}

    /**
     * Appends the length and the entries, with a new value for each computed entry. Called for each attempt of a call,
     * and again when the request of an attempt leaves late.
     *
     * @throws RPCXException if the entries are too many or too large, or one has no UTF-8 form; nothing has been
     *     appended then
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

    /** Adds up the bytes of the entries, and refuses an entry that has no UTF-8 form. */
    private static final class Size implements BiConsumer<String, String> {
        private int bytes;

        /**
         * Number of characters, each of which takes at least one byte. Once there are too many, their bytes are not
         * counted: these may be more than an int holds.
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

    /**
     * Refuses a text with a surrogate that lacks its other half: it has no UTF-8 form, and would be sent as another
     * character.
     */
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
     * Reads what {@link #write} wrote. The length is first checked against the bytes that are there and against the
     * limit.
     *
     * @throws WireFault if the bytes are no metadata, or are more metadata than the limits allow
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
     * Bytes of memory that metadata takes after it was read from {@code encodedBytes} bytes; a character may take two
     * bytes.
     */
    public static int cost(Metadata metadata, int encodedBytes) {
        return 2 * encodedBytes + ENTRY_BYTES * metadata.entries().size();
    }
}
