package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.Topology.Calling;
import dev.parley.model.Topology.Node;
import dev.parley.report.Chart.Kind;
import dev.parley.report.Chart.Part;
import dev.parley.report.Chart.Point;
import dev.parley.report.Chart.Row;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalDouble;

/**
 * What the services' own clocks say: each times its calls to each neighbour. A call's time holds all that happens below it, so a hop's
 * own share is its time less that of the calls its callee made. Neighbours asked at once overlap: there the slowest counts.
 */
final class HopCharts {
    private static final String CLIENT = "client";

    private final Analysis analysis;
    private final List<String> technologies;

    HopCharts(Analysis analysis) {
        this.analysis = analysis;
        this.technologies =
                analysis.run().technologies().stream().map(Technology::name).toList();
    }

    Charts.Section section() {
        List<Chart> charts = new ArrayList<>();
        charts.addAll(shares());
        charts.addAll(depths());
        charts.addAll(fans());
        boolean anyCalls =
                topologies().stream().anyMatch(t -> Topology.parse(t).nodes().size() > 1);
        String lead = !charts.isEmpty()
                ? "By the services' own clocks: each times its calls to each neighbour. A hop's share is its call's time less the"
                        + " calls made below it: both directions on the wire, encoding, waiting, and the callee's own work."
                : anyCalls
                        ? "This run holds no times of calls between services: none of its trials ended with right replies on every hop."
                        : "Each topology of this run is one service that calls no other: there are no hops between services to show.";
        return new Charts.Section("hops", "Where the time went", lead, charts);
    }

    private List<Chart> shares() {
        List<Chart> charts = new ArrayList<>();
        for (String text : topologies()) {
            Topology topology = Topology.parse(text);
            if (topology.nodes().size() < 2) {
                continue;
            }
            for (Load load : loads(text)) {
                List<Row> rows = new ArrayList<>();
                for (Situation situation : situations(text, load)) {
                    List<Point> points = new ArrayList<>();
                    for (String technology : technologies) {
                        point(technology, situation, topology, points);
                    }
                    if (!points.isEmpty()) {
                        points.sort(Ranking.points(Metric.LATENCY_MEAN));
                        rows.add(new Row(situation.message(), points));
                    }
                }
                if (!rows.isEmpty()) {
                    charts.add(new Chart(
                            "hops-" + id(text, load),
                            Kind.HOPS,
                            "Mean response time, hop by hop",
                            "Time (ms)",
                            text + ", " + Charts.load(load) + order(topology, rows),
                            rows));
                }
            }
        }
        return charts;
    }

    private void point(String technology, Situation situation, Topology topology, List<Point> points) {
        OptionalDouble whole = client(technology, situation, Metric.LATENCY_MEAN);
        List<Part> parts = new ArrayList<>();
        if (whole.isPresent()
                && cut(technology, situation, topology, topology.entry(), CLIENT, whole.getAsDouble(), parts)) {
            points.add(new Point(
                    technology,
                    whole.getAsDouble(),
                    Double.NaN,
                    Double.NaN,
                    Double.NaN,
                    flag(technology, situation),
                    List.of(),
                    parts));
        }
    }

    /** Adds the shares of a call to {@code callee} and of all below it; false if some hop was not timed. */
    private boolean cut(
            String technology,
            Situation situation,
            Topology topology,
            Node callee,
            String caller,
            double total,
            List<Part> parts) {
        List<Timed> below = new ArrayList<>();
        for (String next : callee.calls()) {
            OptionalDouble time = hop(technology, situation, callee.name() + ">" + next, Metric.HOP_MEAN);
            if (time.isEmpty()) {
                return false;
            }
            below.add(new Timed(next, time.getAsDouble()));
        }
        if (callee.calling() == Calling.AT_ONCE && below.size() > 1) {
            below = List.of(
                    below.stream().max(Comparator.comparingDouble(Timed::ms)).orElseThrow());
        }
        double own = total - below.stream().mapToDouble(Timed::ms).sum();
        // means of calls and of replies are of slightly different requests: what is nothing may come out below it
        parts.add(new Part(caller + "→" + callee.name(), Math.max(0, own)));
        boolean isWhole = true;
        for (Timed next : below) {
            isWhole &= cut(
                    technology, situation, topology, topology.node(next.service()), callee.name(), next.ms(), parts);
        }
        return isWhole;
    }

    private record Timed(String service, double ms) {}

    private static String order(Topology topology, List<Row> rows) {
        if (topology.nodes().stream()
                .anyMatch(n -> n.calling() == Calling.AT_ONCE && n.calls().size() > 1)) {
            return "; neighbours are asked at once: the one with the longest mean shows, at the right, and waiting for whichever"
                    + " is last counts to the service that asked";
        }
        List<Part> first = rows.getFirst().points().getFirst().parts();
        return "; from the left: "
                + String.join(", ", first.stream().limit(6).map(Part::label).toList())
                + (first.size() > 6 ? " …" : "");
    }

    /** Of lines: a call of the first service has all hops below it, a call of the last but one has one. */
    private List<Chart> depths() {
        List<Chart> charts = new ArrayList<>();
        for (String text : topologies()) {
            Topology topology = Topology.parse(text);
            List<Node> nodes = chain(topology);
            if (topology.gathers() || nodes.size() < 3) {
                continue;
            }
            Load load = loads(text).getFirst();
            for (Situation situation : situations(text, load)) {
                charts.addAll(byDepth(situation, nodes, Metric.LATENCY_MEDIAN, Metric.HOP_MEDIAN, "Median"));
                charts.addAll(byDepth(situation, nodes, Metric.LATENCY_P99, Metric.HOP_P99, "99th percentile"));
            }
        }
        return charts;
    }

