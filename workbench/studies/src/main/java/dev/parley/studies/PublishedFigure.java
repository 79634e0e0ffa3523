package dev.parley.studies;

import java.util.List;

/**
 * One figure as a paper prints it.
 *
 * @param place where: section or page, and table or figure where it stands in one
 * @param part the part of the study that it belongs to; empty where it belongs to every part that measures its condition
 * @param technology as the workbench names it, two with a slash between them for a figure that holds one against the other; empty where
 *     the figure is of none in particular, and so for the other conditions
 * @param load the paper's load, in a short form that {@link Paper#conditions} explains
 * @param metric one of the workbench's, or a name that {@link Paper#metrics} explains; {@code planned_…} for what was set, not measured
 * @param subject service or hop; empty for the whole
 * @param written the digits of the paper, which tell its precision; empty where it is only drawn
 * @param note what a reader of the figure must know; empty as a rule
 */
public record PublishedFigure(
        String place,
        String part,
        String technology,
        String topology,
        String message,
        String load,
        String metric,
        String subject,
        String written,
        String unit,
        String note) {

    static List<PublishedFigure> read(String file, String text) {
        return Csv.read(file, text).stream()
                .map(row -> {
                    if (!row.text("value").isEmpty()) {
                        row.number("value");
                    }
                    for (String needed : List.of("place", "metric", "unit")) {
                        if (row.text(needed).isEmpty()) {
                            throw row.wrong(needed, "something");
                        }
                    }
                    return new PublishedFigure(
                            row.text("place"),
                            row.text("part"),
                            row.text("technology"),
                            row.text("topology"),
                            row.text("message"),
                            row.text("load"),
                            row.text("metric"),
                            row.text("subject"),
                            row.text("value"),
                            row.text("unit"),
                            row.text("note"));
                })
                .toList();
    }

    /** NaN where it is only drawn. */
    public double value() {
        return isDrawn() ? Double.NaN : Double.parseDouble(written);
    }

    /** True for a point of a chart to which the paper gives no number. */
    public boolean isDrawn() {
        return written.isEmpty();
    }

    /** True for what the authors set, such as a rate, and did not measure. */
    public boolean isPlanned() {
        return metric.startsWith("planned_") || metric.equals("entries");
    }
}
