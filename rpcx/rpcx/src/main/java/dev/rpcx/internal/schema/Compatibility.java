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
 * Finds the changes between two versions of a schema after which one version cannot read what the other one sends. The
 * versions are compared by their locks: a {@link Lock} has the names, numbers and types of all members of a version.
 */
public final class Compatibility {
    /** Says which version can no longer read what the other version sends. */
    public enum Direction {
        /** The new version cannot read what the old one sends. */
        BACKWARD,
        /** The old version cannot read what the new one sends. */
        FORWARD,
        /** Neither version can read what the other one sends. */
        BOTH
    }

    /**
     * A member that may have been renamed. The old version of the type has one member that the new version lacks, and
     * the new version has a member that the old one lacks.
     *
     * @param removed name of the member that is gone
     * @param added name of the new member
     * @param isInPlace whether both members have the same number
     */
    public record Renaming(String type, String removed, String added, boolean isInPlace) {}

    /**
     * A change after which one version cannot read what the other one sends. {@code where} is the name of the type or
     * member that has changed, and {@code what} describes the change to the user.
     */
    public record Break(Direction direction, String where, String what) {
        @Override
        public String toString() {
            return direction + " " + where + ": " + what;
        }
    }

    /**
     * Names of the Java types that hold other values: lists, collections, sets and maps. A type in a lock contains such
     * a name if a container can be null, or if it is inside another container.
     */
    private static final Set<String> CONTAINERS =
            Set.of(List.class.getName(), Collection.class.getName(), Set.class.getName(), Map.class.getName());

    /**
     * Java's types of whole numbers, from the narrowest to the widest. A field of a wider type can hold all values of a
     * narrower one.
     */
    private static final List<String> WIDER = List.of("byte", "short", "int", "long");

    private final List<Break> breaks = new ArrayList<>();

    private final Lock older;
    private final Lock newer;

    /**
     * Names of the types of all map keys and set elements in the older version, and of all types within these. If two
     * keys or elements are equal for the older version, it keeps only one of them.
     */
    private final Set<String> comparedBefore;

    /**
     * Names of the types of all map keys and set elements in the newer version, and of all types within these. If two
     * keys or elements are equal for the newer version, it keeps only one of them.
     */
    private final Set<String> comparedNow;

    private Compatibility(Lock older, Lock newer) {
        this.older = older;
        this.newer = newer;
        this.comparedBefore = compared(older, newer);
        this.comparedNow = compared(newer, older);
    }

    /**
     * Returns the names of the types of all map keys and set elements in a lock, and of all types within these.
     *
     * @param other lock of the other version. Earlier versions of RPCX wrote {@code repeated} into a lock both for a
     *     list and for a set; where {@code lock} says {@code repeated}, the line of the same field in {@code other}
     *     decides which of them it is
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
     * Returns all changes from the older lock to the newer one after which one version cannot read the other one's
     * messages. The list is empty if there are none.
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
     * Returns the members that may have been renamed between two versions. The newer lock must still have a line for
     * each member that is gone, and this line must be marked as removed.
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
     * Adds each pair of an old and a new member that have the same number and type, but different names. A renamed
     * member keeps its number if the number comes from the order of declaration or from {@link Field}.
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
     * Says whether this is a name such as {@code arg0}. Java gives a parameter such a name if its class was compiled
     * without the names of parameters.
     */
    private static boolean isSyntheticName(String name) {
        return name.matches("arg\\d+");
    }

    /**
     * Says whether two lines of a lock describe a field of the same type, whose values have the same bytes. The fields
     * may differ in what an absent value is: null for one and 0 for the other.
     */
    private static boolean isAlike(Lock.Line one, Lock.Line other) {
        LineType old = LineType.parse(asList(one.type()));
        LineType now = LineType.parse(asList(other.type()));
        return old.element().equals(now.element())
                && old.label().hasBytesOf(now.label())
                && old.isStream() == now.isStream();
    }

    /**
     * Adds each pair of a removed member and a new member that has another number, but may be the same member. A
     * removed member is paired with the first new member of the same type, and a removed case of a sealed type with the
     * first new case. Two members of different classes are also paired if the old class is in the older lock and the
     * new class is only in the newer one, since the class itself may have been renamed.
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

    /**
     * Returns the break that is reported for a request or reply whose method is no longer published. Old clients may
     * still call the method.
     *
     * @param call name of the request or reply, such as {@code greeter/hello.request}
     */
    public static Break removedCall(String call) {
        return new Break(Direction.BACKWARD, call, "is gone, and old callers still call it");
    }

