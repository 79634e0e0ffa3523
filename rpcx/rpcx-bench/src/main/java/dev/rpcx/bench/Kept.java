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
    /** grid cell → peer → TPS by round. */
    final Map<String, Map<String, List<Double>>> grid = new LinkedHashMap<>();
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
            case "case" ->
                cases.computeIfAbsent(f[1], t -> new LinkedHashMap<>())
                        .computeIfAbsent(f[2], p -> new ArrayList<>())
                        .add(Figures.ofLine(f[3]));
            case "missing" -> {
                cases.computeIfAbsent(f[1], t -> new LinkedHashMap<>());
                missing.computeIfAbsent(f[1], t -> new LinkedHashMap<>()).put(f[2], f[3]);
            }
            case "grid" ->
                grid.computeIfAbsent(f[1], c -> new LinkedHashMap<>())
                        .computeIfAbsent(f[2], p -> new ArrayList<>())
                        .add(Double.valueOf(f[3]));
            case "server" ->
                servers.computeIfAbsent(f[1], p -> new ArrayList<>())
                        .add(new double[] {Double.parseDouble(f[2]), Double.parseDouble(f[3])});
            case "wire" -> wire.put(f[1], new double[] {Double.parseDouble(f[2]), Double.parseDouble(f[3])});
            default -> throw new IllegalArgumentException(file + ": " + f[0] + " (expected: a figure kept by a run)");
        }
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
