package dev.parley.report;

import dev.parley.analysis.Estimate;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.util.Locale;

/** Figures as text. */
final class Figures {
    private Figures() {}

    /** Six significant digits, never an exponent; empty for NaN. For files. */
    static String exact(double value) {
        return Double.isFinite(value) ? plain(new BigDecimal(value).round(new MathContext(6))) : "";
    }

    /** As many digits as it takes to read the same number again, never an exponent; empty for NaN. For files. */
    static String full(double value) {
        return Double.isFinite(value) ? plain(new BigDecimal(Double.toString(value))) : "";
    }

    /** Three significant digits with thin thousands; a dash for NaN. For people. */
    static String brief(double value) {
        return !Double.isFinite(value) ? "–" : value == 0 ? "0" : digits(value, 3);
    }

    /** Two significant digits, as many as a ratio of two figures is good for; a dash for NaN. For people. */
    static String ratio(double value) {
        return !Double.isFinite(value) || value <= 0 ? "–" : digits(value, 2);
    }

    /** So many significant digits of a number that is not 0, never an exponent. */
    private static String digits(double value, int count) {
        BigDecimal rounded = new BigDecimal(value).round(new MathContext(count));
        int powerOfFirstDigit = rounded.precision() - rounded.scale() - 1;
        BigDecimal written = rounded.setScale(Math.max(0, count - 1 - powerOfFirstDigit));
        return powerOfFirstDigit < 3 ? written.toPlainString() : thousands(written.toBigInteger());
    }

    /** Its 95 % interval, such as {@code 2.4 to 2.8}. */
    static String interval(Estimate ratio) {
        return ratio(ratio.low()) + " to " + ratio(ratio.high());
    }

    /** A count, with thousands apart. */
    static String whole(long value) {
        return thousands(BigInteger.valueOf(value));
    }

    private static String thousands(BigInteger value) {
        return String.format(Locale.ROOT, "%,d", value).replace(',', ' ');
    }

    /** Whole bytes, from 100 000 on in thousands. */
    static String bytes(double value) {
        if (!Double.isFinite(value)) {
            return "–";
        }
        return value >= 100_000
                ? String.format(Locale.ROOT, "%.1fk", value / 1000)
                : String.format(Locale.ROOT, "%.0f", value);
    }

    private static String plain(BigDecimal value) {
        return value.signum() == 0 ? "0" : value.stripTrailingZeros().toPlainString();
    }
}
