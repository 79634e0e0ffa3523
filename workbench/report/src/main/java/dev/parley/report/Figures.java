package dev.parley.report;

import dev.parley.analysis.Estimate;
import java.math.BigDecimal;
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
        if (!Double.isFinite(value)) {
            return "–";
        }
        double size = Math.abs(value);
        if (size >= 1000) {
            return String.format(Locale.ROOT, "%,.0f", value).replace(',', ' ');
        }
        int decimals = size >= 100 || value == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.01 ? 3 : 4;
        String text = String.format(Locale.ROOT, "%." + decimals + "f", value);
        return text.equals("100.0") ? "100" : text;
    }

    /** Two significant digits, as many as a ratio of two figures is good for; a dash for NaN. For people. */
    static String ratio(double value) {
        if (!Double.isFinite(value) || value <= 0) {
            return "–";
        }
        BigDecimal rounded = new BigDecimal(value).round(new MathContext(2));
        int powerOfFirstDigit = rounded.precision() - rounded.scale() - 1;
        String text = rounded.setScale(Math.max(0, 1 - powerOfFirstDigit)).toPlainString();
        return powerOfFirstDigit < 3 ? text : brief(rounded.doubleValue());
    }

    /** Its 95 % interval, such as {@code 2.4 to 2.8}. */
    static String interval(Estimate ratio) {
        return ratio(ratio.low()) + " to " + ratio(ratio.high());
    }

    /** A count, with thousands apart. */
    static String whole(long value) {
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
