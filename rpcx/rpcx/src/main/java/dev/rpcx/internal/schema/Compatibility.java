package dev.rpcx.internal.schema;

import dev.rpcx.internal.schema.LineType.Label;
import dev.rpcx.schema.Field;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Compares two versions of a schema, the Protobuf form of services and their types. Finds the changes after which a
 * peer with one version of the schema cannot read all that a peer with the other version sends, or reads a different
 * value than was sent. For example, null may be read as 0. Each version is given as a {@link LockFile}, the content of
 * its lock file, which has the names, numbers and types of all members.
 *
 * <p>Members are compared by their names and numbers. The name of a class is not on the wire, and is not compared: if a
 * member, a request or a reply has another class in the newer version, the members of the two classes are compared, as
 * if they were one class. So a class that has another name but the same members is no break, and two classes that two
 * peers have written separately are compared although their names differ.
 *
 * <p>This class is longer than 400 lines because each kind of change needs its own sentence, and all of them share what
 * is known of the two versions.
 */
public final class Compatibility {
    /** Says which peer can no longer read what the other peer sends, after a change of the schema. */
    public enum Direction {
        /** A peer with the new schema cannot read what a peer with the old schema sends. */
        BACKWARD,
        /** A peer with the old schema cannot read what a peer with the new schema sends. */
        FORWARD,
        /** Neither peer can read what the other peer sends. */
        BOTH
    }

    /**
     * A member of {@code type} that may have been renamed. The old version of the type has only {@code removed}, and
     * the new version has only the members of {@code added}, each of which may be the same member.
     *
     * @param type name of the type, request or reply in the older lock file
     * @param typeNow name of the type, request or reply in the newer lock file. It is another one if a class stands
     *     where another class stood
     * @param removed name of the member that is gone
     * @param added names of the new members; at least one
     * @param isInPlace whether the old and the new member have the same number; there is only one new member then
     */
    public record Renaming(String type, String typeNow, String removed, List<String> added, boolean isInPlace) {
        public Renaming {
            added = List.copyOf(added);
        }

        /** Says whether both members belong to a type of one name. */
        public boolean isOfOneType() {
            return type.equals(typeNow);
        }

        /** Returns the name of the type for a text. If the newer lock file has another name, that name follows. */
        public String where() {
            return isOfOneType() ? type : type + " (now " + typeNow + ")";
        }
    }

    /**
     * A change of the schema after which a peer with one version cannot read what a peer with the other version sends.
     *
     * @param where name of the type, request, reply or member that has changed
     * @param what description of the change, for the user
     */
    public record Break(Direction direction, String where, String what) {
        @Override
        public String toString() {
            return direction + " " + where + ": " + what;
        }
    }

    /**
     * Names of the Java types that hold other values. A lock file usually has a word for such a type, for example
     * {@code list string}. The lock file has the name of the Java type instead, for example
     * {@code java.util.List<java.lang.String>}, in these cases:
     *
     * <ul>
     *   <li>The list, set or map can be null.
     *   <li>The list, set or map is inside another type, such as a list, an {@code Optional} or a generic record.
     * </ul>
     */
    private static final Set<String> CONTAINERS =
            Set.of(List.class.getName(), Collection.class.getName(), Set.class.getName(), Map.class.getName());

    /**
     * Java's integer types, from the narrowest to the widest. A field of a wider type can hold all values of a narrower
     * type.
     */
    private static final List<String> WIDER = List.of("byte", "short", "int", "long");

    /** Name of a type, a request or a reply in the older lock file, and of what stands for it in the newer one. */
    private record Pair(String older, String newer) {}

    private final List<Break> breaks = new ArrayList<>();

    private final LockFile older;
    private final LockFile newer;

    /**
     * Entries that are compared with each other, or will be: those of the same name, and those of two classes of which
     * one stands where the other stood. Both lock files have an entry for each pair.
     */
    private final Set<Pair> pairs = new LinkedHashSet<>();

    /** Pairs that are not compared yet. */
    private final Deque<Pair> uncompared = new ArrayDeque<>();

    /**
     * Names of the types whose values a peer with the older schema compares by {@code equals}: the types of map keys
     * and set elements, and all types inside these. Of several equal keys or elements, such a peer keeps only one.
     */
    private final Set<String> comparedBefore;

