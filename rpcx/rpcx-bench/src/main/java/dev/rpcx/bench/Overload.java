package dev.rpcx.bench;

import dev.rpcx.probe.MachineFacts;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Measures the goodput, which is the number of calls that are answered in time. It offers a service of known capacity
 * 1, 2, 5 and 10 times what the service can do, at a fixed rate whatever comes back. RPCX and grpc-java are measured in
 * interleaved rounds, with server and client as processes of their own.
 *
 * <p>{@code Overload [--rounds 3] [--millis 5000] [--seed 1] [--out FILE]}. It starts the processes of servers and
 * clients itself, as {@code Overload serve|call PEER PORT}.
 */
public final class Overload {
    private static final int[] FACTORS = {1, 2, 5, 10};

    /** Calls per second that the service of {@link OverloadPeer} can do at best. */
    private static final long CAPACITY = OverloadPeer.WORKERS * 1000 / OverloadPeer.WORK_MILLIS;

    /**
     * Largest number of calls that have not ended. When it is reached, the client sends no more, since its own memory
     * is not what is measured.
     */
    private static final int MAX_IN_FLIGHT = 20_000;

    /**
     * Figures of one window. The first five are numbers of calls per second: answered in time, refused, not answered
     * in time, not sent, and done by the server. The last two are the numbers of processors that the server and the
     * client kept busy.
     */
    private record Figures(
            double good,
            double refused,
            double late,
            double unsent,
            double done,
            double serverCores,
            double clientCores) {}

    private Overload() {}

    public static void main(String[] args) throws Exception {
        if (args.length == 3 && args[0].equals("serve")) {
            serve(args[1], Integer.parseInt(args[2]));
        } else if (args.length == 3 && args[0].equals("call")) {
            call(args[1], Integer.parseInt(args[2]));
        } else {
            measure(args);
        }
    }

    private static void serve(String peer, int port) throws Exception {
        OverloadPeer.Work work = new OverloadPeer.Work();
        AutoCloseable server = OverloadPeer.named(peer).serve(port, work);
        System.out.println("serving");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (commands.readLine() != null) {
            System.out.println(work.done.get());
        }
        server.close();
        System.exit(0);
    }

