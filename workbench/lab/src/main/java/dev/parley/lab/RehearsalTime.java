package dev.parley.lab;

import java.time.Duration;

/**
 * The time that all boots of a run have for rehearsal together. What boots that are warm early leave is there for
 * those that are not: in the same time whoever has less to compile would be warmer. One thread.
 */
final class RehearsalTime {
    /**
     * A boot takes no more than this many times its even part of what is left, so that those after it have some too.
     */
    private static final int MAX_PARTS = 2;

    /** However much the boots before it took, each has its own share divided by this. */
    private static final int MIN_SHARE = 4;

    private Duration left;
    private int boots;

    RehearsalTime(Plan plan) {
        this.left = plan.boots().stream().map(Plan.Boot::rehearsal).reduce(Duration.ZERO, Duration::plus);
        this.boots = plan.boots().size();
    }

    /** What the next boot may take. */
    Duration next(Plan.Boot boot) {
        Duration part =
                boots <= 1 ? left : least(left, left.multipliedBy(MAX_PARTS).dividedBy(boots));
        Duration some = boot.rehearsal().dividedBy(MIN_SHARE);
        return part.compareTo(some) < 0 ? some : part;
    }

    /** The next boot is over, or not begun. */
    void took(Duration rehearsed) {
        left = rehearsed.compareTo(left) < 0 ? left.minus(rehearsed) : Duration.ZERO;
        boots--;
    }

    private static Duration least(Duration a, Duration b) {
        return a.compareTo(b) < 0 ? a : b;
    }
}