    /**
     * Names of the types whose values a peer with the newer schema compares by {@code equals}: the types of map keys
     * and set elements, and all types inside these. Of several equal keys or elements, such a peer keeps only one.
     */
    private final Set<String> comparedNow;

    private Compatibility(LockFile older, LockFile newer) {
        this.older = older;
        this.newer = newer;
        this.comparedBefore = compared(older, newer);
        this.comparedNow = compared(newer, older);
    }

    /**
     * Returns the names of the types whose values a peer compares by {@code equals}. These are the types of map keys
     * and set elements in the peer's lock file, and all types inside these.
     *
     * @param lock lock file of the peer
     * @param other lock file of the other version of the schema. Earlier versions of RPCX wrote {@code repeated} into a
     *     lock file both for a list and for a set. If {@code lock} has {@code repeated} for a field, the line with the
     *     same number in {@code other} says whether the field is a list or a set.
     */
    private static Set<String> compared(LockFile lock, LockFile other) {
        Set<String> compared = new HashSet<>();
        Deque<String> open = new ArrayDeque<>();
        for (LockFile.Entry entry : lock.entries().values()) {
            LockFile.Entry others = other.entries().get(entry.type());
            for (LockFile.Line line : entry.lines().values()) {
                if (!line.removed()) {
                    LineType type = LineType.parse(line.type());
                    LockFile.Line same = others == null ? null : at(line.number(), others);
                    open.addAll(same == null ? type.compared() : type.comparedAs(LineType.parse(same.type())));
                }
            }
        }
        while (!open.isEmpty()) {
            LockFile.Entry entry = lock.entries().get(open.remove());
            if (entry != null && compared.add(entry.type())) {
                for (LockFile.Line line : entry.lines().values()) {
                    if (!line.removed()) {
                        open.addAll(LineType.parse(line.type()).names());
                    }
                }
            }
        }
        return compared;
    }

    /**
     * Returns all changes from the older lock file to the newer one after which a peer with one version of the schema
     * cannot read what a peer with the other version sends. The list is empty if there are no such changes.
     */
    public static List<Break> between(LockFile older, LockFile newer) {
        return List.copyOf(new Compatibility(older, newer).compareAll().breaks);
    }

    private Compatibility compareAll() {
        for (LockFile.Entry before : older.entries().values()) {
            if (newer.entries().containsKey(before.type())) {
                addPair(new Pair(before.type(), before.type()));
            } else if (isCall(before)) {
                // A missing type is no break by itself: if a member had this type and has another type now, the two
                // types are compared as a pair.
                breaks.add(removedCall(before.type()));
            }
            while (!uncompared.isEmpty()) {
                Pair pair = uncompared.remove();
                compareEntries(entry(older, pair.older), entry(newer, pair.newer));
            }
        }
        return this;
    }

    private void addPair(Pair pair) {
        if (pairs.add(pair)) {
            uncompared.add(pair);
        }
    }

    private static LockFile.Entry entry(LockFile lock, String name) {
        return Objects.requireNonNull(lock.entries().get(name));
    }

    private void compareEntries(LockFile.Entry before, LockFile.Entry after) {
        if (!after.kind().equals(before.kind())) {
            add(Direction.BOTH, before.type(), "was " + before.kind() + ", is " + after.kind());
        } else if (isStream(before) != isStream(after)) {
            add(Direction.BOTH, before.type(), isStream(before) ? "was a stream, is none" : "was no stream, is one");
        } else if (isCall(before)) {
            compareCall(before, after);
        } else {
            compare(before, after, 0, 0);
        }
    }

    /**
     * Returns the members that may have been renamed between the older and the newer lock file.
     *
     * <ul>
     *   <li>A renamed member that has kept its number is found in a type, a request or a reply.
     *   <li>A renamed member whose number has changed too is found only in a type that has kept its name, and only if
     *       the newer lock file still has the member's old line, marked as removed.
     * </ul>
     */
    public static List<Renaming> perhapsRenamed(LockFile older, LockFile newer) {
        List<Renaming> renamed = new ArrayList<>();
        Compatibility compatibility = new Compatibility(older, newer).compareAll();
        for (Pair pair : compatibility.pairs) {
            LockFile.Entry before = entry(older, pair.older);
            LockFile.Entry after = entry(newer, pair.newer);
            compatibility.addInPlace(before, after, renamed);
            if (!isCall(before) && pair.older.equals(pair.newer)) {
                compatibility.addComponents(before, after, renamed);
            }
        }
        return List.copyOf(renamed);
    }

