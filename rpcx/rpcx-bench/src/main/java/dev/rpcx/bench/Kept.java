package dev.rpcx.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Every figure of a benchmark, by what it is of. With a file it goes on where an earlier run stopped, so that a long benchmark can be run
 * in parts: one figure a line, separated by tabs.
 */
final class Kept {
    /** case → peer → figures by round. */
    final Map<String, Map<String, List<Figures>>> cases = new LinkedHashMap<>();
    /** grid cell → peer → by round. */
    final Map<String, Map<String, List<Pair.Cell>>> grid = new LinkedHashMap<>();
    /** peer → {boot ms, resident MB} by round. */
    final Map<String, List<double[]>> servers = new LinkedHashMap<>();
    /** peer → {out, back} bytes of a call. */
    final Map<String, double[]> wire = new LinkedHashMap<>();
    /** case → peer → why there is no figure. */
    final Map<String, Map<String, String>> missing = new LinkedHashMap<>();
    /** What was asked for, in turn. */
    final List<String> commands = new ArrayList<>();
    /** What was measured. */
    final Set<String> commits = new LinkedHashSet<>();

    private final Path file;

    /** @param file empty for none */
    Kept(String file) throws IOException {
        this.file = Path.of(file);
        if (isKept() && Files.exists(this.file)) {
            for (String line : Files.readAllLines(this.file)) {
                take(line.split("\t", -1));
            }
        }
    }

    private boolean isKept() {
        return !file.toString().isEmpty();
    }

    private void take(String[] f) {
        switch (f[0]) {
            case "command" -> commands.add(f[1]);
            case "commit" -> commits.add(f[1]);
            case "window" ->
                cases.computeIfAbsent(f[1], t -> new LinkedHashMap<>())
                        .computeIfAbsent(f[2], p -> new ArrayList<>())
                        .add(Figures.ofLine(f[3]));
            case "missing" -> {
                cases.computeIfAbsent(f[1], t -> new LinkedHashMap<>());
                missing.computeIfAbsent(f[1], t -> new LinkedHashMap<>()).put(f[2], f[3]);
            }
            case "cell" ->
                grid.computeIfAbsent(f[1], c -> new LinkedHashMap<>())
                        .computeIfAbsent(f[2], p -> new ArrayList<>())
                        .add(new Pair.Cell(Double.parseDouble(f[3]), Double.parseDouble(f[4])));
            case "case", "grid" ->
                throw new IllegalArgumentException(
                        file + ": figures that do not say what compilers took (expected: a file of a later run)");
            case "server" ->
                servers.computeIfAbsent(f[1], p -> new ArrayList<>())
                        .add(new double[] {Double.parseDouble(f[2]), Double.parseDouble(f[3])});
            case "wire" -> wire.put(f[1], new double[] {Double.parseDouble(f[2]), Double.parseDouble(f[3])});
            default -> throw new IllegalArgumentException(file + ": " + f[0] + " (expected: a figure kept by a run)");
        }
    }

    /**
     * The rounds of a peer in a case that count: those whose windows were warm, unless they are fewer than half.
     *
     * @return empty where the peer is cold in this case, or was not measured
     */
    List<Figures> warm(String title, String peer) {
        List<Figures> all = cases.getOrDefault(title, Map.of()).getOrDefault(peer, List.of());
        List<Figures> warm = all.stream().filter(f -> !f.isCold()).toList();
        return 2 * warm.size() < all.size() ? List.of() : warm;
    }

    /** TPS of the rounds of a peer in a cell that count, as above. */
    List<Double> warmCell(String cell, String peer) {
        List<Pair.Cell> all = grid.getOrDefault(cell, Map.of()).getOrDefault(peer, List.of());
        List<Double> warm = all.stream()
                .filter(c -> c.compilerShare() <= Compilers.MAX_SHARE)
                .map(Pair.Cell::tps)
                .toList();
        return 2 * warm.size() < all.size() ? List.of() : warm;
    }

    /** A figure with what it is of. */
    void add(Object... fields) throws IOException {
        String[] f = new String[fields.length];
        for (int i = 0; i < f.length; i++) {
            f[i] = fields[i].toString();
        }
        take(f);
        if (isKept()) {
            Files.writeString(file, String.join("\t", f) + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        }
    }
}
