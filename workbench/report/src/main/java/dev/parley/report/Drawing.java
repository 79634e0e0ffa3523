package dev.parley.report;

import java.util.List;

/**
 * A chart as a page shows it: what the script draws, with its figures as a table and as CSV.
 *
 * @param label what a reader is told who does not see the chart
 * @param choices of which the script draws one at a time; none where it draws all
 * @param figures without a row where nothing was measured
 * @param link to the CSV, which is in it
 */
record Drawing(String id, String heading, String note, String label, List<String> choices, Table figures, String link) {
    Drawing {
        choices = List.copyOf(choices);
    }

    static Drawing of(Chart chart) {
        ChartTable figures = new ChartTable(chart);
        return new Drawing(
                chart.id(),
                chart.heading(),
                chart.note(),
                chart.heading() + ", " + chart.drawnAxis() + ". The table below holds the figures.",
                chart.kind() == Chart.Kind.TAIL
                        ? chart.rows().stream().map(Chart.Row::label).toList()
                        : List.of(),
                figures.table(),
                Html.dataUri(figures.csv()));
    }

    boolean isMeasured() {
        return !figures.rows().isEmpty();
    }
}
