package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.analysis.Validity;
import dev.parley.model.FigureRow;
import dev.parley.model.Technology;
import dev.parley.report.Chart.Kind;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.json.JsonMapper;

/**
 * The report as one file that needs no network: style, script and chart library stand in it, and its content policy forbids anything
 * else. Tables are written here, so that the page says everything without its script; charts are drawn from the embedded data.
 */
final class HtmlPage {
    private static final String ECHARTS = "/META-INF/resources/webjars/echarts/5.5.0/echarts.min.js";

    private final Analysis analysis;
    private final List<Charts.Section> sections;

    HtmlPage(Analysis analysis) {
        this.analysis = analysis;
        this.sections = new Charts(analysis).sections();
    }

    String text() {
        Map<String, String> parts = new LinkedHashMap<>();
        parts.put("TITLE", Html.escaped(title()));
        parts.put("STYLE", resource("page.css"));
        parts.put("HEADER", header());
        parts.put(
                "STEPS",
                sections.stream().anyMatch(s -> s.id().equals("steps")) ? "<a href=\"#steps\">Step by step</a> " : "");
        parts.put("RESULTS", targets() + new VerdictTables(analysis).html());
        parts.put(
                "SECTIONS",
                String.join("\n", sections.stream().map(this::section).toList()));
        parts.put("ASKED", new AskedPage(analysis).html());
        parts.put("MEASURED", new MeasuredPage(analysis).html());
        // data and library last: whatever they contain is not searched for placeholders
        parts.put("SCRIPT", resource("page.js"));
        parts.put("DATA", data());
        parts.put("ECHARTS", resource(ECHARTS).replace("</script", "<\\/script"));
        StringBuilder page = new StringBuilder();
        String template = resource("page.html");
        int at = 0;
        for (int open = template.indexOf("{{"); open >= 0; open = template.indexOf("{{", at)) {
            int close = template.indexOf("}}", open);
            page.append(template, at, open).append(parts.getOrDefault(template.substring(open + 2, close), ""));
            at = close + 2;
        }
        return page.append(template.substring(at)).toString();
    }

    private String title() {
        List<String> titles =
                analysis.run().technologies().stream().map(Technology::title).toList();
        int last = titles.size() - 1;
        return last < 1
                ? String.join("", titles) + ", measured"
                : "How " + String.join(", ", titles.subList(0, last)) + " and " + titles.get(last) + " compare";
    }

    private String header() {
        long invalid = analysis.trials().stream().filter(JudgedTrial::isVoid).count();
        long failed = analysis.trials().stream().filter(t -> !t.isFinished()).count();
        List<String> facts = new ArrayList<>();
        facts.add(String.join(
                ", ",
                analysis.situations().stream()
                        .map(Situation::topology)
                        .distinct()
                        .toList()));
        facts.add(DateTimeFormatter.ofPattern("d MMMM yyyy, HH:mm", java.util.Locale.ENGLISH)
                        .format(analysis.run().startedAt().atZone(ZoneOffset.UTC))
                + " UTC");
        facts.add(analysis.trials().size() + " of " + analysis.plan().size() + " trials");
        StringBuilder html = new StringBuilder("<h1>" + Html.escaped(title()) + "</h1>\n<p class=facts>"
                + String.join(
                        " <span aria-hidden=true>·</span> ",
                        facts.stream().map(Html::escaped).toList()) + "</p>\n");
        html.append("<p class=flags>");
        boolean open = analysis.situations().stream().anyMatch(s -> s.load().isOpen());
        boolean closed = analysis.situations().stream().anyMatch(s -> !s.load().isOpen());
        html.append(flag("", open && closed ? "open and closed loads" : open ? "open load" : "closed load"));
        int restarts = analysis.plan().stream().mapToInt(s -> s.restart()).max().orElse(0);
        boolean few = restarts < Validity.ENOUGH_RESTARTS;
        boolean undecided = restarts < Validity.MIN_VERDICT_RESTARTS;
        html.append(flag(
                few ? "hint" : "",
                restarts
                        + (restarts == 1 ? " restart" : " restarts")
                        + (undecided ? ": indicative, no verdicts" : few ? ": indicative only" : "")));
        if (invalid > 0) {
            html.append(flag("bad", invalid + (invalid == 1 ? " void trial" : " void trials")));
        }
        if (failed > 0) {
            html.append(flag("bad", failed + (failed == 1 ? " trial" : " trials") + " failed or interrupted"));
        }
        if (analysis.unfinished() > 0) {
            html.append(flag("bad", analysis.unfinished() + " trials not run"));
        }
        long cold = Warmth.cold(analysis);
        if (cold > 0) {
            html.append(flag("hint", cold + (cold == 1 ? " cold trial" : " cold trials")));
        }
        long unknown = Warmth.unknown(analysis);
        if (unknown > 0) {
            html.append(flag("hint", unknown + (unknown == 1 ? " trial" : " trials") + " of unknown warmth"));
        }
        html.append("</p>");
        Warmth.note(analysis).ifPresent(note -> html.append("\n<p class=lead>" + Html.escaped(note) + "</p>"));
        return html.toString();
    }

