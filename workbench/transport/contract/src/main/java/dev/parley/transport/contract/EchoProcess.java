package dev.parley.transport.contract;

import dev.parley.model.Topology;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.parley.work.messages.MessagesWork;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/**
 * A server in a process of its own, so that it can be killed: echoes, and keeps a request whose text is {@link #HOLD} for ever, after
 * saying so. Ends when its standard input does.
 */
public final class EchoProcess implements AutoCloseable {
    static final String HOLD = "hold";

    private final Process process;
    private final BufferedReader output;

    private EchoProcess(Process process) {
        this.process = process;
        this.output = process.inputReader(StandardCharsets.UTF_8);
    }

    /** Starts one with this process's class path, and returns when it serves. */
    static EchoProcess start(String technology, String service, Location at) {
        try {
            EchoProcess started = new EchoProcess(new ProcessBuilder(
                            ProcessHandle.current().info().command().orElse("java"),
                            "-XX:TieredStopAtLevel=1",
                            "-XX:+UseSerialGC",
                            "-Xmx256m",
                            "-cp",
                            System.getProperty("java.class.path"),
                            EchoProcess.class.getName(),
                            technology,
                            service,
                            at.toString())
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start());
            started.awaitLine("serving");
            return started;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void awaitHeld() {
        awaitLine("held");
    }

    /** As {@code kill -9} does; returns when the process is gone. */
    void kill() {
        process.destroyForcibly().onExit().join();
    }

    @Override
    public void close() {
        kill();
    }

    private void awaitLine(String expected) {
        try {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                if (line.equals(expected)) {
                    return;
                }
            }
            throw new IllegalStateException("the server process ended (expected: the line " + expected + ")");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static void main(String[] args) throws IOException {
        Transport transport = TransportProvider.named(args[0]);
        Topology.Node leaf = new Topology.Node(args[1], List.of(), Topology.Calling.ONE_AFTER_THE_OTHER);
        Handler echo = new MessagesWork().node(leaf, Map.of());
        Handler handler = new Answering((operation, request) -> {
            if (request instanceof TestModelOnlyText text && text.textField().equals(HOLD)) {
                System.out.println("held");
                new CountDownLatch(1).await();
            }
            return answer(echo, operation, request);
        });
        transport.serve(args[1], Messages.CONTRACT, Location.parse(args[2]), handler);
        System.out.println("serving");
        while (System.in.read() >= 0) {
            // nothing is said to it: the end of its input is all that counts
        }
        Runtime.getRuntime().halt(0);
    }

    private static <Q extends Record> Record answer(
            Handler handler, dev.parley.spi.Operation<Q, ?> operation, Record request) {
        return handler.handle(operation, operation.request().cast(request));
    }
}