    /**
     * Adds each pair of an old and a new member that have the same number and values of the same bytes, but different
     * names. A renamed member keeps its number if the number comes from the order of declaration or from {@link Field}.
     * A pair is left out in these cases:
     *
     * <ul>
     *   <li>One of its members is marked as removed.
     *   <li>The old member stands for unknown values.
     *   <li>The old name also occurs in the new version, or the new name in the old version.
     *   <li>The newer lock file says that the old name is a former name of the new member.
     *   <li>One of the names is a name that Java makes up for a parameter, such as {@code arg0}.
     * </ul>
     */
    private void addInPlace(LockFile.Entry before, LockFile.Entry after, List<Renaming> renamed) {
        for (LockFile.Line old : before.lines().values()) {
            LockFile.Line now = at(old.number(), after);
            if (now == null || old.removed() || now.removed() || old.isUnknown() || !isAlike(old, now, true)) {
                continue;
            }
            boolean isOther = !now.name().equals(old.name())
                    && !now.formerNames().contains(old.name())
                    && !after.lines().containsKey(old.name())
                    && !before.lines().containsKey(now.name());
            if (isOther && !isSyntheticName(old.name()) && !isSyntheticName(now.name())) {
                renamed.add(new Renaming(before.type(), after.type(), old.name(), List.of(now.name()), true));
            }
        }
    }

    /**
     * Says whether a name has the form {@code arg0}. Java makes up names of this form for the parameters of a class
     * that was compiled without the names of parameters.
     */
    static boolean isSyntheticName(String name) {
        return name.matches("arg\\d+");
    }

    /**
     * Says whether the values of the members that two lines describe have the same bytes. The members may still differ
     * in what is read if no value was sent: null for one, and 0 for the other. One member may also be a list, and the
     * other one a set, and one may be a wider number than the other.
     *
     * @param isByBytes whether two messages or two enums of different names count as the same type
     */
    private boolean isAlike(LockFile.Line one, LockFile.Line other, boolean isByBytes) {
        LineType old = LineType.parse(asList(one.type()));
        LineType now = LineType.parse(asList(other.type()));
        boolean isElementAlike = old.element().equals(now.element())
                || wider(old.element(), now.element())
                || wider(now.element(), old.element())
                || isByBytes && isSame(old.element(), now.element(), pair -> {});
        return isElementAlike && old.label().hasBytesOf(now.label()) && old.isStream() == now.isStream();
    }

    /**
     * Finds members that may have been renamed and have got another number. Adds each such member to {@code renamed},
     * with all new members that may be the same one. Two members may be the same one if one of these conditions holds:
     *
     * <ul>
     *   <li>Their types are the same, but for a wider number, an optional value, or a list in place of a set.
     *   <li>Both are cases of a sealed type.
     *   <li>Their types are different classes, and the class itself may have been renamed: the old class has an entry
     *       in the older lock file, and the new class has an entry only in the newer lock file.
     * </ul>
     */
    private void addComponents(LockFile.Entry before, LockFile.Entry after, List<Renaming> renamed) {
        List<LockFile.Line> added = new ArrayList<>(after.lines().values());
        added.removeIf(line ->
                line.removed() || line.isUnknown() || before.has(line.name()) || at(line.number(), before) != null);
        for (LockFile.Line old : before.lines().values()) {
            LockFile.Line now = at(old.number(), after);
            if (old.removed() || now == null || !now.removed()) {
                continue;
            }
            List<String> alike = added.stream()
                    .filter(line -> isAlike(old, line, false)
                            || after.kind().equals("oneof")
                            || hasTypeOf(old, older) && hasTypeOf(line, newer) && !hasTypeOf(line, older))
                    .map(LockFile.Line::name)
                    .toList();
            if (!alike.isEmpty()) {
                renamed.add(new Renaming(before.type(), after.type(), old.name(), alike, false));
            }
        }
    }

