package dev.parley.studies;

import java.util.List;
import java.util.Locale;

/**
 * What measurements say about a claim.
 *
 * @param isIndicative decided, but only because few restarts lie close together
 * @param findings every comparison that was made, in the order of the claim
 */
public record Judgement(Verdict verdict, boolean isIndicative, List<Finding> findings) {
    public static final Judgement OPEN = new Judgement(Verdict.NOT_DECIDED, false, List.of());

    /** Fewer restarts than this cannot tell a technology from the mood of a restart. */
    static final int MIN_RESTARTS = 3;

    /** Three values: what is missing is never taken for false. */
    public enum Verdict {
        HOLDS("holds"),
        DOES_NOT_HOLD("does not hold"),
        NOT_DECIDED("not decided here");

        private final String words;

        Verdict(String words) {
            this.words = words;
        }

        public String words() {
            return words;
        }
    }

    /**
     * One comparison.
     *
     * @param isIndicative decided, but not were the interval as wide as so few restarts ask for
     * @param what as the claim has it
     * @param ratio of left to right, with its 95 % interval; missing where a side was not measured
     * @param border what an interval that decides nothing lies across
     * @param none why there is no interval that could decide; empty where there is one
     */
    public record Finding(
            Verdict verdict,
            boolean isIndicative,
            String what,
            Measured left,
            Measured right,
            Measured ratio,
            double border,
            String none) {
        public String words() {
            return Judgement.words(verdict, isIndicative);
        }

        /** Why this is the verdict. */
        public String why() {
            if (!none.isEmpty()) {
                return none;
            }
            String interval = String.format(
                    Locale.ROOT, "ratio %.3g, 95 %% from %.3g to %.3g", ratio.value(), ratio.low(), ratio.high());
            return verdict == Verdict.NOT_DECIDED
                    ? interval + String.format(Locale.ROOT, ", which holds the border of %.3g", border)
                    : interval;
        }
    }

    public Judgement {
        findings = List.copyOf(findings);
    }

    public String words() {
        return words(verdict, isIndicative);
    }

    private static String words(Verdict verdict, boolean isIndicative) {
        return verdict.words() + (isIndicative ? " (indicative)" : "");
    }
}
