package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialRow;
import dev.parley.protocol.Event;
import java.time.Instant;
import java.util.List;

/** The rows of a trial that ran to its end, to be appended together. */
record TrialRows(
        TrialRow trial,
        List<SecondRow> seconds,
        List<HistogramRow> histograms,
        List<FigureRow> figures,
        Event.Finished finished) {
    /** The trial has ended now. */
    static TrialRows of(Measured measured, List<FigureRow> figures, List<String> reasons) {
        return new TrialRows(
                new TrialRow(
                        measured.trial(),
                        TrialRow.State.FINISHED,
                        measured.startedAt(),
                        Instant.now(),
                        reasons,
                        measured.finished().firstFailure()),
                measured.seconds(),
                measured.histograms(),
                figures,
                measured.finished());
    }
}