    /**
     * Returns the break that is reported if a new member has the number of an old one, and is not the same member under
     * another name.
     *
     * @param renaming what could have been a new name; {@link Renaming#isInPlace} is true
     */
    public static Break givenAgain(Renaming renaming) {
        String added = renaming.added().get(0);
        return new Break(
                Direction.BOTH,
                where(renaming.type(), renaming.typeNow(), renaming.removed()),
                "its number is given to " + added + ", and old and new versions read one as the other (expected: a"
                        + " number of its own for " + added + ", by a place at the end or by @Field)");
    }

    /**
     * Returns the break that is reported if a method is no longer published. Old clients may still call the method.
     *
     * @param call name of the method's request or reply, such as {@code greeter/hello.request}
     */
    public static Break removedCall(String call) {
        return new Break(Direction.BACKWARD, call, "is gone, and old callers still call it");
    }

    /** Says whether an entry of a lock file describes a request or reply of a method. Other entries describe types. */
    private static boolean isCall(LockFile.Entry entry) {
        return entry.type().contains("/");
    }

    private static boolean isStream(LockFile.Entry entry) {
        return entry.lines().values().stream()
                .anyMatch(line -> !line.removed() && LineType.parse(line.type()).isStream());
    }

    private void add(Direction direction, String where, String what) {
        breaks.add(new Break(direction, where, what));
    }

    private static LockFile.@Nullable Line at(int number, LockFile.Entry entry) {
        for (LockFile.Line line : entry.lines().values()) {
            if (line.number() == number) {
                return line;
            }
        }
        return null;
    }

    private void compareCall(LockFile.Entry before, LockFile.Entry after) {
        int old = Framing.of(before, older);
        int now = Framing.of(after, newer);
        boolean wasWhole = Framing.kind(old, 1) == Framing.WHOLE;
        boolean isWhole = Framing.kind(now, 1) == Framing.WHOLE;
        if (wasWhole != isWhole && hasFields(wasWhole ? after : before)) {
            add(
                    Direction.BOTH,
                    before.type(),
                    wasWhole
                            ? "was a message of its own, is a field of one"
                            : "was a field of a message, is a message of its own");
            return;
        }
        LockFile.Line once = at(0, before);
        if (!isReply(before) && once != null && once.removed() && isEmpty(before) && !isWhole && !isEmpty(after)) {
            // In an earlier version of the schema, the request was one of the user's messages. Clients of that version
            // may still send this message, and a new server would read its bytes as the fields of the request.
            add(Direction.BOTH, before.type(), "was a message of its own once, is a field of one");
            return;
        }
        LockFile.Line whole = at(0, after);
        if (!isReply(before) && isEmpty(before) && isWhole && whole != null) {
            LockFile.Entry type =
                    newer.entries().get(LineType.parse(whole.type()).element());
            if (type != null && type.kind().equals("oneof") && !hasUnknown(type)) {
                add(
                        Direction.BACKWARD,
                        before.type(),
                        "takes a " + type.type()
                                + " now, which old callers do not send, and which has no case for the unknown");
                return;
            }
        }
        if (isReply(before) && isEmpty(before) != isEmpty(after) && !wasWhole) {
            // A side that expects no result ignores the reply's body. A side that expects a result reads an empty body
            // as an absent value. Therefore only one direction is broken.
            add(
                    isEmpty(after) ? Direction.FORWARD : Direction.BACKWARD,
                    before.type(),
                    isEmpty(after)
                            ? "brings nothing any more, and old peers read 0, false, null or what is empty"
                            : "brings a value now, and new peers read 0, false, null or what is empty from old ones");
            return;
        }
        compare(before, after, old, now);
    }

    /**
     * Says whether the lock file lists a field of this request or reply. A field that is marked as removed counts too.
     */
    private static boolean hasFields(LockFile.Entry call) {
        return call.lines().values().stream().anyMatch(line -> line.number() > 0);
    }

    /** Says whether a lock file has an entry for the type of the field that a line describes. */
    private static boolean hasTypeOf(LockFile.Line line, LockFile lock) {
        return lock.entries().containsKey(LineType.parse(line.type()).element());
    }

    private static boolean isReply(LockFile.Entry call) {
        return call.type().endsWith(".reply");
    }

