package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Topology;
import dev.parley.report.PaperRun.Found;
import dev.parley.report.PaperRun.PartRun;
import dev.parley.report.PaperRun.Place;
import dev.parley.report.Plot.Axis;
import dev.parley.studies.Cell;
import dev.parley.studies.Curve;
import dev.parley.studies.Scale;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * The charts that a paper prints of a metric against a growing number, drawn from ours; theirs where the paper gives
 * them in figures.
 */
final class CurvePage {
    private static final int LEFT = 64;
    private static final int WIDTH = 330;
    private static final int HEIGHT = 210;
    private static final int LEGEND = 20;
    private static final String DASHES = "-dasharray:";

    private final PaperRun run;
    private final Curve curve;
    private final List<Point> points;

    /**
     * @param told technology, topology and so on, for panels and lines
     * @param theirs NaN where the paper gives none
     */
    private record Point(Map<String, String> told, double x, Found ours, double theirs) {
        double value() {
            return ours.figure().value();
        }

        double low() {
            return ours.figure().low();
        }

        double high() {
            return ours.figure().high();
        }
    }

    CurvePage(PaperRun run, Curve curve) {
        this.run = run;
        this.curve = curve;
        this.points = points();
    }

    boolean isEmpty() {
        return points.isEmpty();
    }

    private List<Point> points() {
        List<Point> all = new ArrayList<>();
        for (PartRun part : run.parts()) {
            if (part.plan().isEmpty() || part.analysis().isEmpty()) {
                continue;
            }
            Scale.Scaled plan = part.plan().get();
            List<Load> published = part.published()
                    .map(study ->
                            curve.load().isEmpty() ? study.loads() : run.paper().loads(curve.load(), study))
                    .orElse(List.of());
            for (Load load : published) {
                for (String technology : plan.study().technologies()) {
                    for (Topology topology : plan.study().topologies()) {
                        Load scaled = plan.loads().getOrDefault(load, load);
                        for (MessageSpec message : plan.study().messages()) {
                            if (plan.study().has(message, scaled)) {
                                Situation situation = new Situation(topology.text(), message.toString(), scaled);
                                points(new Place(part, technology, situation, load), all);
                            }
                        }
                    }
                }
            }
        }
        return all;
    }

    private void points(Place place, List<Point> all) {
        switch (curve.across()) {
            case STEP -> steps(place, all);
            case THREADS -> {
                if (place.published() instanceof Load.Rounds rounds) {
                    point(place, rounds.threads(), all);
                }
            }
            case REQUESTS -> {
                if (place.published() instanceof Load.Rounds rounds) {
                    point(place, rounds.requests(), all);
                }
            }
            case AMOUNT -> point(place, place.published().amount(), all);
        }
    }

    private void point(Place place, double x, List<Point> all) {
        point(place, x, curve.subject(), theirs(place), all);
    }

    private void point(Place place, double x, String subject, double theirs, List<Point> all) {
        Map<String, String> conditions = new LinkedHashMap<>();
        conditions.put("technology", place.technology());
        conditions.put("topology", place.situation().topology());
        conditions.put("message", place.situation().message());
        conditions.put("load", place.published().toString());
        if (!subject.isEmpty()) {
            conditions.put("subject", subject);
        }
        Found ours = run.found(place, new Cell(curve.metric(), conditions));
        if (!ours.figure().isMissing()) {
            all.add(new Point(told(place), x, ours, theirs));
        }
    }

    /** The paper's figure at one point, whichever form its load is written in. */
    private double theirs(Place place) {
        return run.paper().figures().stream()
                .filter(f -> f.metric().equals(curve.metric())
                        && !f.isDrawn()
                        && f.technology().equals(place.technology())
                        && isOrAny(f.topology(), place.situation().topology())
                        && isOrAny(f.message(), place.situation().message())
                        && isOrAny(f.part(), place.run().part().name())
                        && isOrAny(f.subject(), curve.subject())
                        && place.run()
                                .published()
                                .map(study -> run.paper().loads(f.load(), study))
                                .orElse(List.of())
                                .contains(place.published()))
                .mapToDouble(f -> f.value())
                .findFirst()
                .orElse(Double.NaN);
    }