    /** The services that a call goes through where each calls one at most, in the order of the calls. */
    private static List<Node> chain(Topology topology) {
        List<Node> chain = new ArrayList<>(List.of(topology.entry()));
        while (!chain.getLast().isLeaf()) {
            chain.add(topology.node(chain.getLast().calls().getFirst()));
        }
        return chain;
    }

    private List<Chart> byDepth(Situation situation, List<Node> nodes, Metric whole, Metric part, String title) {
        List<Point> points = new ArrayList<>();
        for (String technology : technologies) {
            List<double[]> line = new ArrayList<>();
            for (int i = nodes.size() - 2; i >= 0; i--) {
                int hops = nodes.size() - 1 - i;
                hop(
                                technology,
                                situation,
                                nodes.get(i).name() + ">" + nodes.get(i + 1).name(),
                                part)
                        .ifPresent(ms -> line.add(new double[] {hops, ms}));
            }
            client(technology, situation, whole).ifPresent(ms -> line.add(new double[] {nodes.size(), ms}));
            if (line.size() > 2) {
                points.add(Point.line(technology, flag(technology, situation), line));
            }
        }
        return lines(
                "depth-" + part.key(),
                title + " by number of hops",
                "Hops that a call goes through",
                situation,
                "",
                points);
    }

    /** A gateway's reply waits for its slowest neighbour: the tail of the whole beside the tail of one. */
    private List<Chart> fans() {
        List<Chart> charts = new ArrayList<>();
        for (String text : topologies()) {
            Topology topology = Topology.parse(text);
            if (!topology.gathers() || topology.entry().calls().size() < 2) {
                continue;
            }
            Load load = loads(text).getFirst();
            for (Situation situation : situations(text, load)) {
                List<Point> points = new ArrayList<>();
                for (String technology : technologies) {
                    List<double[]> line = fan(technology, situation, topology);
                    if (line.size() > 1) {
                        points.add(Point.line(technology, flag(technology, situation), line));
                    }
                }
                charts.addAll(lines(
                        "fan-out",
                        "99th percentile by fan-out",
                        "Neighbours asked for one request",
                        situation,
                        "; at 1 a typical neighbour alone",
                        points));
            }
        }
        return charts;
    }

    private List<double[]> fan(String technology, Situation situation, Topology topology) {
        Node gateway = topology.entry();
        List<double[]> line = new ArrayList<>();
        double[] alone = gateway.calls().stream()
                .map(callee -> hop(technology, situation, gateway.name() + ">" + callee, Metric.HOP_P99))
                .filter(OptionalDouble::isPresent)
                .mapToDouble(OptionalDouble::getAsDouble)
                .sorted()
                .toArray();
        if (alone.length > 0) {
            int middle = alone.length / 2;
            line.add(new double[] {1, alone.length % 2 == 1 ? alone[middle] : (alone[middle - 1] + alone[middle]) / 2});
        }
        client(technology, situation, Metric.LATENCY_P99)
                .ifPresent(ms -> line.add(new double[] {gateway.calls().size(), ms}));
        return line;
    }

    private List<Chart> lines(
            String id, String title, String across, Situation situation, String more, List<Point> points) {
        return points.isEmpty()
                ? List.of()
                : List.of(new Chart(
                        id + "-" + id(situation.topology() + "-" + situation.message(), situation.load()),
                        Kind.LINES,
                        title,
                        "Time of the call (ms)",
                        across,
                        situation.topology() + ", " + situation.message() + ", " + Charts.load(situation.load()) + more,
                        List.of(new Row("", points))));
    }

    private static String id(String text, Load load) {
        return Chart.id(text + "-" + load);
    }

    private List<String> topologies() {
        return analysis.situations().stream()
                .map(Situation::topology)
                .distinct()
                .toList();
    }

    private List<Load> loads(String topology) {
        return analysis.situations().stream()
                .filter(s -> s.topology().equals(topology))
                .map(Situation::load)
                .distinct()
                .toList();
    }

    private List<Situation> situations(String topology, Load load) {
        return analysis.situations().stream()
                .filter(s -> s.topology().equals(topology) && s.load().equals(load))
                .toList();
    }

    private OptionalDouble client(String technology, Situation situation, Metric metric) {
        return analysis.summary(technology, situation, metric).stream()
                .filter(s -> s.estimate().isPresent())
                .mapToDouble(s -> s.estimate().value())
                .findFirst();
    }

    private OptionalDouble hop(String technology, Situation situation, String hop, Metric metric) {
        return analysis.details().stream()
                .filter(s -> s.technology().equals(technology)
                        && new Situation(s.topology(), s.message(), s.load()).equals(situation)
                        && s.metric() == metric
                        && s.subject().equals(hop)
                        && s.estimate().isPresent())
                .mapToDouble(s -> s.estimate().value())
                .findFirst();
    }

    private String flag(String technology, Situation situation) {
        return analysis.summary(technology, situation, Metric.LATENCY_MEAN)
                .filter(s -> !s.isValid())
                .map(Summary::validity)
                .orElse("");
    }
}
