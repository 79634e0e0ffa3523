package dev.rpcx.testing;

import java.time.Duration;
import java.util.Objects;
import java.util.Random;

/**
 * Describes the faults of a simulated bad network. For each kind of fault, this record has the fraction of the frames
 * that get this fault: 0 means none, 1 means all. Only frames of calls get faults; settings, the dictionary and pings
 * do not. Immutable and thread-safe.
 *
 * @param seed seed of the random faults. With the same seed, the same frames of calls in the same order get the same
 *     faults.
 * @param delay fraction of frames that are delayed, together with all later frames in the same direction
 * @param delayedBy time by which a frame is delayed: 0 to 1 min. If an earlier delayed frame still waits, this time
 *     begins when the earlier frame is passed on.
 * @param loss fraction of frames that do not arrive
 * @param duplicate fraction of frames that arrive twice
 * @param reorder fraction of frames that are overtaken by the next frame in the same direction, of the same call or of
 *     another call. The overtaking frame is not reordered itself. A frame without a next frame does not arrive.
 * @param cut fraction of frames at which the connection ends in both directions. Such a frame does not arrive. Earlier
 *     frames of the same direction still arrive, except a frame that {@code reorder} holds back.
 */
public record Faults(
        long seed, double delay, Duration delayedBy, double loss, double duplicate, double reorder, double cut) {
    /**
     * Checks that each fraction is 0 to 1, and that the time is 0 to 1 min.
     *
     * @throws IllegalArgumentException if a fraction or the time is out of this range
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

    /**
     * Says which faults one frame of a call gets.
     *
     * @param isDelayed whether the frame is delayed
     * @param isLost whether the frame is lost
     * @param isDoubled whether the frame arrives twice
     * @param isLate whether the next frame in the same direction, of the same call or of another call, overtakes the
     *     frame
     * @param isCut whether the connection ends at this frame
     */
    public record Fate(boolean isDelayed, boolean isLost, boolean isDoubled, boolean isLate, boolean isCut) {}

    /**
     * Chooses the faults of the next frame of a call.
     *
     * @param random random numbers from {@link #random} for the frame's connection and direction; must not be used for
     *     another connection or for the other direction
     */
    public Fate fate(Random random) {
        Objects.requireNonNull(random, "random: null (expected: one of random(connection, up))");
        // always five random numbers, so that adding one kind of fault does not change which frames get faults of the
        // other kinds
        return new Fate(
                random.nextDouble() < delay,
                random.nextDouble() < loss,
                random.nextDouble() < duplicate,
                random.nextDouble() < reorder,
                random.nextDouble() < cut);
    }

    /**
     * Returns the random numbers that choose the faults in one direction of a connection. The numbers are the same for
     * the same seed, connection and direction.
     *
     * @param connection number of the connection, counted from 0 in the order in which the connections are opened
     * @param up true for the direction from the client to the server, false for the opposite direction
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
     * Returns an object with this seed, in which no frame gets a fault. Add faults by {@link #delaying},
     * {@link #losing}, {@link #duplicating}, {@link #reordering} and {@link #cutting}.
     */
    public static Faults seeded(long seed) {
        return new Faults(seed, 0, Duration.ZERO, 0, 0, 0, 0);
    }

    /**
     * Returns a copy in which this fraction of the frames is delayed by this time. If frames follow each other closely,
     * their delays add up.
     *
     * @param fraction 0 to 1
     * @param by time by which a frame is delayed: 0 to 1 min
     */
    public Faults delaying(double fraction, Duration by) {
        Objects.requireNonNull(by, "by: null (expected: 0 to 1 min)");
        return new Faults(seed, fraction, by, loss, duplicate, reorder, cut);
    }

    /** Returns a copy in which this fraction of the frames, 0 to 1, is lost. */
    public Faults losing(double fraction) {
        return new Faults(seed, delay, delayedBy, fraction, duplicate, reorder, cut);
    }

    /**
     * Returns a copy in which this fraction of the frames, 0 to 1, arrives twice. A connection ends if a request
     * arrives twice.
     */
    public Faults duplicating(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, fraction, reorder, cut);
    }

    /**
     * Returns a copy in which this fraction of the frames, 0 to 1, is overtaken by the next frame in the same
     * direction, of the same call or of another call. A frame that overtakes another one is not overtaken itself. So
     * with 1, every second frame is overtaken.
     */
    public Faults reordering(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, duplicate, fraction, cut);
    }

    /** Returns a copy in which the connection ends at this fraction of the frames: 0 for none, 1 for every frame. */
    public Faults cutting(double fraction) {
        return new Faults(seed, delay, delayedBy, loss, duplicate, reorder, fraction);
    }
}