    private static boolean isOrAny(String wanted, String is) {
        return wanted.isEmpty() || wanted.equals(is);
    }

    private void steps(Place place, List<Point> all) {
        Analysis analysis = place.run().analysis().orElseThrow();
        Metric metric = Metric.ofKey(curve.metric());
        for (Summary step : analysis.details()) {
            String number = step.subject().split(" ", 2)[0];
            if (step.metric() == metric
                    && step.technology().equals(place.technology())
                    && new Situation(step.topology(), step.message(), step.load()).equals(place.situation())
                    && number.matches("\\d+")) {
                point(place, Double.parseDouble(number), step.subject(), Double.NaN, all);
            }
        }
    }

    private static Map<String, String> told(Place place) {
        Map<String, String> told = new LinkedHashMap<>();
        told.put("technology", place.technology());
        told.put("topology", place.situation().topology());
        told.put("message", place.situation().message());
        told.put("load", place.published().toString());
        told.put("part", place.run().part().name());
        if (place.published() instanceof Load.Rounds rounds) {
            told.put("threads", rounds.threads() + " threads");
            told.put("requests", rounds.requests() + " requests");
        }
        return told;
    }

    private static String text(Map<String, String> told, List<String> keys) {
        return keys.stream().map(key -> told.getOrDefault(key, "")).collect(Collectors.joining(", "));
    }

    String html() {
        StringBuilder html = new StringBuilder("<figure class=curve><figcaption><h3>" + Html.escaped(curve.place())
                + " <span>" + Html.escaped(run.paper().name()) + "</span></h3><span>" + Html.escaped(curve.about())
                + " <a class=csv download=\"" + PaperPage.fileName(curve.place() + " " + curve.metric())
                + ".csv\" href=\"" + Html.dataUri(csv()) + "\">CSV</a></span></figcaption>\n<div class=panels>");
        Map<String, List<Point>> panels = points.stream()
                .collect(Collectors.groupingBy(
                        p -> text(p.told(), curve.panels()), LinkedHashMap::new, Collectors.toList()));
        panels.forEach((panel, own) ->
                html.append("<div><h4>" + Html.escaped(panel) + "</h4>" + drawn(panel, own) + "</div>\n"));
        return html.append("</div></figure>\n").toString();
    }

    private String drawn(String panel, List<Point> own) {
        Map<String, List<Point>> lines = own.stream()
                .collect(Collectors.groupingBy(
                        p -> text(p.told(), curve.lines()), LinkedHashMap::new, Collectors.toList()));
        int legend = LEGEND * ((lines.size() + 2) / 3);
        Plot plot = new Plot(LEFT, legend + 6, WIDTH, HEIGHT);
        Axis across = Axis.of(curve.axis(), own.stream().map(Point::x).toList()).linear();
        Axis up = Axis.of(
                curve.metric().replace('_', ' ') + " (" + curve.unit() + ")",
                own.stream()
                        .flatMap(p -> java.util.stream.Stream.of(p.value(), p.theirs()))
                        .filter(Double::isFinite)
                        .toList());
        plot.across(across);
        plot.up(up);
        int index = 0;
        for (Map.Entry<String, List<Point>> line : lines.entrySet()) {
            List<Point> along = line.getValue().stream()
                    .sorted(Comparator.comparingDouble(Point::x))
                    .toList();
            String style = style(line.getKey(), along.getFirst().told().getOrDefault("technology", ""), index);
            int column = LEFT + index % 3 * 112;
            int at = 10 + LEGEND * (index / 3);
            plot.add(
                    "<line x1=%d y1=%d x2=%d y2=%d style=\"%s\" stroke-width=2 /><text x=%d y=%d>%s</text>",
                    column, at, column + 14, at, style, column + 18, at + 4, Html.escaped(line.getKey()));
            plot.add(
                    "<polyline fill=none stroke-width=2 style=\"%s\" points=\"%s\" />",
                    style,
                    along.stream()
                            .filter(p -> p.ours().decides())
                            .map(p -> String.format(
                                    java.util.Locale.ROOT, "%.1f,%.1f", plot.x(across, p.x()), plot.y(up, p.value())))
                            .collect(Collectors.joining(" ")));
            for (Point p : along) {
                mark(plot, across, up, p, line.getKey(), style);
            }
            index++;
        }
        return plot.svg(
                "lines", curve.place() + ": " + panel + ", " + curve.unit(), LEFT + WIDTH + 20, legend + HEIGHT + 50);
    }

