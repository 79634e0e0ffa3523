package dev.parley.report;

import dev.parley.report.Chart.Kind;
import dev.parley.report.Chart.Point;
import dev.parley.report.Chart.Row;
import dev.parley.studies.Curve;
import dev.parley.studies.PublishedFigure;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The charts of a paper: its tables with ours beside theirs, and its curves. */
final class PaperCharts {
    /** Fewer pairs make no order that a table does not show as well. */
    private static final int MIN_PAIRS = 3;

    private PaperCharts() {}

    /** Each curve's panels, of which the reader chooses one. */
    static List<Chart> curves(PaperResults results) {
        List<Chart> charts = new ArrayList<>();
        for (Curve curve : results.head().curves()) {
            int number = charts.size() + 1;
            List<PaperPoint> own = results.points().stream()
                    .filter(point -> point.curve() == number)
                    .toList();
            List<Row> panels = new ArrayList<>();
            grouped(own, PaperPoint::panel)
                    .forEach((panel, points) -> panels.add(new Row(
                            panel,
                            points.stream()
                                    .map(p -> Point.beside(
                                            p.line(),
                                            p.at(),
                                            p.ours(),
                                            p.theirs(),
                                            p.ours().remark()))
                                    .toList())));
            // what is drawn first shows most
            panels.sort(Comparator.comparing((Row panel) -> -panel.points().size()));
            charts.addAll(Chart.alike(List.of(new Chart(
                    "curve-" + number,
                    Kind.CURVE,
                    curve.place(),
                    axis(curve.metric(), curve.unit()),
                    curve.axis(),
                    curve.about(),
                    panels))));
        }
        return List.copyOf(charts);
    }

    /**
     * Place by place and metric by metric, a chart for each part that measured it; and where there are enough pairs of
     * one unit, all of them against each other.
     */
    static List<Chart> tables(PaperResults results) {
        List<Chart> charts = new ArrayList<>();
        grouped(results.published(), figure -> figure.theirs().place()).forEach((place, ofPlace) -> {
            grouped(ofPlace, PaperCharts::axis).forEach((axis, own) -> charts.addAll(beside(place, axis, own)));
            grouped(ofPlace, figure -> figure.theirs().unit())
                    .forEach((unit, own) -> charts.addAll(pairs(place, unit, own)));
        });
        return List.copyOf(charts);
    }

    /** What was measured nowhere stands with the first part. */
    private static List<Chart> beside(String place, String axis, List<PaperFigure> figures) {
        String first = figures.stream()
                .map(PaperFigure::part)
                .filter(part -> !part.isEmpty())
                .findFirst()
                .orElse("");
        String metric = figures.getFirst().theirs().metric().replace('_', ' ');
        List<Chart> charts = new ArrayList<>();
        grouped(figures, figure -> figure.part().isEmpty() ? first : figure.part())
                .forEach((part, own) -> charts.add(new Chart(
                        id(place + " " + axis + " " + part),
                        Kind.BESIDE,
                        place + ": " + metric + (part.isEmpty() ? "" : ", " + part),
                        axis,
                        joined(Stream.of(joined(shared(conditions(own)).stream(), ", "), Orders.of(own)), "; "),
                        rows(own))));
        return Chart.alike(charts);
    }

    /** A row for each condition, named by what tells it from the others. */
    private static List<Row> rows(List<PaperFigure> figures) {
        List<List<String>> conditions = conditions(figures);
        List<String> shared = shared(conditions);
        Map<String, List<Point>> rows = new LinkedHashMap<>();
        for (int i = 0; i < figures.size(); i++) {
            String label = joined(conditions.get(i).stream().filter(text -> !shared.contains(text)), ", ");
            rows.computeIfAbsent(label, _ -> new ArrayList<>()).add(point(figures.get(i)));
        }
        return rows.entrySet().stream()
                .map(row -> new Row(row.getKey(), row.getValue()))
                .toList();
    }

    /** Our load is one of them only where several of ours stand for one of the paper's. */
    private static List<List<String>> conditions(List<PaperFigure> figures) {
        Map<List<String>, Set<String>> loads = figures.stream()
                .filter(figure -> !figure.load().isEmpty())
                .collect(Collectors.groupingBy(
                        figure -> conditions(figure.theirs(), ""),
                        Collectors.mapping(PaperFigure::load, Collectors.toSet())));
        boolean hasSeveral = loads.values().stream().anyMatch(own -> own.size() > 1);
        return figures.stream()
                .map(figure -> conditions(figure.theirs(), hasSeveral ? figure.load() : ""))
                .toList();
    }

    /** What is the same in all. */
    private static List<String> shared(List<List<String>> conditions) {
        return conditions.getFirst().stream()
                .filter(text -> conditions.stream().allMatch(own -> own.contains(text)))
                .toList();
    }

    private static String joined(Stream<String> texts, String between) {
        return texts.filter(text -> !text.isEmpty()).collect(Collectors.joining(between));
    }

    private static List<String> conditions(PublishedFigure theirs, String ourLoad) {
        return List.of(theirs.topology(), theirs.message(), theirs.load(), theirs.subject(), theirs.part(), ourLoad);
    }

    private static List<Chart> pairs(String place, String unit, List<PaperFigure> figures) {
        List<Point> points = figures.stream()
                .filter(f -> f.ratio() > 0 && f.theirs().value() > 0)
                .map(PaperCharts::point)
                .toList();
        return points.size() < MIN_PAIRS
                ? List.of()
                : List.of(new Chart(
                        id(place + " pairs " + unit),
                        Kind.PAIRS,
                        place + ": theirs across, ours up",
                        "ours (" + unit + ")",
                        "theirs (" + unit + ")",
                        "Figures in one order rise from left to right.",
                        List.of(new Row("", points))));
    }

    private static Point point(PaperFigure figure) {
        PublishedFigure theirs = figure.theirs();
        String note = theirs.note().isEmpty() ? "" : "the paper: " + theirs.note();
        return Point.beside(
                theirs.technology(),
                Double.NaN,
                figure.ours(),
                theirs.value(),
                joined(Stream.of(figure.ours().remark(), note), "; "));
    }

    private static String axis(PaperFigure figure) {
        return axis(figure.theirs().metric(), figure.theirs().unit());
    }

    private static String axis(String metric, String unit) {
        return metric.replace('_', ' ') + " (" + unit + ")";
    }

    private static String id(String text) {
        return text.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-");
    }

    private static <T> Map<String, List<T>> grouped(List<T> all, Function<T, String> by) {
        return all.stream().collect(Collectors.groupingBy(by, LinkedHashMap::new, Collectors.toList()));
    }
}
