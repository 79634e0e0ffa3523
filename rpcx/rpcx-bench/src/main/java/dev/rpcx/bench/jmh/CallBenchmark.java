package dev.rpcx.bench.jmh;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Measures the path of a call, with client and server in one JVM over loopback: for one caller that waits, and for many
 * calls in flight from one caller.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(2)
public class CallBenchmark {
    private static final int IN_FLIGHT = 256;

    /** Client interface of the echo service. */
    @RPCXClient(remoteServerName = "echo")
    public interface EchoClient {
        @Method
        String hello(String text);

        @Method("hello")
        CompletableFuture<String> sendHello(String text);
    }

    /** Echo service that answers on the event loop. */
    @RPCXServer("echo")
    @RunOn(RunOn.Place.EVENT_LOOP)
    public static class Echo {
        @Method
        String hello(String text) {
            return text;
        }
    }

    private @Nullable Server server;
    private @Nullable Client client;
    private @Nullable EchoClient echo;

    @Setup
    public void setUp() {
        Server started = new Server(0, RegistryServer.registry(new Echo())).start();
        Client own = Client.standard();
        server = started;
        client = own;
        echo = own.create(EchoClient.class, "127.0.0.1", started.port());
    }

    @TearDown
    public void tearDown() {
        if (client != null) {
            client.close();
        }
        if (server != null) {
            server.close();
        }
    }

    @Benchmark
    public String oneCallerWaits() {
        return Objects.requireNonNull(echo).hello("HelloWorld");
    }

    @Benchmark
    @OperationsPerInvocation(IN_FLIGHT)
    public CompletableFuture<Void> manyInFlight() {
        EchoClient to = Objects.requireNonNull(echo);
        CompletableFuture<?>[] sent = new CompletableFuture<?>[IN_FLIGHT];
        for (int i = 0; i < IN_FLIGHT; i++) {
            sent[i] = to.sendHello("HelloWorld");
        }
        CompletableFuture<Void> all = CompletableFuture.allOf(sent);
        all.join();
        return all;
    }
}
