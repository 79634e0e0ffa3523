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
 * All figures of a benchmark, by case or cell of the grid and by peer. With a file, a run continues where an earlier
 * run stopped, so that a long benchmark can be run in parts. The file has one figure a line, with its fields separated
 * by tabs.
 */
final class FigureStore {
    /** Maps each case to its peers, and each peer to its figures, one element for each round. */
    final Map<String, Map<String, List<Figures>>> cases = new LinkedHashMap<>();
    /** Maps each cell of the grid to its peers, and each peer to its measured cells, one element for each round. */
    final Map<String, Map<String, List<Pair.Cell>>> grid = new LinkedHashMap<>();
    /** Maps each peer to the boot time in ms and the resident size in MB of its server, one array for each round. */
    final Map<String, List<double[]>> servers = new LinkedHashMap<>();
    /** Maps each peer to the bytes of one call: those sent out, then those that come back. */
    final Map<String, double[]> wire = new LinkedHashMap<>();
    /** Maps each case to the peers for which a round brought no figure, and each of these peers to the last reason. */
    final Map<String, Map<String, String>> missing = new LinkedHashMap<>();
    /** Arguments of the runs that measured these figures, in the order of the runs. */
    final List<String> commands = new ArrayList<>();
    /** Commits that were measured. */
    final Set<String> commits = new LinkedHashSet<>();

    private final Path file;

    /** @param file name of the file; empty for no file */
    FigureStore(String file) throws IOException {
        this.file = Path.of(file);
        if (isKept() && Files.exists(this.file)) {
            for (String line : Files.readAllLines(this.file)) {
                parse(line.split("\t", -1));
            }
        }
    }

    private boolean isKept() {
        return !file.toString().isEmpty();
    }

    private void parse(String[] f) {
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
     * Returns the rounds of a peer in a case that count: the rounds whose windows were warm, unless fewer than half of
     * all rounds were warm.
     *
     * @return empty if the peer is cold in this case, or was not measured
     */
    List<Figures> warm(String title, String peer) {
        List<Figures> all = cases.getOrDefault(title, Map.of()).getOrDefault(peer, List.of());
        List<Figures> warm = all.stream().filter(f -> !f.isCold()).toList();
        return 2 * warm.size() < all.size() ? List.of() : warm;
    }

    /** Returns the TPS of the rounds of a peer in a cell that count, by the same rule as {@code warm}. */
    List<Double> warmCell(String cell, String peer) {
        List<Pair.Cell> all = grid.getOrDefault(cell, Map.of()).getOrDefault(peer, List.of());
        List<Double> warm = all.stream()
                .filter(c -> c.compilerShare() <= Compilers.MAX_SHARE)
                .map(Pair.Cell::tps)
                .toList();
        return 2 * warm.size() < all.size() ? List.of() : warm;
    }

    /**
     * Adds a figure, a command or a commit, and appends it to the file if there is one. The first field is the kind;
     * {@code parse} has the fields that follow for each kind.
     */
    void add(Object... fields) throws IOException {
        String[] f = new String[fields.length];
        for (int i = 0; i < f.length; i++) {
            f[i] = fields[i].toString();
        }
        parse(f);
        if (isKept()) {
            Files.writeString(file, String.join("\t", f) + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        }
    }
}
