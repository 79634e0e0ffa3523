package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Names and values that travel with a request beside its arguments. Immutable; at most 8 KiB once encoded. A value is fixed, or computed for
 * each attempt of a call.
 */
public final class Metadata {
    /** Most bytes of encoded metadata in a request. Source: gRPC's default limit of header lists. */
    public static final int MAX_BYTES = 8 * 1024;

    /** Most entries in a request. Each costs some hundred bytes of memory, however short: by their bytes alone a peer could send over a thousand. */
    public static final int MAX_ENTRIES = 64;

    /** What an entry costs beside its characters: its place in the map and two strings. */
    private static final int ENTRY_BYTES = 160;

    /** No entries. */
    public static final Metadata EMPTY = new Metadata(Map.of(), Map.of());

    private static final int KEY_TAG = 1 << 3 | 2;
    private static final int VALUE_TAG = 2 << 3 | 2;

    private final Map<String, String> entries;

    /** Entries without a value yet; none of their names is in {@link #entries}. Empty on the server's side. */
    private final Map<String, Supplier<String>> computed;

    private Metadata(Map<String, String> entries, Map<String, Supplier<String>> computed) {
        this.entries = entries;
        this.computed = computed;
    }

    /** These entries and one more; a name that is there already gets the new value. */
    public Metadata with(String name, String value) {
        Given.notNull(value, "value", "a text");
        if (Given.notNull(name, "name", "1 or more characters").isEmpty()) {
            throw new IllegalArgumentException("metadata name: empty (expected: 1 or more characters)");
        }
        Map<String, String> copy = new LinkedHashMap<>(entries);
        copy.put(name, value);
        return new Metadata(Collections.unmodifiableMap(copy), without(name));
    }

    /**
     * These entries and one whose value is computed each time that a request with it is written: once for a call that is sent once, again
     * for each retry, each hedge and each subscription of a stream. For what counts once, such as a nonce. A request
     * that has waited for its socket for more than 10 s until it begins to leave is given another value then,
     * where that is not much longer. The supplier runs on the caller's thread or on an event loop, so it may not block;
     * what it throws ends that attempt, or leaves the value that was there.
     */
    public Metadata withEachAttempt(String name, Supplier<String> value) {
        Given.notNull(value, "value", "what gives a text");
        Map<String, String> fixed = new LinkedHashMap<>(with(name, "").entries);
        fixed.remove(name);
        Map<String, Supplier<String>> copy = new LinkedHashMap<>(computed);
        copy.put(name, value);
        return new Metadata(Collections.unmodifiableMap(fixed), copy);
    }

    private Map<String, Supplier<String>> without(String name) {
        if (!computed.containsKey(name)) {
            return computed;
        }
        Map<String, Supplier<String>> copy = new LinkedHashMap<>(computed);
        copy.remove(name);
        return copy;
    }

    /**
     * The value of this name, or null without one. Names are told apart by case. An entry that is computed is computed for this look, so its
     * value is another one than that of any request.
     */
    public @Nullable String get(String name) {
        Supplier<String> value = computed.get(Given.notNull(name, "name", "that of an entry"));
        return value == null ? entries.get(name) : value.get();
    }

    /** Entries with a fixed value, in the order in which they were added. */
    public Map<String, String> entries() {
        return entries;
    }

    /** Whether there is no entry, neither a fixed nor a computed one. */
    public boolean isEmpty() {
        return entries.isEmpty() && computed.isEmpty();
    }

    /** Whether there is an entry that is computed. */
    boolean isComputed() {
        return !computed.isEmpty();
    }

    /** Same metadata with a value for each entry: what one attempt sends. */
    private Metadata forAttempt() {
        if (computed.isEmpty()) {
            return this;
        }
        Map<String, String> all = new LinkedHashMap<>(entries);
        computed.forEach((name, value) -> all.put(name, computed(name, value)));
        return new Metadata(all, Map.of());
    }

    /** Whatever the user's code throws here, errors included, ends this attempt of this call: nothing of it has left. */
    private static String computed(String name, Supplier<String> value) {
        RPCXException.Code code = RPCXException.Code.INVALID;
        Throwable why = null;
        String text;
        try {
            String given = value.get();
            if (given != null) {
                return given;
            }
            text = "null";
        } catch (Throwable thrown) {
            why = thrown;
            text = String.valueOf(thrown);
            if (thrown instanceof RPCXException known) {
                code = known.code();
                text = String.valueOf(known.getMessage());
            }
        }
        throw new RPCXException(
                code,
                "the value of the metadata entry \"" + name + "\": " + text + " (expected: a text)",
                RPCXException.Executed.NOT_EXECUTED,
                why);
    }

