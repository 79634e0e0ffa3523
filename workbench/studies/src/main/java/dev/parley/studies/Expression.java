package dev.parley.studies;

import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;

/**
 * A claim in the language that {@link ExpressionParser} reads. A comparison is decided only when the 95 % interval of
 * the ratio of its sides excludes the border; everything above comparisons is Kleene's logic of three values. Beside it
 * the same is said with wider intervals, as few restarts ask for: what they leave open is indicative.
 */
sealed interface Expression {
    /**
     * Two figures no further apart than this are taken for equal. Source: docs/measuring.md, as between technologies of
     * one run.
     */
    double TIE_BAND = 0.05;

    /** A claim. */
    sealed interface Statement extends Expression {}

    /** A figure. */
    sealed interface Figure extends Expression {}

    record Number(double value) implements Figure {}

    record Of(Cell cell) implements Figure {}

    record Arithmetic(char operator, Figure left, Figure right) implements Figure {}

    record Extreme(boolean isLeast, List<Figure> among) implements Figure {}

    /**
     * Holds the left side against the right one. The sides stay as they are written, and so do those of what is told.
     *
     * @param isLess {@code left < right}; otherwise {@code left > right}
     * @param orEqual {@code <=} or {@code >=}: "at least as fast" is true of what is as fast, so the border lies at the
     *     tie band
     */
    record Order(Figure left, Figure right, boolean isLess, boolean orEqual, String text) implements Statement {}

    /** Neither is more than {@code factor} times the other. */
    record Similar(Figure left, Figure right, double factor, String text) implements Statement {}

    record Not(Statement statement) implements Statement {}

    record Both(boolean isAnd, Statement left, Statement right) implements Statement {}

    /**
     * Holds where enough of the combinations of values do.
     *
     * @param kind {@code every}, {@code some}, {@code most}: more than half, or a number: at least so many
     */
    record Each(String kind, List<Binding> bindings, Statement body) implements Statement {
        public Each {
            bindings = List.copyOf(bindings);
        }

        int combinations() {
            return bindings.stream().mapToInt(b -> b.values().size()).reduce(1, (a, b) -> a * b);
        }

        private int needed() {
            return switch (kind) {
                case "every" -> combinations();
                case "some" -> 1;
                case "most" -> combinations() / 2 + 1;
                default -> Integer.parseInt(kind);
            };
        }
    }

    /** A name, and the values that it stands for one after the other. */
    record Binding(String name, List<String> values) {
        public Binding {
            values = List.copyOf(values);
        }
    }

    static Judgement judge(Statement statement, Function<Cell, Measured> measurements) {
        List<Finding> findings = new ArrayList<>();
        Said said = said(statement, measurements, Map.of(), findings);
        return new Judgement(said.verdict(), said.verdict() != said.sure(), findings);
    }

    /** @param sure by the wider intervals: the verdict, or not decided */
    record Said(Verdict verdict, Verdict sure) {
        private Said not() {
            return new Said(not(verdict), not(sure));
        }

        private static Verdict not(Verdict verdict) {
            return switch (verdict) {
                case HOLDS -> Verdict.DOES_NOT_HOLD;
                case DOES_NOT_HOLD -> Verdict.HOLDS;
                case NOT_DECIDED -> Verdict.NOT_DECIDED;
            };
        }
    }

    static Measured figure(Figure figure, Function<Cell, Measured> measurements, Map<String, String> names) {
        return switch (figure) {
            case Number number -> Measured.number(number.value());
            case Of of -> measurements.apply(bound(of.cell(), names));
            case Arithmetic a ->
                figure(a.left(), measurements, names)
                        .with(
                                figure(a.right(), measurements, names),
                                switch (a.operator()) {
                                    case '+' -> (x, y) -> x + y;
                                    case '-' -> (x, y) -> x - y;
                                    case '*' -> (x, y) -> x * y;
                                    default -> (x, y) -> x / y;
                                });
            case Extreme extreme ->
                extreme.among().stream()
                        .map(one -> figure(one, measurements, names))
                        .reduce((x, y) -> x.with(y, extreme.isLeast() ? Math::min : Math::max))
                        .orElseThrow();
        };
    }

    private static Said said(
            Statement statement,
            Function<Cell, Measured> measurements,
            Map<String, String> names,
            List<Finding> findings) {
        return switch (statement) {
            case Order order -> {
                Measured left = figure(order.left(), measurements, names);
                Measured right = figure(order.right(), measurements, names);
                double band = order.orEqual() ? 1 + TIE_BAND : 1;
                double least = order.isLess() ? 0 : 1 / band;
                double most = order.isLess() ? band : Double.POSITIVE_INFINITY;
                yield add(findings, compared(bound(order.text(), names), left, right, least, most));
            }
            case Similar similar -> {
                Measured left = figure(similar.left(), measurements, names);
                Measured right = figure(similar.right(), measurements, names);
                yield add(
                        findings,
                        compared(bound(similar.text(), names), left, right, 1 / similar.factor(), similar.factor()));
            }
            case Not not -> said(not.statement(), measurements, names, findings).not();
            case Both both -> {
                List<Said> sides = List.of(
                        said(both.left(), measurements, names, findings),
                        said(both.right(), measurements, names, findings));
                yield counted(sides, both.isAnd() ? 2 : 1);
            }
            case Each each -> {
                List<Said> all = new ArrayList<>();
                for (Map<String, String> inner : combinations(each.bindings(), names)) {
                    all.add(said(each.body(), measurements, inner, findings));
                }
                yield counted(all, each.needed());
            }
        };
    }

