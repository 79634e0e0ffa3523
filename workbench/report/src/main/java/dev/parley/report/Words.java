package dev.parley.report;

import java.util.List;
import java.util.Locale;

/** Numbers and lists in sentences. */
final class Words {
    private static final List<String> NUMBERS = List.of(
            "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve");

    private Words() {}

    /** Up to twelve in letters. */
    static String number(int count) {
        return count >= 0 && count < NUMBERS.size() ? NUMBERS.get(count) : Integer.toString(count);
    }

    /** {@code 1 restart}, {@code 2 restarts}. */
    static String count(long count, String noun) {
        return count + " " + noun + (count == 1 ? "" : "s");
    }

    /** {@code a, b and c}. */
    static String and(List<String> words) {
        int last = words.size() - 1;
        return last < 1
                ? String.join("", words)
                : String.join(", ", words.subList(0, last)) + " and " + words.get(last);
    }

    /** The first of many, and how many more there are. */
    static String first(int most, List<String> words) {
        return words.size() <= most
                ? and(words)
                : String.join(", ", words.subList(0, most)) + " and " + (words.size() - most) + " more";
    }

    /** With a capital letter at its beginning. */
    static String sentence(String text) {
        return text.isEmpty() ? text : text.substring(0, 1).toUpperCase(Locale.ROOT) + text.substring(1);
    }
}
