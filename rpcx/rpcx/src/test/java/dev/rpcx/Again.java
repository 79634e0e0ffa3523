package dev.rpcx;

import java.util.concurrent.Callable;

/**
 * Makes a situation again that did not come about because the machine, or one of its threads, stood still meanwhile. An
 * attempt makes the assertions itself, and says only whether there was anything to look at. The number of attempts is
 * bounded: what never comes about is a failure.
 */
public final class Again {
    private static final int ATTEMPTS = 5;

    /** Enough for 50 s where the first attempt has 200 ms. */
    private static final int DOUBLINGS = 8;

    /** What is attempted, within a time that must not be over before something has happened. */
    public interface Timed {
        /** @return whether that has happened in time */
        boolean in(long millis) throws Exception;
    }

    private Again() {}

    /** Attempts something in this time, and then in twice the time again and again, until it has come about. */
    public static void inTwiceTheTime(long millis, Timed attempt) throws Exception {
        long time = millis;
        for (int i = 0; i < DOUBLINGS; i++) {
            if (attempt.in(time)) {
                return;
            }
            time *= 2;
        }
        throw new AssertionError("it has not come about in " + time / 2 + " ms either");
    }

    /** Attempts something up to five times, until it has come about. */
    public static void upToFiveTimes(Callable<Boolean> attempt) throws Exception {
        for (int i = 0; i < ATTEMPTS; i++) {
            if (attempt.call()) {
                return;
            }
        }
        throw new AssertionError("it has come about in none of " + ATTEMPTS + " attempts");
    }
}
