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
 * Encodes and decodes the {@link Metadata} of a request, of a reply or of an error. The total length of all entries in
 * bytes comes first. Each entry is encoded like an entry of a Protobuf map with field number 1.
 */
public final class MetadataFields {
    /** Memory in bytes that an entry takes in addition to its characters: a node of the map, and two string objects. */
    private static final int ENTRY_BYTES = 160;

    private static final int KEY_TAG = 1 << 3 | 2;
    private static final int VALUE_TAG = 2 << 3 | 2;

    private MetadataFields() {}

    /**
     * Encodes metadata, and appends the bytes to {@code out}. This method also computes any values that are new for
     * each attempt of a call, so it is called for each attempt. If a request with such values has waited in
     * {@link FrameScheduler} and is sent more than 10 s after this method was called, the method is called again, so
     * that the values are not too old.
     *
     * @throws RPCXException if a value cannot be computed, if there are too many entries, if the entries together are
     *     too large, or if an entry has no UTF-8 form. In all these cases, {@code out} is unchanged.
     */
    public static void write(ByteBuf out, Metadata metadata) {
        Map<String, String> entries = metadata.forAttempt().entries();
        Varint.write(out, checkedBytes(entries, Metadata.MAX_BYTES));
        entries.forEach((name, value) -> {
            out.writeByte(KEY_TAG);
            Varint.write(out, entryBytes(name, value));
            writeText(out, KEY_TAG, name);
            writeText(out, VALUE_TAG, value);
        });
    }

    /**
     * Checks metadata that are to be sent with a reply or an error.
     *
     * @throws RPCXException if there are too many entries, if the entries together are larger than
     *     {@link Metadata#MAX_REPLY_BYTES}, or if an entry has no UTF-8 form
     */
    public static void checkReply(Metadata metadata) {
        checkedBytes(metadata.entries(), Metadata.MAX_REPLY_BYTES);
    }

    /** Returns the number of bytes that the encoded entries take. Throws if they exceed a limit. */
    private static int checkedBytes(Map<String, String> entries, int maxBytes) {
        Size size = new Size();
        entries.forEach(size);
        if (size.characters > Metadata.MAX_BYTES) {
            throw RPCXException.refused(
                    RPCXException.Code.TOO_LARGE,
                    "metadata of at least " + size.characters + " bytes (expected: at most " + maxBytes + ")");
        }
        if (size.bytes > maxBytes) {
            throw RPCXException.refused(
                    RPCXException.Code.TOO_LARGE,
                    "metadata of " + size.bytes + " bytes (expected: at most " + maxBytes + ")");
        }
        if (entries.size() > Metadata.MAX_ENTRIES) {
            throw RPCXException.refused(
                    RPCXException.Code.TOO_LARGE,
                    "metadata of " + entries.size() + " entries (expected: at most " + Metadata.MAX_ENTRIES + ")");
        }
        return size.bytes;
    }

    /** Adds up the encoded bytes of all entries, and refuses an entry that has no UTF-8 form. */
    private static final class Size implements BiConsumer<String, String> {
        private int bytes;

        /**
         * Number of characters in all entries so far. Each character takes at least one byte. So the metadata is too
         * large if this number exceeds {@code Metadata.MAX_BYTES}. The entry with which this happens, and all later
         * ones, are not added to {@code bytes}, which could overflow.
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
     * Throws if a text contains half a surrogate pair. Such a half has no UTF-8 form, and another character would be
     * sent instead.
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
     * Decodes metadata that {@link #write} has encoded. The length of the metadata is checked before any memory is
     * allocated for them.
     *
     * @throws WireFault if the bytes are not metadata, or if the metadata exceeds a limit
     */
    public static Metadata read(ByteBuf in) {
        return read(in, Metadata.MAX_BYTES);
    }

    /**
     * Decodes metadata as {@link #read(ByteBuf)} does, with another limit on the bytes of their entries.
     *
     * @throws WireFault if the bytes are not metadata, or if the metadata exceeds a limit
     */
    public static Metadata read(ByteBuf in, int maxBytes) {
        return entries(in, Varint.readLength(in, maxBytes, "metadata"));
    }

    /**
     * Decodes the entries of metadata, without the length before them.
     *
     * @param bytes number of bytes that the entries take
     */
    static Metadata entries(ByteBuf in, int bytes) {
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
     * Returns the maximum number of bytes of memory that the entries of the metadata take after they were decoded from
     * {@code encodedBytes} bytes. This is two bytes for each encoded byte, plus a fixed number for each entry. The
     * empty map itself is not counted.
     */
    public static int cost(Metadata metadata, int encodedBytes) {
        return 2 * encodedBytes + ENTRY_BYTES * metadata.entries().size();
    }
}
