package dev.rpcx.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.function.ToDoubleFunction;

/**
 * Targets for the speed of RPCX, each with the figures of this run beside it. Ratios are taken between figures of the
 * same run. A target is never met if one of its figures was not measured, or if more than half of the windows of a
 * figure were cold; a target for the grid leaves out the cells for which that holds, and is not met if none is left.
 */
final class Targets {
    /** Direction of a target: the figure has to be at least the bound, or at most the bound. */
    private enum Sense {
        AT_LEAST("≥"),
        AT_MOST("≤");

        final String sign;

        Sense(String sign) {
            this.sign = sign;
        }

        boolean met(double figure, double bound) {
            return this == AT_LEAST ? figure >= bound : figure <= bound;
        }
    }

    /**
     * One line of the result: a target, the figures that it is judged by, and the verdict.
     *
     * @param rpcx RPCX's own figure, with its unit
     * @param compared figure that RPCX is compared with, with its unit; empty if the bound is a number
     */
    record Line(String row, String target, String rpcx, String compared, String figure, String verdict) {}

    private static final ToDoubleFunction<Figures> RATE = Figures::callsPerSecond;

    private final FigureStore store;
    private final Map<String, List<double[]>> servers;
    private final Map<String, double[]> wire;
    private final List<Line> lines = new ArrayList<>();

    private Targets(FigureStore store) {
        this.store = store;
        this.servers = store.servers;
        this.wire = store.wire;
    }

    static List<Line> judged(FigureStore store) {
        Targets targets = new Targets(store);
        targets.rates();
        targets.costs();
        targets.grid();
        return targets.lines;
    }

    private void rates() {
        ratio(BenchCase.A.title, "rpcx", "grpc", Sense.AT_LEAST, 2.5, RATE, "calls/s");
        ratio(Bench.PINNED, "rpcx", "grpc", Sense.AT_LEAST, 6, RATE, "calls/s");
        ratio(Bench.PINNED + ", p50", "rpcx", "raw-netty", Sense.AT_MOST, 1.18, Figures::p50Us, "µs", Bench.PINNED);
        ratio(BenchCase.B.title, "rpcx", "grpc", Sense.AT_LEAST, 7.5, RATE, "calls/s");
        ratio(BenchCase.B.title, "rpcx", "raw-netty", Sense.AT_LEAST, 0.8, RATE, "calls/s");
        ratio(BenchCase.C.title, "rpcx-inline", "grpc", Sense.AT_LEAST, 25, RATE, "calls/s");
        ratio(BenchCase.C.title, "rpcx-inline", "rsocket", Sense.AT_LEAST, 2.5, RATE, "calls/s");
        ratio(BenchCase.C.title, "rpcx-pool", "grpc", Sense.AT_LEAST, 15, RATE, "calls/s");
        ratio(BenchCase.B_1KB.title, "rpcx", "grpc", Sense.AT_LEAST, 7, RATE, "calls/s");
        ratio(BenchCase.B_100KB.title, "rpcx", "grpc", Sense.AT_LEAST, 2.6, RATE, "calls/s");
        ratio(BenchCase.B_100KB.title, "rpcx", "raw-netty", Sense.AT_LEAST, 1, RATE, "calls/s");
        ratio(BenchCase.B_100ROWS.title, "rpcx", "grpc", Sense.AT_LEAST, 3, RATE, "calls/s");
        ratio(BenchCase.B_1000ROWS.title, "rpcx", "grpc", Sense.AT_LEAST, 2.5, RATE, "calls/s");
    }

    private void costs() {
        atMost(
                "CPU a call, both sides, B",
                "rpcx",
                18,
                "µs",
                medianOf(BenchCase.B.title, "rpcx", Figures::cpuUsPerCall));
        atMost(
                "CPU a call, both sides, C",
                "rpcx-inline",
                2.5,
                "µs",
                medianOf(BenchCase.C.title, "rpcx-inline", Figures::cpuUsPerCall));
        atMost(
                "allocated a call, client, B",
                "rpcx",
                500,
                "B",
                medianOf(BenchCase.B.title, "rpcx", Figures::clientBytesPerCall));
        atMost(
                "allocated a call, server, B",
                "rpcx",
                300,
                "B",
                medianOf(BenchCase.B.title, "rpcx", Figures::serverBytesPerCall));
        atMost("HelloWorld on the wire, out", "rpcx", 20, "B", wire("rpcx", 0));
        atMost("HelloWorld on the wire, back", "rpcx", 18, "B", wire("rpcx", 1));
        compare("server: boot", "rpcx", "grpc", Sense.AT_MOST, 0.65, server("rpcx", 0), server("grpc", 0), "ms");
        atMost("server: resident", "rpcx", 110, "MB", server("rpcx", 1));
    }

    private void grid() {
        for (int threads : Bench.GRID_THREADS) {
            grid(threads, "grpc-channel-per-call", threads <= 10 ? 25 : threads <= 100 ? 7 : 2);
        }
        grid(10, "grpc", 2);
        grid(100, "grpc", 1.3);
    }

