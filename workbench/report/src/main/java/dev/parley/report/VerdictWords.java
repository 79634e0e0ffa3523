package dev.parley.report;

import dev.parley.analysis.Comparison;
import dev.parley.analysis.Summary;
import dev.parley.analysis.Validity;
import dev.parley.analysis.Verdict;
import java.util.IntSummaryStatistics;
import java.util.List;
import java.util.Locale;

/** Verdicts in words. */
final class VerdictWords {
    private VerdictWords() {}

    /** True where a difference is shown, or that there is none to speak of. */
    static boolean isDecided(Comparison comparison) {
        return switch (comparison.verdict().kind()) {
            case BETTER, WORSE, EQUIVALENT -> true;
            case UNDECIDED, VOID, COLD, UNKNOWN -> false;
        };
    }

    /** True where a difference is shown, whose ratio may be told. */
    static boolean isDifference(Comparison comparison) {
        return isDecided(comparison) && comparison.verdict().kind() != Verdict.Kind.EQUIVALENT;
    }

    /**
     * What would decide comparisons that are not decided, as it follows on a comma.
     *
     * @param restarts of the run
     */
    static String whatDecides(List<Comparison> open, int restarts) {
        if (restarts < Validity.MIN_VERDICT_RESTARTS) {
            return "a verdict takes " + Validity.MIN_VERDICT_RESTARTS + " restarts";
        }
        IntSummaryStatistics more = open.stream()
                .map(Comparison::verdict)
                .filter(verdict -> verdict.kind() == Verdict.Kind.UNDECIDED
                        && verdict.why().isEmpty())
                .mapToInt(Verdict::moreRestarts)
                .summaryStatistics();
        if (more.getCount() == 0) {
            return open.stream()
                    .map(comparison -> comparison.verdict().why())
                    .filter(why -> !why.isEmpty())
                    .findFirst()
                    .orElse("other trials would decide");
        }
        String most = more.getMax() < Verdict.MANY ? more.getMax() + " more" : Figures.whole(Verdict.MANY) + " or more";
        return (more.getMin() == more.getMax() ? "about " + most : "about " + more.getMin() + " to " + most)
                + (more.getMax() == 1 ? " restart would decide" : " restarts would decide");
    }

    /** Why a figure stands in no comparison, in a word or two; empty for one that may. */
    static String uncounted(Summary summary) {
        if (!summary.estimate().isPresent()) {
            return "no figure";
        }
        if (summary.isVoid()) {
            return "void";
        }
        if (summary.isCold()) {
            return "cold";
        }
        if (summary.isUnknown()) {
            return "warmth unknown";
        }
        return summary.isTooFew() ? "too few" : "";
    }

    /** All figures of a comparison, for who wants to know how sure it is. */
    static String figures(Comparison c) {
        if (!c.ratio().isPresent()) {
            return c.verdict().toString();
        }
        return String.format(
                        Locale.ROOT,
                        "ratio %.3f, 95 %% interval %.3f to %.3f, p %.3f after Holm, tie band %.0f %%",
                        c.ratio().value(),
                        c.ratio().low(),
                        c.ratio().high(),
                        c.p(),
                        100 * c.tieBand())
                + (Double.isNaN(c.noiseFloor())
                        ? ""
                        : String.format(Locale.ROOT, ", noise floor of the two %.0f %%", 100 * c.noiseFloor()))
                + (c.verdict().why().isEmpty() ? "" : "; " + c.verdict().why());
    }
}
