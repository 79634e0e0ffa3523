package dev.rpcx.internal;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Checks arguments that users pass to the public API. Null leads to a {@link NullPointerException}, and a value out of
 * its range to an {@link IllegalArgumentException}. The text of the exception names the setting, the value and the
 * allowed values.
 */
public final class Given {
    private Given() {}

    /**
     * Checks that a value is not null.
     *
     * @param name name of the setting or parameter, for the text of the exception
     * @param expected allowed values in words, for the text of the exception
     * @return {@code value}
     */
    public static <T> T notNull(@Nullable T value, String name, String expected) {
        if (value == null) {
            throw new NullPointerException(name + ": null (expected: " + expected + ")");
        }
        return value;
    }

    /** Checks that neither an array nor any of its elements is null. Returns the array. */
    public static <T> T[] noneNull(T @Nullable [] values, String name, String expected) {
        T[] given = notNull(values, name, expected);
        for (int i = 0; i < given.length; i++) {
            notNull(given[i], name + "[" + i + "]", expected);
        }
        return given;
    }

    /** Checks that neither a list nor any of its elements is null. Returns an unmodifiable copy of the list. */
    public static <T> List<T> noneNull(@Nullable List<T> values, String name, String expected) {
        List<T> given = notNull(values, name, expected);
        int i = 0;
        for (T value : given) {
            notNull(value, name + "[" + i++ + "]", expected);
        }
        return List.copyOf(given);
    }

    /**
     * Checks that a time lies between {@code min} and {@code max}, both included. Returns the time.
     *
     * @param expected allowed range in words, for the text of the exception
     */
    public static Duration time(@Nullable Duration value, String name, Duration min, Duration max, String expected) {
        Duration time = notNull(value, name, expected);
        if (time.compareTo(min) < 0 || time.compareTo(max) > 0) {
            throw new IllegalArgumentException(name + ": " + time + " (expected: " + expected + ")");
        }
        return time;
    }

    /**
     * Checks that the time of a call or of a try to connect is from 1 µs to 1 h. Returns the time, rounded down to
     * whole microseconds.
     */
    public static Duration callTime(String name, Duration time) {
        return micros(time(time, name, Duration.ofNanos(1000), Duration.ofHours(1), "1 µs to 1 h"));
    }

    /** Rounds a time down to whole microseconds, the unit of times on the wire. */
    public static Duration micros(Duration time) {
        return Duration.ofNanos(time.toNanos() / 1000 * 1000);
    }
}
