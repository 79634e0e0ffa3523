package dev.parley.lab;

import dev.parley.analysis.Warmth;
import dev.parley.model.FigureRow;
import java.util.ArrayList;
import java.util.List;

/**
 * Says why a trial's figures are not to be believed, or not to be compared: the load generator or the machine was not
 * fit to measure, the figures are near the generator's own or cannot be true ({@link Impossible}), or the services
 * were not warm ({@link Warmth}).
 *
 * @param ceiling of the load generator
 */
record Judge(Ceiling ceiling) {
    /**
     * @param figures all of the trial
     * @return none for a trial that counts
     */
    List<String> reasons(Measured measured, List<FigureRow> figures) {
        List<String> reasons = new ArrayList<>(measured.finished().voidReasons());
        reasons.addAll(measured.complaints());
        ceiling.complaint(measured.finished()).ifPresent(reasons::add);
        reasons.addAll(new Impossible(
                        ceiling, measured.seconds(), measured.steps(), measured.finished(), figures, measured.traffic())
                .reasons());
        reasons.addAll(Warmth.reasons(measured.trial(), measured.seconds(), measured.histograms(), figures));
        return reasons;
    }
}
