package dev.rpcx;

import dev.rpcx.internal.Given;
import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Makes untrusted text safe for a log or a terminal. No control character of the text takes effect, and all characters
 * are visible. This class has no state.
 */
public final class VisibleText {
    /**
     * First and last code point of each range of characters that are not displayed, in ascending order. These
     * characters, such as fillers, variation selectors and tags, have the property Default_Ignorable_Code_Point of
     * Unicode, which the JDK does not offer. Source: DerivedCoreProperties.txt of Unicode 17, the same since Unicode
     * 14.
     */
    private static final int[] IGNORABLE = {
        0x00AD, 0x00AD, 0x034F, 0x034F, 0x061C, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180F, 0x200B, 0x200F,
        0x202A, 0x202E, 0x2060, 0x206F, 0x3164, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFEFF, 0xFFA0, 0xFFA0, 0xFFF0, 0xFFF8,
        0x1BCA0, 0x1BCA3, 0x1D173, 0x1D17A, 0xE0000, 0xE0FFF
    };

    /** Maximum number of exceptions that {@link #isOf} checks: an error, its causes and suppressed exceptions. */
    private static final int MAX_CAUSES = 50;

    private static final int MAX_CAUSE_LENGTH = 10_000;

    private VisibleText() {}

    /**
     * Appends a character, and escapes the character as in JSON if it is not visible. Quotes and backslashes are not
     * escaped. These characters are escaped:
     *
     * <ul>
     *   <li>control characters, and characters of Unicode's category Cf
     *   <li>line and paragraph separators, and blank characters other than the plain space
     *   <li>lone surrogates
     *   <li>characters with Unicode's property Default_Ignorable_Code_Point
     * </ul>
     */
    public static void append(StringBuilder to, int codePoint) {
        Given.notNull(to, "to", "a StringBuilder");
        if (isVisible(codePoint)) {
            to.appendCodePoint(codePoint);
            return;
        }
        for (char unit : Character.toChars(codePoint)) {
            to.append("\\u");
            for (int shift = 12; shift >= 0; shift -= 4) {
                to.append(Character.forDigit(unit >> shift & 15, 16));
            }
        }
    }

    /**
     * Returns the text as one line, in which {@link #append} has escaped the invisible characters. A text of more than
     * {@code max} characters, counted before they are escaped, is cut and ends with an ellipsis.
     */
    public static String line(String text, int max) {
        Given.notNull(text, "text", "what the line says");
        StringBuilder line = new StringBuilder();
        text.codePoints().limit(max).forEach(c -> append(line, c));
        return text.codePointCount(0, text.length()) <= max
                ? line.toString()
                : line.append("…").toString();
    }

    /**
     * Returns whether an exception with untrusted text can safely be attached to another error as the cause. The method
     * checks the text of the exception, and the texts of all its causes and suppressed exceptions. It returns false in
     * these cases:
     *
     * <ul>
     *   <li>One of the texts contains an invisible character, which {@link #append} would escape.
     *   <li>One of the texts has more than 10,000 characters.
     *   <li>A text or a cause cannot be read because the exception's own code throws.
     *   <li>The exception, its causes and its suppressed exceptions are together more than 50.
     * </ul>
     */
    public static boolean isOf(Throwable thrown) {
        Given.notNull(thrown, "thrown", "an error");
        try {
            return isOf(thrown, Collections.newSetFromMap(new IdentityHashMap<>()));
        } catch (Throwable unspeakable) {
            return false;
        }
    }

    private static boolean isOf(@Nullable Throwable thrown, Set<Throwable> seen) {
        if (thrown == null || !seen.add(thrown)) {
            return true;
        }
        String text = thrown.toString();
        if (seen.size() > MAX_CAUSES
                || text.length() > MAX_CAUSE_LENGTH
                || !text.codePoints().allMatch(VisibleText::isVisible)
                || !isOf(thrown.getCause(), seen)) {
            return false;
        }
        for (Throwable suppressed : thrown.getSuppressed()) {
            if (!isOf(suppressed, seen)) {
                return false;
            }
        }
        return true;
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

    /** Returns whether a character that counts as a symbol or a mark is displayed as a blank. */
    private static boolean isBlank(int c) {
        return switch (c) {
            // the Braille pattern without dots, the Khitan filler, the null notehead of musical notation
            case 0x2800, 0x16FE4, 0x1D159 -> true;
            default -> false;
        };
    }

    private static boolean isIgnorable(int c) {
        int at = Arrays.binarySearch(IGNORABLE, c);
        // The table holds the first and last characters of ranges, the first ones at even indexes. A character that is
        // not in the table lies within a range if the search says that it would be inserted at an odd index.
        return at >= 0 || (-at - 1) % 2 == 1;
    }
}
