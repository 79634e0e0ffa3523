package dev.rpcx;

import java.time.Duration;

/**
 * Repeats an attempt of a test that may have failed only because the machine stood still. If an attempt fails although
 * the machine ran all the time, the test fails. Otherwise a fault that shows only now and then would pass. The number
 * of attempts is bounded, and the test also fails after the last one.
 */
public final class Again {
    private static final int ATTEMPTS = 5;

    /** With this number, the attempts have about 50 s in all if the first one has 200 ms. */
    private static final int DOUBLINGS = 8;

    /** On a machine that runs, this time is enough to load and connect all that a situation needs to come about. */
    private static final long ENOUGH_MILLIS = 1_000;

    /** Runs what is attempted. It fails with an assertion, or with the failure of a call. */
    public interface Attempt {
        void make() throws Exception;
    }

    /** Runs what is attempted, within a time that must not be over before something has happened. */
    public interface Timed {
        /** @return whether that has happened in time */
        boolean in(long millis) throws Exception;
    }

    private Again() {}

    /**
     * Attempts something in this time, and then in twice the time again and again, until it has come about. A second is
     * enough for it, unless the machine stands still for a fifth of the time.
     */
    public static void inTwiceTheTime(long millis, Timed attempt) throws Exception {
        long time = millis;
        for (int i = 0; i < DOUBLINGS; i++) {
            try (StandStill still = new StandStill()) {
                if (attempt.in(time)) {
                    return;
                }
                if (time >= ENOUGH_MILLIS && !still.was(Duration.ofMillis(time / 5))) {
                    throw new AssertionError("it has not come about in " + time + " ms, and the machine ran");
                }
            }
            time *= 2;
        }
        throw new AssertionError("it has not come about in " + time / 2 + " ms either");
    }

    /**
     * Attempts something until it does not fail, up to five times. It fails at once where the machine ran meanwhile.
     *
     * @param stillMillis how long the machine has to stand still for an attempt to count for nothing: a fifth of the
     *     time that the attempt depends on
     */
    public static void upToFiveTimes(long stillMillis, Attempt attempt) throws Exception {
        for (int i = 1; ; i++) {
            try (StandStill still = new StandStill()) {
                try {
                    attempt.make();
                    return;
                } catch (AssertionError | RPCXException failed) {
                    if (i == ATTEMPTS || !still.was(Duration.ofMillis(stillMillis))) {
                        throw failed;
                    }
                }
            }
        }
    }
}