    private static List<Map<String, String>> combinations(List<Binding> bindings, Map<String, String> names) {
        List<Map<String, String>> all = List.of(names);
        for (Binding binding : bindings) {
            List<Map<String, String>> more = new ArrayList<>();
            for (Map<String, String> outer : all) {
                for (String value : binding.values()) {
                    Map<String, String> inner = new HashMap<>(outer);
                    inner.put(binding.name(), value);
                    more.add(inner);
                }
            }
            all = more;
        }
        return all;
    }

    /** Whether at least {@code needed} hold, whatever becomes of those that are not decided. */
    private static Said counted(List<Said> all, int needed) {
        return new Said(
                kleene(all.stream().map(Said::verdict).toList(), needed),
                kleene(all.stream().map(Said::sure).toList(), needed));
    }

    private static Verdict kleene(List<Verdict> all, int needed) {
        long holding = all.stream().filter(v -> v == Verdict.HOLDS).count();
        long open = all.stream().filter(v -> v == Verdict.NOT_DECIDED).count();
        if (holding >= needed) {
            return Verdict.HOLDS;
        }
        return holding + open < needed ? Verdict.DOES_NOT_HOLD : Verdict.NOT_DECIDED;
    }

    private static Said add(List<Finding> findings, Finding finding) {
        findings.add(finding);
        return new Said(finding.verdict(), finding.isIndicative() ? Verdict.NOT_DECIDED : finding.verdict());
    }

    /** Whether the ratio lies between {@code least} and {@code most}. */
    private static Finding compared(String what, Measured left, Measured right, double least, double most) {
        Measured ratio = left.with(right, (x, y) -> x / y);
        if (ratio.isMissing()) {
            return open(what, left, right, ratio, ratio.missing());
        }
        if (!(left.value() >= 0) || !(right.value() > 0)) {
            return open(what, left, right, ratio, "a ratio of figures that are not above nothing");
        }
        if (ratio.restarts() < Judgement.LEAST_RESTARTS) {
            return open(
                    what,
                    left,
                    right,
                    ratio,
                    ratio.restarts() + (ratio.restarts() == 1 ? " restart" : " restarts") + " of "
                            + Judgement.LEAST_RESTARTS + " that a verdict needs");
        }
        if (!ratio.isOfMost()) {
            return open(
                    what,
                    left,
                    right,
                    ratio,
                    ratio.survivors() + " restarts count on both sides, and a verdict needs more than half");
        }
        boolean isWithin = isWithin(ratio.low(), ratio.high(), least, most);
        boolean isOutside = isOutside(ratio.low(), ratio.high(), least, most);
        String interval = String.format(
                Locale.ROOT, "ratio %.3g, 95 %% from %.3g to %.3g", ratio.value(), ratio.low(), ratio.high());
        if (isWithin || isOutside) {
            boolean isSure = isWithin
                    ? isWithin(ratio.wideLow(), ratio.wideHigh(), least, most)
                    : isOutside(ratio.wideLow(), ratio.wideHigh(), least, most);
            return new Finding(
                    isWithin ? Verdict.HOLDS : Verdict.DOES_NOT_HOLD, !isSure, what, left, right, ratio, interval);
        }
        return open(
                what,
                left,
                right,
                ratio,
                interval + ", which holds the border of "
                        + String.format(Locale.ROOT, "%.3g", least > 0 && ratio.low() <= least ? least : most));
    }

    private static boolean isWithin(double low, double high, double least, double most) {
        return low > least && high < most;
    }

    private static boolean isOutside(double low, double high, double least, double most) {
        return high < least || low > most;
    }

    private static Finding open(String what, Measured left, Measured right, Measured ratio, String why) {
        return new Finding(Verdict.NOT_DECIDED, false, what, left, right, ratio, why);
    }

    private static Cell bound(Cell cell, Map<String, String> names) {
        Map<String, String> conditions = new HashMap<>();
        cell.conditions().forEach((key, value) -> conditions.put(key, bound(value, names)));
        return new Cell(cell.metric(), conditions);
    }

    private static String bound(String text, Map<String, String> names) {
        String result = text;
        for (Map.Entry<String, String> name : names.entrySet()) {
            result = result.replace("@" + name.getKey(), name.getValue());
        }
        return result;
    }
}
