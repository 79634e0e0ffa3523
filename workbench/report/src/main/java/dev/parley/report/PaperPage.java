package dev.parley.report;

import dev.parley.model.Metric;
import dev.parley.report.PaperRun.Found;
import dev.parley.report.PaperRun.PartRun;
import dev.parley.report.PaperRun.Place;
import dev.parley.studies.Agreement;
import dev.parley.studies.Cell;
import dev.parley.studies.Claim;
import dev.parley.studies.Judgement;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.Measured;
import dev.parley.studies.Paper;
import dev.parley.studies.PublishedFigure;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** A paper's tables with ours beside theirs, and its claims with our verdicts: one HTML file without script, and the same as CSV. */
final class PaperPage {
    private static final List<String> COLUMNS = List.of(
            "place",
            "technology",
            "topology",
            "message",
            "paper_load",
            "metric",
            "subject",
            "unit",
            "theirs",
            "ours",
            "low",
            "high",
            "ratio",
            "part",
            "our_load",
            "validity",
            "note");

    private static final Map<String, Double> BYTES = Map.of("B", 1.0, "MB", 1e6, "MiB", 1024.0 * 1024, "GB", 1e9);

    private final PaperRun run;
    private final Paper paper;
    private final List<Row> rows;
    private final Map<Claim, Judgement> judgements = new LinkedHashMap<>();

    /** One published figure beside one of ours. */
    record Row(PublishedFigure theirs, String part, String load, Measured ours, String validity) {
        boolean isMeasured() {
            return !ours.isMissing();
        }

        boolean isBoth() {
            return isMeasured() && !theirs.isDrawn();
        }

        double ratio() {
            return ours.value() / theirs.value();
        }
    }

    PaperPage(PaperRun run) {
        this.run = run;
        this.paper = run.paper();
        this.rows = paper.figures().stream().flatMap(f -> rows(f).stream()).toList();
        paper.claims().forEach(claim -> judgements.put(claim, claim.judge(run::measured)));
    }

    Map<Verdict, Long> counts() {
        Map<Verdict, Long> counts = new EnumMap<>(Verdict.class);
        for (Verdict verdict : Verdict.values()) {
            counts.put(
                    verdict,
                    judgements.values().stream()
                            .filter(j -> j.verdict() == verdict)
                            .count());
        }
        return counts;
    }

    List<Row> rows() {
        return rows;
    }

    Map<Claim, Judgement> judgements() {
        return judgements;
    }

    private List<Row> rows(PublishedFigure figure) {
        if (figure.isPlanned()) {
            return List.of();
        }
        Map<String, String> conditions = new LinkedHashMap<>();
        put(conditions, "part", figure.part());
        put(conditions, "topology", figure.topology());
        put(conditions, "message", figure.message());
        put(conditions, "load", figure.load());
        put(conditions, "subject", figure.subject());
        if (figure.technology().isEmpty()) {
            return List.of(new Row(figure, "", "", Measured.missing("of no one technology"), ""));
        }
        Map<String, String> first = new LinkedHashMap<>(conditions);
        first.put("technology", figure.technology().split("/", 2)[0]);
        List<Place> places = run.places(new Cell(figure.metric(), first));
        if (places.isEmpty()) {
            return List.of(new Row(figure, "", "", run.measured(new Cell(figure.metric(), first)), ""));
        }
        conditions.put("technology", figure.technology());
        List<Row> all = new ArrayList<>();
        for (Place place : places) {
            Found found = run.found(place, new Cell(figure.metric(), conditions));
            all.add(new Row(
                    figure,
                    place.run().part().name(),
                    place.situation().load().toString(),
                    found.figure().times(factor(figure)),
                    found.validity()));
        }
        return all;
    }

    /** From our unit to the paper's. */
    private static double factor(PublishedFigure figure) {
        for (Metric metric : Metric.values()) {
            if (metric.key().equals(figure.metric()) && !metric.unit().equals(figure.unit())) {
                return BYTES.getOrDefault(metric.unit(), 1.0) / BYTES.getOrDefault(figure.unit(), 1.0);
            }
        }
        return 1;
    }

    private static void put(Map<String, String> conditions, String key, String value) {
        if (!value.isEmpty()) {
            conditions.put(key, value);
        }
    }

