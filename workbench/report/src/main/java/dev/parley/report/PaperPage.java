package dev.parley.report;

import dev.parley.report.PaperRun.Found;
import dev.parley.report.PaperRun.PartRun;
import dev.parley.report.PaperRun.Place;
import dev.parley.studies.Cell;
import dev.parley.studies.Claim;
import dev.parley.studies.Curve;
import dev.parley.studies.Judgement;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.Measured;
import dev.parley.studies.Paper;
import dev.parley.studies.PublishedFigure;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A paper's tables with ours beside theirs, and its claims with our verdicts: one HTML file without script, and the
 * same as CSV.
 */
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
            "note",
            "restarts");

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
            return isMeasured() && !theirs.isDrawn() && PaperRun.decides(validity);
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

    /** Metric, Kendall's tau, number of pairs. */
    List<List<String>> orders() {
        return Orders.byMetric(rows);
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
        List<String> technologies = List.of(figure.technology().split("/", 2));
        Map<String, String> first = new LinkedHashMap<>(conditions);
        first.put("technology", technologies.getFirst());
        List<Place> places = run.places(new Cell(figure.metric(), first)).stream()
                .filter(place -> place.run().measures(technologies))
                .toList();
        conditions.put("technology", figure.technology());
        Cell cell = new Cell(figure.metric(), conditions);
        if (places.isEmpty()) {
            return List.of(new Row(figure, "", "", run.measured(cell), ""));
        }
        List<Row> all = new ArrayList<>();
        for (Place place : places) {
            Found found = run.found(place, cell);
            all.add(new Row(
                    figure,
                    place.run().part().name(),
                    place.situation().load().toString(),
                    found.figure().times(figure.factor()),
                    found.validity()));
        }
        return all;
    }

    private static void put(Map<String, String> conditions, String key, String value) {
        if (!value.isEmpty()) {
            conditions.put(key, value);
        }
    }

    /** @param hasParts whether the parts' own reports stand beside the page */
    String html(boolean hasParts) {
        StringBuilder html = new StringBuilder("<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
                + "<meta name=viewport content=\"width=device-width, initial-scale=1\"><meta name=color-scheme content=\"light dark\">"
                + "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
                + "<title>" + Html.escaped(paper.name()) + ", held against this machine</title><style>\n"
                + Pages.resource("page.css") + "\n" + Pages.resource("paper.css") + "</style></head><body>\n");
        html.append("<header><h1>" + Html.escaped(paper.title()) + "</h1>\n<p class=facts>"
                + Html.escaped(paper.citation()) + "</p>\n<p class=flags>");
        counts().forEach((verdict, n) -> html.append(
                "<span class='flag " + ClaimTable.style(verdict) + "'>" + n + " " + verdict.words() + "</span> "));
        html.append("<span class=flag>scale " + run.scale() + ": "
                + Html.escaped(run.scale().rule()) + "</span></p>\n"
                + "<nav aria-label=Sections><a href=\"#claims\">Claims</a>"
                + (paper.criteria().isEmpty() ? "" : " <a href=\"#criteria\">Criteria</a>")
                + (paper.curves().isEmpty() ? "" : " <a href=\"#curves\">Curves</a>")
                + " <a href=\"#tables\">Tables</a> <a href=\"#parts\">How it was measured</a></nav>"
                + "</header>\n<main>\n");
        html.append(new ClaimTable(judgements).html());
        html.append(new CriteriaTable(run).html());
        html.append(curves());
        html.append(tables());
        html.append(parts(hasParts));
        return html.append(
                        "</main><footer>Made by Parley from the stores of the parts; <code>./parley reproduce --resume</code> makes it again."
                                + "</footer></body></html>\n")
                .toString();
    }

    private String tables() {
        StringBuilder html = new StringBuilder(
                "<section id=tables><h2>Tables and figures</h2>\n<p class=lead>Theirs, ours with its 95 % interval, and ours over theirs. "
                        + "Their machines, languages and libraries were others, so that the ratio says little by itself; whether it is the same "
                        + "for all, and whether the order is, says more. Order: Kendall's tau, 1 for the same, −1 for the opposite.</p>\n");
        List<List<String>> orders = orders();
        if (!orders.isEmpty()) {
            html.append("<h3>Order of the technologies under the same condition, all tables together</h3>"
                    + Html.table(List.of("metric", "Kendall's tau", "pairs"), orders));
        }
        Map<String, List<Row>> byPlace = rows.stream()
                .collect(Collectors.groupingBy(r -> r.theirs().place(), LinkedHashMap::new, Collectors.toList()));
        byPlace.forEach((place, own) -> {
            html.append("<figure><figcaption><h3>" + Html.escaped(place) + " <span>" + Html.escaped(paper.name())
                    + "</span></h3><span>" + Html.escaped(Orders.of(own)) + " <a class=csv download=\""
                    + Html.escaped(fileName(place))
                    + ".csv\" href=\"" + Html.dataUri(csv(own)) + "\">CSV</a></span></figcaption>\n");
            own.stream()
                    .collect(Collectors.groupingBy(r -> r.theirs().unit(), LinkedHashMap::new, Collectors.toList()))
                    .forEach((unit, some) -> {
                        some.stream()
                                .collect(Collectors.groupingBy(
                                        r -> r.theirs().metric(), LinkedHashMap::new, Collectors.toList()))
                                .forEach((metric, few) -> html.append(new SideBySide(few, place, unit).svg()));
                        html.append(new Scatter(some, unit).svg());
                    });
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

    /** Charts of a metric against a number that grows. */
    private String curves() {
        if (paper.curves().isEmpty()) {
            return "";
        }
        StringBuilder html =
                new StringBuilder("<section id=curves><h2>Curves</h2>\n<p class=lead>The paper's charts of what "
                        + "grows, from our figures: the median over restarts with its 95 % interval. Hollow marks are the paper's own, "
                        + "where it gives numbers; grey points decide nothing, and no line runs through them.</p>\n");
        for (Curve curve : paper.curves()) {
            CurvePage drawn = new CurvePage(run, curve);
            html.append(
                    drawn.isEmpty()
                            ? "<figure><figcaption><h3>" + Html.escaped(curve.place())
                                    + "</h3></figcaption><p class=none>Not measured in this run.</p></figure>\n"
                            : drawn.html());
        }
        return html.append("</section>\n").toString();
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
                html.append("<td class=" + (PaperRun.decides(row.validity()) ? "number" : "'number cold'") + ">"
                        + Figures.brief(row.ours().value())
                        + (f.isDrawn() ? " " + Html.escaped(f.unit()) : "") + " <span class=interval>"
                        + Figures.brief(row.ours().low()) + " – "
                        + Figures.brief(row.ours().high())
                        + "</span>" + survivors(row.ours()) + "</td><td class=number>"
                        + (f.unit().equals("%") || !row.isBoth() ? "" : Figures.brief(row.ratio())) + "</td>");
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

    /** Beside a figure that does not rest on every restart there was. */
    static String survivors(Measured ours) {
        return ours.survivors().isEmpty() ? "" : "<small class=hint>" + ours.survivors() + " restarts</small>";
    }

    private static String condition(PublishedFigure f) {
        return java.util.stream.Stream.of(f.technology(), f.topology(), f.message(), f.load(), f.subject(), f.part())
                .filter(s -> !s.isEmpty())
                .collect(Collectors.joining(", "));
    }

    private String parts(boolean hasParts) {
        StringBuilder html = new StringBuilder("<section id=parts><h2>How it was measured</h2>\n");
        if (!run.sittings().isEmpty()) {
            html.append(
                    "<p class=lead>Each sitting was begun by one command, and ended by itself.</p><div class=scroll>"
                            + Html.table(
                                    List.of("begun", "took", "commit", "command"),
                                    run.sittings().stream()
                                            .map(s ->
                                                    List.of(s.began().toString(), s.length(), s.commit(), s.command()))
                                            .toList())
                            + "</div>\n");
        }
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
                facts.add(List.of("Scale", run.scale() + ", restarts " + Circumstances.restarts(analysis)));
                facts.add(List.of("Warm", Circumstances.warmth(analysis)));
                facts.add(List.of("Order", Circumstances.order(analysis)));
                part.undecided().ifPresent(why -> facts.add(List.of("Decides nothing", why)));
                facts.add(List.of("JDK", analysis.run().jdk()));
                analysis.run().machine().forEach((name, value) -> facts.add(List.of(name, value)));
                facts.add(List.of(
                        "Trials",
                        analysis.trials().size() + " of " + analysis.plan().size() + " ended"));
            });
            if (!part.why().isEmpty()) {
                facts.add(List.of(part.analysis().isPresent() ? "Not as published" : "Not measured", part.why()));
            }
            html.append("<h3>" + Html.escaped(part.part().name())
                    + (hasParts && part.analysis().isPresent()
                            ? " <span><a href=\"" + Html.escaped(part.part().name()) + "/" + Report.HTML
                                    + "\">its whole report</a></span>"
                            : "")
                    + "</h3>" + Html.facts(facts));
        }
        return html.append("</section>\n").toString();
    }

    static String fileName(String place) {
        return place.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-");
    }

    String csv() {
        return csv(rows);
    }

    String claimsCsv() {
        return new ClaimTable(judgements).csv();
    }

    private static String csv(List<Row> some) {
        return CsvText.of(COLUMNS, some.stream().map(PaperPage::cells).toList());
    }

    private static List<String> cells(Row row) {
        PublishedFigure f = row.theirs();
        return List.of(
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
                row.isMeasured() ? row.validity() : row.ours().missing(),
                f.note(),
                row.ours().count());
    }
}