    /**
     * Says whether a request has no parameters, or a reply has no result. Parameters and results that are marked as
     * removed do not count.
     */
    private static boolean isEmpty(LockFile.Entry call) {
        return call.lines().values().stream().allMatch(LockFile.Line::removed);
    }

    /**
     * Says whether a member has different numbers in the older lock file and in the newer one. Returns false if
     * {@code was} is null, or if one of the lines is marked as removed.
     *
     * @param was line of the member in the older lock file; null if there is none
     * @param now line of the member in the newer lock file
     */
    private static boolean isMoved(LockFile.@Nullable Line was, LockFile.Line now) {
        return was != null && !was.removed() && !now.removed() && was.number() != now.number();
    }

    /**
     * Compares the entries that the two lock files have for one type, or for one request or reply. Adds each break that
     * it finds to {@link #breaks}. A member whose number has changed is found by its name, and is a break. Each other
     * member is compared with the member that has the same number in the other lock file.
     *
     * @param oldKinds result of {@link Framing#of(LockFile.Entry, LockFile)} for {@code before}; 0 if {@code before} is
     *     a type
     * @param nowKinds result of {@link Framing#of(LockFile.Entry, LockFile)} for {@code after}; 0 if {@code after} is a
     *     type
     */
    private void compare(LockFile.Entry before, LockFile.Entry after, int oldKinds, int nowKinds) {
        boolean choice = !before.kind().equals("message");
        if (before.kind().equals("oneof")) {
            compareUnknownCases(before, after);
        }
        for (LockFile.Line old : before.lines().values()) {
            LockFile.Line now = at(old.number(), after);
            LockFile.Line namesake = after.lines().get(old.name());
            String where = where(before.type(), after.type(), old.name());
            if (addMoved(where, old, namesake)) {
                continue;
            }
            if (now == null && before.type().equals(after.type())) {
                add(
                        Direction.BOTH,
                        where,
                        "number " + old.number()
                                + " has no line any more, so that it may be given again (expected: removed "
                                + old.number() + " " + old.name() + ")");
                continue;
            }
            // A class of another name never had the lines that the older lock file has for removed members.
            boolean isGone = now == null || now.removed();
            if (old.removed() && now != null && !now.removed()) {
                add(
                        Direction.BOTH,
                        where,
                        "number " + old.number() + " was removed, and is given again to " + now.name());
            } else if (!old.removed() && isGone) {
                if (old.number() == 0 && isEnum(before)) {
                    add(
                            Direction.BOTH,
                            where,
                            (old.isUnknown() ? "what stood for the unknown is gone" : "is gone")
                                    + otherThanNull(old.name()));
                } else if (old.number() == 0) {
                    add(
                            choice ? Direction.BACKWARD : Direction.FORWARD,
                            where,
                            choice
                                    ? "what stood for the unknown is gone"
                                    : "is gone, and old peers read a message without fields");
                } else if (choice && !hasUnknown(after)) {
                    add(
                            Direction.BACKWARD,
                            where,
                            "is gone, old peers still send it, and nothing stands for the unknown");
                } else if (comparedNow.contains(after.type())) {
                    add(Direction.BACKWARD, where, "is gone, and new peers" + takeForOne(choice));
                }
            } else if (old.removed() || now == null || isMoved(before.lines().get(now.name()), now)) {
                // Nothing is reported for this number here. Either the number was removed before, or it now belongs to
                // a member that had another number. In the second case, the break is reported for that member.
                continue;
            } else if (Framing.differ(Framing.kind(oldKinds, old.number()), Framing.kind(nowKinds, old.number()))) {
                add(
                        Direction.BOTH,
                        where,
                        "was " + old.type() + ", is " + now.type() + ", and calls of another shape are refused");
            } else if (old.number() == 0 && isEnum(before)) {
                compareZero(where, old, now);
            } else {
                retyped(where, old.type(), now.type());
            }
        }
        for (LockFile.Line now : after.lines().values()) {
            if (now.removed() || at(now.number(), before) != null) {
                continue;
            }
            String where = where(before.type(), after.type(), now.name());
            if (!choice) {
                if (comparedBefore.contains(before.type())) {
                    add(Direction.FORWARD, where, "is new, and old peers" + takeForOne(false));
                }
            } else if (now.number() == 0 && isEnum(after)) {
                add(Direction.BOTH, where, "is new" + otherThanNull(now.name()));
            } else if (now.isUnknown()) {
                add(Direction.FORWARD, where, "is new, and where it is sent old peers read null, or refuse it");
            } else if (!hasUnknown(before)) {
                add(Direction.FORWARD, where, "is new, and old peers have nothing that stands for the unknown");
            } else if (comparedBefore.contains(before.type())) {
                add(Direction.FORWARD, where, "is new, and old peers" + takeForOne(true));
            }
        }
    }

