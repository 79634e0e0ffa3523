package dev.rpcx.internal.schema;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Type of a member, as a line of a lock file has it, for example {@code stream list string}.
 *
 * @param isStream whether the member is sent in each item of a stream, so that one call can send the member many times
 * @param label word before the type of the value or of the elements, for example {@code list}
 * @param element type of the value or of the elements; for a map, the key's type, a space and the value's type
 */
record LineType(boolean isStream, Label label, String element) {
    private static final String STREAM = "stream ";

    /**
     * Beginnings of the names of nested sets and maps. {@link #compared} looks for these names, because a receiver
     * compares the elements of a set and the keys of a map for equality.
     */
    private static final List<String> COMPARING = List.of(Set.class.getName() + "<", Map.class.getName() + "<");

    /**
     * Word that says how a field holds its values, for example as a list. A line of a lock file has this word before
     * the type.
     */
    enum Label {
        OPTIONAL,
        LIST,
        SET,
        /** A list or a set. Earlier versions of RPCX wrote {@code repeated} into a lock file for both. */
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

        /**
         * Returns whether a value has the same bytes under this label and under {@code other}, provided that it is sent
         * under both. Null is never sent. A default such as 0 is sent under {@link #OPTIONAL}, but not under
         * {@link #ONE}.
         */
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

    /** Returns this type with the word {@code stream} before it, which marks the type of a stream's items. */
    LineType ofStream() {
        return new LineType(true, label, element);
    }

    /** Returns the names of all types in {@code element}, including the type arguments. */
    List<String> names() {
        return names(element);
    }

    /**
     * Returns the names of the types whose values a receiver compares for equality: the types of map keys and of set
     * elements.
     */
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
     * Returns the names of the types whose values a receiver compares for equality, as {@link #compared} does.
     * {@link Label#REPEATED} can be a list or a set: this method treats it as a set if {@code other} is a set.
     *
     * @param other type that the field with the same number has in another lock file
     */
    List<String> comparedAs(LineType other) {
        return label == Label.REPEATED && other.label == Label.SET ? names() : compared();
    }

    /** Returns the type name with which the text begins, including the type arguments. */
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

    /**
     * Splits a text of several types, such as {@code a.Key,a.Pair<a.Key,a.Item>}. A separator between angle brackets
     * does not count, since it belongs to one of the types. The types are returned without the blanks around them.
     */
    static List<String> split(String types, char separator) {
        List<String> parts = new ArrayList<>();
        int depth = 0;
        int begin = 0;
        for (int i = 0; i < types.length(); i++) {
            char c = types.charAt(i);
            depth += c == '<' ? 1 : c == '>' ? -1 : 0;
            if (depth == 0 && c == separator) {
                parts.add(types.substring(begin, i).strip());
                begin = i + 1;
            }
        }
        parts.add(types.substring(begin).strip());
        return parts;
    }

    /** Returns the name of a type without its type arguments. */
    static String raw(String type) {
        int open = type.indexOf('<');
        return open < 0 ? type : type.substring(0, open);
    }

    /** Returns the type arguments of a type; an empty list if the type has none. */
    static List<String> arguments(String type) {
        int open = type.indexOf('<');
        return open < 0 || !type.endsWith(">") ? List.of() : split(type.substring(open + 1, type.length() - 1), ',');
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

    /** Returns the text of this type in a lock file. */
    String text() {
        return (isStream ? STREAM : "") + label.prefix() + element;
    }
}
