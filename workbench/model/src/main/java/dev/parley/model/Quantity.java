package dev.parley.model;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Numbers with their unit, as a study has them and as it is written. What is none is refused without a place. */
public final class Quantity {
    private static final Pattern FORM = Pattern.compile("([0-9]{1,12}(?:\\.[0-9]{1,6})?) ?([A-Za-z/]+)");
    private static final Map<String, Long> MILLIS = Map.of("ms", 1L, "s", 1_000L, "m", 60_000L, "h", 3_600_000L);
    private static final Map<String, Long> BYTES = Map.of(
            "kB", 1_000L, "MB", 1_000_000L, "GB", 1_000_000_000L, "KiB", 1L << 10, "MiB", 1L << 20, "GiB", 1L << 30);
    private static final Map<String, Long> BITS =
            Map.of("kbit/s", 1_000L, "Mbit/s", 1_000_000L, "Gbit/s", 1_000_000_000L);

    private Quantity() {}

    public static Duration duration(String text) {
        if (text.equals("0")) {
            return Duration.ZERO;
        }
        Duration duration = Duration.ofMillis(value(text, MILLIS, "a time such as 30s, 500ms, 2m or 1h"));
        if (duration.compareTo(Study.MAX_TIME) > 0) {
            throw new BadInput("", text, "at most " + Study.MAX_TIME.toHours() + "h");
        }
        return duration;
    }

    public static long bytes(String text) {
        return value(text, BYTES, "a size such as 512MB, 2GB or 512MiB");
    }

    public static long bitsPerSecond(String text) {
        return value(text, BITS, "a rate such as 1Mbit/s, 100kbit/s or 10Gbit/s");
    }

    public static String text(Duration duration) {
        long ms = duration.toMillis();
        return ms % 1000 == 0 ? ms / 1000 + "s" : ms + "ms";
    }

    public static String textOfBytes(long bytes) {
        return bytes % 1_000_000 == 0
                ? bytes / 1_000_000 + "MB"
                : bytes % 1024 == 0
                        ? bytes / 1024 + "KiB"
                        : BigDecimal.valueOf(bytes / 1e3).toPlainString() + "kB";
    }

    public static String textOfBits(long bits) {
        return bits % 1_000_000 == 0
                ? bits / 1_000_000 + "Mbit/s"
                : BigDecimal.valueOf(bits / 1e3).toPlainString() + "kbit/s";
    }

    private static long value(String text, Map<String, Long> units, String expected) {
        Matcher matcher = FORM.matcher(text);
        Long unit = matcher.matches() ? units.get(matcher.group(2)) : null;
        if (unit == null) {
            throw new BadInput("", text, expected);
        }
        try {
            return new BigDecimal(matcher.group(1))
                    .multiply(BigDecimal.valueOf(unit))
                    .longValueExact();
        } catch (ArithmeticException fraction) {
            throw new BadInput("", text, expected + ", in whole units of the smallest");
        }
    }
}
