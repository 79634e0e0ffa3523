package dev.rpcx.schema;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * What a line of a lock says of its number: {@code stream list string}.
 *
 * @param isStream whether many messages with this field may go in one call
 * @param element of what it holds, with its key for a map
 */
record LineType(boolean isStream, Label label, String element) {
    private static final String STREAM = "stream ";

    /** Containers within others, by the names that they have there, which compare what their first argument is. */
    private static final List<String> COMPARING = List.of(Set.class.getName() + "<", Map.class.getName() + "<");

    /** How a field holds its values. */
    enum Label {
        OPTIONAL,
        LIST,
        SET,
        /** A list or a set, as locks say it that were written before the two had words of their own. */
        REPEATED,
        MAP,
        /** One value, which has no word before it. */
        ONE;

        private String prefix() {
            return this == ONE ? "" : name().toLowerCase(Locale.ROOT) + " ";
        }

        private boolean isRepeated() {
            return this == LIST || this == SET || this == REPEATED;
        }

        /** Whether values have the same bytes under both, but for those that are null. */
        boolean hasBytesOf(Label other) {
            return isRepeated() == other.isRepeated() && (this == MAP) == (other == MAP);
        }
    }

    static LineType of(String text) {
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

    /** The same of each item of a stream. */
    LineType ofStream() {
        return new LineType(true, label, element);
    }

    /** Names of the types in it, those within the names of containers among them. */
    List<String> names() {
        return names(element);
    }

    /** The same of a map's keys and of a set's elements, of which two that are equal are one. */
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

    /** The same where another lock says of the same number whether it is a list or a set, and this one does not. */
    List<String> comparedAs(LineType other) {
        return label == Label.REPEATED && other.label == Label.SET ? names() : compared();
    }

    /** The type with which the text begins, with its own arguments. */
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

    /** As it stands in a lock. */
    String text() {
        return (isStream ? STREAM : "") + label.prefix() + element;
    }
}
