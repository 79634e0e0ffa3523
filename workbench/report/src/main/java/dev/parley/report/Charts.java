package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Distribution;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.FigureRow;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import dev.parley.report.Chart.Kind;
import dev.parley.report.Chart.Point;
import dev.parley.report.Chart.Row;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * The charts of a run, section by section, technologies best first. Open and closed loads never share a chart, nor do
 * two topologies.
 */
final class Charts {
    private final Analysis analysis;
    private final List<String> technologies;
    private final boolean manyTopologies;

    Charts(Analysis analysis) {
        this.analysis = analysis;
        this.technologies =
                analysis.run().technologies().stream().map(Technology::name).toList();
        this.manyTopologies = analysis.situations().stream()
                        .map(Situation::topology)
                        .distinct()
                        .count()
                > 1;
    }

    /** A heading, what it tells, and its charts: those of one kind have one kind of axis. */
    record Section(String id, String title, String lead, List<Chart> charts) {
        Section {
            charts = Chart.alike(charts);
        }
    }

    /** The chart that answers first: median response times under one load. */
    Chart lead(Load load) {
        Chart chart = intervals(Metric.LATENCY_MEDIAN, load, "lead-");
        return Chart.alike(List.of(chart)).getFirst();
    }

    List<Section> sections() {
        List<Section> sections = new ArrayList<>();
        Section steps = new StepCharts(analysis).section();
        if (!steps.charts().isEmpty()) {
            sections.add(steps);
        }
        sections.addAll(always());
        return sections;
    }

    private List<Section> always() {
        return List.of(
                new Section(
                        "latency",
                        "Response time",
                        "From the moment a request is due to its right reply. Marks are medians over restarts, lines"
                                + " their 95 % intervals.",
                        perLoad(Metric.Section.LATENCY)),
                new Section(
                        "percentiles",
                        "The whole distribution",
                        "All restarts merged. The axis stretches the tail: each step to the right is a tenth of the requests left.",
                        List.of(tail())),
                new HopCharts(analysis).section(),
                new Section(
                        "throughput",
                        "Throughput",
                        "Replies a second that were right and came within the limit. Under an open load that is what"
                                + " was offered, less what was not answered in time.",
                        perLoad(Metric.Section.THROUGHPUT)),
                new Section(
                        "cost",
                        "What one request costs",
                        "Of all services together, whatever the rate.",
                        perLoad(Metric.Section.COST)),
                new Section(
                        "bytes",
                        "Bytes on the wire",
                        "On one hop, for one request in steady state. The solid part is the encoded message, the pale part is what the protocol adds.",
                        Metric.chartedIn(Metric.Section.BYTES).stream()
                                .map(this::bytes)
                                .toList()),
                new Section(
                        "service",
                        "One service",
                        "What each service takes, beside the empty service: the same process with no technology and no work in it.",
                        Metric.chartedIn(Metric.Section.SERVICE).stream()
                                .map(this::service)
                                .toList()));
    }

    /** How a load is named wherever one is shown: a closed-loop figure is never taken for an open one. */
    static String load(Load load) {
        return load.title();
    }

    /** A metric that is optional has no chart where it was not measured. */
    private List<Chart> perLoad(Metric.Section section) {
        List<Chart> charts = new ArrayList<>();
        for (Load load :
                analysis.situations().stream().map(Situation::load).distinct().toList()) {
            for (Metric metric : Metric.chartedIn(section)) {
                Chart chart = intervals(metric, load, "");
                if (!metric.isOptional() || chart.isMeasured()) {
                    charts.add(chart);
                }
            }
        }
        return charts;
    }

    private Chart intervals(Metric metric, Load load, String place) {
        List<Row> rows = new ArrayList<>();
        for (Situation situation : analysis.situations()) {
            if (situation.load().equals(load)) {
                rows.add(new Row(
                        label(situation),
                        technologies.stream()
                                .flatMap(t -> find(t, situation, metric).stream())
                                .map(Charts::point)
                                .sorted(Ranking.points(metric))
                                .toList()));
            }
        }
        return new Chart(
                place + metric.key() + "-" + Chart.id(load.toString()),
                Kind.INTERVALS,
                metric.title(),
                metric.axis(),
                load(load),
                rows);
    }

    private Chart tail() {
        List<Row> rows = new ArrayList<>();
        for (Situation situation : analysis.situations()) {
            List<Point> points = new ArrayList<>();
            for (String technology : technologies) {
                Distribution times = analysis.distribution(technology, situation);
                if (!times.isEmpty()) {
                    String flag = find(technology, situation, Metric.LATENCY_MEAN)
                            .map(Charts::flag)
                            .orElse("");
                    points.add(Point.line(
                            technology,
                            flag,
                            times.tail().stream()
                                    .map(p -> new double[] {p[0], p[1] / 1e6})
                                    .toList()));
                }
            }
            rows.add(new Row(label(situation) + ", " + load(situation.load()), points));
        }
        return new Chart("tail", Kind.TAIL, "Percentiles of response time", "Response time (ms)", "", rows);
    }

    private Chart bytes(Metric wire) {
        List<Row> rows = new ArrayList<>();
        List<String> seen = new ArrayList<>();
        for (Situation situation : analysis.situations()) {
            if (seen.contains(label(situation))) {
                continue;
            }
            seen.add(label(situation));
            List<Point> points = new ArrayList<>();
            for (String technology : technologies) {
                find(technology, situation, wire)
                        .ifPresent(s -> points.add(new Point(
                                technology,
                                s.estimate().value(),
                                s.estimate().low(),
                                s.estimate().high(),
                                wire.part()
                                        .flatMap(payload -> find(technology, situation, payload))
                                        .map(p -> p.estimate().value())
                                        .orElse(Double.NaN),
                                flag(s),
                                List.of(),
                                List.of())));
            }
            points.sort(Ranking.points(wire));
            rows.add(new Row(label(situation), points));
        }
        return new Chart(wire.key(), Kind.STACK, wire.title(), wire.axis(), "payload inside wire bytes", rows);
    }

    /** Where a figure differs by message and load, the highest of those that count is shown. */
    private Chart service(Metric metric) {
        List<Point> points = new ArrayList<>();
        for (String technology : technologies) {
            analysis.situations().stream()
                    .flatMap(situation -> find(technology, situation, metric).stream())
                    .max(Comparator.<Summary, Boolean>comparing(s -> s.counts())
                            .thenComparingDouble(s -> s.estimate().value()))
                    .map(Charts::point)
                    .ifPresent(points::add);
        }
        points.sort(Ranking.points(metric));
        analysis.summaries().stream()
                .filter(s -> s.metric() == metric && Double.isFinite(s.empty()))
                .findFirst()
                .ifPresent(s -> points.add(Point.of(FigureRow.EMPTY, s.empty(), Double.NaN, Double.NaN, "")));
        String note = metric.isOfLoad() ? "highest over messages and loads" : "typical service";
        return new Chart(metric.key(), Kind.BARS, metric.title(), metric.axis(), note, List.of(new Row("", points)));
    }

    private Optional<Summary> find(String technology, Situation situation, Metric metric) {
        return analysis.summary(technology, situation, metric)
                .filter(s -> s.estimate().isPresent());
    }

    private String label(Situation situation) {
        return manyTopologies ? situation.topology() + " " + situation.message() : situation.message();
    }

    private static Point point(Summary s) {
        return Point.of(
                s.technology(),
                s.estimate().value(),
                s.estimate().low(),
                s.estimate().high(),
                flag(s));
    }

    private static String flag(Summary s) {
        return s.isValid() ? "" : s.validity();
    }
}