    /** Who meets the study's target; empty where it has none. */
    private String targets() {
        List<List<String>> rows = analysis.targetAnswers().stream()
                .map(answer -> List.of(
                        answer.technology(),
                        answer.kind().words(),
                        answer.text(),
                        answer.situation().message(),
                        answer.situation().topology() + ", "
                                + Charts.load(answer.situation().load())))
                .toList();
        return analysis.target()
                .map(target -> "<h3>Target: " + Html.escaped(target.title()) + "</h3>\n<div class=scroll>"
                        + Html.table(List.of("technology", "answer", "why", "message", "load"), rows) + "</div>\n")
                .orElse("");
    }

    private static String flag(String kind, String text) {
        return "<span class='flag " + kind + "'>" + Html.escaped(text) + "</span> ";
    }

    private String section(Charts.Section section) {
        String head = "<section id=" + section.id() + ">\n<h2>" + Html.escaped(section.title())
                + "</h2>\n<p class=lead>" + Html.escaped(section.lead()) + "</p>\n";
        if (section.charts().isEmpty()) {
            return head + "</section>";
        }
        StringBuilder html = new StringBuilder(
                head + legend(section) + "<div class='grid" + (section.charts().size() == 1 ? " one" : "") + "'>\n");
        section.charts().forEach(chart -> html.append(figure(chart)));
        return html.append("</div>\n</section>").toString();
    }

    private String legend(Charts.Section section) {
        StringBuilder html = new StringBuilder("<ul class=legend>");
        analysis.run()
                .technologies()
                .forEach(t -> html.append("<li><i data-technology=\"" + Html.escaped(t.name()) + "\"></i>"
                        + Html.escaped(t.title()) + "</li>"));
        if (section.charts().stream().anyMatch(c -> c.kind() == Kind.BARS)) {
            html.append("<li><i data-technology=empty></i>empty service</li>");
        }
        return html.append("</ul>\n").toString();
    }

    private String figure(Chart chart) {
        String table = table(chart);
        StringBuilder html = new StringBuilder("<figure id=\"figure-" + chart.id() + "\">\n<figcaption><h3>"
                + Html.escaped(chart.heading()) + "</h3>"
                + (chart.note().isEmpty() ? "" : "<span>" + Html.escaped(chart.note()) + "</span>")
                + "</figcaption>\n");
        if (chart.rows().stream().allMatch(r -> r.points().isEmpty())) {
            return html.append("<p class=none>Not measured in this run.</p></figure>\n")
                    .toString();
        }
        if (chart.kind() == Kind.TAIL) {
            html.append("<label>Message and load <select data-chart=tail>");
            for (int i = 0; i < chart.rows().size(); i++) {
                html.append("<option value=" + i + ">"
                        + Html.escaped(chart.rows().get(i).label()) + "</option>");
            }
            html.append("</select></label>\n");
        }
        html.append("<div class=chart data-chart=\"" + chart.id() + "\" role=img aria-label=\""
                + Html.escaped(chart.heading() + ", " + chart.axis() + ". The table below holds the figures.")
                + "\"></div>\n<details><summary>Figures</summary><div class=scroll>" + table
                + "</div></details> <a class=csv download=\"" + chart.id() + ".csv\" href=\""
                + Html.dataUri(csv(chart)) + "\">CSV</a>\n</figure>\n");
        return html.toString();
    }

    private static List<String> columns(Chart chart) {
        return switch (chart.kind()) {
            case INTERVALS -> List.of("message", "technology", "value", "low", "high", "validity");
            case STACK -> List.of("message", "technology", "wire", "payload", "validity");
            case BARS -> List.of("technology", "value", "low", "high", "validity");
            case TAIL -> List.of("situation", "technology", "percentile", "ms");
            case HOPS -> List.of("message", "technology", "hop", "ms", "validity");
            case LINES -> List.of("technology", "count", unit(chart), "validity");
        };
    }

