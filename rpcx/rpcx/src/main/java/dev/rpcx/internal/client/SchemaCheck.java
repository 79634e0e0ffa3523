package dev.rpcx.internal.client;

import dev.rpcx.VisibleText;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.MethodSchema.Kind;
import dev.rpcx.internal.schema.MethodSchema.Member;
import dev.rpcx.internal.schema.MethodSchema.Type;
import dev.rpcx.internal.wire.SchemaFrames;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Asks the server of one connection for the members of methods, and compares them with those that this client has. The
 * methods are those that this client calls, and of which the hash in the server's dictionary is not the client's own.
 * An object exists only while a connection opens, and only the event loop uses it.
 */
final class SchemaCheck {
    /** Result of a comparison that has found no difference, or that was not possible. */
    static final String NO_DIFFERENCE = "";

    /** Estimated memory in bytes of one member, without the characters of its texts. */
    private static final int MEMBER_BYTES = 128;

    /** A type of which further members may come. */
    private record PartialType(Kind kind, String name, List<Member> members) {}

    /** This client's own schemas of the methods that are asked for, by number and hash. */
    private final SortedMap<Integer, Map<Long, MethodSchema>> asked = new TreeMap<>();

    /** Difference between the server's schema of a method and each of this client's own, by number and hash. */
    private final Map<Integer, Map<Long, String>> compared = new HashMap<>();

    /** Charge for the memory of {@link #types}. */
    private final Charge bytes;

    /** Number of the method whose types arrive at present; 0 before the first one. */
    private long method;

    /**
     * The types of {@link #method} that have arrived; null if they are not wanted, because the method was not asked
     * for, has been compared already, or has too many of them, or because they cannot be read.
     */
    private @Nullable List<PartialType> types;

    /** Number of members that {@link #types} has. */
    private int members;

    SchemaCheck(Charge bytes) {
        this.bytes = bytes;
    }

    /** Says whether the hashes of two schemas show that the schemas are not the same. */
    static boolean differ(long one, long other) {
        return one != other && one != MethodSchema.NO_HASH && other != MethodSchema.NO_HASH;
    }

    /** Adds a method to the question. */
    void ask(int number, MethodSchema own) {
        asked.computeIfAbsent(number, first -> new HashMap<>()).put(own.hash(), own);
    }

    boolean isEmpty() {
        return asked.isEmpty();
    }

    /** Returns the payload of the frame that asks the server. */
    ByteBuf question() {
        return SchemaFrames.question(asked.keySet());
    }

    /** Reads the payload of one frame of the answer. */
    void onAnswer(ByteBuf payload) {
        SchemaFrames.readAnswer(payload, this::onPart);
    }

    private void onPart(SchemaFrames.Part part) {
        if (part.method() != method) {
            compare();
            method = part.method();
            types = own() == null ? null : new ArrayList<>();
        }
        List<PartialType> all = types;
        if (all == null) {
            return;
        }
        members += part.members().size();
        if (!add(part, all) || all.size() > MethodSchema.MAX_TYPES || members > MethodSchema.MAX_MEMBERS) {
            forget();
        }
    }

    /** Returns this client's own schemas of the method whose types arrive; null if they are not to be compared. */
    private @Nullable Map<Long, MethodSchema> own() {
        int number = method <= 0 || method > Integer.MAX_VALUE ? 0 : (int) method;
        return compared.containsKey(number) ? null : asked.get(number);
    }

    /**
     * Adds the members of a part to the types.
     *
     * @return false if the part cannot be read, or if there is no room for it
     */
    private boolean add(SchemaFrames.Part part, List<PartialType> all) {
        long cost = MEMBER_BYTES;
        for (Member member : part.members()) {
            long characters = member.name().length() + member.type().length();
            for (String name : member.formerNames()) {
                characters += name.length();
            }
            cost += MEMBER_BYTES + Character.BYTES * characters;
        }
        if (!bytes.add(cost)) {
            return false;
        }
        if (part.kind().isEmpty()) {
            return !all.isEmpty() && all.get(all.size() - 1).members().addAll(part.members());
        }
        Kind kind = Kind.of(part.kind());
        return kind != null && all.add(new PartialType(kind, part.name(), new ArrayList<>(part.members())));
    }

    private void forget() {
        types = null;
        members = 0;
        bytes.release();
    }

    /** Compares the method whose types have arrived, if it was asked for. */
    private void compare() {
        List<PartialType> arrived = types;
        Map<Long, MethodSchema> own = own();
        if (arrived != null && own != null) {
            List<Type> server = arrived.stream()
                    .map(type -> new Type(type.kind, type.name, type.members))
                    .toList();
            Map<Long, String> differences = new HashMap<>();
            own.forEach((hash, schema) -> {
                String difference = schema.difference(server);
                differences.put(
                        hash, difference == null ? NO_DIFFERENCE : VisibleText.line(difference, ThrowableText.MAX_WHY));
            });
            compared.put((int) method, Map.copyOf(differences));
        }
        forget();
    }

    /**
     * Ends the comparison. A method of which the server has not told the members counts as one without a difference.
     *
     * @return for each method that was asked for, by its number, the difference from each of this client's own schemas,
     *     by hash; {@link #NO_DIFFERENCE} if there is none
     */
    Map<Integer, Map<Long, String>> end() {
        compare();
        asked.forEach((number, own) -> {
            Map<Long, String> none = new HashMap<>();
            own.keySet().forEach(hash -> none.put(hash, NO_DIFFERENCE));
            compared.putIfAbsent(number, none);
        });
        return Map.copyOf(compared);
    }

    /** Gives up the comparison, and releases what it holds. */
    void close() {
        forget();
    }
}
