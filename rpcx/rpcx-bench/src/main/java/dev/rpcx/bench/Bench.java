package dev.rpcx.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Random;

/**
 * Two-process benchmark: it measures every peer in every case, in interleaved rounds. It prints each figure as it
 * comes. At the end it prints the medians over the rounds, with every target beside its figure. With {@code --out} it
 * also writes that as Markdown, and the targets alone as CSV.
 *
 * <p>{@code Bench [--rounds 5] [--warmup-ms 3000] [--warmup-max-ms 60000] [--window-ms 3000] [--peers a,b]
 * [--cases A,B] [--grid] [--seed 1] [--keep FILE] [--out FILE] [--notes FILE]}. A benchmark that is run in parts names
 * the same file to keep figures in for each part, and the last part reports all figures; with {@code --rounds 0} it
 * measures nothing more. Each case is called in slices of {@code --warmup-ms} until compilers take at most a tenth of
 * the processor time of a slice, for at most {@code --warmup-max-ms}. A window that is cold all the same is marked as
 * cold, and no target is judged by it. The notes are Markdown that ends the page.
 */
public final class Bench {
    /** JVM arguments of server and client, the same for every peer. */
    static final List<String> JVM_ARGS = List.of("-Xms256m", "-Xmx1g", "--enable-native-access=ALL-UNNAMED");

    static final String PINNED = "A, both on one core";
    static final int[] GRID_THREADS = {10, 100, 500, 990};
    static final int[] GRID_REQUESTS = {100, 300, 500};

    private static final Path TASKSET = Path.of("/usr/bin/taskset");

    private final Options options;
    private final FigureStore store;

    private record Options(
            int rounds,
            WarmUp warmUp,
            long windowMs,
            List<String> peers,
            List<BenchCase> cases,
            boolean grid,
            long seed,
            String keep,
            Optional<Path> out,
            Optional<Path> notes) {

        static Options parse(String[] args) {
            int rounds = 5;
            long warmUpMs = 3000;
            long warmUpMaxMs = 60_000;
            long windowMs = 3000;
            List<String> peers = Peers.NAMES;
            List<BenchCase> cases = List.of(BenchCase.values());
            boolean grid = false;
            long seed = 1;
            String keep = "";
            Optional<Path> out = Optional.empty();
            Optional<Path> notes = Optional.empty();
            for (int i = 0; i < args.length; i++) {
                if (args[i].equals("--grid")) {
                    grid = true;
                    continue;
                }
                if (i + 1 == args.length) {
                    throw new IllegalArgumentException(args[i] + ": value missing");
                }
                String value = args[++i];
                switch (args[i - 1]) {
                    case "--rounds" -> rounds = Integer.parseInt(value);
                    case "--warmup-ms" -> warmUpMs = Long.parseLong(value);
                    case "--warmup-max-ms" -> warmUpMaxMs = Long.parseLong(value);
                    case "--window-ms" -> windowMs = Long.parseLong(value);
                    case "--peers" -> {
                        peers = List.of(value.split(","));
                        peers.forEach(Peers::named);
                    }
                    case "--cases" ->
                        cases = value.equals("none")
                                ? List.of()
                                : Arrays.stream(value.split(","))
                                        .map(BenchCase::named)
                                        .toList();
                    case "--seed" -> seed = Long.parseLong(value);
                    case "--keep" -> keep = value;
                    case "--out" -> out = Optional.of(Path.of(value));
                    case "--notes" -> notes = Optional.of(Path.of(value));
                    default ->
                        throw new IllegalArgumentException("unknown option " + args[i - 1]
                                + " (expected: --rounds, --warmup-ms, --warmup-max-ms, --window-ms, --peers,"
                                + " --cases, --grid, --seed, --keep, --out, --notes)");
                }
            }
            return new Options(
                    rounds,
                    new WarmUp(warmUpMs, Math.max(warmUpMs, warmUpMaxMs)),
                    windowMs,
                    peers,
                    cases,
                    grid,
                    seed,
                    keep,
                    out,
                    notes);
        }
    }

    private Bench(Options options) throws IOException {
        this.options = options;
        this.store = new FigureStore(options.keep());
    }

    public static void main(String[] args) throws Exception {
        Options options;
        try {
            options = Options.parse(args);
        } catch (IllegalArgumentException e) {
            System.err.println("bench: " + e.getMessage());
            System.exit(1);
            return;
        }
        Bench bench = new Bench(options);
        if (options.rounds() > 0) {
            bench.store.add("command", String.join(" ", args));
            bench.store.add("commit", System.getProperty("commit", "unknown"));
        }
        Random random = new Random(options.seed());
        for (int round = 1; round <= options.rounds(); round++) {
            List<String> order = new ArrayList<>(options.peers());
            Collections.shuffle(order, random);
            for (String peer : order) {
                System.out.printf(Locale.ROOT, "round %d of %d: %s%n", round, options.rounds(), peer);
                bench.measure(peer, random);
            }
        }
        bench.write();
    }

