package dev.parley.model;

import java.util.Collection;
import java.util.Locale;
import java.util.Optional;

/** What a person probably meant by a name that is not known. */
public final class Nearest {
    /** A name is near when this many times its distance is at most the longer length of the two. */
    private static final int MAX_SHARE = 3;

    private Nearest() {}

    /**
     * Returns the known name with the least distance to the given one, and the first of several such names; empty if
     * every distance is more than a third of the longer name. The distance is the number of characters that are
     * inserted, deleted, changed, or swapped with their neighbour; case does not count.
     */
    public static Optional<String> of(String given, Collection<String> known) {
        String nearest = "";
        int least = Integer.MAX_VALUE;
        for (String name : known) {
            int distance = distance(given.toLowerCase(Locale.ROOT), name.toLowerCase(Locale.ROOT));
            if (distance < least && MAX_SHARE * distance <= Math.max(given.length(), name.length())) {
                nearest = name;
                least = distance;
            }
        }
        return nearest.isEmpty() ? Optional.empty() : Optional.of(nearest);
    }

    /** Returns {@code did you mean grpc? } to stand before what was expected; an empty text if no name is near. */
    public static String hint(String given, Collection<String> known) {
        return of(given, known).map(name -> "did you mean " + name + "? ").orElse("");
    }

    /** Source: optimal string alignment, after Damerau (Communications of the ACM 1964). */
    private static int distance(String a, String b) {
        int[][] distances = new int[a.length() + 1][b.length() + 1];
        for (int i = 0; i <= a.length(); i++) {
            for (int j = 0; j <= b.length(); j++) {
                distances[i][j] = i == 0 || j == 0 ? i + j : step(distances, a, b, i, j);
            }
        }
        return distances[a.length()][b.length()];
    }

    private static int step(int[][] distances, String a, String b, int i, int j) {
        boolean isSame = a.charAt(i - 1) == b.charAt(j - 1);
        int least = Math.min(
                distances[i - 1][j - 1] + (isSame ? 0 : 1), Math.min(distances[i - 1][j], distances[i][j - 1]) + 1);
        boolean isSwapped = i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1);
        return isSwapped ? Math.min(least, distances[i - 2][j - 2] + 1) : least;
    }
}
