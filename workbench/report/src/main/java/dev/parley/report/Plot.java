package dev.parley.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Two axes of a drawing in a page without script, each with its ticks and its title; what is drawn on them the caller
 * adds.
 */
final class Plot {
    private static final List<String> COLOURS =
            List.of("rest", "grpc", "rpcx", "openfeign", "graphql", "websocket", "rabbitmq", "kafka");

    /** What decides nothing is drawn in grey, whatever its technology. */
    static final String OPEN_FILL = "fill:var(--soft);opacity:.6";

    static final String OPEN_STROKE = "stroke:var(--soft);opacity:.6";

    /** An axis that spans more than this is drawn in powers of ten. */
    private static final double WIDE = 40;

    private final int left;
    private final int top;
    private final int width;
    private final int height;
    private final StringBuilder svg = new StringBuilder();

    /** One axis: linear from nothing, or logarithmic. */
    record Axis(String title, double least, double most, boolean isLogarithmic) {
        /** Takes all values in, and the logarithm where they are far apart. */
        static Axis of(String title, List<Double> values) {
            double most = values.stream().mapToDouble(v -> v).max().orElse(1);
            double least =
                    values.stream().mapToDouble(v -> v).filter(v -> v > 0).min().orElse(most);
            return least > 0 && most / least > WIDE
                    ? new Axis(title + ", logarithmic", least / 1.3, most * 1.3, true)
                    : new Axis(title, 0, most > 0 ? most * 1.08 : 1, false);
        }

        static Axis logarithmic(String title, List<Double> values) {
            double most = values.stream().mapToDouble(v -> v).max().orElse(1);
            double least = values.stream().mapToDouble(v -> v).min().orElse(1);
            return new Axis(title, least / 1.3, most * 1.3, true);
        }

        /** The same from nothing, however far apart. */
        Axis linear() {
            return isLogarithmic ? new Axis(title.replace(", logarithmic", ""), 0, most / 1.3 * 1.08, false) : this;
        }

        /** From 0 at the least to 1 at the most; what lies beyond is drawn at the edge. */
        double share(double value) {
            double share = isLogarithmic
                    ? Math.log(Math.max(value, least) / least) / Math.log(most / least)
                    : (value - least) / (most - least);
            return Math.clamp(share, 0, 1);
        }

        List<Double> ticks() {
            List<Double> ticks = new ArrayList<>();
            if (!isLogarithmic) {
                double step = Math.pow(10, Math.floor(Math.log10(most / 4)));
                for (double factor : new double[] {1, 2, 5, 10}) {
                    if (most / (step * factor) <= 6) {
                        step *= factor;
                        break;
                    }
                }
                for (int i = 0; i * step <= most; i++) {
                    ticks.add(i * step);
                }
                return ticks;
            }
            boolean isWide = Math.log10(most / least) > 2.5;
            for (int power = (int) Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
                for (double of : isWide ? new double[] {1} : new double[] {1, 2, 5}) {
                    double tick = of * Math.pow(10, power);
                    if (tick >= least && tick <= most) {
                        ticks.add(tick);
                    }
                }
            }
            return ticks;
        }
    }

    Plot(int left, int top, int width, int height) {
        this.left = left;
        this.top = top;
        this.width = width;
        this.height = height;
    }

    double x(Axis axis, double value) {
        return left + width * axis.share(value);
    }

    double y(Axis axis, double value) {
        return top + height * (1 - axis.share(value));
    }

    void across(Axis axis) {
        for (double tick : axis.ticks()) {
            double at = x(axis, tick);
            add(
                    "<line class=rule x1=%.1f y1=%d x2=%.1f y2=%d /><text x=%.1f y=%d text-anchor=middle>%s</text>",
                    at, top, at, top + height, at, top + height + 16, label(tick));
        }
        add(
                "<text class=axis x=%d y=%d text-anchor=middle>%s</text>",
                left + width / 2, top + height + 36, Html.escaped(axis.title()));
    }

    void up(Axis axis) {
        for (double tick : axis.ticks()) {
            double at = y(axis, tick);
            add(
                    "<line class=rule x1=%d y1=%.1f x2=%d y2=%.1f /><text x=%d y=%.1f text-anchor=end>%s</text>",
                    left, at, left + width, at, left - 6, at + 4, label(tick));
        }
        add(
                "<text class=axis transform=\"translate(14 %d) rotate(-90)\" text-anchor=middle>%s</text>",
                top + height / 2, Html.escaped(axis.title()));
    }

    private static String label(double tick) {
        String text = Figures.brief(tick);
        return text.contains(".") ? text.replaceAll("0+$", "").replaceAll("\\.$", "") : text;
    }

    /** @param format of {@link String#format(Locale, String, Object...)}; its texts are escaped by the caller */
    void add(String format, Object... values) {
        svg.append(String.format(Locale.ROOT, format, values)).append('\n');
    }

    /** @param title what a reader who does not see it is told */
    String svg(String kind, String title, int allWidth, int allHeight) {
        return "<svg class=\"scatter " + kind + "\" role=img viewBox=\"0 0 " + allWidth + " " + allHeight + "\"><title>"
                + Html.escaped(title) + "</title>\n" + svg + "</svg>\n";
    }

    /** The fill of a technology's mark; that of a variant is paler. */
    static String fill(String technology) {
        return "fill:var(" + colour(technology) + ")" + (technology.contains("-") ? ";opacity:.5" : "");
    }

    /** A technology has the colour that it has in every other report. */
    static String colour(String technology) {
        for (int i = 0; i < COLOURS.size(); i++) {
            if (technology.startsWith(COLOURS.get(i))) {
                return "--t" + i;
            }
        }
        return "--empty";
    }
}
