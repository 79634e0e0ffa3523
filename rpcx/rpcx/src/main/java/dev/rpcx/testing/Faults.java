package dev.rpcx.testing;

import java.time.Duration;
import java.util.Objects;
import java.util.Random;

/**
 * Faults of a bad network: for each kind, the fraction of frames that get it, from 0 to 1. Frames that belong to no
 * call (settings, dictionary, pings) are not affected. Immutable and thread-safe.
 *
 * @param seed seed of the random faults: with the same seed, the same frames of calls in the same order get the same
 *     faults
 * @param delay fraction of frames that are delayed, together with all frames behind them in the same direction
 * @param delayedBy time by which a frame is delayed, 0 to 1 min
 * @param loss fraction of frames that do not arrive
 * @param duplicate fraction of frames that arrive twice
 * @param reorder fraction of frames that arrive after the next frame of a call
 * @param cut fraction of frames at which the connection ends in both directions. Such a frame does not arrive; earlier
 *     frames do.
 */
public record Faults(
        long seed, double delay, Duration delayedBy, double loss, double duplicate, double reorder, double cut) {
    /**
     * Checks the ranges of the fractions and of the time.
     *
     * @throws IllegalArgumentException if one of them is out of its range
     */
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

    /** Faults that the random numbers have chosen for one frame. */
    public record Fate(boolean isDelayed, boolean isLost, boolean isDoubled, boolean isLate, boolean isCut) {}

    /**
     * Chooses the faults of the next frame of a call.
     *
     * @param random what {@link #random} has returned for this connection and direction; must not be used for others
     */
    public Fate fate(Random random) {
        Objects.requireNonNull(random, "random: null (expected: one of random(connection, up))");
        // always five numbers, so that adding one kind of fault does not change which frames get the others
        return new Fate(
                random.nextDouble() < delay,
                random.nextDouble() < loss,
                random.nextDouble() < duplicate,
                random.nextDouble() < reorder,
                random.nextDouble() < cut);
    }

    /**
     * Returns the random numbers of one direction of a connection: the same for the same seed, connection and
     * direction.
     *
     * @param connection number of the connection, from 0, in the order in which connections are opened
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

    /**
     * Returns faults with this seed, but without any kind yet. Add kinds by {@code delaying}, {@code losing},
     * {@code duplicating}, {@code reordering} and {@code cutting}.
     */
    public static Faults seeded(long seed) {
        return new Faults(seed, 0, Duration.ZERO, 0, 0, 0, 0);
    }

    /**
     * Returns a copy in which this fraction of frames is delayed by this time.
     *
     * @param fraction 0 to 1
     * @param by time by which a frame is delayed, 0 to 1 min
     */
    public Faults delaying(double fraction, Duration by) {
        Objects.requireNonNull(by, "by: null (expected: 0 to 1 min)");
        return new Faults(seed, fraction, by, loss, duplicate, reorder, cut);
    }

    /** Returns a copy in which this fraction of frames, 0 to 1, is lost. */
    public Faults losing(double fraction) {
        return new Faults(seed, delay, delayedBy, fraction, duplicate, reorder, cut);
    }

    /**
     * Returns a copy in which this fraction of frames, 0 to 1, arrives twice. A request that arrives twice ends its
     * connection.
     */
    public Faults duplicating(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, fraction, reorder, cut);
    }

    /** Returns a copy in which this fraction of frames, 0 to 1, changes places with the next frame of a call. */
    public Faults reordering(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, duplicate, fraction, cut);
    }

    /** Returns a copy in which the connection ends at this fraction of frames, 0 to 1. */
    public Faults cutting(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, duplicate, reorder, fraction);
    }
}
