package dev.parley.analysis;

import dev.parley.model.Metric;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * Whether a technology meets a study's target in one situation.
 *
 * @param findings one for each condition that could be judged, in the order of the target, a rate first; empty where
 *     nothing could be
 * @param why nothing could be judged, and what would decide it; empty where there are findings
 */
public record TargetAnswer(String technology, Situation situation, Kind kind, List<Finding> findings, String why) {
    /** What is not shown is never taken for a no. */
    public enum Kind {
        MEETS("meets it"),
        DOES_NOT("does not"),
        UNDECIDED("undecided");

        private final String words;

        Kind(String words) {
            this.words = words;
        }

        public String words() {
            return words;
        }

        /** What several come to: one that does not decides, and then one that is undecided. */
        static Kind together(Collection<Kind> kinds) {
            return kinds.contains(DOES_NOT) ? DOES_NOT : kinds.contains(UNDECIDED) ? UNDECIDED : MEETS;
        }

        /** In files: {@code does_not}. */
        public String key() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * What became of one condition.
     *
     * @param name {@code rate}, {@code p99.9} or {@code success}
     * @param metric that decides it: a response time, or the share of due requests that were answered in time
     * @param bound in the metric's unit: a time is at most so long, a share at least so high
     * @param estimate over restarts with its 95 % interval; an end is infinite where a percentile falls on requests
     *     without a right reply in time
     * @param why it is undecided, and what would decide it; empty otherwise
     */
    public record Finding(String name, Metric metric, double bound, Estimate estimate, Kind kind, String why) {
        /** The same, undecided. */
        Finding undecided(String because) {
            return new Finding(name, metric, bound, estimate, Kind.UNDECIDED, because);
        }

        /**
         * The part of the bound that is left: of a time the part that was not used, of a share the part of the failures
         * allowed that did not happen. Negative where the bound is missed.
         */
        public double spare() {
            if (!isShare()) {
                return 1 - estimate.value() / bound;
            }
            double missed = 100 - estimate.value();
            return missed == 0 && bound == 100 ? 0 : 1 - missed / (100 - bound);
        }

        private boolean isShare() {
            return metric == Metric.SUCCESS_SHARE;
        }

        private String text() {
            String interval = "; interval " + number(estimate.low()) + "–" + number(estimate.high());
            String written = BigDecimal.valueOf(bound).stripTrailingZeros().toPlainString();
            String figure = isShare()
                    ? name + ": " + number(estimate.value()) + " % of requests answered in time, at least " + written
                            + " %"
                    : name + " " + number(estimate.value()) + " ms of " + written + " ms" + margin();
            return figure + interval + (why.isEmpty() ? "" : "; " + why);
        }

        private String margin() {
            long percent = Math.abs(Math.round(100 * spare()));
            return switch (kind) {
                case MEETS -> ", " + percent + " % to spare";
                case DOES_NOT -> ", " + percent + " % over";
                case UNDECIDED -> "";
            };
        }

        /** Three digits of a time. A share is cut after what adding up may have added: 100 % means all. */
        private String number(double value) {
            if (!Double.isFinite(value)) {
                return "∞";
            }
            BigDecimal exact = BigDecimal.valueOf(value);
            BigDecimal shown = isShare()
                    ? exact.setScale(9, RoundingMode.HALF_UP).setScale(3, RoundingMode.FLOOR)
                    : exact.round(new MathContext(3));
            return shown.stripTrailingZeros().toPlainString();
        }
    }

    public TargetAnswer {
        findings = List.copyOf(findings);
    }

    /**
     * The one that decides among the answers for a technology in several situations: the first that does not meet the
     * target, the first that is undecided, or the tightest of those that meet it.
     *
     * @param answers one at least
     */
    public static TargetAnswer deciding(List<TargetAnswer> answers) {
        Kind kind = Kind.together(answers.stream().map(TargetAnswer::kind).toList());
        return answers.stream()
                .filter(answer -> answer.kind() == kind)
                .min(Comparator.comparingDouble(answer -> kind == Kind.MEETS
                        ? answer.decisive().map(Finding::spare).orElse(0.0)
                        : 0))
                .orElseThrow();
    }

    /** The condition that decides: the first that fails, the first that is undecided, or the tightest of those met. */
    public Optional<Finding> decisive() {
        return kind == Kind.MEETS
                ? findings.stream().min(Comparator.comparingDouble(Finding::spare))
                : findings.stream().filter(finding -> finding.kind() == kind).findFirst();
    }

    /** Why, for people: {@code p99 7.3 ms of 20 ms, 64 % to spare; interval 6.9–7.8}. */
    public String text() {
        return decisive().map(Finding::text).orElse(why);
    }
}