    /** Appends the length and the entries, each a Protobuf map entry of field 1. Once for each attempt of a call. */
    void write(ByteBuf out) {
        forAttempt().writeEntries(out);
    }

    private void writeEntries(ByteBuf out) {
        int bytes = 0;
        for (Map.Entry<String, String> entry : entries.entrySet()) {
            refuseHalfPair(entry.getKey(), entry);
            refuseHalfPair(entry.getValue(), entry);
            int entryBytes = entryBytes(entry);
            bytes += 1 + Varint.size(entryBytes) + entryBytes;
        }
        if (bytes > MAX_BYTES) {
            throw new RPCXException(
                    RPCXException.Code.TOO_LARGE,
                    "metadata of " + bytes + " bytes (expected: at most " + MAX_BYTES + ")",
                    RPCXException.Executed.NOT_EXECUTED);
        }
        if (entries.size() > MAX_ENTRIES) {
            throw new RPCXException(
                    RPCXException.Code.TOO_LARGE,
                    "metadata of " + entries.size() + " entries (expected: at most " + MAX_ENTRIES + ")",
                    RPCXException.Executed.NOT_EXECUTED);
        }
        Varint.write(out, bytes);
        for (Map.Entry<String, String> entry : entries.entrySet()) {
            out.writeByte(KEY_TAG);
            Varint.write(out, entryBytes(entry));
            writeText(out, KEY_TAG, entry.getKey());
            writeText(out, VALUE_TAG, entry.getValue());
        }
    }

    /** A surrogate without its other half has no UTF-8, and would be sent as another character. */
    private static void refuseHalfPair(String text, Map.Entry<String, String> entry) {
        for (int i = 0; i < text.length(); i++) {
            if (Character.isSurrogate(text.charAt(i))) {
                if (i + 1 == text.length() || !Character.isSurrogatePair(text.charAt(i), text.charAt(i + 1))) {
                    throw new RPCXException(
                            RPCXException.Code.INVALID,
                            "the metadata entry \"" + entry.getKey()
                                    + "\": half a surrogate pair, for which there is no UTF-8 (expected: a text)",
                            RPCXException.Executed.NOT_EXECUTED);
                }
                i++;
            }
        }
    }

    private static int entryBytes(Map.Entry<String, String> entry) {
        int key = ByteBufUtil.utf8Bytes(entry.getKey());
        int value = ByteBufUtil.utf8Bytes(entry.getValue());
        return 2 + Varint.size(key) + key + Varint.size(value) + value;
    }

    private static void writeText(ByteBuf out, int tag, String text) {
        out.writeByte(tag);
        Varint.write(out, ByteBufUtil.utf8Bytes(text));
        out.writeCharSequence(text, StandardCharsets.UTF_8);
    }

    /** Reads what {@link #write} wrote. The length is checked against what is there and against the limit first. */
    static Metadata read(ByteBuf in) {
        int bytes = Varint.readLength(in, MAX_BYTES, "metadata");
        int end = in.readerIndex() + bytes;
        Map<String, String> entries = new LinkedHashMap<>();
        int count = 0;
        while (in.readerIndex() < end) {
            ProtoFields.expect(Varint.read(in), KEY_TAG, "metadata");
            if (++count > MAX_ENTRIES) {
                throw new WireFault("more than " + MAX_ENTRIES + " entries of metadata");
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
        return new Metadata(Collections.unmodifiableMap(entries), Map.of());
    }

    /** Bytes of memory that this takes once it was read from so many bytes; a character may take two. */
    int cost(int encodedBytes) {
        return 2 * encodedBytes + ENTRY_BYTES * entries.size();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Metadata m && m.entries.equals(entries) && m.computed.equals(computed);
    }

    @Override
    public int hashCode() {
        return 31 * entries.hashCode() + computed.hashCode();
    }

    /** Names only: values may be secrets. */
    @Override
    public String toString() {
        return "Metadata" + entries.keySet() + (computed.isEmpty() ? "" : computed.keySet());
    }
}
