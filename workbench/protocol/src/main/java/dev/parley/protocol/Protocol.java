package dev.parley.protocol;

import dev.parley.model.BadInput;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The lines between the lab and the processes that it starts. A line is one JSON object: {@code type} names the record,
 * the other members are its components. The first line of each side is its greeting, which says the version that it
 * speaks. Thread-safe.
 */
public final class Protocol {
    /** It rises with every change that makes a line of one side unreadable to the other. */
    public static final int VERSION = 2;

    private static final String TYPE = "type";

    private Protocol() {}

    /** The first line of this side. */
    public static String greeting() {
        return line(new Hello(VERSION));
    }

    /**
     * Reads the first line of the other side.
     *
     * @param peer who says it, for the error
     * @throws BadInput naming both versions if they differ, or the line if it is no greeting
     */
    public static void checkGreeting(String peer, String line) {
        int version;
        try {
            version = read(line, Hello.class).version();
        } catch (IllegalArgumentException e) {
            throw new BadInput("protocol", line + " from " + peer, "a greeting of version " + VERSION);
        }
        if (version != VERSION) {
            throw new BadInput(
                    "protocol",
                    "version " + version + " from " + peer,
                    "version " + VERSION + ", which this process speaks; build both of one commit");
        }
    }

    public static String line(Message message) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put(TYPE, message.getClass().getSimpleName());
        members.putAll(Members.of((Record) message));
        return Json.write(members);
    }

    /**
     * Reads a message of one kind, such as {@link Event}.
     *
     * @throws IllegalArgumentException naming the line if it is no such message: something else wrote to the process's
     *     standard output
     */
    public static <M extends Message> M read(String line, Class<M> kind) {
        try {
            Map<String, Object> members = Json.read(line);
            Class<?> type = type(members.remove(TYPE), kind);
            return kind.cast(Members.record(type, members));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    "no " + kind.getSimpleName() + ": " + line + " (" + e.getMessage() + ")", e);
        }
    }

    private static Class<?> type(@Nullable Object name, Class<?> kind) {
        Class<?>[] types = kind.isRecord() ? new Class<?>[] {kind} : kind.getPermittedSubclasses();
        return Arrays.stream(types)
                .filter(type -> type.getSimpleName().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(TYPE + ": " + name + " (expected: one of "
                        + String.join(
                                ", ",
                                Arrays.stream(types).map(Class::getSimpleName).toList())
                        + ")"));
    }
}
