package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Comparison;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.Metric;
import dev.parley.report.Palette.Mark;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Every technology's figures in one situation, the best first, and how each stands to the best of its column.
 *
 * @param caption the situation
 * @param columns heads, with their units
 */
record ResultTable(String caption, List<String> columns, List<Row> rows) {
    /**
     * One technology.
     *
     * @param note why its figures do not count; empty as a rule
     */
    record Row(Mark mark, Remark note, List<Field> fields) {}

    /**
     * One figure.
     *
     * @param column its head
     * @param figure a dash where there is none
     * @param interval of 95 %; empty where there is no figure
     * @param isOpen true for a figure from which nothing follows
     */
    record Field(String column, String figure, String interval, boolean isOpen, List<Remark> remarks) {}

    /**
     * A few words below a figure.
     *
     * @param kind {@code good}, {@code bad}, {@code hint} or empty
     * @param why all of it, for who wants to know; empty where the words say all
     */
    record Remark(String words, String kind, String why) {
        static final Remark NONE = new Remark("", "", "");
        static final Remark OFFERED = new Remark("as offered", "", "");

        boolean isEmpty() {
            return words.isEmpty();
        }
    }

    ResultTable {
        columns = List.copyOf(columns);
        rows = List.copyOf(rows);
    }

    static ResultTable of(Analysis analysis, Situation situation, List<Metric> metrics, List<Mark> marks) {
        Maker maker = new Maker(analysis, situation);
        List<String> order = Ranking.technologies(analysis, situation, metrics.getFirst());
        List<Row> rows = new ArrayList<>();
        for (String technology : order) {
            marks.stream()
                    .filter(mark -> mark.technology().equals(technology))
                    .map(mark -> maker.row(mark, metrics))
                    .forEach(rows::add);
        }
        return new ResultTable(
                situation.message() + ", " + situation.topology() + ", " + Charts.load(situation.load()),
                metrics.stream().map(Metric::heading).toList(),
                rows);
    }

    /** True where some ratio stands in it. */
    boolean hasRatio() {
        return rows.stream()
                .flatMap(row -> row.fields().stream())
                .flatMap(field -> field.remarks().stream())
                .anyMatch(remark -> remark.words().contains("×"));
    }

    /** The rows of one situation. */
    private record Maker(Analysis analysis, Situation situation) {
        Row row(Mark mark, List<Metric> metrics) {
            String technology = mark.technology();
            return new Row(
                    mark,
                    note(technology),
                    metrics.stream().map(metric -> field(technology, metric)).toList());
        }

        /** By response time, which every trial has. */
        private Remark note(String technology) {
            return analysis.summary(technology, situation, Metric.LATENCY_MEDIAN)
                    .filter(summary -> !summary.counts())
                    .map(summary -> new Remark(summary.validity(), summary.isVoid() ? "bad" : "hint", ""))
                    .orElse(Remark.NONE);
        }

        private Field field(String technology, Metric metric) {
            Optional<Summary> own = analysis.summary(technology, situation, metric);
            Optional<String> absence = LoadFigures.absence(analysis, situation, technology, metric);
            if (own.isEmpty() && absence.isPresent()) {
                return new Field(metric.heading(), absence.get(), "", false, List.of());
            }
            if (own.isEmpty() || !own.get().estimate().isPresent()) {
                String why = own.or(() -> analysis.summary(technology, situation, Metric.THROUGHPUT))
                        .map(Summary::validity)
                        .filter(validity -> !Summary.counts(validity))
                        .orElse("not measured");
                return new Field(metric.heading(), "–", "", false, List.of(new Remark(why, "bad", "")));
            }
            Summary s = own.get();
            List<Remark> remarks = new ArrayList<>();
            if (!s.survivors().isEmpty()) {
                remarks.add(new Remark(s.survivors() + " restarts", "hint", s.validity()));
            }
            samples(s).ifPresent(few -> remarks.add(new Remark(few, "hint", s.validity())));
            Remark standing = standing(s, metric);
            if (!standing.isEmpty()) {
                remarks.add(standing);
            }
            if (s.isColdStart()) {
                remarks.add(new Remark("cold start", "", ""));
            }
            return new Field(
                    metric.heading(),
                    LoadFigures.brief(s),
                    Figures.brief(s.estimate().low()) + " – "
                            + Figures.brief(s.estimate().high()),
                    !s.counts() && !s.isVoid(),
                    remarks);
        }

        /** A percentile of fewer samples than it wants says so; the analysis names them among its reservations. */
        private static Optional<String> samples(Summary summary) {
            return Stream.of(summary.validity().split("[:;] "))
                    .filter(hint -> hint.contains(" samples of "))
                    .findFirst();
        }

        private Remark standing(Summary own, Metric metric) {
            String uncounted = VerdictWords.uncounted(own);
            if (!uncounted.isEmpty()) {
                return new Remark(uncounted, own.isVoid() ? "bad" : "", own.validity());
            }
            if (metric == Metric.THROUGHPUT && situation.load().hasRate()) {
                return offered(own.technology());
            }
            if (analysis.run().technologies().size() == 1 || !metric.isCompared()) {
                return Remark.NONE;
            }
            Optional<Summary> best = analysis.run().technologies().stream()
                    .flatMap(t -> analysis.summary(t.name(), situation, metric).stream())
                    .filter(s -> s.estimate().isPresent() && s.counts())
                    .min(Ranking.bestFirst(
                            metric.better(), s -> s.counts(), s -> s.estimate().value()));
            if (best.isEmpty() || best.get().technology().equals(own.technology())) {
                return new Remark(metric.better() == Metric.Better.HIGHER ? "highest" : "lowest", "good", "");
            }
            return comparison(own.technology(), best.get().technology(), metric)
                    .map(comparison -> remark(comparison, own))
                    .orElse(Remark.NONE);
        }

        /** What a load offers is the same for all, and no contest: a technology keeps up with it, or falls behind. */
        private Remark offered(String technology) {
            return analysis.summary(technology, situation, Metric.SUCCESS_SHARE)
                    .filter(_ -> analysis.fellBehind(technology, situation))
                    .map(answered -> new Remark(
                            "fell behind: " + Figures.brief(answered.estimate().value()) + " % answered", "bad", ""))
                    .orElse(Remark.OFFERED);
        }

        private Remark remark(Comparison c, Summary own) {
            String ratio = Figures.ratio(c.ratio().value()) + " × ";
            return switch (c.verdict().kind()) {
                case BETTER -> new Remark(ratio + "better", "", VerdictWords.figures(c));
                case WORSE -> new Remark(ratio + "worse", "", VerdictWords.figures(c));
                case EQUIVALENT -> new Remark("equivalent", "good", VerdictWords.figures(c));
                case UNDECIDED ->
                    new Remark(
                            "undecided, " + VerdictWords.whatDecides(List.of(c), own.restarts()),
                            "",
                            VerdictWords.figures(c));
                case VOID -> new Remark("void", "", VerdictWords.figures(c));
                case COLD -> new Remark("cold", "", VerdictWords.figures(c));
                case UNKNOWN -> new Remark("warmth unknown", "", VerdictWords.figures(c));
            };
        }

        /** The comparison with {@code technology} first, turned round if it was made the other way. */
        private Optional<Comparison> comparison(String technology, String against, Metric metric) {
            return Findings.comparisons(analysis, situation, metric).stream()
                    .flatMap(c -> Stream.of(c, c.reversed()))
                    .filter(c ->
                            c.technology().equals(technology) && c.against().equals(against))
                    .findFirst();
        }
    }
}
