package dev.parley.report;

import dev.parley.studies.Claim;
import dev.parley.studies.Judgement;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.Measured;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A paper's claims, each with its verdict and why. */
final class ClaimTable {
    private final Map<Claim, Judgement> judgements;

    ClaimTable(Map<Claim, Judgement> judgements) {
        this.judgements = judgements;
    }

    String html() {
        StringBuilder html = new StringBuilder(
                "<section id=claims><h2>What the paper concludes</h2>\n<p class=lead>Each conclusion in our words, its place, and what this "
                        + "machine says. A claim is decided only where the 95 % interval of the ratio excludes the border and every figure rests "
                        + "on at least three restarts; whatever is missing leaves it open. <em>Indicative</em>: decided only because few restarts lie close together; more of them may turn it. <a class=csv download=\"claims.csv\" href=\""
                        + Html.dataUri(csv())
                        + "\">CSV</a></p>\n<div class=scroll><table class=claims><thead><tr><th scope=col>Claim</th>"
                        + "<th scope=col>Place</th><th scope=col>Here</th><th scope=col>Why</th></tr></thead><tbody>\n");
        judgements.forEach((claim, judgement) -> html.append("<tr id=\"" + Html.escaped(claim.id()) + "\"><td>"
                + Html.escaped(claim.sentence())
                + (claim.note().isEmpty() ? "" : "<small>" + Html.escaped(claim.note()) + "</small>")
                + (claim.beside().isEmpty()
                        ? ""
                        : "<small>another way: <a href=\"#" + Html.escaped(claim.beside()) + "\">"
                                + Html.escaped(claim.beside()) + "</a></small>")
                + "</td><td>"
                + Html.escaped(claim.place()) + "</td><td><b class=" + style(judgement.verdict()) + ">"
                + judgement.words() + "</b></td><td>" + why(judgement) + "</td></tr>\n"));
        return html.append("</tbody></table></div></section>\n").toString();
    }

    private static String why(Judgement judgement) {
        List<Finding> findings = judgement.findings();
        if (findings.isEmpty()) {
            return "nothing measured decides it";
        }
        Set<String> missing = new LinkedHashSet<>();
        findings.stream().filter(f -> f.ratio().isMissing()).forEach(f -> missing.add(f.why()));
        long holding = judgement.count(Verdict.HOLDS);
        long not = judgement.count(Verdict.DOES_NOT_HOLD);
        StringBuilder html = new StringBuilder(
                findings.size() == 1
                        ? Html.escaped(findings.getFirst().why())
                        : holding + " of " + findings.size() + " comparisons hold, " + not + " do not, "
                                + (findings.size() - holding - not) + " open");
        if (findings.size() > 1) {
            missing.stream().limit(2).forEach(m -> html.append("<small>" + Html.escaped(m) + "</small>"));
        }
        html.append("<details><summary>each comparison</summary>");
        html.append(Html.table(
                List.of("comparison", "left", "right", "outcome"),
                findings.stream()
                        .map(f -> List.of(f.what(), figure(f.left()), figure(f.right()), f.words() + ": " + f.why()))
                        .toList()));
        return html.append("</details>").toString();
    }

    private static String figure(Measured measured) {
        return measured.isMissing() ? "–" : Figures.brief(measured.value());
    }

    static String style(Verdict verdict) {
        return switch (verdict) {
            case HOLDS -> "good";
            case DOES_NOT_HOLD -> "bad";
            case NOT_DECIDED -> "hint";
        };
    }

    String csv() {
        return CsvText.of(
                List.of(
                        "id",
                        "place",
                        "sentence",
                        "verdict",
                        "indicative",
                        "comparisons",
                        "hold",
                        "do_not_hold",
                        "expression",
                        "note",
                        "beside"),
                judgements.entrySet().stream()
                        .map(judged -> cells(judged.getKey(), judged.getValue()))
                        .toList());
    }

    private static List<String> cells(Claim claim, Judgement judgement) {
        return List.of(
                claim.id(),
                claim.place(),
                claim.sentence(),
                judgement.verdict().words(),
                Boolean.toString(judgement.isIndicative()),
                Integer.toString(judgement.findings().size()),
                Long.toString(judgement.count(Verdict.HOLDS)),
                Long.toString(judgement.count(Verdict.DOES_NOT_HOLD)),
                claim.expression(),
                claim.note(),
                claim.beside());
    }
}
