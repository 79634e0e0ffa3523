package dev.parley.lab;

import dev.parley.analysis.Distribution;
import dev.parley.model.HistogramRow;
import dev.parley.protocol.Event;
import java.util.List;

/**
 * A finished trial in one line, for those who watch. The run's figures are medians over restarts and come from the
 * analysis.
 *
 * @param perSecond right replies within the limit
 * @param due requests in the window
 * @param unsuccessful those of them that were no success
 */
public record Glance(double perSecond, double medianMs, double p99Ms, long due, long unsuccessful) {
    static Glance of(List<HistogramRow> histograms, Event.Finished finished) {
        Distribution response = Distribution.merged(histograms.stream()
                .filter(row -> row.kind() == HistogramRow.Kind.RESPONSE)
                .map(HistogramRow::histogram)
                .toList());
        long due = finished.due();
        long replied = finished.replied();
        return new Glance(
                replied * 1e9 / Math.max(1, finished.windowNs()),
                response.isEmpty() ? 0 : response.percentileNs(50) / 1e6,
                response.isEmpty() ? 0 : response.percentileNs(99) / 1e6,
                due,
                due - replied);
    }
}
