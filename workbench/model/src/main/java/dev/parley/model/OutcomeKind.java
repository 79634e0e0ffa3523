package dev.parley.model;

/** How a request that was due ended. Every such request has exactly one outcome. */
public enum OutcomeKind {
    /** The right answer, within the limit. */
    REPLIED,
    /** The right answer, after the limit. */
    LATE,
    /** An answer that differs from what was asked for. */
    WRONG,
    /** An error, or no answer at all before the call's own time-out. */
    FAILED,
    /** Was due, and could not be sent. */
    NOT_SENT
}
