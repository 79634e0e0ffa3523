package dev.rpcx.bench;

import dev.rpcx.probe.ProcessProbe;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Server and client of one peer, each a process of its own. Both processes end when this object is closed, or when this
 * process ends, since they wait on its pipes.
 */
final class Pair implements AutoCloseable {
    private final Child server;
    private final Child client;
    private final int port;
    private final double bootMs;
    private final double serverMb;
    /** Probes of the server's and of the client's process, in this order. */
    private final List<ProcessProbe> probes;

    private static final class Child {
        private final Process process;
        private final BufferedReader out;
        private final PrintStream in;
        /** Line that was read too early; empty if there is none. */
        private String unread = "";

        private Child(Process process, BufferedReader out, PrintStream in) {
            this.process = process;
            this.out = out;
            this.in = in;
        }

        static Child start(List<String> prefix, List<String> jvmArgs, Class<?> main, String peer, int port)
                throws IOException {
            List<String> command = new ArrayList<>(prefix);
            command.add(ProcessHandle.current().info().command().orElse("java"));
            command.addAll(jvmArgs);
            command.addAll(List.of("-cp", Peers.classPath(peer), main.getName(), peer, Integer.toString(port)));
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            return new Child(
                    process,
                    new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)),
                    new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8));
        }

        String ask(String line) throws IOException {
            in.println(line);
            return read();
        }

        String read() throws IOException {
            String line = unread.isEmpty() ? out.readLine() : unread;
            unread = "";
            if (line == null) {
                throw new IOException("the process ended: exit code "
                        + (process.isAlive() ? "none yet" : Integer.toString(process.exitValue())));
            }
            return line;
        }

        void end() {
            in.close();
            try {
                process.onExit().get(5, TimeUnit.SECONDS);
            } catch (TimeoutException | ExecutionException late) {
                process.destroyForcibly().onExit().join();
            } catch (InterruptedException e) {
                process.destroyForcibly();
                Thread.currentThread().interrupt();
            }
        }
    }

    Pair(String peer, List<String> jvmArgs, boolean pinned) throws IOException {
        List<String> prefix = pinned ? List.of("taskset", "-c", "0") : List.of();
        port = freePort();
        long begin = System.nanoTime();
        server = Child.start(prefix, jvmArgs, ServerSide.class, peer, port);
        server.read();
        bootMs = (System.nanoTime() - begin) / 1e6;
        client = connect(peer, prefix, jvmArgs, port);
        probes = List.of(ProcessProbe.of(server.process.toHandle()), ProcessProbe.of(client.process.toHandle()));
        serverMb = probes.getFirst().residentBytes().orElse(0) / 1e6;
    }

    private static Child connect(String peer, List<String> prefix, List<String> jvmArgs, int port) throws IOException {
        Child client = Child.start(prefix, jvmArgs, ClientSide.class, peer, port);
        String connected = client.read();
        if (!connected.equals("connected right")) {
            throw new IOException(peer + ": " + connected);
        }
        return client;
    }

    /** Returns the time in milliseconds from the start of the server's process until the server said that it serves. */
    double bootMs() {
        return bootMs;
    }

    /** Returns the resident set of the server after its first call, in megabytes. */
    double serverMb() {
        return serverMb;
    }

    /**
     * Measures a case, and returns its figures. Returns empty if a call failed or brought a wrong reply, or if no call
     * ended within the window; what happened is printed to standard error.
     */
    Optional<Figures> run(BenchCase benchCase, WarmUp warmUp, long windowMs) throws IOException {
        client.in.println("run " + benchCase.name() + " " + warmUp.sliceMs() + " " + windowMs);
        long warmUpMs = warm(warmUp);
        ServerSide.Usage[] edges = new ServerSide.Usage[2];
        Compilers[] compilers = new Compilers[2];
        for (int i = 0; i < 2; i++) {
            String edge = client.read();
            if (!edge.equals("edge")) {
                System.err.println(edge);
                return Optional.empty();
            }
            String[] usage = server.ask("usage").split(" ");
            edges[i] = new ServerSide.Usage(Long.parseLong(usage[0]), Long.parseLong(usage[1]));
            compilers[i] = compilers();
            client.in.println("go on");
        }
        String line = client.read();
        if (!line.startsWith("ran ")) {
            System.err.println(line);
            return Optional.empty();
        }
        Figures f = Figures.ofLine(line.substring(4));
        // the client passes its number of calls in this field, whose own value only the parent can fill in
        double calls = f.serverBytesPerCall();
        return Optional.of(new Figures(
                f.callsPerSecond(),
                f.p50Us(),
                f.p99Us(),
                f.cpuUsPerCall() + (edges[1].cpuNs() - edges[0].cpuNs()) / 1e3 / calls,
                f.clientBytesPerCall(),
                (edges[1].allocatedBytes() - edges[0].allocatedBytes()) / calls,
                compilers[1].shareSince(compilers[0]),
                warmUpMs));
    }

    private Compilers compilers() {
        return Compilers.of(probes);
    }

    /**
     * Lets the client call slice after slice, until compilers take no larger part of a slice than they may take of a
     * warm window, or until the time for the warm-up is over.
     *
     * @return time that this took, in milliseconds
     */
    private long warm(WarmUp warmUp) throws IOException {
        long begin = System.nanoTime();
        Compilers before = compilers();
        while (true) {
            String line = client.read();
            if (!line.equals("slice")) {
                // a call has failed: the client reports the failure after the window, which it goes through all the
                // same
                client.unread = line;
                return (System.nanoTime() - begin) / 1_000_000;
            }
            Compilers now = compilers();
            long tookMs = (System.nanoTime() - begin) / 1_000_000;
            boolean isOver = warmUp.isOver(now.shareSince(before), tookMs);
            client.in.println(isOver ? "go on" : "more");
            if (isOver) {
                return tookMs;
            }
            before = now;
        }
    }

    /**
     * Measured values of a cell of the grid.
     *
     * @param tps mean number of requests per second over the paper's rounds 2 to 10; negative if a reply was wrong or
     *     missing
     */
    record Cell(double tps, double compilerShare) {}

    /**
     * Runs a cell again and again, in slices as in the warm-up of a case. The requests per second are those of the last
     * run, and the compilers' share is that of the last slice.
     */
    Cell grid(int threads, int requests, WarmUp warmUp) throws IOException {
        long begin = System.nanoTime();
        while (true) {
            Compilers before = compilers();
            long sliceBegin = System.nanoTime();
            double tps;
            do {
                tps = Double.parseDouble(client.ask("grid " + threads + " " + requests));
            } while (System.nanoTime() - sliceBegin < warmUp.sliceMs() * 1_000_000);
            double share = compilers().shareSince(before);
            if (warmUp.isOver(share, (System.nanoTime() - begin) / 1_000_000)) {
                return new Cell(tps, share);
            }
        }
    }

    /**
     * Returns the bytes of one HelloWorld call in steady state, out and then back: the bytes that 200 calls add to
     * those of the first 50, divided by 200.
     */
    double[] wireBytes(String peer, List<String> jvmArgs) throws IOException, InterruptedException {
        try (dev.rpcx.probe.ByteRelay relay = dev.rpcx.probe.ByteRelay.to("127.0.0.1", port)) {
            Child counted = connect(peer, List.of(), jvmArgs, relay.port());
            try {
                counted.ask("count 50");
                dev.rpcx.probe.ByteRelay.Counts before = relay.settled();
                counted.ask("count 200");
                dev.rpcx.probe.ByteRelay.Counts bytes = relay.settled().since(before);
                return new double[] {bytes.out() / 200.0, bytes.back() / 200.0};
            } finally {
                counted.end();
            }
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    @Override
    public void close() {
        client.end();
        server.end();
    }
}
