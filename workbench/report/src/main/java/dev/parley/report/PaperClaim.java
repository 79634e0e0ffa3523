package dev.parley.report;

import dev.parley.studies.Claim;
import dev.parley.studies.Judgement;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import java.util.List;

/** A paper's conclusion, and what our figures say of it. */
record PaperClaim(Claim claim, Judgement judgement) {
    Verdict verdict() {
        return judgement.verdict();
    }

    /** True of the same conclusion, measured or read another way. */
    boolean isAnotherWay() {
        return !claim.beside().isEmpty();
    }

    /**
     * The comparison itself where there is one; of many how they went, the two furthest apart and, where the whole is
     * open, why one of them is.
     */
    String measured() {
        List<Finding> findings = judgement.findings();
        if (findings.isEmpty()) {
            return claim.note();
        }
        if (findings.size() == 1) {
            return findings.getFirst().why();
        }
        double[] ratios = findings.stream()
                .mapToDouble(Finding::ratio)
                .filter(ratio -> !Double.isNaN(ratio))
                .sorted()
                .toArray();
        long open = judgement.count(Verdict.NOT_DECIDED);
        return judgement.count(Verdict.HOLDS) + " of " + findings.size() + " comparisons hold, "
                + judgement.count(Verdict.DOES_NOT_HOLD) + " do not"
                + (open == 0 ? "" : ", " + open + (open == 1 ? " is open" : " are open"))
                + (ratios.length == 0
                        ? ""
                        : "; ratios " + Figures.brief(ratios[0]) + " to " + Figures.brief(ratios[ratios.length - 1]))
                + (verdict() == Verdict.NOT_DECIDED ? "; open: " + firstOpen(findings) : "");
    }

    private static String firstOpen(List<Finding> findings) {
        return findings.stream()
                .filter(finding -> finding.verdict() == Verdict.NOT_DECIDED)
                .findFirst()
                .map(Finding::why)
                .orElse("");
    }
}