    String html() {
        StringBuilder html = new StringBuilder("<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
                + "<meta name=viewport content=\"width=device-width, initial-scale=1\"><meta name=color-scheme content=\"light dark\">"
                + "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
                + "<title>" + Html.escaped(paper.name()) + ", held against this machine</title><style>\n"
                + HtmlPage.resource("page.css") + "\n" + HtmlPage.resource("paper.css") + "</style></head><body>\n");
        html.append("<header><h1>" + Html.escaped(paper.title()) + "</h1>\n<p class=facts>"
                + Html.escaped(paper.citation()) + "</p>\n<p class=flags>");
        counts().forEach((verdict, n) ->
                html.append("<span class='flag " + style(verdict) + "'>" + n + " " + verdict.words() + "</span> "));
        html.append("<span class=flag>scale " + run.scale() + ": "
                + Html.escaped(run.scale().rule()) + "</span></p>\n"
                + "<nav aria-label=Sections><a href=\"#claims\">Claims</a> <a href=\"#tables\">Tables</a> <a href=\"#parts\">How it was measured</a></nav>"
                + "</header>\n<main>\n");
        html.append(claims());
        html.append(tables());
        html.append(parts());
        return html.append(
                        "</main><footer>Made by Parley from the stores of the parts; <code>./parley reproduce --resume</code> makes it again."
                                + "</footer></body></html>\n")
                .toString();
    }

    private String claims() {
        StringBuilder html = new StringBuilder(
                "<section id=claims><h2>What the paper concludes</h2>\n<p class=lead>Each conclusion in our words, its place, and what this "
                        + "machine says. A claim is decided only where the 95 % interval of the ratio excludes the border and every figure rests "
                        + "on at least three restarts; whatever is missing leaves it open. <a class=csv download=\"claims.csv\" href=\""
                        + Html.dataUri(claimsCsv())
                        + "\">CSV</a></p>\n<div class=scroll><table class=claims><thead><tr><th scope=col>Claim</th>"
                        + "<th scope=col>Place</th><th scope=col>Here</th><th scope=col>Why</th></tr></thead><tbody>\n");
        judgements.forEach((claim, judgement) -> html.append("<tr id=\"" + Html.escaped(claim.id()) + "\"><td>"
                + Html.escaped(claim.sentence())
                + (claim.note().isEmpty() ? "" : "<small>" + Html.escaped(claim.note()) + "</small>") + "</td><td>"
                + Html.escaped(claim.place()) + "</td><td><b class=" + style(judgement.verdict()) + ">"
                + judgement.verdict().words() + "</b></td><td>" + why(judgement) + "</td></tr>\n"));
        return html.append("</tbody></table></div></section>\n").toString();
    }

