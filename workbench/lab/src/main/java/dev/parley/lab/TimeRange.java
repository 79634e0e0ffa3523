package dev.parley.lab;

import dev.parley.model.BadInput;
import java.time.Duration;
import java.util.Locale;

/** How long something takes, as far as that is known before it is done. */
public record TimeRange(Duration least, Duration most) {
    public static final TimeRange NONE = of(Duration.ZERO);

    /** Up to here a time is told in seconds. */
    private static final Duration MAX_SECONDS = Duration.ofSeconds(90);

    /** Up to here a time is told in minutes. */
    private static final Duration MAX_MINUTES = Duration.ofMinutes(90);

    public TimeRange {
        if (least.isNegative() || most.compareTo(least) < 0) {
            throw new BadInput("time", least + " to " + most, "0 or more, and the least first");
        }
    }

    /** A time that is known. */
    static TimeRange of(Duration exactly) {
        return new TimeRange(exactly, exactly);
    }

    public TimeRange plus(TimeRange other) {
        return new TimeRange(least.plus(other.least), most.plus(other.most));
    }

    TimeRange plus(Duration exactly) {
        return plus(of(exactly));
    }

    TimeRange times(long factor) {
        return new TimeRange(least.multipliedBy(factor), most.multipliedBy(factor));
    }

    /** What is left of it after so much time. */
    TimeRange less(Duration passed) {
        return new TimeRange(longer(least.minus(passed), Duration.ZERO), longer(most.minus(passed), Duration.ZERO));
    }

    /** The shortest range that has both of them in it. */
    TimeRange around(TimeRange other) {
        return new TimeRange(least.compareTo(other.least) < 0 ? least : other.least, longer(most, other.most));
    }

    /** Neither end is under that of the other. */
    TimeRange atLeast(TimeRange other) {
        return new TimeRange(longer(least, other.least), longer(most, other.most));
    }

    static Duration longer(Duration a, Duration b) {
        return a.compareTo(b) > 0 ? a : b;
    }

    /** For people: {@code 40 to 80 s}, {@code 1 to 2 min}, {@code up to 2 min}, {@code 4.1 to 6.4 h}, {@code 12 s}. */
    @Override
    public String toString() {
        boolean isOfSeconds = most.compareTo(MAX_SECONDS) < 0;
        boolean isOfMinutes = !isOfSeconds && most.compareTo(MAX_MINUTES) < 0;
        String unit = isOfSeconds ? "s" : isOfMinutes ? "min" : "h";
        String shortest = in(unit, least);
        String longest = in(unit, longer(most, Duration.ofSeconds(1)));
        if (shortest.equals(longest)) {
            return longest + " " + unit;
        }
        boolean isFromNothing = shortest.equals("0") || shortest.equals("0.0");
        return (isFromNothing ? "up to " : shortest + " to ") + longest + " " + unit;
    }

    private static String in(String unit, Duration time) {
        return switch (unit) {
            case "s" -> Long.toString(time.toSeconds());
            case "min" -> Long.toString((time.toSeconds() + 30) / 60);
            default -> String.format(Locale.ROOT, "%.1f", time.toSeconds() / 3600.0);
        };
    }
}
