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
 * A claim in the language that {@link ExpressionParser} reads. A comparison is decided only when the 95 % interval of the ratio of its sides
 * excludes the border; everything above comparisons is Kleene's logic of three values. Beside it the same is said with wider intervals, as few
 * restarts ask for: what they leave open is indicative.
 */
sealed interface Expression {

    /** A claim. */
    sealed interface Statement extends Expression {}

    /** A figure. */
    sealed interface Figure extends Expression {}

    record Number(double value) implements Figure {}

    record Of(Cell cell) implements Figure {}

    record Arithmetic(char operator, Figure left, Figure right) implements Figure {}

    record Extreme(boolean isLeast, List<Figure> among) implements Figure {}

    /** @param isLess {@code left < right}; otherwise {@code left > right}. The sides stay as they are written, and so do those of what is told. */
    record Order(Figure left, Figure right, boolean isLess, String text) implements Statement {}

    /** Neither is more than {@code factor} times the other. */
    record Similar(Figure left, Figure right, double factor, String text) implements Statement {}

    record Not(Statement statement) implements Statement {}

    record Both(boolean isAnd, Statement left, Statement right) implements Statement {}

    /** @param kind {@code every}, {@code some}, or {@code most}: more than half */
    record Each(String kind, String name, List<String> values, Statement body) implements Statement {}

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
                double least = order.isLess() ? 0 : 1;
                double most = order.isLess() ? 1 : Double.POSITIVE_INFINITY;
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
                for (String value : each.values()) {
                    Map<String, String> inner = new HashMap<>(names);
                    inner.put(each.name(), value);
                    all.add(said(each.body(), measurements, inner, findings));
                }
                yield counted(
                        all,
                        switch (each.kind()) {
                            case "every" -> all.size();
                            case "some" -> 1;
                            default -> all.size() / 2 + 1;
                        });
            }
        };
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
