package dev.parley.studies;

import dev.parley.model.Metric;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

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
    /** Units of one kind, and how many of ours each is. */
    private static final List<Map<String, Double>> UNITS = List.of(
            Map.of("µs", 1e-3, "ms", 1.0, "s", 1e3, "min", 60e3),
            Map.of("B", 1.0, "kB", 1e3, "MB", 1e6, "GB", 1e9, "KiB", 0x1p10, "MiB", 0x1p20, "GiB", 0x1p30));

    static List<PublishedFigure> read(String file, String text) {
        return CsvText.read(file, text).stream()
                .map(row -> {
                    if (!row.text("value").isEmpty()) {
                        row.number("value");
                    }
                    for (String needed : List.of("place", "metric", "unit")) {
                        if (row.text(needed).isEmpty()) {
                            throw row.wrong(needed, "something");
                        }
                    }
                    PublishedFigure figure = new PublishedFigure(
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
                    ours(figure.metric())
                            .filter(ours -> !comparable(ours).containsKey(figure.unit()))
                            .ifPresent(ours -> {
                                throw row.wrong(
                                        "unit",
                                        ours + ", in which the workbench has it, or another of "
                                                + comparable(ours).keySet().stream()
                                                        .sorted()
                                                        .toList());
                            });
                    return figure;
                })
                .toList();
    }

    /** The workbench's unit of a metric; empty for one of the paper's own. */
    private static Optional<String> ours(String metric) {
        return Arrays.stream(Metric.values())
                .filter(m -> m.key().equals(metric))
                .map(Metric::unit)
                .findFirst();
    }

    /** The units that can stand for one, itself among them. */
    private static Map<String, Double> comparable(String unit) {
        return UNITS.stream().filter(kind -> kind.containsKey(unit)).findFirst().orElseGet(() -> Map.of(unit, 1.0));
    }

    /** What a figure in the workbench's unit is multiplied by to be one in the paper's. */
    public double factor() {
        return ours(metric)
                .map(ours -> comparable(ours).getOrDefault(ours, 1.0)
                        / comparable(ours).getOrDefault(unit, 1.0))
                .orElse(1.0);
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
