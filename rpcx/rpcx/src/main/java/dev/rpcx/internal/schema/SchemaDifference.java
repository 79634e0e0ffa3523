package dev.rpcx.internal.schema;

import dev.rpcx.internal.schema.MethodSchema.Kind;
import dev.rpcx.internal.schema.MethodSchema.Member;
import dev.rpcx.internal.schema.MethodSchema.Type;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Compares the members of one method at a client with those at a server, and finds a member whose bytes one side would
 * read as something else. A member that only one side has is no difference, nor is one that can be null on one side, or
 * whose value one side may refuse because it does not fit. {@link Compatibility} compares two versions by their lock
 * files, and also tells what is not misread but lost or refused.
 */
final class SchemaDifference {
    /**
     * Maximum number of pairs of types that are compared. Each type of one side has one counterpart at the other, or
     * few. A server could name more, to keep the event loop of a client busy.
     */
    private static final int MAX_PAIRS = 2 * MethodSchema.MAX_TYPES;

    /** Whole numbers. A number that does not fit is refused, and never read as another one. */
    private static final Set<String> NUMBERS = Set.of("int32", "int64", "uint32");

    /** Text that is not UTF-8 is refused where a {@code string} is expected. */
    private static final Set<String> TEXTS = Set.of("string", "bytes");

    /** A type of the client and the one that stands for it at the server, each by its index. */
    private record Pair(int client, int server) {}

    /** All types of one side, and the members of those that have been looked at. */
    private static final class Side {
        final List<Type> types;
        private final Map<Integer, Map<Integer, Member>> numbers = new HashMap<>();
        private final Map<Integer, Map<String, Member>> names = new HashMap<>();

        Side(List<Type> types) {
            this.types = types;
        }

        @Nullable
        Member at(int type, int number) {
            return numbers.computeIfAbsent(type, this::byNumber).get(number);
        }

        @Nullable
        Member named(int type, String name) {
            return name.isEmpty()
                    ? null
                    : names.computeIfAbsent(type, this::byName).get(name);
        }

        private Map<Integer, Member> byNumber(int type) {
            Map<Integer, Member> members = new HashMap<>();
            types.get(type).members().forEach(member -> members.put(member.number(), member));
            return members;
        }

        private Map<String, Member> byName(int type) {
            Map<String, Member> members = new HashMap<>();
            types.get(type).members().forEach(member -> members.put(member.name(), member));
            return members;
        }

        /** Returns the index to which a word of a member's type refers; -1 if it is no type of this side. */
        int index(String word) {
            String digits = word.startsWith(MethodSchema.REFERENCE) ? word.substring(1) : "";
            int index = digits.matches("[0-9]{1,5}") ? Integer.parseInt(digits) : -1;
            return index < types.size() ? index : -1;
        }

        /** Returns a member for a text, with its type. */
        String told(int type, Member member) {
            String what = told(type, member.name());
            String ofType = LineType.split(member.type(), ' ').stream()
                    .map(word -> index(word) < 0 ? word : types.get(index(word)).name())
                    .collect(Collectors.joining(" "));
            return ofType.isEmpty() ? what : what + " (" + ofType + ")";
        }

        String told(int type, String member) {
            return types.get(type).name() + "." + (member.isEmpty() ? "?" : member);
        }
    }

    private final Side client;
    private final Side server;
    private final Set<Pair> met = new HashSet<>();
    private final Deque<Pair> uncompared = new ArrayDeque<>();

    SchemaDifference(List<Type> client, List<Type> server) {
        this.client = new Side(client);
        this.server = new Side(server);
    }

    /** Returns the first difference; null if there is none. */
    @Nullable
    String find() {
        String[] parts = {"request", "reply"};
        int count = Math.min(client.types.size(), server.types.size());
        for (int part = 0; part < Math.min(parts.length, count); part++) {
            Type here = client.types.get(part);
            Type there = server.types.get(part);
            if (here.members().isEmpty() || there.members().isEmpty()) {
                // One side has no parameter, or no result, which the other side then does not read.
                continue;
            }
            if (here.kind() != there.kind()) {
                return "the " + parts[part] + " is to the client " + told(here) + " and to the server " + told(there)
                        + " (expected: one kind on both sides)";
            }
            add(new Pair(part, part));
        }
        while (!uncompared.isEmpty()) {
            Pair pair = uncompared.remove();
            String difference = movedMember(pair);
            if (difference == null) {
                difference = misreadMember(pair);
            }
            if (difference != null) {
                return difference;
            }
        }
        return null;
    }