    /**
     * Returns the name of a member for a text. If the class of the member has another name in the newer lock file, that
     * name follows.
     */
    private static String where(String type, String typeNow, String member) {
        return type + "." + member + (type.equals(typeNow) ? "" : " (now of " + typeNow + ")");
    }

    /**
     * Compares the enum constants that have the number 0 in the two lock files. A break is possible if only one of the
     * lock files says that the constant stands for all values that are not known.
     */
    private void compareZero(String where, LockFile.Line old, LockFile.Line now) {
        if (old.isUnknown() == now.isUnknown()) {
            return;
        }
        if (!old.name().equals(now.name())) {
            String stands = ", and one of the two stands for the unknown";
            add(Direction.BOTH, where, "was " + old.name() + ", is " + now.name() + stands);
        } else if (old.isUnknown()) {
            add(
                    Direction.BACKWARD,
                    where,
                    "stands for itself alone now, and old peers still send it for what they did not know");
        }
    }

    /**
     * Adds a {@link Break} if a case of a sealed type stands for all unknown cases in one lock file, and has a number
     * of its own in the other. This method looks for the case under two names, because its name is not the same in both
     * lock files: it is the name of the class if the case stands for all unknown cases, and the name of the field if
     * the case has a number of its own.
     */
    private void compareUnknownCases(LockFile.Entry before, LockFile.Entry after) {
        LockFile.Line old = at(0, before);
        LockFile.Line now = at(0, after);
        if (old != null) {
            addMoved(
                    where(before.type(), after.type(), old.name()),
                    old,
                    after.lines().get(Cases.field(old.name())));
        }
        if (now != null) {
            addMoved(
                    where(before.type(), after.type(), now.name()),
                    before.lines().get(Cases.field(now.name())),
                    now);
        }
    }

    /**
     * Adds a {@link Break} to {@link #breaks} if a member has different numbers in the older lock file and in the newer
     * one. Adds nothing if one of the lines is null or is marked as removed.
     *
     * @param was line of the member in the older lock file; null if there is none
     * @param now line of the member in the newer lock file; null if there is none
     * @return whether a {@code Break} was added
     */
    private boolean addMoved(String where, LockFile.@Nullable Line was, LockFile.@Nullable Line now) {
        if (was == null || now == null || !isMoved(was, now)) {
            return false;
        }
        add(
                Direction.BOTH,
                where,
                "was number " + was.number() + ", is number " + now.number() + " (expected: the number that it had)");
        return true;
    }

    /**
     * Returns the end of an error text about a member that only one of the two versions of the schema has. The text
     * says that a peer with the version without the member takes map keys or set elements for equal if they differ only
     * in this member.
     *
     * @param choice true for an enum constant or a case of a sealed type; false for a field
     */
    private static String takeForOne(boolean choice) {
        return choice
                ? " read it as the unknown, so keys of maps and elements of sets that differ in it become one"
                        + " (expected: a new field for such a map or set)"
                : " read keys of maps and elements of sets that differ only in it as one (expected: a new field"
                        + " for such a map or set)";
    }

    /**
     * Says whether an enum has a constant, or a sealed type has a case, that stands for all values that are not known.
     */
    private static boolean hasUnknown(LockFile.Entry choice) {
        LockFile.Line line = at(0, choice);
        return line != null && !line.removed() && line.isUnknown();
    }

    private static boolean isEnum(LockFile.Entry entry) {
        return entry.kind().equals("enum");
    }

    private static String otherThanNull(String value) {
        return ", and one side's null is the other's " + value;
    }

