package dev.rpcx.internal.schema;

import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Makes the lines that a lock file has for the present members of a type, a request or a reply. In the returned maps,
 * the key of each line is the number of the member that the line describes.
 */
final class LockLines {
    private LockLines() {}

    static Map<Integer, LockFile.Line> of(EnumType type) {
        Map<Integer, LockFile.Line> lines = new TreeMap<>();
        Enum<?>[] constants = type.constants();
        for (int i = 0; i < constants.length; i++) {
            int number = type.numbers().get(i);
            String kind = constants[i] == type.unknown() ? "unknown" : "constant";
            lines.put(number, new LockFile.Line(number, constants[i].name(), kind, false));
        }
        return lines;
    }

    static Map<Integer, LockFile.Line> of(MessageType type) {
        Map<Integer, LockFile.Line> lines = new TreeMap<>();
        Object unknown = type.unknownCase();
        if (unknown != null) {
            lines.put(0, new LockFile.Line(0, unknown.getClass().getSimpleName(), "unknown", false));
        }
        for (FieldType field : type.fields()) {
            lines.put(
                    field.number(),
                    new LockFile.Line(
                            field.number(), field.name(), LineType.of(field).text(), false));
        }
        return lines;
    }

    /**
     * Returns the lines of a request, a reply or a stream item. If the entire message is one of the user's types, the
     * only line has the number 0 and names this type. In the lines of a stream item, each type begins with the word
     * {@code stream}.
     */
    static Map<Integer, LockFile.Line> of(LockFile.Sent sent) {
        MessageType type = sent.type();
        Map<Integer, LockFile.Line> lines =
                type.kind() == MessageType.Kind.PARAMETERS || type.kind() == MessageType.Kind.WRAPPER
                        ? of(type)
                        : new TreeMap<>(Map.of(0, new LockFile.Line(0, "is", type.javaName(), false)));
        if (sent.isStream()) {
            lines.replaceAll((number, line) -> new LockFile.Line(
                    number, line.name(), LineType.parse(line.type()).ofStream().text(), line.removed()));
        }
        return lines;
    }

    static String text(Shape shape) {
        if (shape instanceof Scalar scalar) {
            return scalar.name().toLowerCase(Locale.ROOT);
        }
        if (shape instanceof EnumType type) {
            return type.javaClass().getName();
        }
        return shape instanceof MessageType type ? type.javaName() : shape.protoName();
    }
}
