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
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Finds the breaking changes between two versions of a schema, and which version can no longer read what the other
 * sends. The versions are compared by their locks.
 */
public final class Compatibility {
    /** Direction of a break: which version can no longer read what the other version sends. */
    public enum Direction {
        /** The new version cannot read what the old one sends. */
        BACKWARD,
        /** The old version cannot read what the new one sends. */
        FORWARD,
        /** Neither version can read what the other one sends. */
        BOTH
    }

    /**
     * A possible renaming: a member that is gone from a type, and a new member that may be the same one under another
     * name.
     *
     * @param removed name of the member that is gone
     * @param added name of the new member
     * @param isInPlace whether the new member has the number of the member that is gone
     */
    public record Renaming(String type, String removed, String added, boolean isInPlace) {}

    /** A breaking change. {@code where} names the type or member, and {@code what} describes the change to the user. */
    public record Break(Direction direction, String where, String what) {
        @Override
        public String toString() {
            return direction + " " + where + ": " + what;
        }
    }

    /** Java names of containers. A lock uses them for a container that can be null or is inside another container. */
    private static final Set<String> CONTAINERS =
            Set.of(List.class.getName(), Collection.class.getName(), Set.class.getName(), Map.class.getName());

    /** Types of whole numbers, from the narrowest to the widest. Each can hold all values of the types before it. */
    private static final List<String> WIDER = List.of("byte", "short", "int", "long");

    private final List<Break> breaks = new ArrayList<>();

    private final Lock older;
    private final Lock newer;

    /**
     * Types that a peer with the older lock compares for equality: the types of map keys and set elements, and all
     * types within them. The peer keeps only one of several equal keys or elements.
     */
    private final Set<String> comparedBefore;

    /** Types that a peer with the newer lock compares for equality, as in {@code comparedBefore}. */
    private final Set<String> comparedNow;

    private Compatibility(Lock older, Lock newer) {
        this.older = older;
        this.newer = newer;
        this.comparedBefore = compared(older, newer);
        this.comparedNow = compared(newer, older);
    }

    /**
     * Returns the types of the map keys and set elements in a lock, and all types within them.
     *
     * @param other lock that says whether a field is a list or a set, if {@code lock} is from a version that wrote
     *     {@code repeated} for both
     */
    private static Set<String> compared(Lock lock, Lock other) {
        Set<String> compared = new HashSet<>();
        Deque<String> open = new ArrayDeque<>();
        for (Lock.Entry entry : lock.entries().values()) {
            Lock.Entry others = other.entries().get(entry.type());
            for (Lock.Line line : entry.lines().values()) {
                if (!line.removed()) {
                    LineType type = LineType.parse(line.type());
                    Lock.Line same = others == null ? null : at(line.number(), others);
                    open.addAll(same == null ? type.compared() : type.comparedAs(LineType.parse(same.type())));
                }
            }
        }
        while (!open.isEmpty()) {
            Lock.Entry entry = lock.entries().get(open.remove());
            if (entry != null && compared.add(entry.type())) {
                for (Lock.Line line : entry.lines().values()) {
                    if (!line.removed()) {
                        open.addAll(LineType.parse(line.type()).names());
                    }
                }
            }
        }
        return compared;
    }

    /**
     * Returns the breaks from the older lock to the newer one. The list is empty if both versions can read each other.
     */
    public static List<Break> between(Lock older, Lock newer) {
        Compatibility compatibility = new Compatibility(older, newer);
        for (Lock.Entry before : older.entries().values()) {
            Lock.Entry after = newer.entries().get(before.type());
            if (after == null) {
                // a type that is gone is no break by itself. If a member now has another type, the break is reported at
                // the member
                if (isCall(before)) {
                    compatibility.breaks.add(removedCall(before.type()));
                }
            } else if (!after.kind().equals(before.kind())) {
                compatibility.add(Direction.BOTH, before.type(), "was " + before.kind() + ", is " + after.kind());
            } else if (isStream(before) != isStream(after)) {
                compatibility.add(
                        Direction.BOTH,
                        before.type(),
                        isStream(before) ? "was a stream, is none" : "was no stream, is one");
            } else if (isCall(before)) {
                compatibility.compareCall(before, after);
            } else {
                compatibility.compare(before, after, 0, 0);
            }
        }
        return List.copyOf(compatibility.breaks);
    }