    /** What stands in brackets at the end of the axis' title. */
    private static String unit(Chart chart) {
        return chart.axis()
                .substring(chart.axis().lastIndexOf('(') + 1, chart.axis().lastIndexOf(')'));
    }

    private static List<List<String>> cells(Chart chart, java.util.function.DoubleFunction<String> figure) {
        List<List<String>> cells = new ArrayList<>();
        for (Chart.Row row : chart.rows()) {
            for (Chart.Point p : row.points()) {
                String name = p.technology().equals(FigureRow.EMPTY) ? "empty service" : p.technology();
                String flag = p.flag().isEmpty() ? "valid" : p.flag();
                switch (chart.kind()) {
                    case INTERVALS ->
                        cells.add(List.of(
                                row.label(),
                                name,
                                figure.apply(p.value()),
                                figure.apply(p.low()),
                                figure.apply(p.high()),
                                flag));
                    case STACK ->
                        cells.add(List.of(row.label(), name, figure.apply(p.value()), figure.apply(p.inner()), flag));
                    case BARS ->
                        cells.add(List.of(
                                name, figure.apply(p.value()), figure.apply(p.low()), figure.apply(p.high()), flag));
                    case HOPS ->
                        p.parts()
                                .forEach(part -> cells.add(
                                        List.of(row.label(), name, part.label(), figure.apply(part.value()), flag)));
                    case LINES ->
                        p.tail().forEach(t -> cells.add(List.of(name, Figures.exact(t[0]), figure.apply(t[1]), flag)));
                    case TAIL ->
                        p.tail()
                                .forEach(t ->
                                        cells.add(List.of(row.label(), name, Figures.exact(t[0]), figure.apply(t[1]))));
                }
            }
        }
        return cells;
    }

    private static String table(Chart chart) {
        if (chart.kind() == Kind.TAIL) {
            return Html.table(
                    columns(chart),
                    cells(chart, Figures::brief).stream()
                            .filter(c -> List.of("0", "50", "75", "87.5").contains(c.get(2))
                                    || Double.parseDouble(c.get(2)) > 90)
                            .toList());
        }
        return Html.table(columns(chart), cells(chart, Figures::brief));
    }

    private static String csv(Chart chart) {
        StringBuilder text = new StringBuilder(String.join(",", columns(chart)) + "\n");
        cells(chart, Figures::exact)
                .forEach(line -> text.append(String.join(
                                ",", line.stream().map(SummaryFiles::quoted).toList()))
                        .append('\n'));
        return text.toString();
    }

    private String data() {
        List<Object> charts = new ArrayList<>();
        sections.forEach(s -> s.charts().forEach(c -> charts.add(chart(c))));
        Map<String, Object> data = new LinkedHashMap<>();
        data.put(
                "technologies",
                analysis.run().technologies().stream()
                        .map(t -> Map.of("name", t.name(), "title", t.title()))
                        .toList());
        data.put("charts", charts);
        // in a script element only "<" can end or change it
        return JsonMapper.builder().build().writeValueAsString(data).replace("<", "\\u003c");
    }

    private static Map<String, Object> chart(Chart chart) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("id", chart.id());
        map.put("kind", chart.kind().name().toLowerCase(java.util.Locale.ROOT));
        map.put("axis", chart.axis());
        map.put(
                "rows",
                chart.rows().stream()
                        .map(r -> Map.of(
                                "label",
                                r.label(),
                                "points",
                                r.points().stream().map(HtmlPage::point).toList()))
                        .toList());
        return map;
    }

    private static Map<String, Object> point(Chart.Point p) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("technology", p.technology());
        Map.of("value", p.value(), "low", p.low(), "high", p.high(), "inner", p.inner())
                .forEach((name, value) -> {
                    if (Double.isFinite(value)) {
                        map.put(name, value);
                    }
                });
        map.put("flag", p.flag());
        if (!p.tail().isEmpty()) {
            map.put("tail", p.tail());
        }
        if (!p.parts().isEmpty()) {
            map.put(
                    "parts",
                    p.parts().stream()
                            .map(part -> Map.of("label", part.label(), "value", part.value()))
                            .toList());
        }
        return map;
    }

    /** The technologies' summaries in one situation. */
    static List<Summary> of(Analysis analysis, Situation situation, String technology) {
        return analysis.summaries().stream()
                .filter(s -> s.technology().equals(technology))
                .filter(s -> new Situation(s.topology(), s.message(), s.load()).equals(situation))
                .toList();
    }

    static String resource(String name) {
        try (InputStream in = HtmlPage.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException(
                        name + ": missing from the class path (expected: part of parley-report's jars)");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