    private void retyped(String where, String before, String after) {
        LineType old = LineType.parse(asList(before));
        LineType now = LineType.parse(asList(after));
        String change = "was " + before + ", is " + after;
        boolean isWider = wider(old.element(), now.element());
        boolean isNarrower = wider(now.element(), old.element());
        boolean becomesList = old.label() == Label.SET && now.label() == Label.LIST;
        boolean becomesSet = old.label() == Label.LIST && now.label() == Label.SET;
        boolean isRead = isWider || isNarrower || isSame(old.element(), now.element(), this::addPair);
        // If the field is optional in only one version of the schema, a peer with that version reads an absent value as
        // null or as an empty Optional. A peer with the other version may read something else, such as 0. The text for
        // this other value is computed here.
        @Nullable
        String absent = isOptional(old) == isOptional(now)
                ? null
                : isOptional(old) ? readAsWhenAbsent(now.element(), newer) : readAsWhenAbsent(old.element(), older);
        if (!isRead || !old.label().hasBytesOf(now.label()) || old.isStream() != now.isStream()) {
            add(Direction.BOTH, where, change);
        } else if (absent != null) {
            add(Direction.BOTH, where, change + otherThanNull(absent));
        } else if ((isWider || becomesList) && (isNarrower || becomesSet)) {
            add(Direction.BOTH, where, change);
        } else if (isWider || becomesList) {
            add(
                    Direction.FORWARD,
                    where,
                    change
                            + (isWider ? ", and old peers refuse what does not fit" : "")
                            + (becomesList ? ", and old peers keep one of those that are equal" : ""));
        } else if (isNarrower || becomesSet) {
            add(
                    Direction.BACKWARD,
                    where,
                    change
                            + (isNarrower ? ", and what does not fit is refused" : "")
                            + (becomesSet ? ", and of those that are equal one is kept" : ""));
        }
    }

    /**
     * Says whether the values of two types have the same bytes, provided that the members of their messages and enums
     * are the same. The names of messages and enums make no difference.
     *
     * @param old a type of the older lock file, as {@link LineType#element} has it
     * @param now a type of the newer lock file
     * @param found gets the messages and enums of the one type, each with what stands for it in the other
     */
    private boolean isSame(String old, String now, Consumer<Pair> found) {
        LockFile.Entry before = older.entries().get(old);
        LockFile.Entry after = newer.entries().get(now);
        if (before != null && after != null && before.kind().equals(after.kind())) {
            found.accept(new Pair(old, now));
            return true;
        }
        if (old.equals(now)) {
            return true;
        }
        // the key and the value of a map are separated by a blank
        List<String> oldParts = LineType.split(old, ' ');
        List<String> nowParts = LineType.split(now, ' ');
        if (oldParts.size() == 1 && nowParts.size() == 1) {
            String container = LineType.raw(old);
            if (!CONTAINERS.contains(container) || !container.equals(LineType.raw(now))) {
                return false;
            }
            oldParts = LineType.arguments(old);
            nowParts = LineType.arguments(now);
        }
        boolean isSame = oldParts.size() == nowParts.size();
        for (int i = 0; isSame && i < oldParts.size(); i++) {
            isSame = isSame(oldParts.get(i), nowParts.get(i), found);
        }
        return isSame;
    }

    /**
     * Returns the name of a type with {@code List} in place of {@code Collection}, since RPCX reads both as a list.
     * Type arguments of a generic message are not changed, because they are part of the message's name.
     */
    private static String asList(String type) {
        StringBuilder text = new StringBuilder();
        int depth = 0;
        int named = Integer.MAX_VALUE;
        for (int at = 0; at < type.length(); at++) {
            int end = at;
            while (end < type.length() && "<>, ".indexOf(type.charAt(end)) < 0) {
                end++;
            }
            String name = type.substring(at, end);
            text.append(named > depth && name.equals(Collection.class.getName()) ? List.class.getName() : name);
            if (end < type.length()) {
                char c = type.charAt(end);
                text.append(c);
                if (c == '<') {
                    named = CONTAINERS.contains(name) ? named : Math.min(named, depth + 1);
                    depth++;
                } else if (c == '>') {
                    depth--;
                    named = named > depth ? Integer.MAX_VALUE : named;
                }
            }
            at = end;
        }
        return text.toString();
    }

    private static boolean isOptional(LineType type) {
        return type.label() == Label.OPTIONAL;
    }

