package dev.rpcx.bench;

import dev.parley.probe.ProcessProbe;
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

/** One peer's server and client, each a process. Both end when this closes, or when this process does: they wait on its pipes. */
final class Pair implements AutoCloseable {
    private final Child server;
    private final Child client;
    private final int port;
    private final double bootMs;
    private final double serverMb;

    private static final class Child {
        private final Process process;
        private final BufferedReader out;
        private final PrintStream in;
        /** A line that was read too early; empty for none. */
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
        serverMb = ProcessProbe.of(server.process.toHandle()).residentBytes().orElse(0) / 1e6;
    }

    private static Child connect(String peer, List<String> prefix, List<String> jvmArgs, int port) throws IOException {
        Child client = Child.start(prefix, jvmArgs, ClientSide.class, peer, port);
        String connected = client.read();
        if (!connected.equals("connected right")) {
            throw new IOException(peer + ": " + connected);
        }
        return client;
    }

    /** Start of the server's process to its word that it serves. */
    double bootMs() {
        return bootMs;
    }

    /** Resident set of the server after its first call. */
    double serverMb() {
        return serverMb;
    }

    /** Empty when a call failed or brought a wrong reply; what happened goes to standard error. */
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
        double calls =
                f.serverBytesPerCall(); // the client passes its count of calls in the place that only the parent can
        // fill
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
        return Compilers.of(List.of(server.process.toHandle(), client.process.toHandle()));
    }

    /**
     * Calls slice after slice, until compilers take no more of one than a window may have, or the time is over.
     *
     * @return how long it took
     */
    private long warm(WarmUp warmUp) throws IOException {
        long begin = System.nanoTime();
        Compilers before = compilers();
        while (true) {
            String line = client.read();
            if (!line.equals("slice")) {
                // a call has failed: the client tells which behind the window that it measures all the same
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

    /** A cell of the grid. @param tps mean requests a second over the paper's rounds 2 to 10 */
    record Cell(double tps, double compilerShare) {}

    /** The cell again and again, in slices as above; the figure is that of the last time. */
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

    /** Bytes of one HelloWorld call out and back, in steady state: what 200 calls add to what the first 50 took. */
    double[] wireBytes(String peer, List<String> jvmArgs) throws IOException, InterruptedException {
        try (dev.parley.probe.ByteRelay relay = dev.parley.probe.ByteRelay.to("127.0.0.1", port)) {
            Child counted = connect(peer, List.of(), jvmArgs, relay.port());
            try {
                counted.ask("count 50");
                dev.parley.probe.ByteRelay.Counts before = relay.settled();
                counted.ask("count 200");
                dev.parley.probe.ByteRelay.Counts bytes = relay.settled().since(before);
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
