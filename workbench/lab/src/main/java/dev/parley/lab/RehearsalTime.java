package dev.parley.lab;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;

/**
 * The time that all boots of a run have for rehearsal together. What boots that are warm early leave is there for
 * those that are not: in the same time whoever has less to compile would be warmer. One thread.
 */
final class RehearsalTime {
    /** A boot takes no more than this many times its even part of what is left. */
    private static final int MAX_PARTS = 2;

    /** Each boot has two thirds of its own share at least: boots before it leave that much, however cold they are. */
    private static final int MIN_SHARE_OF_THREE = 2;

    private final Queue<Duration> shares = new ArrayDeque<>();
    private Duration left;

    RehearsalTime(Plan plan) {
        plan.boots().forEach(boot -> shares.add(boot.rehearsal()));
        left = sum(shares);
    }

    /** What the next boot may take. */
    Duration next(Plan.Boot boot) {
        Duration even = left.multipliedBy(MAX_PARTS).dividedBy(Math.max(1, shares.size()));
        Duration kept = shares.isEmpty() ? Duration.ZERO : least(sum(shares).minus(shares.element()));
        Duration free = left.minus(kept);
        Duration most = even.compareTo(free) < 0 ? even : free;
        Duration least = least(boot.rehearsal());
        return most.compareTo(least) < 0 ? least : most;
    }

    /** The next boot is over, or not begun. */
    void took(Duration rehearsed) {
        left = rehearsed.compareTo(left) < 0 ? left.minus(rehearsed) : Duration.ZERO;
        shares.poll();
    }

    private static Duration least(Duration share) {
        return share.multipliedBy(MIN_SHARE_OF_THREE).dividedBy(3);
    }

    private static Duration sum(Queue<Duration> all) {
        return all.stream().reduce(Duration.ZERO, Duration::plus);
    }
}