    /**
     * Describes what a peer reads if a field that is not optional is absent, such as "0, false or empty text". Returns
     * null if the peer reads null.
     *
     * @param type type of the field
     * @param lock lock file of the peer's version of the schema
     */
    private static @Nullable String readAsWhenAbsent(String type, LockFile lock) {
        LockFile.Entry entry = lock.entries().get(type);
        if (entry != null && entry.kind().equals("enum")) {
            LockFile.Line zero = at(0, entry);
            return zero == null || zero.removed() ? null : zero.name();
        }
        for (Scalar scalar : Scalar.values()) {
            if (LockLines.text(scalar).equals(type)) {
                return Schema.hasNull(scalar) ? null : "0, false or empty text";
            }
        }
        return null;
    }

    private static boolean wider(String narrow, String wide) {
        int from = WIDER.indexOf(narrow);
        return from >= 0 && WIDER.indexOf(wide) > from
                || narrow.equals("char") && (wide.equals("int") || wide.equals("long"))
                || narrow.equals("string") && wide.equals("bytes");
    }

    /**
     * Returns the names of all types that are numbered by the order of declaration, sorted. No lock file protects these
     * numbers, so nobody is warned if the order of declaration is changed.
     */
    public static List<String> unlocked(Schema schema) {
        List<String> names = new ArrayList<>();
        for (Shape shape : schema.shapes()) {
            if (shape instanceof MessageType type && type.source() == NumberSource.ORDER) {
                names.add(type.javaName());
            } else if (shape instanceof EnumType type && type.source() == NumberSource.ORDER) {
                names.add(type.javaClass().getName());
            }
        }
        return names.stream().sorted().toList();
    }

    /**
     * A class whose members get their numbers from a lock file, with the lines of these members. If the lock file has
     * not been written yet, these are the lines that the file will have.
     */
    public record Numbered(Class<?> type, LockFile.Entry entry) {
        /**
         * Says whether a lock file has a line for each member of the class {@code type}, with the same number as in
         * {@code entry}.
         */
        public boolean isIn(LockFile lock) {
            LockFile.Entry locked = lock.entries().get(entry.type());
            return locked != null
                    && entry.lines().values().stream().allMatch(line -> {
                        LockFile.Line known = locked.lines().get(line.name());
                        return known != null && known.number() == line.number();
                    });
        }
    }

    /**
     * Returns the classes whose members get their numbers from a lock file, sorted by name. Classes that are not in the
     * lock file yet are included. Their members are numbered by the order of declaration, and the lock file keeps these
     * numbers as soon as it is written.
     */
    public static List<Numbered> numberedByLocks(Schema schema) {
        List<Numbered> all = new ArrayList<>();
        for (Shape shape : schema.shapes()) {
            if (shape instanceof MessageType type && isByLock(type.source())) {
                all.add(numbered(type.javaClass(), type.javaName(), LockLines.of(type)));
            } else if (shape instanceof EnumType type && isByLock(type.source())) {
                all.add(numbered(type.javaClass(), type.javaClass().getName(), LockLines.of(type)));
            }
        }
        all.sort(Comparator.comparing(each -> each.entry().type()));
        return List.copyOf(all);
    }

    private static Numbered numbered(Class<?> type, String name, Map<Integer, LockFile.Line> lines) {
        Map<String, LockFile.Line> byName = new LinkedHashMap<>();
        lines.values().forEach(line -> byName.put(line.name(), line));
        return new Numbered(type, new LockFile.Entry("", name, byName));
    }

    private static boolean isByLock(NumberSource source) {
        return source == NumberSource.LOCK || source == NumberSource.ORDER;
    }

    /**
     * Returns the names of the enums and sealed types that have no constant or case for unknown values. The names are
     * sorted.
     */
    public static List<String> withoutUnknown(Schema schema) {
        List<String> names = new ArrayList<>();
        for (Shape shape : schema.shapes()) {
            if (shape instanceof EnumType type && type.unknown() == null) {
                names.add(type.javaClass().getName());
            } else if (shape instanceof MessageType type
                    && type.kind() == MessageType.Kind.ONEOF
                    && type.unknownCase() == null) {
                names.add(type.javaName());
            }
        }
        return names.stream().sorted().toList();
    }
}
