package dev.parley.report;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Rules;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.RunStore;
import dev.parley.store.StoredStudy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;

/** Invented runs, written through the real store: the same for the same choices. No figure in them was measured. */
final class SampleStore {
    private static final Instant START = Instant.parse("2026-11-21T08:15:30Z");
    private static final int SECONDS = 4;

    private final SplittableRandom random = new SplittableRandom(3);
    private final Topology topology;
    private final List<String> technologies;
    private final List<String> messages;
    private final List<Load> loads;
    private final int restarts;
    private final boolean troubled;
    private String rules = Integer.toString(Rules.VERSION);
    private final List<String> cold;
    private int coldRestarts = Integer.MAX_VALUE;
    private Optional<StoredStudy> study = Optional.empty();
    private String behind = "";

    /** The restart in which the machine swapped; 0 for none. */
    private int swapped;

    private Optional<Load> voided = Optional.empty();

    private SampleStore(
            String topology,
            List<String> technologies,
            List<String> messages,
            List<Load> loads,
            int restarts,
            boolean troubled) {
        this(topology, technologies, messages, loads, restarts, troubled, List.of());
    }

    private SampleStore(
            String topology,
            List<String> technologies,
            List<String> messages,
            List<Load> loads,
            int restarts,
            boolean troubled,
            List<String> cold) {
        this.cold = cold;
        this.topology = Topology.parse(topology);
        this.technologies = technologies;
        this.messages = messages;
        this.loads = loads;
        this.restarts = restarts;
        this.troubled = troubled;
    }

    /** As {@code ./parley compare} makes it; all well. */
    static Path compare(Path folder, int restarts) {
        return comparison(restarts).write(folder.resolve("results.duckdb"));
    }

    /** The same by rules of another number. */
    static Path comparedBy(String rules, Path folder, int restarts) {
        SampleStore sample = comparison(restarts);
        sample.rules = rules;
        return sample.write(folder.resolve("results.duckdb"));
    }

    private static SampleStore comparison(int restarts) {
        return new SampleStore(
                "line:5",
                List.of("rest", "grpc", "rpcx"),
                List.of("text:1000", "types:100"),
                List.of(new Load.Closed(1), new Load.Closed(16)),
                restarts,
                false);
    }

    /** The same, with compilers that took a third of the processor time of REST's services. */
    static Path cold(Path folder) {
        return new SampleStore(
                        "line:5",
                        List.of("rest", "grpc", "rpcx"),
                        List.of("text:1000", "types:100"),
                        List.of(new Load.Closed(1), new Load.Closed(16)),
                        5,
                        false,
                        List.of("rest"))
                .write(folder.resolve("results.duckdb"));
    }

    /** REST was cold in its first restarts, and in no other. */
    static Path coldAtFirst(Path folder, int coldRestarts, int restarts) {
        SampleStore sample = new SampleStore(
                "line:5",
                List.of("rest", "grpc", "rpcx"),
                List.of("text:1000", "types:100"),
                List.of(new Load.Closed(1), new Load.Closed(16)),
                restarts,
                false,
                List.of("rest"));
        sample.coldRestarts = coldRestarts;
        return sample.write(folder.resolve("results.duckdb"));
    }

    /**
     * Eight technologies and messages of very different size, with void, failed and missing trials and hostile names.
     */
    static Path troubled(Path folder) {
        return new SampleStore(
                        "line:5",
                        List.of(
                                "rest",
                                "openfeign",
                                "grpc",
                                "grpc-tuned-for-throughput",
                                "graphql",
                                "websocket",
                                "rabbitmq",
                                "kafka"),
                        List.of("text:10", "text:1000000", "types:100"),
                        List.of(new Load.Closed(16), new Load.Open(300, Load.Arrivals.POISSON)),
                        2,
                        true)
                .write(folder.resolve("results.duckdb"));
    }

    /** A gateway and its neighbours, or any other form; of one message and one load. */
    static Path of(String topology, Path folder) {
        return new SampleStore(
                        topology,
                        List.of("rest", "graphql"),
                        List.of("text:1000"),
                        List.of(new Load.Closed(1)),
                        2,
                        false)
                .write(folder.resolve("results.duckdb"));
    }

