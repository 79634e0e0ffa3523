package dev.parley.model;

import java.util.Collection;
import java.util.Optional;

/** Finds what a person may have meant by a word that is not known. */
public final class Nearest {
    private Nearest() {}

    /**
     * The known word that takes the fewest changes to make of the given one, where they are at most a third of its
     * length. A change adds, drops or replaces a letter.
     */
    public static Optional<String> of(String given, Collection<String> known) {
        Optional<String> nearest = Optional.empty();
        int fewest = given.length() / 3 + 1;
        for (String word : known) {
            int distance = distance(given, word);
            if (distance < fewest) {
                fewest = distance;
                nearest = Optional.of(word);
            }
        }
        return nearest;
    }

    /** Source: Wagner, Fischer: The String-to-String Correction Problem, 1974, a row at a time. */
    private static int distance(String from, String to) {
        int[] above = new int[to.length() + 1];
        for (int j = 0; j <= to.length(); j++) {
            above[j] = j;
        }
        for (int i = 1; i <= from.length(); i++) {
            int[] row = new int[to.length() + 1];
            row[0] = i;
            for (int j = 1; j <= to.length(); j++) {
                int replaced = above[j - 1] + (from.charAt(i - 1) == to.charAt(j - 1) ? 0 : 1);
                row[j] = Math.min(replaced, Math.min(above[j], row[j - 1]) + 1);
            }
            above = row;
        }
        return above[to.length()];
    }
}
