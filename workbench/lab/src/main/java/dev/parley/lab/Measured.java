package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import java.time.Instant;
import java.util.List;

/**
 * One load on the services as it was measured, and not judged yet.
 *
 * @param figures of the load itself, of its steps, and of what every process used in its window
 * @param traffic what both ends of the same requests counted
 * @param complaints why the machine was not fit to measure in the window
 */
record Measured(
        TrialSpec trial,
        Instant startedAt,
        List<SecondRow> seconds,
        List<HistogramRow> histograms,
        List<Event.Step> steps,
        Event.Finished finished,
        List<FigureRow> figures,
        Traffic traffic,
        List<String> complaints) {}