    /**
     * Compares RPCX with a peer in the grid's cells of one number of threads. The median of the ratios over the numbers
     * of requests decides, and the range of the ratios stands beside it. A cell in which one of the two was cold or not
     * measured is left out.
     */
    private void grid(int threads, String peer, double bound) {
        List<Double> ratios = new ArrayList<>();
        List<Double> own = new ArrayList<>();
        List<Double> others = new ArrayList<>();
        for (int requests : Bench.GRID_REQUESTS) {
            String cell = Bench.cell(threads, requests);
            List<Double> ofRpcx = store.warmCell(cell, "rpcx");
            List<Double> ofPeer = store.warmCell(cell, peer);
            if (!ofRpcx.isEmpty() && !ofPeer.isEmpty()) {
                double rpcx = Tables.medianOf(ofRpcx);
                double other = Tables.medianOf(ofPeer);
                own.add(rpcx);
                others.add(other);
                // a negative figure says that replies were wrong or missing
                ratios.add(rpcx <= 0 ? 0 : other <= 0 ? Double.NaN : rpcx / other);
            }
        }
        String row = "the paper's grid, " + threads + " threads";
        String target = "rpcx " + Sense.AT_LEAST.sign + " " + plain(bound) + " × " + peer;
        if (ratios.isEmpty() || ratios.stream().anyMatch(r -> r.isNaN())) {
            lines.add(new Line(row, target, "–", "–", "–", "cold, or not measured"));
            return;
        }
        double ratio = Tables.medianOf(ratios);
        String range = String.format(
                Locale.ROOT,
                "%.2f × (%.2f – %.2f)",
                ratio,
                ratios.stream().mapToDouble(r -> r).min().orElse(0),
                ratios.stream().mapToDouble(r -> r).max().orElse(0));
        lines.add(new Line(
                row,
                target,
                number(Tables.medianOf(own)) + " TPS",
                number(Tables.medianOf(others)) + " TPS",
                range,
                verdict(Sense.AT_LEAST.met(ratio, bound))));
    }

    private OptionalDouble medianOf(String title, String peer, ToDoubleFunction<Figures> figure) {
        List<Figures> rounds = store.warm(title, peer);
        return rounds.isEmpty()
                ? OptionalDouble.empty()
                : OptionalDouble.of(Tables.medianOf(
                        rounds.stream().mapToDouble(figure).boxed().toList()));
    }

    private OptionalDouble wire(String peer, int way) {
        return wire.containsKey(peer) ? OptionalDouble.of(wire.get(peer)[way]) : OptionalDouble.empty();
    }

    private OptionalDouble server(String peer, int figure) {
        List<double[]> rounds = servers.getOrDefault(peer, List.of());
        return rounds.isEmpty()
                ? OptionalDouble.empty()
                : OptionalDouble.of(
                        Tables.medianOf(rounds.stream().map(r -> r[figure]).toList()));
    }

    private void ratio(
            String title,
            String rpcx,
            String peer,
            Sense sense,
            double bound,
            ToDoubleFunction<Figures> figure,
            String unit) {
        ratio(title, rpcx, peer, sense, bound, figure, unit, title);
    }

    private void ratio(
            String row,
            String rpcx,
            String peer,
            Sense sense,
            double bound,
            ToDoubleFunction<Figures> figure,
            String unit,
            String title) {
        compare(row, rpcx, peer, sense, bound, medianOf(title, rpcx, figure), medianOf(title, peer, figure), unit);
    }

    private void compare(
            String row,
            String rpcx,
            String peer,
            Sense sense,
            double bound,
            OptionalDouble own,
            OptionalDouble other,
            String unit) {
        String target = rpcx + " " + sense.sign + " " + plain(bound) + " × " + peer;
        if (own.isEmpty() || other.isEmpty()) {
            lines.add(new Line(row, target, shown(own, unit), shown(other, unit), "–", "cold, or not measured"));
            return;
        }
        double ratio = own.getAsDouble() / other.getAsDouble();
        lines.add(new Line(
                row,
                target,
                shown(own, unit),
                shown(other, unit),
                String.format(Locale.ROOT, "%.2f ×", ratio),
                verdict(sense.met(ratio, bound))));
    }

    private void atMost(String row, String rpcx, double bound, String unit, OptionalDouble own) {
        String target = rpcx + " " + Sense.AT_MOST.sign + " " + plain(bound) + " " + unit;
        String shown = shown(own, unit);
        lines.add(new Line(
                row,
                target,
                shown,
                "",
                shown,
                own.isEmpty() ? "cold, or not measured" : verdict(Sense.AT_MOST.met(own.getAsDouble(), bound))));
    }

    private static String verdict(boolean met) {
        return met ? "met" : "not met";
    }

    private static String plain(double bound) {
        return bound == Math.rint(bound) ? Long.toString((long) bound) : Double.toString(bound);
    }

    private static String shown(OptionalDouble figure, String unit) {
        return figure.isEmpty() ? "–" : number(figure.getAsDouble()) + " " + unit;
    }

    private static String number(double figure) {
        return String.format(Locale.ROOT, figure >= 100 ? "%,.0f" : "%.1f", figure);
    }

    static String markdown(List<Line> lines) {
        StringBuilder text = new StringBuilder("## Targets\n\n");
        long met = lines.stream().filter(line -> line.verdict.equals("met")).count();
        text.append(met).append(" of ").append(lines.size()).append(" met.\n\n");
        text.append("| row | target | RPCX | beside | figure | |\n| --- | --- | ---: | ---: | ---: | --- |\n");
        for (Line line : lines) {
            text.append("| ")
                    .append(String.join(
                            " | ", line.row, line.target, line.rpcx, line.compared, line.figure, line.verdict))
                    .append(" |\n");
        }
        return text.append('\n').toString();
    }

    static String csv(List<Line> lines) {
        StringBuilder text = new StringBuilder("row,target,rpcx,beside,figure,verdict\n");
        for (Line line : lines) {
            text.append('"')
                    .append(String.join(
                            "\",\"", line.row, line.target, line.rpcx, line.compared, line.figure, line.verdict))
                    .append("\"\n");
        }
        return text.toString();
    }
}
