package dev.parley.report;

import dev.parley.report.PaperPage.Row;
import dev.parley.report.Plot.Axis;
import dev.parley.studies.PublishedFigure;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A line for each condition: theirs as a hollow mark, ours as a full one with its interval, a colour for each
 * technology.
 */
final class SideBySide {
    private static final int LINE = 18;
    private static final int LEFT = 300;
    private static final int WIDTH = 420;
    private static final int LEGEND = 24;
    /** So many letters fit left of the axis. */
    private static final int MAX_LABEL = 46;

    private final List<Row> rows;
    private final String title;
    private final String unit;

    SideBySide(List<Row> rows, String title, String unit) {
        this.rows = rows.stream()
                .filter(r -> r.isMeasured() || !r.theirs().isDrawn())
                .toList();
        this.title = title;
        this.unit = unit;
    }

    /** The drawing; empty where a table of a line or two shows it as well. */
    String svg() {
        Map<String, List<Row>> lines = new LinkedHashMap<>();
        List<List<String>> labels = rows.stream().map(SideBySide::conditions).toList();
        for (int i = 0; i < rows.size(); i++) {
            lines.computeIfAbsent(label(labels, i), k -> new ArrayList<>()).add(rows.get(i));
        }
        List<Double> values = rows.stream()
                .flatMap(r -> Stream.of(
                        r.theirs().value(),
                        r.ours().value(),
                        r.ours().low(),
                        r.ours().high()))
                .filter(v -> Double.isFinite(v) && v >= 0)
                .toList();
        if (rows.size() < 3 || values.isEmpty()) {
            return "";
        }
        int height = LINE * lines.size();
        Plot plot = new Plot(LEFT, LEGEND + 6, WIDTH, height);
        Axis axis = Axis.of(rows.getFirst().theirs().metric().replace('_', ' ') + " (" + unit + ")", values);
        plot.across(axis);
        legend(plot);
        int line = 0;
        for (Map.Entry<String, List<Row>> one : lines.entrySet()) {
            double at = LEGEND + 6 + LINE * (line++ + 0.5);
            plot.add("<text x=%d y=%.1f text-anchor=end>%s</text>", LEFT - 8, at + 4, Html.escaped(one.getKey()));
            double apart = Math.min(4, 12.0 / one.getValue().size());
            double own = at - apart * (one.getValue().size() - 1) / 2;
            for (Row row : one.getValue()) {
                draw(plot, axis, row, own);
                own += apart;
            }
        }
        return plot.svg("sides", title + ": theirs and ours, " + unit, LEFT + WIDTH + 20, LEGEND + height + 50);
    }

    private void draw(Plot plot, Axis axis, Row row, double at) {
        PublishedFigure theirs = row.theirs();
        String colour = Plot.colour(theirs.technology());
        String told = Html.escaped(theirs.technology() + ", " + String.join(", ", conditions(row)) + ": theirs "
                + (theirs.isDrawn() ? "only drawn" : theirs.written() + " " + unit) + ", ours "
                + (row.isMeasured()
                        ? Figures.brief(row.ours().value()) + " " + unit + PaperRun.remark(row.ours(), row.validity())
                        : "not measured"));
        if (!theirs.isDrawn() && theirs.value() >= 0) {
            plot.add(
                    "<circle class=theirs cx=%.1f cy=%.1f r=4 style=\"stroke:var(%s)\"><title>%s</title></circle>",
                    plot.x(axis, theirs.value()), at, colour, told);
        }
        if (row.isMeasured() && row.ours().value() >= 0) {
            boolean decides = PaperRun.decides(row.validity());
            plot.add(
                    "<line x1=%.1f y1=%.1f x2=%.1f y2=%.1f style=\"%s\" /><circle%s cx=%.1f cy=%.1f r=3.5"
                            + " style=\"%s\"><title>%s</title></circle>",
                    plot.x(axis, Math.max(0, row.ours().low())),
                    at,
                    plot.x(axis, Math.max(0, row.ours().high())),
                    at,
                    decides ? "stroke:var(" + colour + ")" : Plot.OPEN_STROKE,
                    decides ? "" : " class=open",
                    plot.x(axis, row.ours().value()),
                    at,
                    decides ? Plot.fill(theirs.technology()) : Plot.OPEN_FILL,
                    told);
        }
    }

    private void legend(Plot plot) {
        int at = 10;
        for (String technology :
                rows.stream().map(r -> r.theirs().technology()).distinct().toList()) {
            plot.add(
                    "<circle cx=%d cy=10 r=4 style=\"%s\"/><text x=%d y=14>%s</text>",
                    at, Plot.fill(technology), at + 8, Html.escaped(technology));
            at += 24 + 7 * technology.length();
        }
        plot.add(
                "<circle class=theirs cx=%d cy=10 r=4 style=\"stroke:var(--soft)\"/>"
                        + "<text x=%d y=14>theirs, hollow; grey decides nothing</text>",
                at, at + 8);
    }

    private static List<String> conditions(Row row) {
        PublishedFigure theirs = row.theirs();
        return List.of(
                theirs.metric().replace('_', ' '),
                theirs.topology(),
                theirs.message(),
                theirs.load(),
                theirs.subject(),
                row.part(),
                row.load().equals(theirs.load()) ? "" : row.load());
    }

    /** What tells one line from another: conditions that are the same in all are left out. */
    private static String label(List<List<String>> all, int row) {
        List<String> told = new ArrayList<>();
        for (int i = 0; i < all.getFirst().size(); i++) {
            int column = i;
            if (all.stream().map(r -> r.get(column)).distinct().count() > 1
                    && !all.get(row).get(i).isEmpty()) {
                told.add(all.get(row).get(i));
            }
        }
        String text = String.join(", ", told);
        return text.length() > MAX_LABEL ? text.substring(0, MAX_LABEL - 1) + "…" : text;
    }
}
