package dev.rpcx;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Looks at what is given to the public API, where it is given: a null is a {@link NullPointerException} and a value out
 * of its range an {@link IllegalArgumentException}, whose texts name the setting, the value and what was expected.
 */
final class Given {
    private Given() {}

    /**
     * @param name of the setting or parameter
     * @param expected what it takes
     * @return the value
     */
    static <T> T notNull(@Nullable T value, String name, String expected) {
        if (value == null) {
            throw new NullPointerException(name + ": null (expected: " + expected + ")");
        }
        return value;
    }

    /** The same for an array and each of its elements. */
    static <T> T[] noneNull(T @Nullable [] values, String name, String expected) {
        T[] given = notNull(values, name, expected);
        for (int i = 0; i < given.length; i++) {
            notNull(given[i], name + "[" + i + "]", expected);
        }
        return given;
    }

    /** The same for a list and each of its elements. @return a copy */
    static <T> List<T> noneNull(@Nullable List<T> values, String name, String expected) {
        List<T> given = notNull(values, name, expected);
        int i = 0;
        for (T value : given) {
            notNull(value, name + "[" + i++ + "]", expected);
        }
        return List.copyOf(given);
    }

    /**
     * A time of {@code least} to {@code most}.
     *
     * @param expected the two in words
     */
    static Duration time(@Nullable Duration value, String name, Duration least, Duration most, String expected) {
        Duration time = notNull(value, name, expected);
        if (time.compareTo(least) < 0 || time.compareTo(most) > 0) {
            throw new IllegalArgumentException(name + ": " + time + " (expected: " + expected + ")");
        }
        return time;
    }

    /** A time that a call, or an attempt to connect, may take. */
    static Duration callTime(String name, Duration time) {
        return micros(time(time, name, Duration.ofNanos(1000), Duration.ofHours(1), "1 µs to 1 h"));
    }

    /** What the wire has no room for is cut off. */
    static Duration micros(Duration time) {
        return Duration.ofNanos(time.toNanos() / 1000 * 1000);
    }
}
