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

/** Finds what a change of a schema breaks, and for which side. Two schemas are compared by their locks. */
public final class Compatibility {
    /** Direction of a break: which version can no longer read what the other one sends. */
    public enum Direction {
        /** The new version cannot read what the old one sends. */
        BACKWARD,
        /** The old version cannot read what the new one sends. */
        FORWARD,
        /** Neither version can read what the other one sends. */
        BOTH
    }

    /**
     * A member that is gone from a type, and a member that is new in this type and perhaps the same under another name.
     * The new member takes the same values, or values of a type that is new itself.
     *
     * @param gone name of the member that is gone
     * @param come name of the new member
     * @param isInPlace whether the new member has the number of the member that is gone. It may be so for a parameter,
     *     which has the number of its position, and for a member that {@link Field} numbers
     */
    public record Renaming(String type, String gone, String come, boolean isInPlace) {}

    /** One break: in which direction, at which member or type, and what it is. */
    public record Break(Direction direction, String where, String what) {
        @Override
        public String toString() {
            return direction + " " + where + ": " + what;
        }
    }

    /** Names that containers have within other containers. */
    private static final Set<String> CONTAINERS =
            Set.of(List.class.getName(), Collection.class.getName(), Set.class.getName(), Map.class.getName());

    /** Types of whole numbers, each of which can hold all values of the types before it. */
    private static final List<String> WIDER = List.of("byte", "short", "int", "long");

    private final List<Break> breaks = new ArrayList<>();

    private final Lock older;
    private final Lock newer;

    /**
     * Types whose equal values count as one for the side that has the older lock; {@code comparedNow} has them for the
     * newer lock.
     */
    private final Set<String> comparedBefore;

    private final Set<String> comparedNow;

    private Compatibility(Lock older, Lock newer) {
        this.older = older;
        this.newer = newer;
        this.comparedBefore = compared(older, newer);
        this.comparedNow = compared(newer, older);
    }

