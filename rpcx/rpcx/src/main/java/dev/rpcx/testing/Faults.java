package dev.rpcx.testing;

import java.time.Duration;
import java.util.Objects;
import java.util.Random;

/**
 * Faults of a bad network: for each kind of fault, the fraction of frames that meet it, from 0 to 1. Frames that belong
 * to no call (settings, dictionary, pings) pass untouched. Immutable and thread-safe.
 *
 * @param seed number that decides everything: the same frames of calls in the same order meet the same faults, whatever
 *     passes between them
 * @param delay fraction of frames that wait, and hold up all frames behind them in the same direction
 * @param delayedBy time for which a delayed frame waits, 0 to 1 min
 * @param loss fraction of frames that do not arrive
 * @param duplicate fraction of frames that arrive twice
 * @param reorder fraction of frames that arrive after the next frame of a call
 * @param cut fraction of frames that do not arrive, and at which the connection ends in both directions, behind the
 *     frames that have been passed on
 */
public record Faults(
        long seed, double delay, Duration delayedBy, double loss, double duplicate, double reorder, double cut) {
    /** Checks the ranges. */
    public Faults {
        checkFraction("delay", delay);
        checkFraction("loss", loss);
        checkFraction("duplicate", duplicate);
        checkFraction("reorder", reorder);
        checkFraction("cut", cut);
        Objects.requireNonNull(delayedBy, "delayedBy: null (expected: 0 to 1 min)");
        if (delayedBy.isNegative() || delayedBy.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException("delayedBy: " + delayedBy + " (expected: 0 to 1 min)");
        }
    }

    /** What becomes of one frame. */
    public record Fate(boolean isDelayed, boolean isLost, boolean isDoubled, boolean isLate, boolean isCut) {}

    /**
     * Draws the fate of the next frame of a call.
     *
     * @param random what {@code random(connection, up)} returned for the frame's connection and direction; it serves
     *     this direction alone
     */
    public Fate fate(Random random) {
        Objects.requireNonNull(random, "random: null (expected: one of random(connection, up))");
        // all five numbers are drawn for every frame of a call, so that one more kind of fault does not change the
        // others
        return new Fate(
                random.nextDouble() < delay,
                random.nextDouble() < loss,
                random.nextDouble() < duplicate,
                random.nextDouble() < reorder,
                random.nextDouble() < cut);
    }

    /**
     * Returns the random numbers of one direction of a connection. The same seed gives the same numbers.
     *
     * @param connection number of the connection
     * @param up whether the direction is from the client to the server
     */
    public Random random(long connection, boolean up) {
        return new Random(seed * 31 + 2 * connection + (up ? 0 : 1));
    }

    private static void checkFraction(String name, double fraction) {
        if (!(fraction >= 0 && fraction <= 1)) {
            throw new IllegalArgumentException(name + ": " + fraction + " (expected: 0 to 1)");
        }
    }

    /** Returns faults with this seed that meet no frame yet; each of the methods below adds one kind of fault. */
    public static Faults seeded(long seed) {
        return new Faults(seed, 0, Duration.ZERO, 0, 0, 0, 0);
    }

    /** Returns these faults, and in addition this fraction of frames that wait for {@code by}, 0 to 1 min. */
    public Faults delaying(double fraction, Duration by) {
        Objects.requireNonNull(by, "by: null (expected: 0 to 1 min)");
        return new Faults(seed, fraction, by, loss, duplicate, reorder, cut);
    }

    /** Returns these faults, and in addition this fraction of frames that do not arrive. */
    public Faults losing(double fraction) {
        return new Faults(seed, delay, delayedBy, fraction, duplicate, reorder, cut);
    }

    /**
     * Returns these faults, and in addition this fraction of frames that arrive twice. A request that arrives twice
     * breaks the rules of the wire, so its connection ends.
     */
    public Faults duplicating(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, fraction, reorder, cut);
    }

    /** Returns these faults, and in addition this fraction of frames that are swapped with the next one. */
    public Faults reordering(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, duplicate, fraction, cut);
    }

    /** Returns these faults, and in addition this fraction of frames at which the connection ends. */
    public Faults cutting(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, duplicate, reorder, fraction);
    }
}