    /** The machine swapped in one restart, and every trial of REST in it is void. */
    static Path swapped(Path folder, int restart, int restarts) {
        SampleStore sample = comparison(restarts);
        sample.swapped = restart;
        return sample.write(folder.resolve("results.duckdb"));
    }

    /**
     * A load of each kind that has steps or figures of its own; the staircase gives out for {@code graphql} alone,
     * whose search ends at the highest rate that it may try.
     */
    static Path loads(Path folder) {
        return new SampleStore(
                        "line:2",
                        List.of("rest", "graphql"),
                        List.of("text:10"),
                        List.of(
                                new Load.Staircase(10, 40, 10, Duration.ofSeconds(1)),
                                new Load.HighestRate(100, 800, 99, Duration.ofMillis(50), Duration.ofSeconds(1)),
                                new Load.Users(
                                        300, 300, Duration.ofSeconds(4), 2, Load.Arrivals.EVEN, Load.ClientUse.SHARED),
                                new Load.Burst(100, 3),
                                rounds(10),
                                rounds(100)),
                        3,
                        false)
                .write(folder.resolve("results.duckdb"));
    }

    /** An open load and a target: gRPC is too slow for it, and GraphQL answers half of the requests late. */
    static Path target(Path folder) {
        SampleStore sample = new SampleStore(
                "line:2",
                List.of("rest", "grpc", "rpcx", "graphql"),
                List.of("types:100"),
                List.of(new Load.Open(300, Load.Arrivals.POISSON)),
                5,
                false);
        sample.study = Optional.of(new StoredStudy("a digest", "target: {rate: 300, p99: 5.4ms}\n"));
        sample.behind = "graphql";
        return sample.write(folder.resolve("results.duckdb"));
    }

    /** A staircase whose clients carry out a scenario of two messages. */
    static Path scenario(Path folder) {
        return new SampleStore(
                        "line:2",
                        List.of("rest", "grpc-tuned-for-throughput"),
                        List.of("list>add:1000"),
                        List.of(new Load.Staircase(10, 40, 10, Duration.ofSeconds(1))),
                        3,
                        false)
                .write(folder.resolve("results.duckdb"));
    }

    /** Every trial of REST under one load is void. */
    static Path voidUnder(Load load, Path folder) {
        SampleStore sample = comparison(3);
        sample.voided = Optional.of(load);
        return sample.write(folder.resolve("results.duckdb"));
    }

    /** Steps of rates, which give out for nobody. */
    static Path rates(Path folder) {
        return new SampleStore(
                        "line:2",
                        List.of("rest", "graphql"),
                        List.of("text:10"),
                        List.of(new Load.Rates(100, 300, 100, 1, Duration.ofSeconds(1), Load.Arrivals.EVEN)),
                        3,
                        false)
                .write(folder.resolve("results.duckdb"));
    }

    /** The same where REST was void, and GraphQL cold. */
    static Path ratesOfNothingThatCounts(Path folder) {
        Load load = new Load.Rates(100, 300, 100, 1, Duration.ofSeconds(1), Load.Arrivals.EVEN);
        SampleStore sample = new SampleStore(
                "line:2",
                List.of("rest", "graphql", "grpc"),
                List.of("text:10"),
                List.of(load),
                3,
                false,
                List.of("graphql"));
        sample.voided = Optional.of(load);
        return sample.write(folder.resolve("results.duckdb"));
    }

    private static Load rounds(int threads) {
        return new Load.Rounds(threads, 100, 3, Duration.ofSeconds(600), Load.ClientUse.SHARED);
    }

    private Path write(Path file) {
        try (RunStore store = RunStore.create(file, run())) {
            List<TrialSpec> plan = plan();
            study.ifPresentOrElse(asked -> store.appendPlan(asked, plan), () -> store.appendPlan(plan));
            store.appendLibraries(libraries());
            for (TrialSpec spec : plan) {
                trial(store, spec);
            }
        }
        return file;
    }

