package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Comparison;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.analysis.Verdict;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** One table a situation: every technology's figures, and how each stands to the best one in that column. */
final class VerdictTables {
    /** Why a ratio need not be what a reader makes of the two figures that it stands between. */
    private static final String RATIO =
            "×: the median over restarts of the ratio within each restart, since what slows a whole restart slows both"
                    + " sides of it. It may differ from the quotient of the two medians that are shown.";

    private final Analysis analysis;

    VerdictTables(Analysis analysis) {
        this.analysis = analysis;
    }

    String html() {
        StringBuilder html = new StringBuilder();
        for (Situation situation : analysis.situations()) {
            html.append("<h3>" + Html.escaped(situation.message()) + " <span>"
                    + Html.escaped(situation.topology() + ", " + Charts.load(situation.load()))
                    + "</span></h3>\n" + table(situation, Analysis.COMPARED));
            List<Metric> ofLoad = LoadFigures.of(analysis, situation);
            if (!ofLoad.isEmpty()) {
                html.append(table(situation, ofLoad));
            }
        }
        return html.append("<p class=lead>" + Html.escaped(RATIO) + "</p>\n").toString();
    }

    private String table(Situation situation, List<Metric> metrics) {
        StringBuilder html =
                new StringBuilder("<div class=scroll><table class=verdicts><thead><tr><th scope=col>Technology</th>");
        metrics.forEach(metric -> html.append("<th scope=col>" + Html.escaped(metric.heading()) + "</th>"));
        html.append("</tr></thead><tbody>\n");
        for (Technology technology : analysis.run().technologies()) {
            html.append("<tr><th scope=row><i data-technology=\"" + Html.escaped(technology.name()) + "\"></i>"
                    + Html.escaped(technology.title()) + "</th>");
            metrics.forEach(metric -> html.append(cell(situation, technology.name(), metric)));
            html.append("</tr>\n");
        }
        return html.append("</tbody></table></div>\n").toString();
    }

    private String cell(Situation situation, String technology, Metric metric) {
        Optional<Summary> own = find(situation, technology, metric);
        Optional<String> absence = LoadFigures.absence(analysis, situation, technology, metric);
        if (own.isEmpty() && absence.isPresent()) {
            return "<td><div>" + Html.escaped(absence.get()) + "</div></td>";
        }
        if (own.isEmpty() || !own.get().estimate().isPresent()) {
            return "<td><div><b>–</b><small class=bad>"
                    + Html.escaped(own.map(Summary::validity).orElse("not measured")) + "</small></div></td>";
        }
        Summary s = own.get();
        String figures = "<b>" + LoadFigures.brief(s) + "</b> <span class=interval>"
                + Figures.brief(s.estimate().low()) + " – "
                + Figures.brief(s.estimate().high()) + "</span>"
                + (s.survivors().isEmpty()
                        ? ""
                        : " <small class=hint title=\"" + Html.escaped(s.validity()) + "\">" + s.survivors()
                                + " restarts</small>");
        return "<td" + (s.isCold() || s.isUnknown() || s.isTooFew() ? " class=cold" : "") + "><div>" + figures
                + standing(situation, s, metric) + (s.isColdStart() ? "<small>cold start</small>" : "") + "</div></td>";
    }

    private String standing(Situation situation, Summary own, Metric metric) {
        if (own.isVoid()) {
            return "<small class=bad title=\"" + Html.escaped(own.validity()) + "\">void</small>";
        }
        if (own.isCold()) {
            return "<small title=\"" + Html.escaped(own.validity()) + "\">cold</small>";
        }
        if (own.isUnknown()) {
            return "<small title=\"" + Html.escaped(own.validity()) + "\">warmth unknown</small>";
        }
        if (own.isTooFew()) {
            return "<small title=\"" + Html.escaped(own.validity()) + "\">too few</small>";
        }
        if (metric == Metric.THROUGHPUT && situation.load().hasRate()) {
            return offered(situation, own.technology());
        }
        if (analysis.run().technologies().size() == 1 || !Analysis.COMPARED.contains(metric)) {
            return "";
        }
        Optional<Summary> best = analysis.run().technologies().stream()
                .flatMap(t -> find(situation, t.name(), metric).stream())
                .filter(s -> s.estimate().isPresent() && s.counts())
                .min((a, b) -> metric.better() == Metric.Better.HIGHER
                        ? Double.compare(b.estimate().value(), a.estimate().value())
                        : Double.compare(a.estimate().value(), b.estimate().value()));
        if (best.isEmpty() || best.get().technology().equals(own.technology())) {
            return "<small class=good>" + (metric.better() == Metric.Better.HIGHER ? "highest" : "lowest") + "</small>";
        }
        return comparison(situation, own.technology(), best.get().technology(), metric)
                .map(VerdictTables::verdict)
                .orElse("");
    }

    /** What a load offers is the same for all, and no contest: a technology keeps up with it, or falls behind. */
    private String offered(Situation situation, String technology) {
        return find(situation, technology, Metric.SUCCESS_SHARE)
                .filter(answered -> analysis.fellBehind(technology, situation))
                .map(answered -> "<small class=bad>fell behind: "
                        + Figures.brief(answered.estimate().value()) + " % answered</small>")
                .orElse("<small>as offered</small>");
    }

    private static String verdict(Comparison c) {
        if (!c.ratio().isPresent()) {
            return "<small title=\"" + Html.escaped(c.verdict().toString()) + "\">"
                    + c.verdict().kind().name().toLowerCase(Locale.ROOT) + "</small>";
        }
        String ratio = String.format(Locale.ROOT, "×%.2f", c.ratio().value());
        String hint = String.format(
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
        String word = switch (c.verdict().kind()) {
            case BETTER -> "better";
            case WORSE -> "worse";
            case EQUIVALENT -> "equivalent";
            case UNDECIDED ->
                c.verdict().why().isEmpty() ? "undecided, +" + c.verdict().moreRestarts() + " restarts" : "undecided";
            case VOID -> "void";
            case COLD -> "cold";
            case UNKNOWN -> "warmth unknown";
        };
        String kind = c.verdict().kind() == Verdict.Kind.EQUIVALENT ? "good" : "";
        return "<small class='" + kind + "' title=\"" + Html.escaped(hint) + "\">" + ratio + " " + word + "</small>";
    }

    private Optional<Summary> find(Situation situation, String technology, Metric metric) {
        return HtmlPage.of(analysis, situation, technology).stream()
                .filter(s -> s.metric() == metric)
                .findFirst();
    }

    /** The comparison with {@code technology} first, turned round if it was made the other way. */
    private Optional<Comparison> comparison(Situation situation, String technology, String against, Metric metric) {
        return analysis.comparisons().stream()
                .filter(c -> c.metric() == metric
                        && c.topology().equals(situation.topology())
                        && c.message().equals(situation.message())
                        && c.load().equals(situation.load().toString()))
                .flatMap(c -> java.util.stream.Stream.of(c, c.reversed()))
                .filter(c -> c.technology().equals(technology) && c.against().equals(against))
                .findFirst();
    }
}