    private static String why(Judgement judgement) {
        List<Finding> findings = judgement.findings();
        if (findings.isEmpty()) {
            return "nothing measured decides it";
        }
        Set<String> missing = new LinkedHashSet<>();
        findings.stream().filter(f -> f.ratio().isMissing()).forEach(f -> missing.add(f.why()));
        List<Finding> compared =
                findings.stream().filter(f -> !f.ratio().isMissing()).toList();
        long holding =
                compared.stream().filter(f -> f.verdict() == Verdict.HOLDS).count();
        long not = compared.stream()
                .filter(f -> f.verdict() == Verdict.DOES_NOT_HOLD)
                .count();
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
                        .map(f -> List.of(
                                f.what(),
                                figure(f.left()),
                                figure(f.right()),
                                f.verdict().words() + ": " + f.why()))
                        .toList()));
        return html.append("</details>").toString();
    }

    private static String figure(Measured measured) {
        return measured.isMissing() ? "–" : Figures.brief(measured.value());
    }

    private static String style(Verdict verdict) {
        return switch (verdict) {
            case HOLDS -> "good";
            case DOES_NOT_HOLD -> "bad";
            case NOT_DECIDED -> "hint";
        };
    }

    private String tables() {
        StringBuilder html = new StringBuilder(
                "<section id=tables><h2>Tables and figures</h2>\n<p class=lead>Theirs, ours with its 95 % interval, and ours over theirs. "
                        + "Their machines, languages and libraries were others, so that the ratio says little by itself; whether it is the same "
                        + "for all, and whether the order is, says more. Order: Kendall's tau, 1 for the same, −1 for the opposite.</p>\n");
        html.append(orders());
        Map<String, List<Row>> byPlace = rows.stream()
                .collect(Collectors.groupingBy(r -> r.theirs().place(), LinkedHashMap::new, Collectors.toList()));
        byPlace.forEach((place, own) -> {
            html.append("<figure><figcaption><h3>" + Html.escaped(place) + " <span>" + Html.escaped(paper.name())
                    + "</span></h3><span>" + Html.escaped(order(own)) + " <a class=csv download=\""
                    + Html.escaped(fileName(place))
                    + ".csv\" href=\"" + Html.dataUri(csv(own)) + "\">CSV</a></span></figcaption>\n");
            own.stream()
                    .collect(Collectors.groupingBy(r -> r.theirs().unit(), LinkedHashMap::new, Collectors.toList()))
                    .forEach((unit, some) -> html.append(new Scatter(some, unit).svg()));
            html.append("<details" + (own.size() <= 12 ? " open" : "") + "><summary>" + own.size()
                    + " figures</summary><div class=scroll>" + table(own) + "</div></details></figure>\n");
        });
        List<PublishedFigure> planned =
                paper.figures().stream().filter(PublishedFigure::isPlanned).toList();
        if (!planned.isEmpty()) {
            html.append("<h3>What the paper set</h3><div class=scroll>"
                    + Html.table(
                            List.of("place", "technology", "message", "load", "what", "value", "note"),
                            planned.stream()
                                    .map(f -> List.of(
                                            f.place(),
                                            f.technology(),
                                            f.message(),
                                            f.load(),
                                            f.metric().replace("planned_", ""),
                                            f.written() + " " + f.unit(),
                                            f.note()))
                                    .toList())
                    + "</div>\n");
        }
        return html.append("</section>\n").toString();
    }

    private String orders() {
        Map<String, List<Row>> byMetric = rows.stream()
                .filter(r -> r.isBoth() && !r.theirs().technology().contains("/"))
                .collect(Collectors.groupingBy(r -> r.theirs().metric(), LinkedHashMap::new, Collectors.toList()));
        List<List<String>> lines = new ArrayList<>();
        byMetric.forEach((metric, some) -> {
            Agreement agreement = Agreement.of(groups(some));
            if (agreement.pairs() > 0) {
                lines.add(List.of(metric, tau(agreement), Integer.toString(agreement.pairs())));
            }
        });
        return lines.isEmpty()
                ? ""
                : "<h3>Order of the technologies under the same condition, all tables together</h3>"
                        + Html.table(List.of("metric", "Kendall's tau", "pairs"), lines);
    }

    /** Rows of one condition and metric, one of each technology. */
    private static List<List<Agreement.Pair>> groups(List<Row> some) {
        return some.stream()
                .filter(Row::isBoth)
                .collect(Collectors.groupingBy(
                        r -> List.of(
                                r.theirs().metric(),
                                r.theirs().topology(),
                                r.theirs().message(),
                                r.theirs().load(),
                                r.theirs().subject(),
                                r.theirs().part(),
                                r.part(),
                                r.load()),
                        LinkedHashMap::new,
                        Collectors.toMap(
                                r -> r.theirs().technology(),
                                r -> new Agreement.Pair(
                                        r.theirs().value(), r.ours().value()),
                                (a, b) -> a,
                                LinkedHashMap::new)))
                .values()
                .stream()
                .map(of -> List.copyOf(of.values()))
                .toList();
    }

    private static String order(List<Row> own) {
        Agreement technologies = Agreement.of(groups(own));
        if (technologies.pairs() > 0) {
            return "order of technologies: tau " + tau(technologies);
        }
        Map<String, List<Agreement.Pair>> byMetric = own.stream()
                .filter(Row::isBoth)
                .collect(Collectors.groupingBy(
                        r -> r.theirs().metric() + r.part(),
                        LinkedHashMap::new,
                        Collectors.mapping(
                                r -> new Agreement.Pair(
                                        r.theirs().value(), r.ours().value()),
                                Collectors.toList())));
        Agreement conditions = Agreement.of(List.copyOf(byMetric.values()));
        return conditions.pairs() > 0 ? "order of conditions: tau " + tau(conditions) : "";
    }

    private static String tau(Agreement agreement) {
        return Double.isNaN(agreement.tau())
                ? "none (ties)"
                : String.format(Locale.ROOT, "%.2f", agreement.tau()).replace('-', '−');
    }

    private static String table(List<Row> own) {
        StringBuilder html = new StringBuilder("<table><thead><tr>");
        List.of("Condition", "Metric", "Theirs", "Ours", "Ours / theirs", "As measured")
                .forEach(h -> html.append("<th scope=col>" + h + "</th>"));
        html.append("</tr></thead><tbody>\n");
        for (Row row : own) {
            PublishedFigure f = row.theirs();
            html.append("<tr><td>" + Html.escaped(condition(f)) + "</td><td>" + Html.escaped(f.metric())
                    + "</td><td class=number>" + Html.escaped(f.isDrawn() ? "only drawn" : f.written() + " " + f.unit())
                    + (f.note().isEmpty() ? "" : "<small>" + Html.escaped(f.note()) + "</small>") + "</td>");
            if (row.isMeasured()) {
                html.append("<td class=number>" + Figures.brief(row.ours().value())
                        + (f.isDrawn() ? " " + Html.escaped(f.unit()) : "") + " <span class=interval>"
                        + Figures.brief(row.ours().low()) + " – "
                        + Figures.brief(row.ours().high())
                        + "</span></td><td class=number>"
                        + (f.unit().equals("%") || f.isDrawn() ? "" : Figures.brief(row.ratio())) + "</td>");
            } else {
                html.append("<td>–<small>" + Html.escaped(row.ours().missing()) + "</small></td><td></td>");
            }
            html.append("<td>" + Html.escaped(row.part() + (row.load().isEmpty() ? "" : ", " + row.load()))
                    + (row.validity().isEmpty() || row.validity().equals("valid")
                            ? ""
                            : "<small class=" + (row.validity().startsWith("void") ? "bad" : "hint") + ">"
                                    + Html.escaped(row.validity()) + "</small>")
                    + "</td></tr>\n");
        }
        return html.append("</tbody></table>").toString();
    }

    private static String condition(PublishedFigure f) {
        return java.util.stream.Stream.of(f.technology(), f.topology(), f.message(), f.load(), f.subject(), f.part())
                .filter(s -> !s.isEmpty())
                .collect(Collectors.joining(", "));
    }

    private String parts() {
        StringBuilder html = new StringBuilder("<section id=parts><h2>How it was measured</h2>\n");
        for (PartRun part : run.parts()) {
            List<List<String>> facts = new ArrayList<>();
            facts.add(List.of("In the paper", part.part().place()));
            facts.add(List.of("What", part.part().about()));
            part.plan().ifPresent(plan -> {
                facts.add(List.of("Technologies", String.join(", ", plan.study().technologies())));
                facts.add(List.of(
                        "Loads, theirs → ours",
                        plan.loads().entrySet().stream()
                                .map(e -> e.getKey().equals(e.getValue())
                                        ? e.getKey().toString()
                                        : e.getKey() + " → " + e.getValue())
                                .sorted()
                                .collect(Collectors.joining("; "))));
            });
            part.analysis().ifPresent(analysis -> {
                facts.add(List.of("Command", analysis.run().command()));
                facts.add(List.of("Started", analysis.run().startedAt().toString()));
                facts.add(List.of("Commit", analysis.run().commit()));
                facts.add(List.of("JDK", analysis.run().jdk()));
                analysis.run().machine().forEach((name, value) -> facts.add(List.of(name, value)));
                facts.add(List.of(
                        "Trials",
                        analysis.trials().size() + " of " + analysis.plan().size() + " ended"));
            });
            if (!part.why().isEmpty()) {
                facts.add(List.of("Not measured", part.why()));
            }
            html.append("<h3>" + Html.escaped(part.part().name())
                    + (part.analysis().isPresent()
                            ? " <span><a href=\"" + Html.escaped(part.part().name()) + "/" + Report.HTML
                                    + "\">its whole report</a></span>"
                            : "")
                    + "</h3>" + Html.facts(facts));
        }
        return html.append("</section>\n").toString();
    }

    private static String fileName(String place) {
        return place.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-");
    }

    String csv() {
        return csv(rows);
    }

    private static String csv(List<Row> some) {
        StringBuilder csv = new StringBuilder(String.join(",", COLUMNS) + "\n");
        for (Row row : some) {
            PublishedFigure f = row.theirs();
            csv.append(List.of(
                                    f.place(),
                                    f.technology(),
                                    f.topology(),
                                    f.message(),
                                    f.load(),
                                    f.metric(),
                                    f.subject(),
                                    f.unit(),
                                    f.written(),
                                    Figures.exact(row.ours().value()),
                                    Figures.exact(row.ours().low()),
                                    Figures.exact(row.ours().high()),
                                    row.isBoth() && !f.unit().equals("%") ? Figures.exact(row.ratio()) : "",
                                    row.part(),
                                    row.load(),
                                    row.isMeasured()
                                            ? row.validity()
                                            : row.ours().missing(),
                                    f.note())
                            .stream()
                            .map(SummaryFiles::quoted)
                            .collect(Collectors.joining(",")))
                    .append('\n');
        }
        return csv.toString();
    }

    String claimsCsv() {
        StringBuilder csv =
                new StringBuilder("id,place,sentence,verdict,comparisons,hold,do_not_hold,expression,note\n");
        judgements.forEach((claim, judgement) -> csv.append(List.of(
                                claim.id(),
                                claim.place(),
                                claim.sentence(),
                                judgement.verdict().words(),
                                Integer.toString(judgement.findings().size()),
                                Long.toString(count(judgement, Verdict.HOLDS)),
                                Long.toString(count(judgement, Verdict.DOES_NOT_HOLD)),
                                claim.expression(),
                                claim.note())
                        .stream()
                        .map(SummaryFiles::quoted)
                        .collect(Collectors.joining(",")))
                .append('\n'));
        return csv.toString();
    }

    private static long count(Judgement judgement, Verdict verdict) {
        return judgement.findings().stream().filter(f -> f.verdict() == verdict).count();
    }
}
