package dev.parley.model;

import java.math.BigDecimal;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a study asks each technology to reach: a rate of requests, and conditions that all have to hold. A technology
 * meets it, does not, or is undecided.
 *
 * @param rate requests a second that an open load offers; empty where the conditions are asked of every steady load
 * @param conditions at most one of each figure, in the order of {@link Figure}
 */
public record Target(Optional<Double> rate, List<Condition> conditions) {
    private static final Pattern FORM = Pattern.compile("([0-9]{1,9}(?:\\.[0-9]{1,6})?) ?(ms|s|%)");

    /** What a condition bounds. */
    public enum Figure {
        P50(Metric.LATENCY_MEDIAN, 50),
        P95(Metric.LATENCY_P95, 95),
        P99(Metric.LATENCY_P99, 99),
        P999(Metric.LATENCY_P999, 99.9),
        /** The share of due requests that are answered rightly and in time. */
        SUCCESS(Metric.SUCCESS_SHARE, 0);

        private final Metric metric;
        private final double percent;

        Figure(Metric metric, double percent) {
            this.metric = metric;
            this.percent = percent;
        }

        public Metric metric() {
            return metric;
        }

        /** The percentile; 0 for a share, which is none. */
        public double percent() {
            return percent;
        }

        /** True where at least so much is asked for; of a percentile it is at most so much. */
        public boolean isShare() {
            return this == SUCCESS;
        }

        /** Under which name a study has it: {@code p999}. */
        public String key() {
            return name().toLowerCase(Locale.ROOT);
        }

        /** As readers know it: {@code p99.9}. */
        public String title() {
            return isShare() ? key() : "p" + LoadParameters.text(percent);
        }

        /** What can be written for it. */
        public String expected() {
            return isShare() ? "a share above 0, up to 100%, such as 99.9%" : "a time above 0, such as 20ms or 0.5ms";
        }

        private boolean isPossible(double bound) {
            return bound > 0 && bound <= (isShare() ? 100 : Double.MAX_VALUE);
        }
    }

    /**
     * A bound of one figure.
     *
     * @param bound in the unit of the figure's metric, ms or %
     */
    public record Condition(Figure figure, double bound) {
        public Condition {
            if (!figure.isPossible(bound)) {
                throw new BadInput(figure.key(), bound, figure.expected());
            }
        }

        /**
         * Reads {@code 20ms}, {@code 0.5ms} or {@code 1s}; for a share {@code 99.9%}.
         *
         * @param place that a mistake names, such as {@code --p99}
         */
        public static Condition parse(String place, Figure figure, String text) {
            Matcher form = FORM.matcher(text);
            if (form.matches() && form.group(2).equals("%") == figure.isShare()) {
                BigDecimal number = new BigDecimal(form.group(1));
                double bound = (form.group(2).equals("s") ? number.movePointRight(3) : number).doubleValue();
                if (figure.isPossible(bound)) {
                    return new Condition(figure, bound);
                }
            }
            throw new BadInput(place, text, figure.expected());
        }

        /** In the form that {@link #parse} reads. */
        public String text() {
            return number() + figure.metric().unit();
        }

        private String title() {
            return figure.title() + (figure.isShare() ? " at least " : " at most ") + number() + " "
                    + figure.metric().unit();
        }

        private String number() {
            return BigDecimal.valueOf(bound).stripTrailingZeros().toPlainString();
        }

        @Override
        public String toString() {
            return figure.key() + " " + text();
        }
    }

    public Target {
        rate.ifPresent(perSecond -> LoadParameters.rate("rate", perSecond));
        if (rate.isEmpty() && conditions.isEmpty()) {
            throw new BadInput("target", "nothing", "a rate, or a bound of p50, p95, p99, p999 or success");
        }
        conditions = conditions.stream()
                .sorted(Comparator.comparing(Condition::figure))
                .toList();
        for (int i = 1; i < conditions.size(); i++) {
            Condition before = conditions.get(i - 1);
            Condition own = conditions.get(i);
            if (own.figure() == before.figure()) {
                throw new BadInput(own.figure().key(), own.text() + " and " + before.text(), "one of the two");
            }
            if (!own.figure().isShare() && own.bound() < before.bound()) {
                throw new BadInput(own.figure().key(), own.text(), "not under that of " + before);
            }
        }
    }

    /**
     * Reads requests a second.
     *
     * @param place that a mistake names, such as {@code --rate}
     */
    public static double parseRate(String place, String text) {
        double perSecond;
        try {
            perSecond = Double.parseDouble(text);
        } catch (NumberFormatException e) {
            throw new BadInput(place, text, "requests a second, such as 200");
        }
        LoadParameters.rate(place, perSecond);
        return perSecond;
    }

    /** True for a load that this is asked of: the same throughout and, where there is a rate, of that rate. */
    public boolean isAskedOf(Load load) {
        return load.isSteady() && (rate.isEmpty() || load instanceof Load.Open open && open.perSecond() == rate.get());
    }

    /** All that is asked, under the keys and in the form in which a study has it. */
    public Map<String, String> byKey() {
        Map<String, String> byKey = new LinkedHashMap<>();
        rate.ifPresent(perSecond -> byKey.put("rate", LoadParameters.text(perSecond)));
        conditions.forEach(condition -> byKey.put(condition.figure().key(), condition.text()));
        return byKey;
    }

    /** In words: {@code 200 requests/s, p99 at most 20 ms}. */
    public String title() {
        return Stream.concat(
                        rate.map(perSecond -> LoadParameters.text(perSecond) + " requests/s").stream(),
                        conditions.stream().map(Condition::title))
                .collect(Collectors.joining(", "));
    }

    @Override
    public String toString() {
        return byKey().entrySet().stream()
                .map(asked -> asked.getKey() + " " + asked.getValue())
                .collect(Collectors.joining(", "));
    }
}
