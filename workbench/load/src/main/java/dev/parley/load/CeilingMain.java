package dev.parley.load;

import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The generator's own ceiling: requests a second and processor time per request against a server that does nothing,
 * beside {@code wrk} against the same server, in one run and interleaved; and how late requests are sent under open
 * load. Writes {@code ceiling.md} and {@code ceiling.csv}. See {@code workbench/load/ceiling}.
 */
public final class CeilingMain {
    private static final Pattern RATE = Pattern.compile("Requests/sec:\\s+([0-9.]+)");
    private static final Pattern TIMES = Pattern.compile("cpu ([0-9.]+) ([0-9.]+)");
    private static final long SEED = 42;
    /** The echo server answers within microseconds: more than this many at once is a machine that stood still. */
    private static final int MAX_IN_FLIGHT = 512;

    private final Options options;
    private final int port;
    private final ProcessHandle server;
    private final List<Row> rows = new ArrayList<>();

    private record Options(int rounds, int seconds, int connections, String wrk, Path out, String command) {}

    /**
     * @param cpuUs of the generator, microseconds a request
     * @param serverCpuUs of the server, the same
     */
    private record Row(
            int round,
            String generator,
            String load,
            double perSecond,
            double cpuUs,
            double serverCpuUs,
            double latenessP50Us,
            double latenessP99Us,
            String notes) {}

    private CeilingMain(Options options, int port, ProcessHandle server) {
        this.options = options;
        this.port = port;
        this.server = server;
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        Options options = options(args);
        Process echo = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:+UseSerialGC",
                        "-Xmx64m",
                        "-cp",
                        System.getProperty("java.class.path"),
                        EchoServer.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        // the server ends with its input, so also when this process is killed
        try (BufferedReader said = echo.inputReader(StandardCharsets.UTF_8);
                OutputStream _ = echo.getOutputStream()) {
            String port = said.readLine();
            if (port == null) {
                throw new IOException("the echo server ended before it said its port");
            }
            CeilingMain ceiling = new CeilingMain(options, Integer.parseInt(port), echo.toHandle());
            ceiling.measure();
            ceiling.write();
        } finally {
            echo.destroy();
            if (!echo.waitFor(5, TimeUnit.SECONDS)) {
                echo.destroyForcibly();
            }
        }
    }

    private static Options options(String[] args) {
        int rounds = 5;
        int seconds = 10;
        int connections = 16;
        String wrk = "wrk";
        Path out = Path.of("");
        for (int i = 0; i < args.length; i += 2) {
            if (i + 1 == args.length) {
                throw new BadInput(args[i], "", "a value");
            }
            String value = args[i + 1];
            switch (args[i]) {
                case "--rounds" -> rounds = Integer.parseInt(value);
                case "--seconds" -> seconds = Integer.parseInt(value);
                case "--connections" -> connections = Integer.parseInt(value);
                case "--wrk" -> wrk = value;
                case "--out" -> out = Path.of(value);
                default -> throw new BadInput("option", args[i], "--rounds, --seconds, --connections, --wrk or --out");
            }
        }
        String told = String.join(" ", args).replace(System.getProperty("user.home"), "~");
        return new Options(rounds, seconds, connections, wrk, out, "workbench/load/ceiling " + told);
    }

    private interface Measurement {
        void carryOut(int round) throws IOException, InterruptedException;
    }

    private void measure() throws IOException, InterruptedException {
        try (EchoTarget echo = new EchoTarget(port)) {
            Load closed = new Load.Closed(options.connections());
            // both sides are compiled before anything counts
            engine(0, "warm-up", closed, echo);
            engine(0, "warm-up", Load.parse("open:10000:even"), echo);
            rows.clear();
            List<Measurement> measurements = new ArrayList<>();
            measurements.add(round -> engine(round, "parley", closed, echo));
            measurements.add(round -> engine(round, "parley", Load.parse("open:1000:even"), echo));
            measurements.add(round -> engine(round, "parley", Load.parse("open:10000:even"), echo));
            measurements.add(round -> engine(round, "parley, no network", new Load.Closed(1), new Nothing()));
            if (!options.wrk().equals("none")) {
                measurements.add(this::wrk);
            }
            Random random = new Random(SEED);
            for (int round = 1; round <= options.rounds(); round++) {
                Collections.shuffle(measurements, random);
                for (Measurement measurement : measurements) {
                    measurement.carryOut(round);
                }
            }
        }
    }