    private static String told(Type type) {
        return "the " + type.kind().word + " " + type.name();
    }

    private void add(Pair pair) {
        if (met.size() < MAX_PAIRS && met.add(pair)) {
            uncompared.add(pair);
        }
    }

    /** Finds a member that has one name and two numbers, such as one of two that have changed places. */
    private @Nullable String movedMember(Pair pair) {
        for (Member here : client.types.get(pair.client).members()) {
            Member there = server.named(pair.server, here.name());
            if (there != null
                    && there.number() != here.number()
                    && !isKnown(here, server.at(pair.server, here.number()))
                    && !isKnown(there, client.at(pair.client, there.number()))) {
                return client.told(pair.client, here) + " is number " + here.number() + " to the client, and "
                        + server.told(pair.server, there) + " is number " + there.number()
                        + " to the server (expected: one number on both sides)";
            }
        }
        return null;
    }

    /** Says whether the other side has the same member at the same number, perhaps under a former name. */
    private static boolean isKnown(Member member, @Nullable Member atItsNumber) {
        return atItsNumber != null && member.isSame(atItsNumber);
    }

    /** Finds a number that stands for another type, or for another member, at the other side. */
    private @Nullable String misreadMember(Pair pair) {
        Kind kind = client.types.get(pair.client).kind();
        for (Member here : client.types.get(pair.client).members()) {
            Member there = server.at(pair.server, here.number());
            if (there == null) {
                continue;
            }
            if (kind != Kind.ENUM && !isAlike(here.type(), there.type())) {
                return misread(pair, here, there, "one type on both sides");
            }
            boolean isUnknown = here.type().equals(MethodSchema.UNKNOWN_CONSTANT)
                    && there.type().equals(MethodSchema.UNKNOWN_CONSTANT);
            // A parameter may have another name in the interface of a client than in the class of the service.
            if (kind != Kind.CALL && !isUnknown && !here.isSame(there)) {
                return misread(
                        pair,
                        here,
                        there,
                        "one name on both sides, or a number for each; if one is a new name of the other, the lock of"
                                + " its side says so: `rpcx lock --rename`");
            }
        }
        return null;
    }

    private String misread(Pair pair, Member here, Member there, String expected) {
        return "number " + here.number() + " is to the client " + client.told(pair.client, here) + " and to the server "
                + server.told(pair.server, there) + " (expected: " + expected + ")";
    }

    /**
     * Says whether the values of two members have the same bytes and the same meaning, as far as the types of this
     * method are alike too. These are compared later.
     */
    private boolean isAlike(String here, String there) {
        List<String> ours = new ArrayList<>(LineType.split(here, ' '));
        List<String> theirs = new ArrayList<>(LineType.split(there, ' '));
        if (ours.size() != theirs.size()) {
            return false;
        }
        if (ours.size() > 1 && !ours.remove(0).equals(theirs.remove(0))) {
            return false;
        }
        for (int i = 0; i < ours.size(); i++) {
            if (!isAlikeValue(ours.get(i), theirs.get(i))) {
                return false;
            }
        }
        return true;
    }

    private boolean isAlikeValue(String here, String there) {
        int ours = client.index(here);
        int theirs = server.index(there);
        if (ours < 0 || theirs < 0) {
            return here.equals(there)
                    || NUMBERS.contains(here) && NUMBERS.contains(there)
                    || TEXTS.contains(here) && TEXTS.contains(there);
        }
        if (client.types.get(ours).kind() != server.types.get(theirs).kind()) {
            return false;
        }
        add(new Pair(ours, theirs));
        return true;
    }
}
