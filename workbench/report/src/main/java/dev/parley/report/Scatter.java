package dev.parley.report;

import dev.parley.report.PaperPage.Row;
import dev.parley.report.Plot.Axis;
import java.util.List;

/** Theirs across, ours up, both logarithmic: figures in one order rise from left to right, figures in one proportion rise at 45°. */
final class Scatter {
    private static final int SIDE = 340;
    private static final int LEFT = 62;
    private static final int BOTTOM = 44;
    private static final int TOP = 10;

    private final List<Row> rows;
    private final String unit;

    Scatter(List<Row> rows, String unit) {
        this.rows = rows.stream()
                .filter(r -> r.isBoth() && r.theirs().value() > 0 && r.ours().value() > 0)
                .toList();
        this.unit = unit;
    }

    /** Empty for fewer than three points, which a table shows better. */
    String svg() {
        if (rows.size() < 3) {
            return "";
        }
        Plot plot = new Plot(LEFT, TOP, SIDE, SIDE);
        Axis across = Axis.logarithmic(
                "theirs (" + unit + ")",
                rows.stream().map(r -> r.theirs().value()).toList());
        Axis up = Axis.logarithmic(
                "ours (" + unit + ")", rows.stream().map(r -> r.ours().value()).toList());
        plot.across(across);
        plot.up(up);
        List<String> technologies =
                rows.stream().map(r -> r.theirs().technology()).distinct().toList();
        for (Row row : rows) {
            plot.add(
                    "<circle cx=%.1f cy=%.1f r=4 style=\"%s\"><title>%s</title></circle>",
                    plot.x(across, row.theirs().value()),
                    plot.y(up, row.ours().value()),
                    Plot.fill(row.theirs().technology()),
                    Html.escaped(row.theirs().technology() + ", " + row.theirs().message() + ", "
                            + row.theirs().load() + ", "
                            + row.theirs().metric() + ": theirs " + row.theirs().written() + " " + unit + ", ours "
                            + Figures.brief(row.ours().value()) + " " + unit));
        }
        for (int i = 0; i < technologies.size(); i++) {
            int at = TOP + 14 + 20 * i;
            plot.add(
                    "<circle cx=%d cy=%d r=4 style=\"%s\"/><text x=%d y=%d>%s</text>",
                    LEFT + SIDE + 20,
                    at - 4,
                    Plot.fill(technologies.get(i)),
                    LEFT + SIDE + 30,
                    at,
                    Html.escaped(technologies.get(i)));
        }
        return plot.svg("order", "theirs and ours, " + unit, LEFT + SIDE + 150, TOP + SIDE + BOTTOM);
    }
}
