package dev.parley.report;

import dev.parley.report.Palette.Mark;
import dev.parley.studies.CsvText;
import java.util.List;

/**
 * A chart as a page shows it: what the script draws, with its figures as a table and as CSV.
 *
 * @param label what a reader is told who does not see the chart; empty where there is nothing to draw
 * @param choice what there is to choose
 * @param choices of which the script draws one at a time; none where it draws all
 * @param legend marks that stand beside no name in the chart; none where the page has its own legend
 * @param figures without a row where there are none
 * @param link to the CSV, which is in it
 */
record Drawing(
        String id,
        String heading,
        String note,
        String label,
        String choice,
        List<String> choices,
        List<Mark> legend,
        Table figures,
        String link) {
    Drawing {
        choices = List.copyOf(choices);
        legend = List.copyOf(legend);
    }

    static Drawing of(Chart chart) {
        return of(chart, "Message and load", List.of());
    }

    /** @param marks of all that is told by its mark */
    static Drawing of(Chart chart, String choice, List<Mark> marks) {
        ChartTable figures = new ChartTable(chart);
        Table table = figures.table();
        return new Drawing(
                chart.id(),
                chart.heading(),
                chart.note(),
                chart.isMeasured()
                        ? chart.heading() + ", " + chart.drawnAxis()
                                + (table.rows().isEmpty() ? "." : ". The table below holds the figures.")
                        : "",
                choice,
                chart.kind().isOfOneRow()
                        ? chart.rows().stream().map(Chart.Row::label).toList()
                        : List.of(),
                marks,
                table,
                CsvText.link(figures.csv()));
    }

    boolean isDrawn() {
        return !label.isEmpty();
    }
}
