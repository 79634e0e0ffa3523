package dev.parley.studies;

import java.util.List;
import java.util.Locale;

/**
 * What measurements say about a claim.
 *
 * @param isIndicative decided, but only because few restarts lie close together
 * @param findings every comparison that was made, in the order of the claim, each as the claim has it: one behind a
 *     {@code not} holds where the comparison itself does not
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

        /** What is missing stays missing. */
        Verdict not() {
            return switch (this) {
                case HOLDS -> DOES_NOT_HOLD;
                case DOES_NOT_HOLD -> HOLDS;
                case NOT_DECIDED -> NOT_DECIDED;
            };
        }
    }

    /**
     * One comparison.
     *
     * @param isIndicative decided, but not were the interval as wide as so few restarts ask for
     * @param what as the claim has it
     * @param left NaN where it was not measured, and so for the right side
     * @param ratio of left to right, with the ends of its 95 % interval; NaN where a side was not measured
     * @param border what an interval that decides nothing lies across; NaN where the interval decides, and where there
     *     is none
     * @param none why there is no interval that could decide; empty where there is one
     */
    public record Finding(
            Verdict verdict,
            boolean isIndicative,
            String what,
            double left,
            double right,
            double ratio,
            double low,
            double high,
            double border,
            String none) {
        /** The same behind a {@code not}. */
        Finding not() {
            return new Finding(verdict.not(), isIndicative, "not " + what, left, right, ratio, low, high, border, none);
        }

        public String words() {
            return Judgement.words(verdict, "", isIndicative);
        }

        /** Why this is the verdict. */
        public String why() {
            if (!none.isEmpty()) {
                return none;
            }
            String interval = String.format(Locale.ROOT, "ratio %.3g, 95 %% from %.3g to %.3g", ratio, low, high);
            return verdict == Verdict.NOT_DECIDED
                    ? interval + String.format(Locale.ROOT, ", which holds the border of %.3g", border)
                    : interval;
        }
    }

    public Judgement {
        findings = List.copyOf(findings);
    }

    /**
     * The verdict, and of several comparisons how many of them it is the verdict on: {@code holds in 2 of 4} is said of
     * a claim that asks for no more than two.
     */
    public String words() {
        boolean isOfSeveral = findings.size() > 1 && verdict != Verdict.NOT_DECIDED;
        return words(verdict, isOfSeveral ? " in " + count(verdict) + " of " + findings.size() : "", isIndicative);
    }

    /** How many of the comparisons have this verdict. */
    public long count(Verdict wanted) {
        return findings.stream().filter(finding -> finding.verdict() == wanted).count();
    }

    private static String words(Verdict verdict, String many, boolean isIndicative) {
        return verdict.words() + many + (isIndicative ? " (indicative)" : "");
    }
}