    /** Says whether an entry of a lock describes a request or reply of a method. All other entries describe types. */
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

    /** Says whether a lock has a field for this request or reply, even if the field is marked as removed. */
    private static boolean hasFields(Lock.Entry call) {
        return call.lines().values().stream().anyMatch(line -> line.number() > 0);
    }

    /** Says whether a lock has an entry for the type of this field. */
    private static boolean hasTypeOf(Lock.Line line, Lock lock) {
        return lock.entries().containsKey(LineType.parse(line.type()).element());
    }

    private static boolean isReply(Lock.Entry call) {
        return call.type().endsWith(".reply");
    }

    /** Says whether a request has no parameters, or a reply no result, in the version of this entry. */
    private static boolean isEmpty(Lock.Entry call) {
        return call.lines().values().stream().allMatch(Lock.Line::removed);
    }

    /**
     * Says whether a member has another number in the newer lock than in the older one. {@code was} is null if the
     * older lock does not have the member.
     */
    private static boolean isMoved(Lock.@Nullable Line was, Lock.Line now) {
        return was != null && !was.removed() && !now.removed() && was.number() != now.number();
    }

    /**
     * Compares the two entries that the locks have for one type, request or reply, and adds all breaks. A member is
     * compared with the member that has the same number in the other lock.
     *
     * @param oldKinds kinds of a request's or reply's fields in the older lock, as {@link Framing} describes them; 0
     *     for a type
     * @param nowKinds kinds of a request's or reply's fields in the newer lock, as {@link Framing} describes them; 0
     *     for a type
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
     * Compares the enum constant that has the number 0 in both locks. There may be a break if only one of the locks
     * says that the constant is read for values that are not known.
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
     * Adds a break for a case of a sealed type that is read for unknown cases in one lock, and has a number of its own
     * in the other. The same case has different names in the two locks: a case with a number has the name of its field,
     * and the one for unknown cases the name of its class.
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
     * Adds a break if a member has another number in the newer lock than in the older one.
     *
     * @return whether it has another number
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
     * Returns the end of an error text about a member that only one of the versions knows. It says that the other
     * version takes two map keys or set elements for one if they differ only in this member.
     *
     * @param choice whether the member is an enum constant or a case of a sealed type, and not a field
     */
    private static String takeForOne(boolean choice) {
        return choice
                ? " read it as the unknown, so keys of maps and elements of sets that differ in it become one"
                        + " (expected: a new field for such a map or set)"
                : " read keys of maps and elements of sets that differ only in it as one (expected: a new field"
                        + " for such a map or set)";
    }

    /** Says whether an enum has a constant, or a sealed type a case, that is read for whatever is not known. */
    private static boolean hasUnknown(Lock.Entry choice) {
        Lock.Line line = at(0, choice);
        return line != null && !line.removed() && line.isUnknown();
    }

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
     * Returns the name of a type with {@code List} in place of {@code Collection}, since RPCX reads both as a list. The
     * type arguments of a generic message are not changed, because they belong to the name of the message.
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
     * Describes what a version reads for an absent field of this type whose declaration does not allow null, such as
     * "0, false or empty text". Returns null if the version reads null.
     *
     * @param lock lock of the version that reads the field
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
     * Returns the names of all types that are numbered by the order of declaration, sorted. No lock protects these
     * numbers, so nothing is reported if somebody changes the order.
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
     * A class that has its numbers from a lock, and the lines of its members. If the lock has not been written yet,
     * these are the lines that it will have.
     */
    public record Numbered(Class<?> type, Lock.Entry entry) {
        /** Says whether a lock gives all members of the class the numbers that they have here. */
        public boolean isIn(Lock lock) {
            Lock.Entry locked = lock.entries().get(entry.type());
            return locked != null
                    && entry.lines().values().stream().allMatch(line -> {
                        Lock.Line known = locked.lines().get(line.name());
                        return known != null && known.number() == line.number();
                    });
        }
    }

    /**
     * Returns the classes that have their numbers from a lock, sorted by name. A class that is still numbered by the
     * order of declaration is included, since the lock keeps these numbers once it is written.
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

    private static Numbered numbered(Class<?> type, String name, Map<Integer, Lock.Line> lines) {
        Map<String, Lock.Line> byName = new LinkedHashMap<>();
        lines.values().forEach(line -> byName.put(line.name(), line));
        return new Numbered(type, new Lock.Entry("", name, byName));
    }

    private static boolean isByLock(NumberSource source) {
        return source == NumberSource.LOCK || source == NumberSource.ORDER;
    }

    /**
     * Returns the names of the enums and sealed types that have no constant or case to be read for unknown values,
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
