package dev.parley.analysis;

import dev.parley.model.TrialRow;
import java.util.List;

/**
 * A trial that ended, with every reason why its figures are not to be believed: those stored with it and those its rows give.
 *
 * @param reasons empty for a valid trial, and for one that did not finish: that has {@link TrialRow#message()}
 */
public record JudgedTrial(TrialRow row, List<String> reasons) {
    public boolean isFinished() {
        return row.state() == TrialRow.State.FINISHED;
    }

    public boolean isValid() {
        return isFinished() && reasons.isEmpty();
    }

    public boolean isVoid() {
        return isFinished() && !reasons.isEmpty();
    }
}
