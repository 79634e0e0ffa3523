package dev.parley.studies;

import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.UnaryOperator;

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

    record Of(FigureQuery query) implements Figure {}

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

    /**
     * Holds where at least {@code needed} of the statements do: two of the sides of an {@code and}, one of those of an
     * {@code or}.
     */
    record Count(int needed, List<Statement> statements) implements Statement {
        public Count {
            statements = List.copyOf(statements);
        }
    }

    static Judgement judge(Statement statement, Function<FigureQuery, Measured> measurements) {
        List<Finding> findings = new ArrayList<>();
        Said said = said(statement, measurements, findings);
        return new Judgement(said.verdict(), said.verdict() != said.sure(), findings);
    }

    /** @param sure by the wider intervals: the verdict, or not decided */
    record Said(Verdict verdict, Verdict sure) {
        private Said not() {
            return new Said(verdict.not(), sure.not());
        }
    }

    static Measured figure(Figure figure, Function<FigureQuery, Measured> measurements) {
        return switch (figure) {
            case Number number -> Measured.number(number.value());
            case Of of -> measurements.apply(of.query());
            case Arithmetic a ->
                figure(a.left(), measurements)
                        .with(
                                figure(a.right(), measurements),
                                switch (a.operator()) {
                                    case '+' -> (x, y) -> x + y;
                                    case '-' -> (x, y) -> x - y;
                                    case '*' -> (x, y) -> x * y;
                                    default -> (x, y) -> x / y;
                                });
            case Extreme extreme ->
                extreme.among().stream()
                        .map(one -> figure(one, measurements))
                        .reduce((x, y) -> x.with(y, extreme.isLeast() ? Math::min : Math::max))
                        .orElseThrow();
        };
    }

    private static Said said(
            Statement statement, Function<FigureQuery, Measured> measurements, List<Finding> findings) {
        return switch (statement) {
            case Order order -> {
                Measured left = figure(order.left(), measurements);
                Measured right = figure(order.right(), measurements);
                double band = order.orEqual() ? 1 + TIE_BAND : 1;
                // A side of 0 is less than the other, so that 0 is no border of the ratio.
                double least = order.isLess() ? Double.NEGATIVE_INFINITY : 1 / band;
                double most = order.isLess() ? band : Double.POSITIVE_INFINITY;
                yield add(findings, compared(order.text(), left, right, least, most));
            }
            case Similar similar -> {
                Measured left = figure(similar.left(), measurements);
                Measured right = figure(similar.right(), measurements);
                yield add(findings, compared(similar.text(), left, right, 1 / similar.factor(), similar.factor()));
            }
            case Not not -> {
                List<Finding> denied = new ArrayList<>();
                Said said = said(not.statement(), measurements, denied);
                denied.forEach(finding -> findings.add(finding.not()));
                yield said.not();
            }
            case Count count -> {
                List<Said> all = new ArrayList<>();
                for (Statement one : count.statements()) {
                    all.add(said(one, measurements, findings));
                }
                // whether at least so many hold, whatever becomes of those that are not decided
                yield new Said(
                        kleene(all.stream().map(Said::verdict).toList(), count.needed()),
                        kleene(all.stream().map(Said::sure).toList(), count.needed()));
            }
        };
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
        String none = none(left, right, ratio);
        boolean isWithin = isWithin(ratio.low(), ratio.high(), least, most);
        boolean isDecided = none.isEmpty() && (isWithin || isOutside(ratio.low(), ratio.high(), least, most));
        boolean isIndicative = isDecided
                && !(isWithin
                        ? isWithin(ratio.wideLow(), ratio.wideHigh(), least, most)
                        : isOutside(ratio.wideLow(), ratio.wideHigh(), least, most));
        double border = isDecided || !none.isEmpty() ? Double.NaN : least > 0 && ratio.low() <= least ? least : most;
        return new Finding(
                !isDecided ? Verdict.NOT_DECIDED : isWithin ? Verdict.HOLDS : Verdict.DOES_NOT_HOLD,
                isIndicative,
                what,
                left.value(),
                right.value(),
                ratio.value(),
                ratio.low(),
                ratio.high(),
                border,
                none);
    }

    /** Why a ratio decides nothing, whatever it is; empty where it may decide. */
    private static String none(Measured left, Measured right, Measured ratio) {
        if (ratio.isMissing()) {
            return ratio.missing();
        }
        if (!(left.value() >= 0) || !(right.value() > 0)) {
            return "a ratio of figures that are not above nothing";
        }
        if (ratio.restarts() < Judgement.MIN_RESTARTS) {
            return ratio.restarts() + (ratio.restarts() == 1 ? " restart" : " restarts") + " of "
                    + Judgement.MIN_RESTARTS + " that a verdict needs";
        }
        return ratio.isOfMost()
                ? ""
                : ratio.survivors() + " restarts count on both sides, and a verdict needs more than half";
    }

    private static boolean isWithin(double low, double high, double least, double most) {
        return low > least && high < most;
    }

    private static boolean isOutside(double low, double high, double least, double most) {
        return high < least || low > most;
    }

    /** With the values of names in place of each {@code @name}, in queries and in what is told of them. */
    static Statement bound(Statement statement, Map<String, String> names) {
        return rewritten(statement, text -> bound(text, names), query -> new Of(bound(query, names)));
    }

    static Figure bound(Figure figure, Map<String, String> names) {
        return rewritten(figure, query -> new Of(bound(query, names)));
    }

    /** With other figures in place of queries. */
    static Statement rewritten(Statement statement, Function<FigureQuery, Figure> queries) {
        return rewritten(statement, text -> text, queries);
    }

    private static Statement rewritten(
            Statement statement, UnaryOperator<String> texts, Function<FigureQuery, Figure> queries) {
        return switch (statement) {
            case Order o ->
                new Order(
                        rewritten(o.left(), queries),
                        rewritten(o.right(), queries),
                        o.isLess(),
                        o.orEqual(),
                        texts.apply(o.text()));
            case Similar s ->
                new Similar(
                        rewritten(s.left(), queries), rewritten(s.right(), queries), s.factor(), texts.apply(s.text()));
            case Not not -> new Not(rewritten(not.statement(), texts, queries));
            case Count count ->
                new Count(
                        count.needed(),
                        count.statements().stream()
                                .map(one -> rewritten(one, texts, queries))
                                .toList());
        };
    }

    static Figure rewritten(Figure figure, Function<FigureQuery, Figure> queries) {
        return switch (figure) {
            case Number number -> number;
            case Of of -> queries.apply(of.query());
            case Arithmetic a ->
                new Arithmetic(a.operator(), rewritten(a.left(), queries), rewritten(a.right(), queries));
            case Extreme extreme ->
                new Extreme(
                        extreme.isLeast(),
                        extreme.among().stream()
                                .map(one -> rewritten(one, queries))
                                .toList());
        };
    }

    private static FigureQuery bound(FigureQuery query, Map<String, String> names) {
        Map<String, String> conditions = new HashMap<>();
        query.conditions().forEach((key, value) -> conditions.put(key, bound(value, names)));
        return new FigureQuery(query.metric(), conditions);
    }

    private static String bound(String text, Map<String, String> names) {
        String result = text;
        for (Map.Entry<String, String> name : names.entrySet()) {
            result = result.replace("@" + name.getKey(), name.getValue());
        }
        return result;
    }
}
