package dev.parley.studies;

import java.util.List;

/**
 * How far two lists of figures agree on an order: Kendall's tau-b, 1 for the same order, −1 for the opposite, 0 for none in common. Source:
 * Kendall, The treatment of ties in ranking problems (Biometrika 1945).
 *
 * @param tau NaN where there is nothing to put in order
 * @param pairs how many pairs it rests on
 */
public record Agreement(double tau, int pairs) {
    /** Two figures of one thing. */
    public record Pair(double theirs, double ours) {}

    /**
     * Only pairs within a group are held against each other: the tau of libraries, such as Commons Math's
     * {@code KendallsCorrelation}, is that of one list, and commons-statistics has none.
     */
    public static Agreement of(List<List<Pair>> groups) {
        int agree = 0;
        int pairs = 0;
        int tiedTheirs = 0;
        int tiedOurs = 0;
        for (List<Pair> group : groups) {
            for (int a = 0; a < group.size(); a++) {
                for (int b = a + 1; b < group.size(); b++) {
                    int theirs =
                            Double.compare(group.get(a).theirs(), group.get(b).theirs());
                    int ours = Double.compare(group.get(a).ours(), group.get(b).ours());
                    pairs++;
                    agree += Integer.signum(theirs) * Integer.signum(ours);
                    tiedTheirs += theirs == 0 ? 1 : 0;
                    tiedOurs += ours == 0 ? 1 : 0;
                }
            }
        }
        double most = Math.sqrt((double) (pairs - tiedTheirs) * (pairs - tiedOurs));
        return new Agreement(most > 0 ? agree / most : Double.NaN, pairs);
    }
}