    private void mark(Plot plot, Axis across, Axis up, Point p, String line, String style) {
        String told = Html.escaped(line + " at " + Figures.brief(p.x()) + ": ours " + Figures.brief(p.value()) + " ("
                + Figures.brief(p.low()) + " – " + Figures.brief(p.high()) + ")"
                + (Double.isFinite(p.theirs()) ? ", theirs " + Figures.brief(p.theirs()) : "") + " " + curve.unit()
                + p.ours().remark());
        plot.add(
                "<line x1=%.1f y1=%.1f x2=%.1f y2=%.1f style=\"%s\" /><circle%s cx=%.1f cy=%.1f r=2.5"
                        + " style=\"%s\"><title>%s</title></circle>",
                plot.x(across, p.x()),
                plot.y(up, p.low()),
                plot.x(across, p.x()),
                plot.y(up, p.high()),
                p.ours().decides() ? style.replaceAll(";stroke" + DASHES + ".*", "") : Plot.OPEN_STROKE,
                p.ours().decides() ? "" : " class=open",
                plot.x(across, p.x()),
                plot.y(up, p.value()),
                p.ours().decides() ? Plot.fill(p.told().getOrDefault("technology", "")) : Plot.OPEN_FILL,
                told);
        if (Double.isFinite(p.theirs())) {
            plot.add(
                    "<circle class=theirs cx=%.1f cy=%.1f r=4 style=\"%s\"><title>%s</title></circle>",
                    plot.x(across, p.x()),
                    plot.y(up, p.theirs()),
                    style.replaceAll(";stroke" + DASHES + ".*", ""),
                    told);
        }
    }

    /** Lines of one technology are told apart by their dashes. */
    private String style(String line, String technology, int index) {
        String colour = "stroke:var(" + Plot.colour(technology) + ")";
        boolean isTuned = line.contains("-");
        boolean isTechnology = curve.lines().contains("technology");
        int dashes = isTechnology ? (isTuned ? 1 : 0) : index;
        return dashes == 0
                ? colour
                : colour + ";stroke" + DASHES + (dashes == 1 ? "6 3" : dashes == 2 ? "2 3" : "8 3 2 3");
    }

    private String csv() {
        return CsvText.of(
                List.of(
                        "technology",
                        "topology",
                        "message",
                        "load",
                        "part",
                        "across",
                        "value",
                        "low",
                        "high",
                        "theirs",
                        "unit",
                        "validity",
                        "restarts"),
                points.stream()
                        .map(p -> List.of(
                                p.told().getOrDefault("technology", ""),
                                p.told().getOrDefault("topology", ""),
                                p.told().getOrDefault("message", ""),
                                p.told().getOrDefault("load", ""),
                                p.told().getOrDefault("part", ""),
                                Figures.exact(p.x()),
                                Figures.exact(p.value()),
                                Figures.exact(p.low()),
                                Figures.exact(p.high()),
                                Figures.exact(p.theirs()),
                                curve.unit(),
                                p.ours().validity(),
                                p.ours().figure().count()))
                        .toList());
    }
}