    /**
     * Returns the members that may have been renamed between two locks. The newer lock must still have the lines of
     * members that are gone, marked as removed.
     */
    public static List<Renaming> perhapsRenamed(Lock older, Lock newer) {
        List<Renaming> renamed = new ArrayList<>();
        for (Lock.Entry before : older.entries().values()) {
            Lock.Entry after = newer.entries().get(before.type());
            if (after != null) {
                addInPlace(before, after, renamed);
            }
            if (after != null && !isCall(before)) {
                addComponents(before, after, older, newer, renamed);
            }
        }
        return List.copyOf(renamed);
    }

    /**
     * Adds possible renamings in which the new member has the number of the old one. The number comes from the position
     * of the member or from {@link Field}.
     */
    private static void addInPlace(Lock.Entry before, Lock.Entry after, List<Renaming> renamed) {
        for (Lock.Line old : before.lines().values()) {
            Lock.Line now = at(old.number(), after);
            if (now == null || old.removed() || now.removed() || old.isUnknown() || !isAlike(old, now)) {
                continue;
            }
            boolean isOther = !now.name().equals(old.name())
                    && !after.lines().containsKey(old.name())
                    && !before.lines().containsKey(now.name());
            if (isOther && !isSyntheticName(old.name()) && !isSyntheticName(now.name())) {
                renamed.add(new Renaming(before.type(), old.name(), now.name(), true));
            }
        }
    }

    /** Says whether this is a name such as {@code arg0}, from a class that was compiled without parameter names. */
    private static boolean isSyntheticName(String name) {
        return name.matches("arg\\d+");
    }

    /**
     * Says whether values have the same type and the same bytes under both lines. An absent value may be null for one
     * and 0 for the other.
     */
    private static boolean isAlike(Lock.Line one, Lock.Line other) {
        LineType old = LineType.parse(asList(one.type()));
        LineType now = LineType.parse(asList(other.type()));
        return old.element().equals(now.element())
                && old.label().hasBytesOf(now.label())
                && old.isStream() == now.isStream();
    }

    /**
     * Adds possible renamings in which the number has changed. A member that is gone is paired with the first new
     * member that has the same type, or is also a case of the sealed type, or whose type may be the renamed class: the
     * old type is in {@code older}, and the new type only in {@code newer}.
     */
    private static void addComponents(
            Lock.Entry before, Lock.Entry after, Lock older, Lock newer, List<Renaming> renamed) {
        List<Lock.Line> added = new ArrayList<>(after.lines().values());
        added.removeIf(line -> line.removed() || line.isUnknown() || at(line.number(), before) != null);
        for (Lock.Line old : before.lines().values()) {
            Lock.Line now = at(old.number(), after);
            if (old.removed() || now == null || !now.removed()) {
                continue;
            }
            added.stream()
                    .filter(line -> line.type().equals(old.type())
                            || after.kind().equals("oneof")
                            || hasTypeOf(old, older) && hasTypeOf(line, newer) && !hasTypeOf(line, older))
                    .findFirst()
                    .ifPresent(line -> {
                        added.remove(line);
                        renamed.add(new Renaming(before.type(), old.name(), line.name(), false));
                    });
        }
    }

    /** Returns the break for a request or reply whose method is not published any more. */
    public static Break removedCall(String call) {
        return new Break(Direction.BACKWARD, call, "is gone, and old callers still call it");
    }