    /** The engine with nothing to wait for: what is left is its own. */
    private static final class Nothing implements Target {
        @Override
        public boolean call(int place, long index) {
            return true;
        }

        @Override
        public void send(int place, long index, Asker asker) {
            asker.ended(true, null);
        }
    }

    private void engine(int round, String generator, Load load, Target target) throws InterruptedException {
        List<Event.Finished> finished = new ArrayList<>();
        double serverBefore = serverSeconds();
        Duration warmUp = Duration.ofSeconds(round == 0 ? 3 : 1);
        new Engine(Clock.SYSTEM, event -> {
                    if (event instanceof Event.Finished f) {
                        finished.add(f);
                    }
                })
                .run(
                        new Engine.Trial(
                                round,
                                load,
                                new TrialSpec.Window(warmUp, warmUp, Duration.ofSeconds(options.seconds())),
                                Duration.ofSeconds(1),
                                Duration.ofSeconds(5),
                                MAX_IN_FLIGHT,
                                SEED),
                        target);
        Event.Finished f = finished.getFirst();
        double windowSeconds = f.windowNs() / 1e9;
        double perSecond = f.replied() / windowSeconds;
        // the server's clock ran through the warm-up too, at the same rate
        double serverCpu = target instanceof EchoTarget
                ? (serverSeconds() - serverBefore) / (perSecond * (windowSeconds + warmUp.toSeconds())) * 1e6
                : Double.NaN;
        rows.add(new Row(
                round,
                generator,
                load.toString(),
                perSecond,
                f.cpuShare() / perSecond * 1e6,
                serverCpu,
                load.isOpen() ? f.latenessP50Ns() / 1e3 : Double.NaN,
                load.isOpen() ? f.latenessP99Ns() / 1e3 : Double.NaN,
                f.due() == f.replied() ? "" : f.due() - f.replied() + " of " + f.due() + " no success"));
        System.err.println(rows.getLast());
    }

    private void wrk(int round) throws IOException, InterruptedException {
        double serverBefore = serverSeconds();
        Process process = new ProcessBuilder(
                        "bash",
                        "-c",
                        "TIMEFORMAT='cpu %U %S'; time \"$0\" \"$@\"",
                        options.wrk(),
                        "-t1",
                        "-c" + options.connections(),
                        "-d" + options.seconds() + "s",
                        "http://127.0.0.1:" + port + "/")
                .redirectErrorStream(true)
                .start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int code = process.waitFor();
        Matcher rate = RATE.matcher(text);
        Matcher times = TIMES.matcher(text);
        if (code != 0 || !rate.find() || !times.find()) {
            throw new IOException("wrk (" + options.wrk() + ") said: " + text);
        }
        double perSecond = Double.parseDouble(rate.group(1));
        double requests = perSecond * options.seconds();
        rows.add(new Row(
                round,
                "wrk",
                "closed:" + options.connections(),
                perSecond,
                (Double.parseDouble(times.group(1)) + Double.parseDouble(times.group(2))) / requests * 1e6,
                (serverSeconds() - serverBefore) / requests * 1e6,
                Double.NaN,
                Double.NaN,
                text.contains("Non-2xx") || text.contains("Socket errors") ? "errors" : ""));
        System.err.println(rows.getLast());
    }

    private double serverSeconds() {
        return server.info().totalCpuDuration().orElse(Duration.ZERO).toNanos() / 1e9;
    }

