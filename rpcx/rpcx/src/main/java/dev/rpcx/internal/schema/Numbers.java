package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import java.lang.reflect.AnnotatedElement;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Gives the members of one type, or the parameters of one method, their numbers. All of these numbers come from one
 * source, such as a lock file or {@link Field} annotations.
 */
final class Numbers {
    private static final String REMOVED = ", which was removed";

    private final String where;
    private final LockFile.@Nullable Entry locked;
    private final NumberSource source;
    private final Map<Integer, String> taken = new HashMap<>();
    private final boolean extending;
    private int next;

    /**
     * Chooses where the numbers of the members come from. If a member has a {@link Field} annotation, all numbers come
     * from these annotations. If no member has the annotation, the numbers come from the lock file. If the lock file
     * does not have the type, the numbers come from {@code otherwise}.
     *
     * @param locked entry of the type in the lock file; null if there is none
     * @param otherwise source of the numbers if there are neither annotations nor an entry in the lock file
     * @param extending whether a member that the lock file lacks gets the next free number; if false, the member is
     *     refused
     */
    Numbers(
            String where,
            LockFile.@Nullable Entry locked,
            NumberSource otherwise,
            Collection<? extends AnnotatedElement> members,
            boolean extending) {
        this.where = where;
        this.extending = extending;
        this.locked = locked;
        long annotated =
                members.stream().filter(m -> m.isAnnotationPresent(Field.class)).count();
        if (annotated > 0) {
            source = NumberSource.ANNOTATION;
        } else {
            source = locked != null ? NumberSource.LOCK : otherwise;
        }
        if (locked != null) {
            next = locked.lines().values().stream()
                            .mapToInt(LockFile.Line::number)
                            .max()
                            .orElse(0)
                    + 1;
            locked.lines().values().stream()
                    .filter(LockFile.Line::removed)
                    .forEach(line -> taken.put(line.number(), line.name() + REMOVED));
        }
    }

    NumberSource source() {
        return source;
    }

    /**
     * Makes sure that no member of the type gets this number.
     *
     * @param by text for errors that says what has the number instead
     */
    void reserve(int number, String by) {
        taken.put(number, by);
    }

    int of(AnnotatedElement member, String name, int position) {
        int number = switch (source) {
            case ANNOTATION -> annotated(member, name);
            case LOCK -> locked(name);
            case ORDER, FIXED -> position;
        };
        String other = taken.putIfAbsent(number, name);
        if (other != null && !isGivenAgain(number, name)) {
            throw new SchemaException(where + "." + name + ": number " + number + " is taken by " + other);
        }
        return number;
    }

    /**
     * Returns true if a {@link Field} annotation gives a member the number that the same member had before the lock
     * file marked it as removed. In this case, this method also records the number as taken by the member. Such an
     * annotation is allowed, since the lock file may come from a newer version of a library that no longer has the
     * member.
     */
    private boolean isGivenAgain(int number, String name) {
        LockFile.Line line = source != NumberSource.ANNOTATION || locked == null
                ? null
                : locked.lines().get(name);
        return line != null
                && line.removed()
                && line.number() == number
                && taken.replace(number, line.name() + REMOVED, name);
    }

    private int annotated(AnnotatedElement member, String name) {
        Field field = member.getAnnotation(Field.class);
        if (field == null) {
            throw new SchemaException(
                    where + "." + name + ": no @Field, while others of " + where + " have one (expected: all or none)");
        }
        return field.value();
    }

    private int locked(String name) {
        LockFile.Line line = locked == null ? null : locked.lines().get(name);
        if (line == null && extending) {
            if (next >= 19_000 && next <= 19_999) {
                next = 20_000;
            }
            return next++;
        }
        if (line == null) {
            throw new SchemaException(where + "." + name + ": not in " + LockFile.RESOURCE + ", which has " + where
                    + ": run `rpcx lock`");
        }
        if (line.removed()) {
            throw new SchemaException(where + "." + name + ": was removed, and number " + line.number()
                    + " is reserved in " + LockFile.RESOURCE
                    + ": give the new component another name, or where it is the"
                    + " old one, take \"removed\" from its line by hand");
        }
        return line.number();
    }

    /** Throws an exception if the lock file has a member with this name, but with another number. */
    void refuseOtherNumber(String name, int number) {
        LockFile.Line line = locked == null ? null : locked.lines().get(name);
        if (line != null && line.number() != number) {
            throw new SchemaException(where + "." + name + ": has number " + number + ", and number " + line.number()
                    + " in " + LockFile.RESOURCE + " (expected: the number that it had)");
        }
    }

    /**
     * Returns the former names of the members that have been renamed, by number, as the lock file has them. A lock file
     * has them also for a type whose numbers come from {@link Field} annotations.
     */
    Map<Integer, List<String>> formerNames() {
        Map<Integer, List<String>> former = new HashMap<>();
        if (locked != null) {
            for (LockFile.Line line : locked.lines().values()) {
                if (!line.removed() && !line.formerNames().isEmpty()) {
                    former.put(line.number(), line.formerNames());
                }
            }
        }
        return former;
    }

    /**
     * Returns the members that the lock file marks as removed. No other member can get the number of a removed member.
     * A removed member that has its former number again is left out.
     */
    List<MessageType.Reserved> reserved() {
        List<MessageType.Reserved> reserved = new ArrayList<>();
        if (locked != null) {
            locked.lines().values().stream()
                    .filter(line -> line.removed() && !line.name().equals(taken.get(line.number())))
                    .forEach(line -> reserved.add(new MessageType.Reserved(line.number(), line.name())));
        }
        return reserved;
    }
}