    /** Says whether the entry is a request or reply. All other entries are types. */
    private static boolean isCall(Lock.Entry entry) {
        return entry.type().contains("/");
    }

    private static boolean isStream(Lock.Entry entry) {
        return entry.lines().values().stream()
                .anyMatch(line -> !line.removed() && LineType.parse(line.type()).isStream());
    }

    private void add(Direction direction, String where, String what) {
        breaks.add(new Break(direction, where, what));
    }

    private static Lock.@Nullable Line at(int number, Lock.Entry entry) {
        for (Lock.Line line : entry.lines().values()) {
            if (line.number() == number) {
                return line;
            }
        }
        return null;
    }

    private void compareCall(Lock.Entry before, Lock.Entry after) {
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
        Lock.Line once = at(0, before);
        if (!isReply(before) && once != null && once.removed() && isEmpty(before) && !isWhole && !isEmpty(after)) {
            // the request was a single message in an earlier version. Clients of that version may still send this
            // message, and a server would now read its bytes as the fields of the request
            add(Direction.BOTH, before.type(), "was a message of its own once, is a field of one");
            return;
        }
        Lock.Line whole = at(0, after);
        if (!isReply(before) && isEmpty(before) && isWhole && whole != null) {
            Lock.Entry type = newer.entries().get(LineType.parse(whole.type()).element());
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
            // a side that expects no result ignores the body. A side that expects a result reads an empty body as an
            // absent value
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

    /** Says whether the request or reply has fields, or had fields in an earlier version. */
    private static boolean hasFields(Lock.Entry call) {
        return call.lines().values().stream().anyMatch(line -> line.number() > 0);
    }

    /** Says whether this lock has an entry for the type of the line. */
    private static boolean hasTypeOf(Lock.Line line, Lock lock) {
        return lock.entries().containsKey(LineType.parse(line.type()).element());
    }

    private static boolean isReply(Lock.Entry call) {
        return call.type().endsWith(".reply");
    }

    /** Says whether the request or reply carries nothing: no parameters, or no result. */
    private static boolean isEmpty(Lock.Entry call) {
        return call.lines().values().stream().allMatch(Lock.Line::removed);
    }

    /** Says whether the number of a member has changed. */
    private static boolean isMoved(Lock.@Nullable Line was, Lock.Line now) {
        return was != null && !was.removed() && !now.removed() && was.number() != now.number();
    }

    /**
     * Adds the breaks between the two entries of one type, request or reply.
     *
     * @param oldKinds kinds of the fields of a request or reply in the older lock: see {@link Framing}; 0 for a type
     * @param nowKinds kinds of the fields of a request or reply in the newer lock; 0 for a type
     */
    private void compare(Lock.Entry before, Lock.Entry after, int oldKinds, int nowKinds) {
        boolean choice = !before.kind().equals("message");
        if (before.kind().equals("oneof")) {
            compareUnknownCases(before, after);
        }
        for (Lock.Line old : before.lines().values()) {
            Lock.Line now = at(old.number(), after);
            Lock.Line namesake = after.lines().get(old.name());
            String where = before.type() + "." + old.name();
            if (addMoved(where, old, namesake)) {
                continue;
            }
            if (now == null) {
                add(
                        Direction.BOTH,
                        where,
                        "number " + old.number()
                                + " has no line any more, so that it may be given again (expected: removed "
                                + old.number() + " " + old.name() + ")");
                continue;
            }
            if (old.removed() && !now.removed()) {
                add(
                        Direction.BOTH,
                        where,
                        "number " + old.number() + " was removed, and is given again to " + now.name());
            } else if (!old.removed() && now.removed()) {
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
            } else if (old.removed() || isMoved(before.lines().get(now.name()), now)) {
                // either the line was removed before, or the number now belongs to a member that had another number,
                // and the break is reported for that member
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
        for (Lock.Line now : after.lines().values()) {
            if (now.removed() || at(now.number(), before) != null) {
                continue;
            }
            String where = after.type() + "." + now.name();
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
     * Adds the breaks at the enum constant with number 0, if the constant stands for the unknown in only one of the
     * locks.
     */
    private void compareZero(String where, Lock.Line old, Lock.Line now) {
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
     * Adds a break for each case that stands for the unknown in one lock, but has a number in the other lock. A lock
     * names a case with a number by its field, and the case that stands for the unknown by its class.
     */
    private void compareUnknownCases(Lock.Entry before, Lock.Entry after) {
        Lock.Line old = at(0, before);
        Lock.Line now = at(0, after);
        if (old != null) {
            addMoved(before.type() + "." + old.name(), old, after.lines().get(Cases.field(old.name())));
        }
        if (now != null) {
            addMoved(after.type() + "." + now.name(), before.lines().get(Cases.field(now.name())), now);
        }
    }

    /**
     * Adds a break if a member has moved to another number.
     *
     * @return whether the member has moved
     */
    private boolean addMoved(String where, Lock.@Nullable Line was, Lock.@Nullable Line now) {
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
     * Returns the end of the text of a break at a member that one side does not know: this side reads map keys or set
     * elements that differ only in the member as equal.
     *
     * @param choice whether the member is a constant of an enum or a case of a sealed type
     */
    private static String takeForOne(boolean choice) {
        return choice
                ? " read it as the unknown, so keys of maps and elements of sets that differ in it become one"
                        + " (expected: a new field for such a map or set)"
                : " read keys of maps and elements of sets that differ only in it as one (expected: a new field"
                        + " for such a map or set)";
    }

    /** Says whether an enum or a sealed type has a constant or case that stands for the unknown. */
    private static boolean hasUnknown(Lock.Entry choice) {
        Lock.Line line = at(0, choice);
        return line != null && !line.removed() && line.isUnknown();
    }

    /** Says whether the entry is an enum. */
    private static boolean isEnum(Lock.Entry entry) {
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
        boolean isRead = isWider || isNarrower || old.element().equals(now.element());
        // if the field is optional on one side only, an absent value may be null on this side and 0 on the other
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
     * Returns the type with {@code List} instead of {@code Collection}, since a collection is read as a list. Type
     * arguments of a generic message stay as they are, since they belong to its name.
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
     * Returns a text that says what a side reads for an absent value of this type that is not optional; null if the
     * side reads null.
     *
     * @param lock lock of that side
     */
    private static @Nullable String readAsWhenAbsent(String type, Lock lock) {
        Lock.Entry entry = lock.entries().get(type);
        if (entry != null && entry.kind().equals("enum")) {
            Lock.Line zero = at(0, entry);
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
     * Returns the names of the types that are numbered by the order of declaration, sorted. No check protects these
     * numbers.
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

    /** A class whose numbers come from a lock, or will once the lock is written, and its lines in that lock. */
    public record Numbered(Class<?> type, Lock.Entry entry) {
        /** Says whether this lock gives the class the same numbers. */
        public boolean isIn(Lock lock) {
            Lock.Entry locked = lock.entries().get(entry.type());
            return locked != null
                    && entry.lines().values().stream().allMatch(line -> {
                        Lock.Line known = locked.lines().get(line.name());
                        return known != null && known.number() == line.number();
                    });
        }
    }

    /** Returns the classes whose numbers come from a lock, or will once the lock is written, sorted by name. */
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

    private static Numbered numbered(Class<?> type, String name, Map<Integer, Lock.Line> lines) {
        Map<String, Lock.Line> byName = new LinkedHashMap<>();
        lines.values().forEach(line -> byName.put(line.name(), line));
        return new Numbered(type, new Lock.Entry("", name, byName));
    }

    private static boolean isByLock(NumberSource source) {
        return source == NumberSource.LOCK || source == NumberSource.ORDER;
    }

    /**
     * Returns the names of the enums and sealed types without a constant or case that stands for the unknown, sorted.
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