    private static void call(String peer, int port) throws Exception {
        try (OverloadPeer.Caller caller = OverloadPeer.named(peer).connect(port)) {
            System.out.println("connected");
            BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String command = commands.readLine(); command != null; command = commands.readLine()) {
                String[] asked = command.split(" ");
                System.out.println(offer(caller, Long.parseLong(asked[0]), Long.parseLong(asked[1])));
            }
        }
        System.exit(0);
    }

    private static String offer(OverloadPeer.Caller caller, long perSecond, long millis) {
        AtomicLong[] ends = {new AtomicLong(), new AtomicLong(), new AtomicLong()};
        AtomicInteger inFlight = new AtomicInteger();
        long unsent = 0;
        long count = perSecond * millis / 1000;
        long begin = System.nanoTime();
        for (long i = 0; i < count; i++) {
            long due = begin + i * TimeUnit.SECONDS.toNanos(1) / perSecond;
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            if (inFlight.get() >= MAX_IN_FLIGHT) {
                unsent++;
                continue;
            }
            inFlight.incrementAndGet();
            caller.call(end -> {
                boolean inTime = System.nanoTime() - due <= TimeUnit.MILLISECONDS.toNanos(OverloadPeer.DEADLINE_MILLIS);
                OverloadPeer.End outcome =
                        end == OverloadPeer.End.REPLIED && !inTime ? OverloadPeer.End.FAILED_OR_LATE : end;
                ends[outcome.ordinal()].incrementAndGet();
                inFlight.decrementAndGet();
            });
        }
        long waitUntil = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (inFlight.get() > 0 && waitUntil - System.nanoTime() > 0) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        }
        return ends[0] + " " + ends[1] + " " + (ends[2].get() + inFlight.get()) + " " + unsent;
    }

    // ---- the parent

    private record Child(Process process, BufferedReader out, PrintStream in) {
        static Child start(String role, String peer, int port) throws IOException {
            List<String> command = new ArrayList<>();
            command.add(ProcessHandle.current().info().command().orElse("java"));
            command.addAll(Bench.JVM_ARGS);
            command.addAll(List.of(
                    "-cp",
                    System.getProperty("java.class.path"),
                    Overload.class.getName(),
                    role,
                    peer,
                    Integer.toString(port)));
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            return new Child(
                    process,
                    new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)),
                    new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8));
        }

        String read() throws IOException {
            String line = out.readLine();
            if (line == null) {
                throw new IOException("the process ended");
            }
            return line;
        }

        String ask(String line) throws IOException {
            in.println(line);
            return read();
        }

        /** Returns the processor time that the process has used so far, in seconds. */
        double seconds() {
            return process.info().totalCpuDuration().orElse(Duration.ZERO).toNanos() / 1e9;
        }

        void end() throws InterruptedException {
            in.close();
            if (!process.waitFor(5, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        }
    }

    private static void measure(String[] args) throws Exception {
        int rounds = 3;
        long millis = 5000;
        long seed = 1;
        Path out = null;
        for (int i = 0; i + 1 < args.length; i += 2) {
            switch (args[i]) {
                case "--rounds" -> rounds = Integer.parseInt(args[i + 1]);
                case "--millis" -> millis = Long.parseLong(args[i + 1]);
                case "--seed" -> seed = Long.parseLong(args[i + 1]);
                case "--out" -> out = Path.of(args[i + 1]);
                default -> {
                    System.err.println(
                            "overload: unknown option " + args[i] + " (expected: --rounds, --millis, --seed or --out)");
                    System.exit(1);
                }
            }
        }
        Map<OverloadPeer, Map<Integer, List<Figures>>> all = new LinkedHashMap<>();
        Random random = new Random(seed);
        for (int round = 1; round <= rounds; round++) {
            List<OverloadPeer> order = new ArrayList<>(Arrays.asList(OverloadPeer.values()));
            Collections.shuffle(order, random);
            for (OverloadPeer peer : order) {
                System.out.printf(Locale.ROOT, "round %d of %d: %s%n", round, rounds, peer.title);
                round(peer, millis, all.computeIfAbsent(peer, p -> new LinkedHashMap<>()));
            }
        }
        String text = markdown(all, rounds, String.join(" ", args));
        System.out.println(text);
        if (out != null) {
            Files.writeString(out, text);
            System.out.println("written: " + out);
        }
    }

    private static void round(OverloadPeer peer, long millis, Map<Integer, List<Figures>> figures) throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        Child server = Child.start("serve", peer.title, port);
        try {
            server.read();
            Child client = Child.start("call", peer.title, port);
            try {
                client.read();
                client.ask(CAPACITY + " 2000");
                for (int factor : FACTORS) {
                    // a server that adapts finds its limit during these 2 s, which are not measured
                    client.ask(CAPACITY * factor + " 2000");
                    long before = Long.parseLong(server.ask("done"));
                    double serverBefore = server.seconds();
                    double clientBefore = client.seconds();
                    String[] ends = client.ask(CAPACITY * factor + " " + millis).split(" ");
                    double seconds = millis / 1000.0;
                    Figures f = new Figures(
                            Long.parseLong(ends[0]) / seconds,
                            Long.parseLong(ends[1]) / seconds,
                            Long.parseLong(ends[2]) / seconds,
                            Long.parseLong(ends[3]) / seconds,
                            (Long.parseLong(server.ask("done")) - before) / seconds,
                            (server.seconds() - serverBefore) / seconds,
                            (client.seconds() - clientBefore) / seconds);
                    System.out.println("  x" + factor + ": " + f);
                    figures.computeIfAbsent(factor, k -> new ArrayList<>()).add(f);
                }
            } finally {
                client.end();
            }
        } finally {
            server.end();
        }
    }

    private static double median(List<Figures> rounds, java.util.function.ToDoubleFunction<Figures> of) {
        double[] sorted = rounds.stream().mapToDouble(of).sorted().toArray();
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    private static String markdown(Map<OverloadPeer, Map<Integer, List<Figures>>> all, int rounds, String arguments) {
        StringBuilder text =
                new StringBuilder("# Goodput in overload\n\nCommand: `rpcx/rpcx-bench/overload " + arguments
                        + "`  \nDate: " + LocalDate.now() + "; machine: " + MachineFacts.read() + "  \nJDK: "
                        + System.getProperty("java.vm.version") + "; JVM flags of every process: `"
                        + String.join(" ", Bench.JVM_ARGS) + "`\n\n");
        text.append("A service that can do " + CAPACITY + " calls a second at best (" + OverloadPeer.WORKERS
                + " at a time, " + OverloadPeer.WORK_MILLIS
                + " ms each) is offered 1, 2, 5 and 10 times that at a fixed rate. A call has "
                + OverloadPeer.DEADLINE_MILLIS + " ms from when it was due.\nMedians over " + rounds
                + " interleaved rounds"
                + (rounds < 5 ? " (under five: indicative)" : "")
                + ", lowest and highest beside. Refused: told at once that the server is overloaded. Done: finished by\n"
                + "the server; what is above the goodput was done for nobody. `grpc` is grpc-java as its guides set it up, `grpc-limited` has an\n"
                + "interceptor that takes as many calls at once as the service can do in half a deadline; RPCX is told nothing. Cores: kept busy by\n"
                + "the server, and by the client that offers the calls, of those that the machine has.\n\n");
        text.append(
                "| offered | peer | goodput /s | lowest – highest | of its peak | refused /s | late /s | done /s | server cores | client cores |\n");
        text.append("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        for (int factor : FACTORS) {
            for (OverloadPeer peer : OverloadPeer.values()) {
                Map<Integer, List<Figures>> own = all.getOrDefault(peer, Map.of());
                List<Figures> f = own.getOrDefault(factor, List.of());
                double peak = own.values().stream()
                        .mapToDouble(r -> median(r, Figures::good))
                        .max()
                        .orElse(0);
                text.append(String.format(
                        Locale.ROOT,
                        "| × %d | %s | %.0f | %.0f – %.0f | %.0f %% | %.0f | %.0f | %.0f | %.2f | %.2f |%n",
                        factor,
                        peer.title,
                        median(f, Figures::good),
                        f.stream().mapToDouble(Figures::good).min().orElse(0),
                        f.stream().mapToDouble(Figures::good).max().orElse(0),
                        peak == 0 ? 0 : 100 * median(f, Figures::good) / peak,
                        median(f, Figures::refused),
                        median(f, r -> r.late() + r.unsent()),
                        median(f, Figures::done),
                        median(f, Figures::serverCores),
                        median(f, Figures::clientCores)));
            }
        }
        return text.append('\n').toString();
    }
}
