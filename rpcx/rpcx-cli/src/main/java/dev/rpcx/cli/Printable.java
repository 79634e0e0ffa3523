package dev.rpcx.cli;

import dev.rpcx.VisibleText;
import java.io.PrintStream;
import java.io.Writer;
import java.util.Collection;
import java.util.stream.Collectors;

/**
 * Makes text safe for a terminal. Whoever wrote the text, the terminal obeys none of it, and a reader sees all that is
 * there.
 */
final class Printable {
    /** Max characters of a value in an error. They only have to identify the value, which may be megabytes long. */
    private static final int MAX_VALUE_CHARS = 80;

    private Printable() {}

    /**
     * Returns the text as one line. Characters that are not visible become escapes of JSON: see {@link VisibleText}.
     */
    static String line(String text) {
        StringBuilder clean = new StringBuilder(text.length());
        text.codePoints().forEach(c -> VisibleText.append(clean, c));
        return clean.toString();
    }

    /**
     * Returns a writer that prints what is written to it, with its own line breaks and escaped as {@link #lines} does,
     * and needs no memory for all of it at once. It does not close the stream.
     */
    static Writer writer(PrintStream to) {
        return new Clean(to);
    }

    private static final class Clean extends Writer {
        /** Number of characters that are printed at once. */
        private static final int PIECE = 8_192;

        private final PrintStream to;
        private final StringBuilder clean = new StringBuilder(PIECE + 16);

        /** First half of a surrogate pair whose second half may come with the next write; 0 if there is none. */
        private char high;

        Clean(PrintStream to) {
            this.to = to;
        }

        @Override
        public void write(char[] text, int from, int length) {
            for (int i = from; i < from + length; i++) {
                char c = text[i];
                if (high != 0 && Character.isLowSurrogate(c)) {
                    VisibleText.append(clean, Character.toCodePoint(high, c));
                    high = 0;
                    continue;
                }
                endHalf();
                if (Character.isHighSurrogate(c)) {
                    high = c;
                } else if (c == '\n' || c == '\r') {
                    clean.append(c);
                } else {
                    VisibleText.append(clean, c);
                }
                if (clean.length() >= PIECE) {
                    print();
                }
            }
        }

        private void endHalf() {
            if (high != 0) {
                VisibleText.append(clean, high);
                high = 0;
            }
        }

        private void print() {
            to.print(clean);
            clean.setLength(0);
        }

        /**
         * Prints what has been written, except half a pair, which waits until {@link #close}: its other half may come.
         */
        @Override
        public void flush() {
            print();
        }

        @Override
        public void close() {
            endHalf();
            print();
        }
    }

    /**
     * Returns the text with its own line breaks, and each line escaped as {@link #line} does. In JSON the escaped
     * characters occur only in strings, where the escapes mean the same.
     */
    static String lines(String text) {
        return text.lines().map(Printable::line).collect(Collectors.joining(System.lineSeparator()));
    }

    /** Returns a value, or its beginning and its length if it is long. */
    static String clipped(String value) {
        return value.length() <= MAX_VALUE_CHARS
                ? value
                : value.substring(0, MAX_VALUE_CHARS) + "… (" + value.length() + " characters)";
    }

    /** Returns {@code , did you mean X?} if one of the names is near; otherwise an empty text. */
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

    /** Returns how many letters have to be inserted, deleted or changed; case does not count. Source: Levenshtein. */
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
