package dev.parley.report;

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
