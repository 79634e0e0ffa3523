package dev.rpcx.schema;

import java.util.Locale;

/**
 * What a line of a lock says of its number: {@code stream list string}.
 *
 * @param isStream whether many messages with this field may go in one call
 * @param element of what it holds, with its key for a map
 */
record LineType(boolean isStream, Label label, String element) {
    private static final String STREAM = "stream ";

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

    /** As it stands in a lock. */
    String text() {
        return (isStream ? STREAM : "") + label.prefix() + element;
    }
}
