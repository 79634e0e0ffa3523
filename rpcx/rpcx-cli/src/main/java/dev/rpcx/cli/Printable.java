package dev.rpcx.cli;

import java.util.Collection;
import java.util.stream.Collectors;

/** Text for a terminal. Whoever has written it, the terminal obeys none of it, and what is read is what is there. */
final class Printable {
    /** A value in an error is there to be recognized, and may be megabytes long. */
    private static final int MOST_OF_VALUE = 80;

    private Printable() {}

    /**
     * One line. Characters without a picture of their own stand as the escapes of JSON: control characters, line and
     * paragraph separators, lone surrogates, and those of Unicode's category Cf, which turn the direction of what
     * follows or are not seen at all.
     */
    static String line(String text) {
        StringBuilder clean = new StringBuilder(text.length());
        text.codePoints().forEach(c -> {
            if (isVisible(c)) {
                clean.appendCodePoint(c);
            } else {
                for (char unit : Character.toChars(c)) {
                    clean.append(String.format("\\u%04x", (int) unit));
                }
            }
        });
        return clean.toString();
    }

    private static boolean isVisible(int c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.SURROGATE,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR -> false;
            default -> true;
        };
    }

    /** The same with its own line breaks. In JSON such characters stand in strings only, where the escapes say the same. */
    static String lines(String text) {
        return text.lines().map(Printable::line).collect(Collectors.joining(System.lineSeparator()));
    }

    /** Begin of a value that may be long. */
    static String clipped(String value) {
        return value.length() <= MOST_OF_VALUE
                ? value
                : value.substring(0, MOST_OF_VALUE) + "… (" + value.length() + " characters)";
    }

    /** @return {@code , did you mean X?} where one of the names is near; otherwise empty */
    static String nearest(String word, Collection<String> names) {
        String nearest = "";
        int least = Math.min(3, word.length() / 3 + 1);
        for (String name : names) {
            int distance = Math.abs(name.length() - word.length()) > least ? least + 1 : distance(word, name);
            if (distance <= least && (nearest.isEmpty() || distance < least)) {
                nearest = name;
                least = distance;
            }
        }
        return nearest.isEmpty() ? "" : ", did you mean " + nearest + "?";
    }

    /** Letters to be put in, left out or changed. Source: Levenshtein. Case does not count. */
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j < row.length; j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j < row.length; j++) {
                boolean isSame = Character.toLowerCase(a.charAt(i - 1)) == Character.toLowerCase(b.charAt(j - 1));
                int changed = diagonal + (isSame ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(changed, Math.min(row[j], row[j - 1]) + 1);
            }
        }
        return row[b.length()];
    }
}
