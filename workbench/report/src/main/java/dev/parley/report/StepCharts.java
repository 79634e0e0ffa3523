package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import dev.parley.report.Chart.Kind;
import dev.parley.report.Chart.Point;
import dev.parley.report.Chart.Row;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How a load went step by step: by its clients or rates, a search by the rates it tried, bursts one after the other, a
 * grid by its threads.
 */
final class StepCharts {
    /** As the load generator labels steps: {@code 20 clients}, {@code try 3: 400 per second}, {@code iteration 2}. */
    private static final Pattern PLACE = Pattern.compile("([0-9.]+)(?: clients| per second)?$");

    private static final String RATE = "Right replies within the limit (1/s)";
    private static final String TIME = "Response time (ms)";

    private final Analysis analysis;
    private final List<String> technologies;

    StepCharts(Analysis analysis) {
        this.analysis = analysis;
        this.technologies =
                analysis.run().technologies().stream().map(Technology::name).toList();
    }

    /** Without charts where no load has steps. */
    Charts.Section section() {
        List<Chart> charts = new ArrayList<>();
        for (Situation situation : analysis.situations()) {
            Load load = situation.load();
            if (load.isStepped()) {
                String by = load.isOpen() ? "rate" : "clients";
                String across = load.isOpen() ? "Requests due a second" : "Clients";
                charts.addAll(steps(situation, Metric.STEP_THROUGHPUT, "Throughput by " + by, RATE, across));
                charts.addAll(steps(situation, Metric.STEP_LATENCY_MEAN, "Mean response time by " + by, TIME, across));
            } else if (load.isSearch()) {
                charts.addAll(steps(
                        situation,
                        Metric.STEP_LATENCY_P99,
                        "99th percentile by rate",
                        TIME,
                        "Requests a second that were tried"));
            } else if (load instanceof Load.Burst) {
                charts.addAll(
                        steps(situation, Metric.STEP_TIME, "Time of each burst", "Until its last reply (ms)", "Burst"));
            }
        }
        charts.addAll(grids());
        return new Charts.Section(
                "steps",
                "Step by step",
                "What a load's own steps came to, medians over restarts. A step's time and rate are its own; the tables above are of the whole load.",
                charts);
    }

    private List<Chart> steps(Situation situation, Metric metric, String heading, String axis, String across) {
        List<Point> points = new ArrayList<>();
        for (String technology : technologies) {
            List<double[]> line = new ArrayList<>();
            for (Summary s : analysis.details()) {
                Matcher place = PLACE.matcher(s.subject());
                if (s.metric() == metric
                        && s.technology().equals(technology)
                        && new Situation(s.topology(), s.message(), s.load()).equals(situation)
                        && s.estimate().isPresent()
                        && place.find()) {
                    line.add(new double[] {
                        Double.parseDouble(place.group(1)), s.estimate().value()
                    });
                }
            }
            line.sort(Comparator.comparingDouble(point -> point[0]));
            if (line.size() > 1) {
                points.add(Point.line(technology, flag(technology, situation), line));
            }
        }
        String note = situation.topology() + ", " + situation.message() + ", " + Charts.load(situation.load());
        return chart(metric.key() + "-" + situation, heading, axis, note, across, points);
    }

    private record Grid(String topology, String message, Load.Rounds atOneThread) {}

    /** Rounds that differ in their threads only make one chart. */
    private List<Chart> grids() {
        Map<Grid, TreeMap<Integer, Situation>> grids = new LinkedHashMap<>();
        for (Situation situation : analysis.situations()) {
            if (situation.load() instanceof Load.Rounds r) {
                Load.Rounds atOneThread = new Load.Rounds(1, r.requests(), r.rounds(), r.roundLimit(), r.use());
                grids.computeIfAbsent(
                                new Grid(situation.topology(), situation.message(), atOneThread), _ -> new TreeMap<>())
                        .put(r.threads(), situation);
            }
        }
        List<Chart> charts = new ArrayList<>();
        grids.forEach((grid, byThreads) -> {
            List<Point> points = new ArrayList<>();
            for (String technology : technologies) {
                List<double[]> line = new ArrayList<>();
                byThreads.forEach((threads, situation) -> analysis.summary(technology, situation, Metric.THROUGHPUT)
                        .filter(s -> s.estimate().isPresent())
                        .ifPresent(s ->
                                line.add(new double[] {threads, s.estimate().value()})));
                if (line.size() > 1) {
                    points.add(Point.line(
                            technology, flag(technology, byThreads.firstEntry().getValue()), line));
                }
            }
            Load.Rounds rounds = grid.atOneThread();
            charts.addAll(chart(
                    "grid-" + grid,
                    "Throughput by threads",
                    RATE,
                    grid.topology() + ", " + grid.message() + ", " + rounds.requests() + " requests a round, "
                            + rounds.rounds() + " rounds, client "
                            + rounds.use()
                                    .name()
                                    .toLowerCase(java.util.Locale.ROOT)
                                    .replace('_', ' '),
                    "Threads",
                    points));
        });
        return charts;
    }

    private static List<Chart> chart(
            String id, String heading, String axis, String note, String across, List<Point> points) {
        return points.isEmpty()
                ? List.of()
                : List.of(
                        new Chart(Chart.id(id), Kind.LINES, heading, axis, across, note, List.of(new Row("", points))));
    }

    private String flag(String technology, Situation situation) {
        return analysis.summary(technology, situation, Metric.THROUGHPUT)
                .filter(s -> !s.isValid())
                .map(Summary::validity)
                .orElse("");
    }
}
