package dev.rpcx.bench;

import dev.rpcx.probe.MachineFacts;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/**
 * Writes the figures of a run as Markdown: medians over the rounds, with the lowest and the highest round beside them.
 */
final class Tables {
    private Tables() {}

    static String heading(FigureStore store) {
        int rounds = store.cases.values().stream()
                .flatMap(byPeer -> byPeer.values().stream())
                .mapToInt(List::size)
                .min()
                .orElse(0);
        return "# RPCX beside its peers\n\n"
                + store.commands.stream()
                        .map(arguments -> "Command: `rpcx/rpcx-bench/run " + arguments + "`  \n")
                        .collect(Collectors.joining())
                + "Date: " + LocalDate.now() + "; commit: " + String.join(", ", store.commits) + "; machine: "
                + MachineFacts.read() + "  \nJDK: "
                + System.getProperty("java.vm.version") + "; JVM flags of every process: `"
                + String.join(" ", Bench.JVM_ARGS)
                + "`  \nEach peer's server and client are processes of their own on loopback; medians over " + rounds
                + (rounds == 1 ? " round" : " interleaved rounds")
                + (rounds < 5 ? " (under five: indicative)" : "")
                + ".  \nA window is cold when just-in-time compilers took more than a tenth of both processes'"
                + " processor time in it; rounds that were"
                + " cold do not count, and a row of which most were has no figures.\n\n";
    }

    static String markdown(FigureStore store) {
        Map<String, Map<String, List<Figures>>> cases = store.cases;
        Map<String, Map<String, String>> missing = store.missing;
        Map<String, Map<String, List<Pair.Cell>>> grid = store.grid;
        Map<String, List<double[]>> servers = store.servers;
        Map<String, double[]> wire = store.wire;
        StringBuilder text = new StringBuilder();
        inOrder(cases).forEach((title, byPeer) -> {
            text.append("## ").append(title).append("\n\n");
            text.append(
                    "| peer | calls/s | lowest – highest | p50 µs | p99 µs | CPU a call, both sides, µs | allocated a"
                            + " call, client + server, B | compilers, at most |\n");
            text.append("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n");
            byPeer.keySet().stream()
                    .filter(peer -> !store.warm(title, peer).isEmpty())
                    .sorted((a, b) -> Double.compare(
                            median(store.warm(title, b), Figures::callsPerSecond),
                            median(store.warm(title, a), Figures::callsPerSecond)))
                    .forEach(peer -> {
                        List<Figures> f = store.warm(title, peer);
                        text.append(String.format(
                                Locale.ROOT,
                                "| %s | %,.0f | %,.0f – %,.0f | %.0f | %.0f | %.1f | %.0f + %.0f | %.0f %% |%n",
                                peer,
                                median(f, Figures::callsPerSecond),
                                f.stream()
                                        .mapToDouble(Figures::callsPerSecond)
                                        .min()
                                        .orElse(0),
                                f.stream()
                                        .mapToDouble(Figures::callsPerSecond)
                                        .max()
                                        .orElse(0),
                                median(f, Figures::p50Us),
                                median(f, Figures::p99Us),
                                median(f, Figures::cpuUsPerCall),
                                median(f, Figures::clientBytesPerCall),
                                median(f, Figures::serverBytesPerCall),
                                100 * highest(f)));
                    });
            byPeer.forEach((peer, rounds) -> {
                if (store.warm(title, peer).isEmpty()) {
                    text.append(String.format(
                            Locale.ROOT,
                            "| %s | cold: compilers took %.0f %% after %.0f s | – | – | – | – | – | %.0f %% |%n",
                            peer,
                            100 * median(rounds, Figures::compilerShare),
                            median(rounds, Figures::warmUpMs) / 1000,
                            100 * highest(rounds)));
                }
            });
            missing.getOrDefault(title, Map.of()).forEach((peer, why) -> {
                if (!byPeer.containsKey(peer)) {
                    text.append("| ").append(peer).append(" | ").append(why).append(" | – | – | – | – | – | – |\n");
                }
            });
            text.append('\n');
        });
        if (!grid.isEmpty()) {
            TreeSet<String> peers = new TreeSet<>();
            grid.values().forEach(byPeer -> peers.addAll(byPeer.keySet()));
            text.append(
                    "## The paper's grid: TPS, mean of rounds 2 to 10, median over restarts; each cell again and again"
                            + " until it was warm\n\n| threads × requests |");
            peers.forEach(peer -> text.append(' ').append(peer).append(" |"));
            text.append("\n| --- |").append(" ---: |".repeat(peers.size())).append('\n');
            grid.forEach((cell, byPeer) -> {
                text.append("| ").append(cell).append(" |");
                for (String peer : peers) {
                    List<Double> tps = store.warmCell(cell, peer);
                    text.append(
                            !tps.isEmpty()
                                    ? String.format(Locale.ROOT, " %,.0f |", medianOf(tps))
                                    : byPeer.containsKey(peer) ? " cold |" : " – |");
                }
                text.append('\n');
            });
            text.append('\n');
        }
        text.append("## Server, and HelloWorld on the wire\n\n");
        text.append(
                "| peer | start to serving, ms | resident, MB | out, B | back, B |\n| --- | ---: | ---: | ---: | ---: |\n");
        servers.forEach((peer, rounds) -> {
            double[] bytes = wire.getOrDefault(peer, new double[] {Double.NaN, Double.NaN});
            text.append(String.format(
                    Locale.ROOT,
                    "| %s | %.0f | %.0f | %.1f | %.1f |%n",
                    peer,
                    medianOf(rounds.stream().map(r -> r[0]).toList()),
                    medianOf(rounds.stream().map(r -> r[1]).toList()),
                    bytes[0],
                    bytes[1]));
        });
        return text.toString();
    }

    /** Returns the cases in the order of the targets, whatever the order in which they were measured. */
    private static <T> Map<String, T> inOrder(Map<String, T> byTitle) {
        List<String> titles = new ArrayList<>();
        titles.add(BenchCase.A.title);
        titles.add(Bench.PINNED);
        for (BenchCase benchCase : BenchCase.values()) {
            titles.add(benchCase.title);
        }
        Map<String, T> ordered = new LinkedHashMap<>();
        for (String title : titles) {
            T found = byTitle.get(title);
            if (found != null) {
                ordered.put(title, found);
            }
        }
        return ordered;
    }

    private static double highest(List<Figures> rounds) {
        return rounds.stream().mapToDouble(Figures::compilerShare).max().orElse(0);
    }

    private static double median(List<Figures> rounds, ToDoubleFunction<Figures> figure) {
        return medianOf(rounds.stream().mapToDouble(figure).boxed().toList());
    }

    static double medianOf(List<Double> values) {
        List<Double> sorted = values.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }
}
