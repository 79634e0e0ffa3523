package dev.rpcx;

import dev.rpcx.internal.FrozenMap;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThrowableText;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Names and values that are sent with a request beside its arguments. Immutable; at most 8 KiB once encoded, and at
 * most 64 entries. A value is either fixed, or computed for each attempt of a call.
 */
public final class Metadata {
    /** Maximum number of bytes of a request's encoded metadata. Source: gRPC's default limit of header lists. */
    public static final int MAX_BYTES = 8 * 1024;

    /**
     * Maximum number of entries in a request. An entry takes some hundred bytes of memory, however short it is, so
     * {@link #MAX_BYTES} alone does not bound the memory.
     */
    public static final int MAX_ENTRIES = 64;

    /** Metadata without entries. */
    public static final Metadata EMPTY = new Metadata(new FrozenMap<>(new LinkedHashMap<>()), Map.of());

    private final FrozenMap<String, String> entries;

    /**
     * Entries whose value is computed for each attempt. None of their names is in {@link #entries}. Empty at a server.
     */
    private final Map<String, Supplier<String>> computed;

    private Metadata(FrozenMap<String, String> entries, Map<String, Supplier<String>> computed) {
        this.entries = entries;
        this.computed = computed;
    }

    /**
     * Returns metadata with these entries, in the order of the map. The map is copied.
     *
     * @throws IllegalArgumentException if a name is empty
     */
    public static Metadata of(Map<String, String> entries) {
        if (entries instanceof FrozenMap<String, String> read) {
            // names are not checked here: a map of this class may come from a peer, which may send empty names
            return new Metadata(read, Map.of());
        }
        LinkedHashMap<String, String> copy = new LinkedHashMap<>();
        Given.notNull(entries, "entries", "names and values").forEach((name, value) -> put(copy, name, value));
        return new Metadata(new FrozenMap<>(copy), Map.of());
    }

    private static void put(Map<String, String> entries, String name, String value) {
        Given.notNull(value, "value", "a text");
        if (Given.notNull(name, "name", "1 or more characters").isEmpty()) {
            throw new IllegalArgumentException("metadata name: empty (expected: 1 or more characters)");
        }
        entries.put(name, value);
    }

    /** Returns a copy with one more entry. If there is an entry with this name already, it gets the new value. */
    public Metadata with(String name, String value) {
        LinkedHashMap<String, String> copy = entries.copy();
        put(copy, name, value);
        return new Metadata(new FrozenMap<>(copy), without(name));
    }

    /**
     * Returns a copy with one more entry, whose value is computed again for each request that is sent: for each retry,
     * each hedge and each subscription of a stream. Use it for values that are valid only once, such as a nonce.
     *
     * <p>The supplier runs on the caller's thread or on an event loop, so it must not block. If it throws, that attempt
     * ends. If a request has waited for more than 10 s when it begins to be sent, the value is computed once more. If
     * the new value does not fit, or the supplier throws this time, the earlier value is sent.
     */
    public Metadata withEachAttempt(String name, Supplier<String> value) {
        Given.notNull(value, "value", "a Supplier of a text");
        LinkedHashMap<String, String> fixed = with(name, "").entries.copy();
        fixed.remove(name);
        Map<String, Supplier<String>> copy = new LinkedHashMap<>(computed);
        copy.put(name, value);
        return new Metadata(new FrozenMap<>(fixed), copy);
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
     * Returns the value of the entry with this name, or null if there is none. Names are case-sensitive. A computed
     * value is computed for this call, and may differ from the value that a request carries.
     */
    public @Nullable String get(String name) {
        Supplier<String> value = computed.get(Given.notNull(name, "name", "that of an entry"));
        return value == null ? entries.get(name) : value.get();
    }

    /**
     * Returns the entries that have a fixed value, in the order in which they were added. Entries whose value is
     * computed for each attempt are not among them. The map is immutable.
     */
    public Map<String, String> entries() {
        return entries;
    }

    /** Returns whether there is no entry, neither a fixed one nor a computed one. */
    public boolean isEmpty() {
        return entries.isEmpty() && computed.isEmpty();
    }

    /** Returns whether there is an entry whose value is computed for each attempt of a call. */
    public boolean isComputed() {
        return !computed.isEmpty();
    }

    /**
     * Returns the metadata of one attempt, with the value of each computed entry computed and fixed.
     *
     * @throws RPCXException if a value cannot be computed; it says that the call was not executed
     */
    public Metadata forAttempt() {
        if (computed.isEmpty()) {
            return this;
        }
        LinkedHashMap<String, String> all = entries.copy();
        computed.forEach((name, value) -> all.put(name, computed(name, value)));
        return new Metadata(new FrozenMap<>(all), Map.of());
    }

    /**
     * Computes a value. Anything that the user's code throws, even an error, ends the attempt before any of it is sent.
     */
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
            text = ThrowableText.words(thrown);
            if (thrown instanceof RPCXException known) {
                code = known.code();
                text = known.getMessage();
            }
        }
        throw new RPCXException(
                code,
                "the value of the metadata entry \"" + name + "\": " + text + " (expected: a text)",
                RPCXException.Executed.NOT_EXECUTED,
                why);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Metadata m && m.entries.equals(entries) && m.computed.equals(computed);
    }

    @Override
    public int hashCode() {
        return 31 * entries.hashCode() + computed.hashCode();
    }

    /** Returns a text that has only the names, since values may be secrets. */
    @Override
    public String toString() {
        return "Metadata" + entries.keySet() + (computed.isEmpty() ? "" : computed.keySet());
    }
}
