package dev.rpcx;

import dev.rpcx.internal.FrozenMap;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThrowableText;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Names and values that are sent with a request beside the arguments, or with a reply beside the result. A value of a
 * request is either fixed, or computed for each attempt of a call. Metadata is immutable. A request carries at most 64
 * entries, and at most 8 KiB once encoded; with more, the call fails as {@link RPCXException.Code#TOO_LARGE}. A reply
 * carries at most 1 KiB.
 */
public final class Metadata {
    /** Maximum number of bytes of a request's encoded metadata. gRPC's default limit for header lists is the same. */
    public static final int MAX_BYTES = 8 * 1024;

    /**
     * Maximum number of bytes of a reply's encoded metadata. An error has to fit into one frame of the wire, together
     * with its text, its details and these bytes.
     */
    public static final int MAX_REPLY_BYTES = 1024;

    /**
     * Maximum number of entries in a request's metadata. {@link #MAX_BYTES} alone does not bound the memory, since even
     * a short entry takes more than 160 bytes of memory.
     */
    public static final int MAX_ENTRIES = 64;

    /** Metadata that has no entries. */
    public static final Metadata EMPTY = new Metadata(new FrozenMap<>(new LinkedHashMap<>()), Map.of(), null);

    private final FrozenMap<String, String> entries;

    /**
     * Suppliers of the values that are computed for each attempt, by the names of their entries. None of these names is
     * in {@link #entries}. This map is empty in metadata that a server has received.
     */
    private final Map<String, Supplier<String>> computed;

    /** What gets the metadata of the reply to a request with this metadata; null if nothing does. */
    private final @Nullable Consumer<Metadata> replyListener;

    private Metadata(
            FrozenMap<String, String> entries,
            Map<String, Supplier<String>> computed,
            @Nullable Consumer<Metadata> replyListener) {
        this.entries = entries;
        this.computed = computed;
        this.replyListener = replyListener;
    }

    /**
     * Returns metadata with these entries, in the order of the map. The map is copied.
     *
     * @throws IllegalArgumentException if a name is empty
     */
    public static Metadata of(Map<String, String> entries) {
        if (entries instanceof FrozenMap<String, String> read) {
            // names are not checked here: a map of this class may come from a peer, which may send empty names
            return new Metadata(read, Map.of(), null);
        }
        LinkedHashMap<String, String> copy = new LinkedHashMap<>();
        Given.notNull(entries, "entries", "names and values").forEach((name, value) -> put(copy, name, value));
        return new Metadata(new FrozenMap<>(copy), Map.of(), null);
    }

    private static void put(Map<String, String> entries, String name, String value) {
        Given.notNull(value, "value", "a text");
        if (Given.notNull(name, "name", "1 or more characters").isEmpty()) {
            throw new IllegalArgumentException("metadata name: empty (expected: 1 or more characters)");
        }
        entries.put(name, value);
    }

    /** Returns a copy with one more entry. An existing entry with this name gets the new value. */
    public Metadata with(String name, String value) {
        LinkedHashMap<String, String> copy = entries.copy();
        put(copy, name, value);
        return new Metadata(new FrozenMap<>(copy), without(name), replyListener);
    }

    /**
     * Returns a copy with one more entry, whose value is computed again for each request that is sent. Each retry, each
     * hedge and each subscription of a stream sends a request. Use such an entry for a value that is valid only once,
     * such as a nonce.
     *
     * <p>The supplier runs on the caller's thread or on an event loop, so it must not block. If the supplier throws an
     * exception or returns null, the attempt fails, and the client does not retry the call.
     *
     * <p>If a request has waited for more than 10 s when the client begins to send it, the value is computed once more.
     * If the new value does not fit, or the supplier throws an exception or returns null this time, the earlier value
     * is sent.
     */
    public Metadata withEachAttempt(String name, Supplier<String> value) {
        Given.notNull(value, "value", "a Supplier of a text");
        LinkedHashMap<String, String> fixed = with(name, "").entries.copy();
        fixed.remove(name);
        Map<String, Supplier<String>> copy = new LinkedHashMap<>(computed);
        copy.put(name, value);
        return new Metadata(new FrozenMap<>(fixed), copy, replyListener);
    }

    /**
     * Returns a copy that passes the metadata of the reply, or of the error, to {@code listener}. A listener that this
     * metadata has already goes first. {@link Interceptor.Invocation#onReply} and {@link CallContext#onReply} say when
     * the listener runs.
     */
    public Metadata onReply(Consumer<Metadata> listener) {
        Given.notNull(listener, "listener", "what gets the metadata of the reply");
        Consumer<Metadata> first = replyListener;
        return new Metadata(entries, computed, first == null ? listener : first.andThen(listener));
    }

    /** Returns what gets the metadata of the reply to a request with this metadata; null if nothing does. */
    public @Nullable Consumer<Metadata> replyListener() {
        return replyListener;
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
     * Returns the value of the entry with this name, or null if there is no such entry. Names are case-sensitive. A
     * value that is computed for each attempt is also computed for each call of this method, and can differ from the
     * value that a request carries.
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

    /** Returns whether this metadata has no entries, neither fixed nor computed ones. */
    public boolean isEmpty() {
        return entries.isEmpty() && computed.isEmpty();
    }

    /** Returns whether there is an entry whose value is computed for each attempt of a call. */
    public boolean isComputed() {
        return !computed.isEmpty();
    }

    /**
     * Returns the metadata for one attempt of a call. The value of each computed entry is computed now, and fixed in
     * the result.
     *
     * @throws RPCXException if a value cannot be computed; the exception says that the call was not executed
     */
    public Metadata forAttempt() {
        if (computed.isEmpty()) {
            return this;
        }
        LinkedHashMap<String, String> all = entries.copy();
        computed.forEach((name, value) -> all.put(name, computed(name, value)));
        return new Metadata(new FrozenMap<>(all), Map.of(), replyListener);
    }

    /**
     * Computes the value of one entry. If the user's supplier throws anything, even an error, or returns null, this
     * method throws an {@link RPCXException}. The exception says NOT_EXECUTED, since no part of the request has been
     * sent.
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
        throw uncomputable(code, name, text, why);
    }

    /** Returns the error for a call that has no value for one of its metadata entries. The error says NOT_EXECUTED. */
    private static RPCXException uncomputable(
            RPCXException.Code code, String name, String text, @Nullable Throwable why) {
        return new RPCXException(
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

    /** Returns a text that has only the names of the entries, since values may be secrets. */
    @Override
    public String toString() {
        return "Metadata" + entries.keySet() + (computed.isEmpty() ? "" : computed.keySet());
    }
}