    /**
     * Prints the result. With {@code --out} it also writes the result to FILE as Markdown, and the targets alone to a
     * file of the same name with the ending {@code .csv}.
     */
    private void write() throws IOException {
        List<Targets.Line> targets = Targets.judged(store);
        String text = Tables.heading(store) + Targets.markdown(targets) + Tables.markdown(store);
        System.out.println(text);
        if (options.out().isPresent()) {
            Path file = options.out().get();
            String name = file.getFileName().toString();
            Path csv =
                    file.resolveSibling((name.endsWith(".md") ? name.substring(0, name.length() - 3) : name) + ".csv");
            Files.writeString(
                    file,
                    options.notes().isEmpty()
                            ? text
                            : text + "\n" + Files.readString(options.notes().get()));
            Files.writeString(csv, Targets.csv(targets));
            System.out.println("written: " + file + ", " + csv);
        }
    }

    private void measure(String name, Random random) throws IOException, InterruptedException {
        Peer peer = Peers.named(name);
        try (Pair pair = new Pair(name, JVM_ARGS, false)) {
            store.add("server", name, pair.bootMs(), pair.serverMb());
            List<BenchCase> order = new ArrayList<>(options.cases());
            Collections.shuffle(order, random);
            for (BenchCase benchCase : order) {
                Optional<String> whyUnfit = benchCase.whyUnfit(peer);
                if (whyUnfit.isEmpty()) {
                    record(benchCase.title, name, pair.run(benchCase, options.warmUp(), options.windowMs()));
                } else {
                    recordMissing(benchCase.title, name, whyUnfit.get());
                }
            }
            if (options.grid()) {
                grid(name, pair);
            }
            if (!store.wire.containsKey(name)) {
                double[] bytes = pair.wireBytes(name, JVM_ARGS);
                store.add("wire", name, bytes[0], bytes[1]);
            }
        }
        if (options.cases().contains(BenchCase.A) && !Files.isExecutable(TASKSET)) {
            recordMissing(PINNED, name, "no " + TASKSET + " here");
        } else if (options.cases().contains(BenchCase.A)) {
            try (Pair pair = new Pair(name, JVM_ARGS, true)) {
                record(PINNED, name, pair.run(BenchCase.A, options.warmUp(), options.windowMs()));
            }
        }
    }

    private void grid(String name, Pair pair) throws IOException {
        // without this run, the figures of the first cells would be those of the interpreter, whatever the peer
        pair.run(BenchCase.B, options.warmUp(), options.warmUp().sliceMs());
        for (int threads : GRID_THREADS) {
            for (int requests : GRID_REQUESTS) {
                Pair.Cell cell = pair.grid(threads, requests, options.warmUp());
                System.out.printf(
                        Locale.ROOT,
                        "  grid %d x %d: %.0f TPS, compilers %.0f %%%n",
                        threads,
                        requests,
                        cell.tps(),
                        100 * cell.compilerShare());
                store.add("cell", cell(threads, requests), name, cell.tps(), cell.compilerShare());
            }
        }
    }

    static String cell(int threads, int requests) {
        return threads + " × " + requests;
    }

    private void recordMissing(String title, String peer, String why) throws IOException {
        store.add("missing", title, peer, why);
    }

    private void record(String title, String peer, Optional<Figures> figures) throws IOException {
        if (figures.isEmpty()) {
            System.out.println("  " + title + ": failed");
            recordMissing(title, peer, "a call failed, brought a wrong reply, or none ended within the window");
            return;
        }
        Figures f = figures.get();
        System.out.printf(
                Locale.ROOT,
                "  %s: %.0f calls/s, p50 %.0f µs, p99 %.0f µs, %.1f µs CPU a call, %.0f + %.0f B allocated, compilers"
                        + " %.0f %%%s, after %.0f s%n",
                title,
                f.callsPerSecond(),
                f.p50Us(),
                f.p99Us(),
                f.cpuUsPerCall(),
                f.clientBytesPerCall(),
                f.serverBytesPerCall(),
                100 * f.compilerShare(),
                f.isCold() ? " (cold)" : "",
                f.warmUpMs() / 1000);
        store.add("window", title, peer, f.toLine());
    }
}