    private Run run() {
        Map<String, String> machine = new LinkedHashMap<>();
        machine.put("kernel", "Linux 6.1.0");
        machine.put("processor", "an invented processor");
        machine.put("cores", "2");
        machine.put("governor", "performance");
        machine.put("memory", "8 GB");
        machine.put(Rules.FACT, rules);
        return new Run(
                "2026-11-21T08-15-30",
                START,
                troubled ? "./parley compare --out '</script><b>'" : "./parley compare --quick",
                42,
                "0123456789abcdef",
                machine,
                "Temurin 25.0.1+8",
                List.of("-Xmx256m", "-XX:+UseSerialGC"),
                technologies.stream().map(this::technology).toList());
    }

    private Technology technology(String name) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("protocol", "HTTP/1.1, keep-alive");
        settings.put("connections", "one a client, pooled");
        settings.put("serializer", "Jackson 3");
        settings.put("executor", "virtual threads");
        String title = Map.of("rest", "HTTP REST (JSON)", "grpc", "gRPC", "rpcx", "RPCX")
                .getOrDefault(name, name);
        return new Technology(
                name,
                troubled && name.equals("kafka") ? "Kafka <RPC> & \"reply\"" : title,
                name.equals("kafka") ? Technology.Style.ASYNCHRONOUS : Technology.Style.SYNCHRONOUS,
                name.equals("kafka") ? Optional.of("kafka") : Optional.empty(),
                List.of("a server", "a client for each neighbour"),
                "each service knows its neighbour's address",
                settings);
    }

    private List<TrialSpec> plan() {
        List<TrialSpec> plan = new ArrayList<>();
        for (int restart = 1; restart <= restarts; restart++) {
            for (String technology : technologies) {
                for (String message : messages) {
                    for (Load load : loads) {
                        plan.add(new TrialSpec(
                                plan.size(),
                                technology,
                                topology,
                                "messages",
                                MessageSpec.parse(message),
                                load,
                                restart,
                                restart,
                                new TrialSpec.Window(
                                        Duration.ofSeconds(2), Duration.ofSeconds(10), Duration.ofSeconds(SECONDS)),
                                Duration.ofSeconds(1)));
                    }
                }
            }
        }
        return plan;
    }

    private void trial(RunStore store, TrialSpec spec) {
        int id = spec.id();
        if (troubled && id == 5) {
            store.append(new TrialRow(
                    spec,
                    TrialRow.State.FAILED,
                    START,
                    START,
                    List.of(),
                    "m3 ended with exit code 137\nlast lines of its log"));
            return;
        }
        if (troubled && spec.technology().equals("kafka") && spec.restart() == 2) {
            return;
        }
        double typicalMs = typicalMs(spec) * (1 + 0.02 * random.nextGaussian());
        List<SecondRow> seconds = new ArrayList<>();
        Histogram whole = new Histogram(3);
        for (int second = -1; second < SECONDS; second++) {
            seconds.add(second(spec, second, typicalMs, whole));
        }
        List<HistogramRow> hops = new ArrayList<>();
        int calls = topology.nodes().size();
        for (int caller = 0; caller < topology.nodes().size(); caller++) {
            for (String callee : topology.nodes().get(caller).calls()) {
                Histogram h = new Histogram(3);
                h.recordValue((long) (typicalMs * 1e6 * (calls - 1 - caller) / calls));
                hops.add(new HistogramRow(
                        id, HistogramRow.Kind.HOP, topology.nodes().get(caller).name() + ">" + callee, encoded(h)));
            }
        }
        store.append(
                new TrialRow(
                        spec,
                        TrialRow.State.FINISHED,
                        START.plusSeconds(id),
                        START.plusSeconds(id + 9),
                        reasons(spec),
                        ""),
                seconds,
                hops,
                figures(spec, typicalMs));
    }

    private List<String> reasons(TrialSpec spec) {
        boolean isVoided = voided.equals(Optional.of(spec.load())) || spec.restart() == swapped;
        if (spec.technology().equals("rest") && isVoided) {
            return List.of("3 pages were swapped");
        }
        return troubled && spec.technology().equals("rabbitmq")
                ? List.of("a core of the generator was " + (85 + spec.id() % 10) + " % busy")
                : List.of();
    }

    private double typicalMs(TrialSpec spec) {
        double base = 1.1 + 0.35 * Math.floorMod(spec.technology().hashCode(), 5);
        double clients = spec.load() instanceof Load.Closed c ? 0.7 + 0.3 * c.clients() : 1.4;
        return base * clients * (1 + spec.message().size() / 20_000.0);
    }

    /** Each client's time is full, so that Little's law holds. */
    private SecondRow second(TrialSpec spec, int second, double typicalMs, Histogram whole) {
        Histogram times = new Histogram(3);
        double budgetMs = spec.load() instanceof Load.Closed c ? c.clients() * 1_000.0 : 300 * typicalMs;
        long n = 0;
        while (budgetMs > 0 && n < 4_000) {
            double ms = Math.min(
                    900, typicalMs * Math.exp(0.3 * random.nextGaussian()) * (random.nextInt(200) == 0 ? 4 : 1));
            times.recordValue((long) (ms * 1e6));
            budgetMs -= ms;
            n++;
        }
        if (second >= 0) {
            whole.add(times);
        }
        long late = spec.technology().equals(behind) ? n : 0;
        return new SecondRow(spec.id(), second, n, late, 0, 0, 0, encoded(times));
    }

    private List<FigureRow> figures(TrialSpec spec, double typicalMs) {
        int id = spec.id();
        double payload = spec.message().kind().equals("text")
                ? spec.message().size() + 16
                : spec.message().size() * 11.0;
        int framing = 60 + Math.floorMod(spec.technology().hashCode(), 180);
        List<FigureRow> figures = new ArrayList<>(List.of(
                new FigureRow(id, Metric.PAYLOAD_OUT, "m1>m2", payload),
                new FigureRow(id, Metric.PAYLOAD_BACK, "m1>m2", payload),
                new FigureRow(id, Metric.WIRE_OUT, "m1>m2", payload + framing),
                new FigureRow(id, Metric.WIRE_BACK, "m1>m2", payload + framing / 2.0),
                new FigureRow(id, Metric.ALLOCATED_PER_REQUEST, FigureRow.SYSTEM, framing / 2.0),
                new FigureRow(id, Metric.COMPILING_SHARE, FigureRow.SYSTEM, isCold(spec) ? 34 : 4),
                new FigureRow(id, Metric.REHEARSAL_TIME, FigureRow.SYSTEM, 12),
                new FigureRow(id, Metric.FIRST_CALL, "client", 90 + typicalMs),
                new FigureRow(id, Metric.REQUESTS_SENT, "generator", 4_000),
                new FigureRow(id, Metric.REPLIES_COUNTED, "generator", 4_000),
                new FigureRow(id, Metric.GENERATOR_CPU, "generator", 31),
                new FigureRow(id, Metric.GENERATOR_COMPILING, "generator", 2),
                new FigureRow(id, Metric.REHEARSED_MEDIAN, FigureRow.SYSTEM, 0.5),
                new FigureRow(id, Metric.GENERATOR_CEILING, "generator", 60_000)));
        for (int m = 1; m <= 5; m++) {
            figures.add(new FigureRow(id, Metric.CPU_SHARE, "m" + m, 18 + m + random.nextDouble()));
            figures.add(new FigureRow(id, Metric.REQUESTS_SERVED, "m" + m, 4_000));
            figures.add(new FigureRow(id, Metric.ALLOCATED_PER_REQUEST, "m" + m, framing / 10.0));
            figures.add(new FigureRow(id, Metric.MEMORY_AFTER_LOAD, "m" + m, 95 + 3 * typicalMs + m));
            figures.add(new FigureRow(id, Metric.MEMORY_AFTER_BOOT, "m" + m, 70 + 10 * random.nextDouble()));
            figures.add(new FigureRow(id, Metric.BOOT_TIME, "m" + m, 400 + framing + 20 * random.nextDouble()));
            figures.add(new FigureRow(id, Metric.INSTALLED_SIZE, "m" + m, 3 + framing / 20.0));
        }
        figures.addAll(ofLoad(spec));
        if (id == 0) {
            figures.add(new FigureRow(id, Metric.BOOT_TIME, FigureRow.EMPTY, 210));
            figures.add(new FigureRow(id, Metric.INSTALLED_SIZE, FigureRow.EMPTY, 0.4));
            figures.add(new FigureRow(id, Metric.MEMORY_AFTER_BOOT, FigureRow.EMPTY, 48));
            figures.add(new FigureRow(id, Metric.MEMORY_AFTER_LOAD, FigureRow.EMPTY, 51));
        }
        return figures;
    }

    private boolean isCold(TrialSpec spec) {
        return cold.contains(spec.technology()) && spec.restart() <= coldRestarts;
    }

    /** As the lab makes them of steps: rates that grow by the number of the step. */
    private static List<FigureRow> ofLoad(TrialSpec spec) {
        int id = spec.id();
        List<FigureRow> figures = new ArrayList<>();
        switch (spec.load()) {
            case Load.Staircase s -> {
                for (int clients : s.steps()) {
                    figures.add(new FigureRow(id, Metric.STEP_THROUGHPUT, clients + " clients", 10.0 * clients));
                    figures.add(new FigureRow(id, Metric.STEP_LATENCY_MEAN, clients + " clients", clients / 10.0));
                }
                figures.add(new FigureRow(id, Metric.THROUGHPUT_BEST, FigureRow.SYSTEM, 400));
                figures.add(new FigureRow(id, Metric.CLIENTS_AT_BEST, FigureRow.SYSTEM, 40));
                if (spec.message().messages().size() > 1) {
                    figures.add(new FigureRow(id, Metric.SCENARIO_TIME, FigureRow.SYSTEM, 5.5));
                    figures.add(new FigureRow(id, Metric.SCENARIO_TIME_P99, FigureRow.SYSTEM, 9.5));
                }
                if (spec.technology().equals("graphql")) {
                    figures.add(new FigureRow(id, Metric.CLIENTS_AT_LIMIT, FigureRow.SYSTEM, 30));
                }
            }
            case Load.Rates r -> {
                for (double rate : r.steps()) {
                    String step = (int) rate + " per second";
                    figures.add(new FigureRow(id, Metric.STEP_THROUGHPUT, step, 0.9 * rate));
                    figures.add(new FigureRow(id, Metric.STEP_LATENCY_MEAN, step, rate / 100));
                }
                figures.add(new FigureRow(id, Metric.THROUGHPUT_BEST, FigureRow.SYSTEM, 270));
                figures.add(new FigureRow(id, Metric.RATE_AT_BEST, FigureRow.SYSTEM, 300));
            }
            case Load.HighestRate _ -> {
                figures.add(new FigureRow(id, Metric.STEP_LATENCY_P99, "try 1: 100 per second", 2));
                figures.add(new FigureRow(id, Metric.STEP_LATENCY_P99, "try 2: 800 per second", 90));
                figures.add(new FigureRow(id, Metric.STEP_LATENCY_P99, "try 3: 282.8 per second", 4));
                boolean isAsFastAsAsked = spec.technology().equals("graphql");
                figures.add(new FigureRow(id, Metric.HIGHEST_RATE, FigureRow.SYSTEM, isAsFastAsAsked ? 800 : 282.8));
            }
            case Load.Users _ -> figures.add(new FigureRow(id, Metric.SCENARIO_TIME, FigureRow.SYSTEM, 5.5));
            case Load.Burst b -> {
                for (int i = 1; i <= b.iterations(); i++) {
                    figures.add(new FigureRow(id, Metric.STEP_TIME, "iteration " + i, 20 + i));
                }
                figures.add(new FigureRow(id, Metric.WINDOW_LENGTH, FigureRow.SYSTEM, 0.066));
            }
            case Load.Rounds _ -> figures.add(new FigureRow(id, Metric.WINDOW_LENGTH, FigureRow.SYSTEM, 1.5));
            case Load _ -> {
                // nothing of its own
            }
        }
        return figures;
    }

    private List<LibraryRow> libraries() {
        List<LibraryRow> rows = new ArrayList<>();
        rows.add(new LibraryRow(FigureRow.EMPTY, "parley-service", "0.1.0", "Apache-2.0", 40_000));
        technologies.forEach(t -> rows.add(new LibraryRow(t, t + "-core", "1.2.3", "Apache-2.0", 4_200_000)));
        return rows;
    }

    private static byte[] encoded(Histogram histogram) {
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        return Arrays.copyOf(buffer.array(), histogram.encodeIntoCompressedByteBuffer(buffer));
    }
}
