package dev.rpcx.internal.schema;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Type of a member in a line of a lock, for example {@code stream list string}.
 *
 * @param isStream whether one call may send many messages with this field
 * @param element type of the value or of the elements; for a map, the key's type, a space and the value's type
 */
record LineType(boolean isStream, Label label, String element) {
    private static final String STREAM = "stream ";

    /**
     * Beginnings of the names of nested sets and maps. Equal elements of a set count as one, and so do equal keys of a
     * map.
     */
    private static final List<String> COMPARING = List.of(Set.class.getName() + "<", Map.class.getName() + "<");

    /** Way in which a field holds its values. */
    enum Label {
        OPTIONAL,
        LIST,
        SET,
        /** A list or a set, in a lock from a version that wrote the word {@code repeated} for both. */
        REPEATED,
        MAP,
        /** A single value. Its type has no word before it. */
        ONE;

        private String prefix() {
            return this == ONE ? "" : name().toLowerCase(Locale.ROOT) + " ";
        }

        private boolean isRepeated() {
            return this == LIST || this == SET || this == REPEATED;
        }

        /** Says whether the same value has the same bytes under both labels. Null is not considered. */
        boolean hasBytesOf(Label other) {
            return isRepeated() == other.isRepeated() && (this == MAP) == (other == MAP);
        }
    }

    static LineType parse(String text) {
        boolean isStream = text.startsWith(STREAM);
        String rest = isStream ? text.substring(STREAM.length()) : text;
        for (Label label : Label.values()) {
            if (rest.startsWith(label.prefix())) {
                return new LineType(
                        isStream, label, rest.substring(label.prefix().length()));
            }
        }
        throw new IllegalStateException("every text begins with the prefix of ONE, which is empty");
    }

    static LineType of(FieldType field) {
        Shape key = field.key();
        String element = LockLines.text(field.shape());
        return switch (field.holder()) {
            case PLAIN -> new LineType(false, Label.ONE, element);
            case NULLABLE, OPTIONAL -> new LineType(false, Label.OPTIONAL, element);
            case LIST -> new LineType(false, Label.LIST, element);
            case SET -> new LineType(false, Label.SET, element);
            case MAP -> new LineType(false, Label.MAP, (key == null ? "" : LockLines.text(key)) + " " + element);
        };
    }

    /** Returns this type, changed into the type of a stream's items. */
    LineType ofStream() {
        return new LineType(true, label, element);
    }

    /** Returns the names of all types in the element, including type arguments. */
    List<String> names() {
        return names(element);
    }

    /** Returns the names of the types that a receiver compares for equality: those of map keys and set elements. */
    List<String> compared() {
        List<String> compared = new ArrayList<>();
        if (label == Label.SET) {
            compared.addAll(names(element));
        } else if (label == Label.MAP) {
            compared.addAll(names(element.substring(0, Math.max(0, element.indexOf(' ')))));
        }
        for (String container : COMPARING) {
            for (int at = element.indexOf(container); at >= 0; at = element.indexOf(container, at + 1)) {
                compared.addAll(names(first(element.substring(at + container.length()))));
            }
        }
        return compared;
    }

    /**
     * Returns the same as {@code compared}. But {@code REPEATED}, which may be a list or a set, counts as a set if
     * {@code other} is a set.
     *
     * @param other type that another lock has at the same number
     */
    List<String> comparedAs(LineType other) {
        return label == Label.REPEATED && other.label == Label.SET ? names() : compared();
    }

    /** Returns the type with which the text begins, including its type arguments. */
    private static String first(String text) {
        int depth = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (depth == 0 && (c == ',' || c == '>' || c == ' ')) {
                return text.substring(0, i);
            }
            depth += c == '<' ? 1 : c == '>' ? -1 : 0;
        }
        return text;
    }

    private static List<String> names(String text) {
        List<String> names = new ArrayList<>();
        for (int i = 0; i < text.length(); i++) {
            if (i == 0 || "<, ".indexOf(text.charAt(i - 1)) >= 0) {
                names.add(first(text.substring(i)));
            }
        }
        return names;
    }

    /** Returns the type as it stands in a lock. */
    String text() {
        return (isStream ? STREAM : "") + label.prefix() + element;
    }
}
