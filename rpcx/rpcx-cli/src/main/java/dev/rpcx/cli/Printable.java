package dev.rpcx.cli;

import java.io.PrintStream;
import java.io.Writer;
import java.util.Arrays;
import java.util.Collection;
import java.util.stream.Collectors;

/** Text for a terminal. Whoever has written it, the terminal obeys none of it, and what is read is what is there. */
final class Printable {
    /** A value in an error is there to be recognized, and may be megabytes long. */
    private static final int MOST_OF_VALUE = 80;

    private Printable() {}

    /**
     * First and last of each range of Default_Ignorable_Code_Point, in order: what has no picture wherever it stands,
     * such as fillers, variation selectors and tags. The JDK has no such property. Source: DerivedCoreProperties.txt of
     * Unicode 17, the same since Unicode 14.
     */
    private static final int[] IGNORABLE = {
        0x00AD, 0x00AD, 0x034F, 0x034F, 0x061C, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180F, 0x200B, 0x200F,
        0x202A, 0x202E, 0x2060, 0x206F, 0x3164, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFEFF, 0xFFA0, 0xFFA0, 0xFFF0, 0xFFF8,
        0x1BCA0, 0x1BCA3, 0x1D173, 0x1D17A, 0xE0000, 0xE0FFF
    };

    /**
     * One line. Characters without a picture of their own stand as the escapes of JSON: control characters, line and
     * paragraph separators, lone surrogates, those of Unicode's category Cf, which turn the direction of what follows
     * or are not seen at all, those of its property Default_Ignorable_Code_Point, and what is blank and no plain space.
     */
    static String line(String text) {
        StringBuilder clean = new StringBuilder(text.length());
        text.codePoints().forEach(c -> putClean(clean, c));
        return clean.toString();
    }

    private static void putClean(StringBuilder clean, int c) {
        if (isVisible(c)) {
            clean.appendCodePoint(c);
            return;
        }
        for (char unit : Character.toChars(c)) {
            clean.append("\\u");
            for (int shift = 12; shift >= 0; shift -= 4) {
                clean.append(Character.forDigit(unit >> shift & 15, 16));
            }
        }
    }

    private static boolean isVisible(int c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.SURROGATE,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR -> false;
            case Character.SPACE_SEPARATOR -> c == ' ';
            default -> !isBlank(c) && !isIgnorable(c);
        };
    }

    /** Letters and symbols by their category, whose picture is nothing. */
    private static boolean isBlank(int c) {
        return switch (c) {
            // the pattern of Braille without dots, a filler of Khitan, the null notehead of music
            case 0x2800, 0x16FE4, 0x1D159 -> true;
            default -> false;
        };
    }

    private static boolean isIgnorable(int c) {
        int at = Arrays.binarySearch(IGNORABLE, c);
        // between a first and its last, which stand at an even and an odd index
        return at >= 0 || (-at - 1) % 2 == 1;
    }

    /**
     * Prints what is written to it, in its own lines, as {@link #lines} does, and needs no memory for all of it at
     * once. Does not close the stream.
     */
    static Writer writer(PrintStream to) {
        return new Clean(to);
    }

    private static final class Clean extends Writer {
        /** Characters that are printed at once. */
        private static final int PIECE = 8_192;

        private final PrintStream to;
        private final StringBuilder clean = new StringBuilder(PIECE + 16);

        /** First half of a pair whose second half comes with the next write; 0 for none. */
        private char high;

        Clean(PrintStream to) {
            this.to = to;
        }

        @Override
        public void write(char[] text, int from, int length) {
            for (int i = from; i < from + length; i++) {
                char c = text[i];
                if (high != 0 && Character.isLowSurrogate(c)) {
                    putClean(clean, Character.toCodePoint(high, c));
                    high = 0;
                    continue;
                }
                endHalf();
                if (Character.isHighSurrogate(c)) {
                    high = c;
                } else if (c == '\n' || c == '\r') {
                    clean.append(c);
                } else {
                    putClean(clean, c);
                }
                if (clean.length() >= PIECE) {
                    print();
                }
            }
        }

        private void endHalf() {
            if (high != 0) {
                putClean(clean, high);
                high = 0;
            }
        }

        private void print() {
            to.print(clean);
            clean.setLength(0);
        }

        /** Half a pair waits for {@link #close}: its other half may come. */
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
