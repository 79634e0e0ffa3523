package dev.parley.analysis;

import dev.parley.model.TrialRow;
import java.util.List;

/**
 * A trial that ended, with every reason why it does not count: those stored with it and those its rows give.
 *
 * @param reasons empty for a valid trial, and for one that did not finish: that has {@link TrialRow#message()}
 */
public record JudgedTrial(TrialRow row, List<String> reasons) {
    public boolean isFinished() {
        return row.state() == TrialRow.State.FINISHED;
    }

    /** It finished, nothing contradicts it, and it was warm. */
    public boolean isValid() {
        return isFinished() && reasons.isEmpty();
    }

    /** Its figures are not to be believed. */
    public boolean isVoid() {
        return isFinished() && !reasons.stream().allMatch(TrialRow::isOfWarmth);
    }

    /** Its figures are true, but of services that were still warming up: they are shown and never compared. */
    public boolean isCold() {
        return isFinished() && !isVoid() && reasons.stream().anyMatch(r -> r.startsWith(TrialRow.COLD));
    }

    /** Nothing tells whether its services were warm: its figures are shown and never compared. */
    public boolean isUnknown() {
        return isFinished() && !isVoid() && !isCold() && !reasons.isEmpty();
    }
}