    /**
     * Returns the types of a lock's map keys and set elements, and all types that these consist of.
     *
     * @param other the other lock, which says that a field is a set if {@code lock} was written when a set was still
     *     named like a list
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

    /** Returns the breaks from the older lock to the newer one; empty if both versions read each other. */
    public static List<Break> between(Lock older, Lock newer) {
        Compatibility compatibility = new Compatibility(older, newer);
        for (Lock.Entry before : older.entries().values()) {
            Lock.Entry after = newer.entries().get(before.type());
            if (after == null) {
                // a type that no line names any more breaks nothing; a line that names another type instead is reported
                // itself
                if (isCall(before)) {
                    compatibility.breaks.add(gone(before.type()));
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

    /** Returns what may have been renamed between two locks, of which the newer one keeps the lines of what is gone. */
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
     * Adds members that may have been renamed in place: a member that has its number by its position or by
     * {@link Field} keeps the number under another name.
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

    /**
     * Says whether the name is one that a parameter has in a class that was compiled without the names of parameters.
     */
    private static boolean isSyntheticName(String name) {
        return name.matches("arg\\d+");
    }

    /** Says whether values of one line are read as values of the other, except perhaps absent ones. */
    private static boolean isAlike(Lock.Line one, Lock.Line other) {
        LineType old = LineType.parse(asList(one.type()));
        LineType now = LineType.parse(asList(other.type()));
        return old.element().equals(now.element())
                && old.label().hasBytesOf(now.label())
                && old.isStream() == now.isStream();
    }

    /**
     * Adds members that may have been renamed and have a new number. A member may have become a new one of the same
     * type. A renamed class is a new type as well, so a case may have become any case that is new, and a component
     * whose type is in the older lock may have become a component whose type is in the newer lock alone.
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

    /** Returns the break for a request or reply of a method that is not published any more. */
    public static Break gone(String call) {
        return new Break(Direction.BACKWARD, call, "is gone, and old callers still call it");
    }

    /**
     * Says whether the entry is a request or reply, which has the name of a published method, and not a type, which has
     * the name of a class.
     */
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
            // the earlier step, at which the request lost its message, was not reported as a break for clients that
            // still send the message
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
                        "takes a " + type.type() + " now, which old callers do not send and nothing stands for");
                return;
            }
        }
        if (isReply(before) && isEmpty(before) != isEmpty(after) && !wasWhole) {
            // an empty body is read as what absence stands for; a body where none is expected is passed over
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
     * Says whether the request or reply has or had fields. To a side for which it is a message of its own, the numbers
     * of these fields are those of other fields.
     */
    private static boolean hasFields(Lock.Entry call) {
        return call.lines().values().stream().anyMatch(line -> line.number() > 0);
    }

    /** Says whether the line is of a type that this lock has. */
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

    /**
     * Says whether a name has another number than before. If two members exchange their numbers, their values are
     * exchanged.
     */
    private static boolean isMoved(Lock.@Nullable Line was, Lock.Line now) {
        return was != null && !was.removed() && !now.removed() && was.number() != now.number();
    }

    /**
     * Adds the breaks between two entries of one type, or of one request or reply.
     *
     * @param oldKinds framing of the request or reply in the older lock; 0 for a type, since calls are not refused
     *     for the framing of its fields
     * @param nowKinds framing of the request or reply in the newer lock; 0 for a type
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
                // the line is still removed, or the break is reported for the member that has moved to this number
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
     * Adds the breaks of an enum's constant of number 0. Whether this constant also stands for the unknown changes none
     * of its bytes.
     */
    private void compareZero(String where, Lock.Line old, Lock.Line now) {
        if (old.isUnknown() == now.isUnknown()) {
            return;
        }
        if (!old.name().equals(now.name())) {
            String stands = ", and the one stands for the unknown";
            add(Direction.BOTH, where, "was " + old.name() + ", is " + now.name() + stands);
        } else if (old.isUnknown()) {
            add(Direction.BACKWARD, where, "stands for itself alone, and for what old peers did not know");
        }
    }

    /**
     * Adds a break for a case that has a number in one lock, and stands for the unknown in the other. A lock names a
     * case with a number by its field, and the case that stands for the unknown by its class.
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
     * @return whether it has moved
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

    /** Returns in words what a side does with keys that differ only in what this side does not know. */
    private static String takeForOne(boolean choice) {
        return choice
                ? " take it for the unknown, as which keys of maps and elements of sets become one"
                        + " (expected: a field of its own for what is keyed by more)"
                : " take keys of maps and elements of sets that differ in it alone for one (expected: a field of its"
                        + " own for what is keyed by more or less)";
    }

    /**
     * Says whether a constant or case stands for the unknown. A constant that has the number 0 only for itself does
     * not.
     */
    private static boolean hasUnknown(Lock.Entry choice) {
        Lock.Line line = at(0, choice);
        return line != null && !line.removed() && line.isUnknown();
    }

    /**
     * Says whether the entry is an enum. An enum sends no bytes for its constant of number 0; where there is no such
     * constant, no bytes are read as null.
     */
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
        // presence changes no byte of a value that is there, but a side without presence may read the same value from 0
        // and from null
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
     * Returns the type with each {@code Collection} replaced by {@code List}. A lock names a collection that can be
     * null, or that stands within a container, by its Java type; it is read as a list. A collection within the name of
     * another type stays, since that type is one of its own with numbers of its own.
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
     * Returns in words what an absent value is read as by a side that does not have it as optional; null if it is read
     * as null.
     *
     * @param lock lock of that side, which has its enums
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
     * Returns the names of the types whose numbers depend on the order of declaration, sorted. Nothing compares these
     * numbers with those of the next version.
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

    /** A class whose numbers a lock gives, or would give, with the lines that it then has. */
    public record Numbered(Class<?> type, Lock.Entry entry) {
        /** Says whether this lock gives the same numbers. */
        public boolean isIn(Lock lock) {
            Lock.Entry locked = lock.entries().get(entry.type());
            return locked != null
                    && entry.lines().values().stream().allMatch(line -> {
                        Lock.Line known = locked.lines().get(line.name());
                        return known != null && known.number() == line.number();
                    });
        }
    }

    /** Returns the classes whose numbers a lock gives, or would give, in the order of their names. */
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
     * Returns the names of the enums and sealed types in which nothing stands for what a newer peer may send, sorted.
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
