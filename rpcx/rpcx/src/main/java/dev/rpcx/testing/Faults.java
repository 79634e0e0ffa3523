package dev.rpcx.testing;

import java.time.Duration;
import java.util.Objects;
import java.util.Random;

/**
 * How bad the network is: shares of frames, each from 0 to 1. Frames that belong to no call (settings, dictionary, pings) pass untouched.
 *
 * @param seed decides everything: the same frames of calls in the same order meet the same faults, whatever passes between them
 * @param delay share of the frames that wait, and all behind them in the same direction
 * @param delayedBy how long they wait
 * @param loss share that does not arrive
 * @param duplicate share that arrives twice
 * @param reorder share that arrives after the next one
 * @param cut share that does not arrive and ends the connection, both ways, behind what has arrived
 */
public record Faults(
        long seed, double delay, Duration delayedBy, double loss, double duplicate, double reorder, double cut) {
    /** Checks the ranges. */
    public Faults {
        share("delay", delay);
        share("loss", loss);
        share("duplicate", duplicate);
        share("reorder", reorder);
        share("cut", cut);
        Objects.requireNonNull(delayedBy, "delayedBy: null (expected: 0 to 1 min)");
        if (delayedBy.isNegative() || delayedBy.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException("delayedBy: " + delayedBy + " (expected: 0 to 1 min)");
        }
    }

    /** What becomes of a frame. */
    public record Fate(boolean isDelayed, boolean isLost, boolean isDoubled, boolean isLate, boolean isCut) {}

    /** Of the next frame of a call, in one direction of one connection, whose own random numbers these are. */
    public Fate fate(Random random) {
        Objects.requireNonNull(random, "random: null (expected: one of random(connection, up))");
        // all are drawn for every frame of a call: one fault more does not move the others
        return new Fate(
                random.nextDouble() < delay,
                random.nextDouble() < loss,
                random.nextDouble() < duplicate,
                random.nextDouble() < reorder,
                random.nextDouble() < cut);
    }

    /** The random numbers of a connection's direction: the same seed gives the same ones. */
    public Random random(long connection, boolean up) {
        return new Random(seed * 31 + 2 * connection + (up ? 0 : 1));
    }

    private static void share(String name, double share) {
        if (!(share >= 0 && share <= 1)) {
            throw new IllegalArgumentException(name + ": " + share + " (expected: 0 to 1)");
        }
    }

    /** None yet; the methods below add one each. */
    public static Faults seeded(long seed) {
        return new Faults(seed, 0, Duration.ZERO, 0, 0, 0, 0);
    }

    /** These, and frames that wait. */
    public Faults delaying(double share, Duration by) {
        Objects.requireNonNull(by, "by: null (expected: 0 to 1 min)");
        return new Faults(seed, share, by, loss, duplicate, reorder, cut);
    }

    /** These, and frames that do not arrive. */
    public Faults losing(double share) {
        return new Faults(seed, delay, delayedBy, share, duplicate, reorder, cut);
    }

    /** These, and frames that arrive twice. A request that does breaks the rules of the wire: its connection ends. */
    public Faults duplicating(double share) {
        return new Faults(seed, delay, delayedBy, loss, share, reorder, cut);
    }

    /** These, and frames that change places. */
    public Faults reordering(double share) {
        return new Faults(seed, delay, delayedBy, loss, duplicate, share, cut);
    }

    /** These, and connections that end. */
    public Faults cutting(double share) {
        return new Faults(seed, delay, delayedBy, loss, duplicate, reorder, share);
    }
}
