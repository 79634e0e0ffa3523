package dev.parley.report;

import dev.parley.model.FigureRow;
import dev.parley.report.Chart.Point;
import dev.parley.report.Chart.Row;
import dev.parley.studies.CsvText;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleFunction;

/** A chart's figures: as a table for people, and as CSV for programs. */
final class ChartTable {
    /** Percentiles under 90 that people are shown. */
    private static final List<String> SHOWN = List.of("0", "50", "75", "87.5");

    private final Chart chart;

    ChartTable(Chart chart) {
        this.chart = chart;
    }

    Table table() {
        List<List<String>> rows = fields(Figures::brief);
        return new Table(
                chart.heading() + (chart.note().isEmpty() ? "" : ", " + chart.note()),
                head(),
                chart.kind() == Chart.Kind.TAIL
                        ? rows.stream()
                                .filter(row -> SHOWN.contains(row.get(2)) || Double.parseDouble(row.get(2)) > 90)
                                .toList()
                        : rows);
    }

    String csv() {
        return CsvText.of(columns(), fields(Figures::exact));
    }

    private List<String> columns() {
        return switch (chart.kind()) {
            case INTERVALS -> List.of("message", "technology", "value", "low", "high", "validity");
            case STACK -> List.of("message", "technology", "wire", "payload", "validity");
            case BARS -> List.of("technology", "value", "low", "high", "validity");
            case TAIL -> List.of("situation", "technology", "percentile", "ms");
            case HOPS -> List.of("message", "technology", "hop", "ms", "validity");
            case LINES -> List.of("technology", "count", chart.unit(), "validity");
            case BESIDE, PAIRS ->
                List.of("condition", "technology", "theirs", "ours", "low", "high", "ratio", "validity");
            case CURVE -> List.of("panel", "line", "at", "theirs", "ours", "low", "high", "validity");
        };
    }

    /** The columns with their units. */
    private List<String> head() {
        String unit = " (" + chart.unit() + ")";
        return switch (chart.kind()) {
            case INTERVALS -> List.of("message", "technology", "value" + unit, "low" + unit, "high" + unit, "validity");
            case STACK -> List.of("message", "technology", "wire" + unit, "payload" + unit, "validity");
            case BARS -> List.of("technology", "value" + unit, "low" + unit, "high" + unit, "validity");
            case TAIL -> List.of("situation", "technology", "percentile (%)", "response time" + unit);
            case HOPS -> List.of("message", "technology", "hop", "time" + unit, "validity");
            case LINES -> List.of("technology", chart.across(), chart.axis(), "validity");
            case BESIDE, PAIRS ->
                List.of(
                        "condition",
                        "technology",
                        "theirs" + unit,
                        "ours" + unit,
                        "low" + unit,
                        "high" + unit,
                        "ours / theirs",
                        "validity");
            case CURVE ->
                List.of(
                        "panel",
                        "line",
                        chart.across(),
                        "theirs" + unit,
                        "ours" + unit,
                        "low" + unit,
                        "high" + unit,
                        "validity");
        };
    }

    private List<List<String>> fields(DoubleFunction<String> figure) {
        List<List<String>> fields = new ArrayList<>();
        for (Row row : chart.rows()) {
            for (Point point : row.points()) {
                fields.addAll(fields(row.label(), point, figure));
            }
        }
        return fields;
    }

    private List<List<String>> fields(String label, Point p, DoubleFunction<String> figure) {
        String name = p.technology().equals(FigureRow.EMPTY) ? "empty service" : p.technology();
        String flag = p.flag().isEmpty() ? "valid" : p.flag();
        String value = figure.apply(p.value());
        String low = figure.apply(p.low());
        String high = figure.apply(p.high());
        // with the digits of the paper
        String theirs = Figures.exact(p.theirs());
        return switch (chart.kind()) {
            case INTERVALS -> List.of(List.of(label, name, value, low, high, flag));
            case STACK -> List.of(List.of(label, name, value, figure.apply(p.inner()), flag));
            case BARS -> List.of(List.of(name, value, low, high, flag));
            case BESIDE -> List.of(List.of(label, name, theirs, value, low, high, figure.apply(ratio(p)), flag));
            // the same figures stand in the tables of the other charts
            case PAIRS -> List.of();
            case CURVE -> List.of(List.of(label, name, Figures.exact(p.at()), theirs, value, low, high, flag));
            case HOPS ->
                p.parts().stream()
                        .map(part -> List.of(label, name, part.label(), figure.apply(part.value()), flag))
                        .toList();
            case LINES ->
                p.tail().stream()
                        .map(at -> List.of(name, Figures.exact(at[0]), figure.apply(at[1]), flag))
                        .toList();
            case TAIL ->
                p.tail().stream()
                        .map(at -> List.of(label, name, Figures.exact(at[0]), figure.apply(at[1])))
                        .toList();
        };
    }

    /** Ours over theirs; NaN where ours decides nothing, and of percents, whose quotient says nothing. */
    private double ratio(Point p) {
        return PaperRun.decides(p.flag()) && !chart.unit().equals("%") ? p.value() / p.theirs() : Double.NaN;
    }
}