    private void write() throws IOException {
        Files.createDirectories(options.out().toAbsolutePath());
        StringBuilder csv = new StringBuilder("round,generator,load,per_second,generator_cpu_us,server_cpu_us,"
                + "lateness_p50_us,lateness_p99_us,notes\n");
        for (Row row : rows) {
            csv.append(String.format(
                    Locale.ROOT,
                    "%d,\"%s\",%s,%.1f,%.3f,%.3f,%.1f,%.1f,%s%n",
                    row.round(),
                    row.generator(),
                    row.load(),
                    row.perSecond(),
                    row.cpuUs(),
                    row.serverCpuUs(),
                    row.latenessP50Us(),
                    row.latenessP99Us(),
                    row.notes()));
        }
        Files.writeString(options.out().resolve("ceiling.csv"), csv.toString().replace("NaN", ""));
        Files.writeString(options.out().resolve("ceiling.md"), markdown());
    }

    private String markdown() throws IOException {
        StringBuilder text = new StringBuilder("# The load generator's own ceiling\n\n");
        text.append("Against a server that does nothing, one thread, on the same machine. Medians of ")
                .append(options.rounds())
                .append(options.rounds() == 1 ? " round" : " rounds")
                .append(" of ")
                .append(options.seconds())
                .append(" s each, in random order within a round")
                .append(options.rounds() < 5 ? " (under five rounds: indicative)" : "")
                .append(". Least and most in brackets.\n\n")
                .append("- command: `")
                .append(options.command().strip())
                .append("`\n- date: ")
                .append(Instant.now().truncatedTo(ChronoUnit.SECONDS))
                .append("\n- machine: ")
                .append(machine())
                .append("\n- JDK: ")
                .append(System.getProperty("java.vendor"))
                .append(' ')
                .append(System.getProperty("java.vm.version"))
                .append("\n- commit: ")
                .append(System.getProperty("parley.commit", "unknown"))
                .append("\n- seed of the order: ")
                .append(SEED)
                .append(
                        "\n\n| generator | load | requests/s | its CPU, µs a request | the server's | lateness p50, µs | p99, µs |\n")
                .append("| --- | --- | --- | --- | --- | --- | --- |\n");
        for (Row first : rows.stream()
                .filter(r -> r.round() == 1)
                .sorted(java.util.Comparator.comparing(Row::generator).thenComparing(Row::load))
                .toList()) {
            List<Row> same = rows.stream()
                    .filter(r ->
                            r.generator().equals(first.generator()) && r.load().equals(first.load()))
                    .toList();
            text.append("| ")
                    .append(first.generator())
                    .append(" | ")
                    .append(first.load())
                    .append(" | ")
                    .append(field(same.stream().mapToDouble(Row::perSecond).toArray(), 0))
                    .append(" | ")
                    .append(field(same.stream().mapToDouble(Row::cpuUs).toArray(), 2))
                    .append(" | ")
                    .append(field(same.stream().mapToDouble(Row::serverCpuUs).toArray(), 2))
                    .append(" | ")
                    .append(field(same.stream().mapToDouble(Row::latenessP50Us).toArray(), 1))
                    .append(" | ")
                    .append(field(same.stream().mapToDouble(Row::latenessP99Us).toArray(), 1))
                    .append(" |\n");
        }
        return text.toString();
    }

    private static String field(double[] values, int digits) {
        java.util.Arrays.sort(values);
        if (values.length == 0 || Double.isNaN(values[values.length - 1])) {
            return "";
        }
        String number = "%,." + digits + "f";
        int half = values.length / 2;
        double median = values.length % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
        return values.length == 1
                ? String.format(Locale.ROOT, number, median)
                : String.format(
                        Locale.ROOT,
                        number + " (" + number + " – " + number + ")",
                        median,
                        values[0],
                        values[values.length - 1]);
    }

    private static String machine() throws IOException {
        String cpu = System.getProperty("os.arch");
        File info = new File("/proc/cpuinfo");
        if (info.exists()) {
            try (BufferedReader lines = new BufferedReader(
                    new InputStreamReader(Files.newInputStream(info.toPath()), StandardCharsets.UTF_8))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    if (line.startsWith("model name")) {
                        cpu = line.substring(line.indexOf(':') + 1).strip();
                        break;
                    }
                }
            }
        }
        return cpu + ", " + Runtime.getRuntime().availableProcessors() + " cores, " + System.getProperty("os.name")
                + " " + System.getProperty("os.version");
    }
}
