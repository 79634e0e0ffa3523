package dev.parley.transport.grpc;

import dev.parley.encoding.protobuf.Chunks;
import dev.parley.model.Technology;
import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.spi.Work;
import io.grpc.netty.NettyServerBuilder;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** One variant of gRPC. */
final class GrpcTransport implements Transport {
    /** One stream's window: a message of 1 MB leaves without waiting for window updates. The default is 1 MiB. */
    static final int TUNED_WINDOW_BYTES = 4 * 1024 * 1024;
    /** A list of 10 000 properties or a text of 10 000 000 characters passes; grpc-java's own limit is 4 MiB. */
    static final int MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

    private final GrpcUse use;
    private final Technology technology;

    GrpcTransport(GrpcUse use) {
        this.use = use;
        this.technology = new Technology(
                use.variant,
                use.title,
                Technology.Style.SYNCHRONOUS,
                Optional.empty(),
                List.of(
                        "gRPC server",
                        "service (facade of the business logic)",
                        "gRPC client (stub)",
                        ".proto shared by both sides"),
                "each service knows host and port of every service it calls",
                settings(use));
    }

    @Override
    public Technology technology() {
        return technology;
    }

    @Override
    public boolean carries(Contract contract) {
        return use != GrpcUse.MESSAGES || Own.carries(contract);
    }

    @Override
    public Work work(Work work) {
        return use == GrpcUse.MESSAGES ? new OwnWork(work) : work;
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        NettyServerBuilder builder = NettyServerBuilder.forAddress(new InetSocketAddress(at.host(), at.port()))
                .maxInboundMessageSize(MAX_MESSAGE_BYTES)
                .addService(Methods.of(contract).serve(handler));
        ExecutorService executor = use.isTuned() ? Executors.newVirtualThreadPerTaskExecutor() : null;
        if (executor != null) {
            builder.executor(executor).flowControlWindow(TUNED_WINDOW_BYTES);
        }
        try {
            io.grpc.Server server = builder.build().start();
            return () -> {
                end(server);
                if (executor != null) {
                    executor.shutdown();
                }
            };
        } catch (IOException e) {
            if (executor != null) {
                executor.shutdown();
            }
            throw new CallException(
                    CallException.Code.UNAVAILABLE, at + " cannot be listened on: " + rootMessage(e), e);
        }
    }

    /** Calls under way get a second, then they are cut off. */
    private static void end(io.grpc.Server server) {
        server.shutdown();
        try {
            if (!server.awaitTermination(Server.GRACE.toMillis(), TimeUnit.MILLISECONDS)) {
                server.shutdownNow().awaitTermination(Server.GRACE.toMillis(), TimeUnit.MILLISECONDS);
            }
        } catch (InterruptedException e) {
            server.shutdownNow();
            Thread.currentThread().interrupt();
        }
    }

    private static String rootMessage(Throwable thrown) {
        Throwable t = thrown;
        while (t.getCause() != null) {
            t = t.getCause();
        }
        return String.valueOf(t.getMessage());
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new GrpcNeighbour(Methods.of(contract), to, use.isTuned());
    }

    private static Map<String, String> settings(GrpcUse use) {
        boolean isTuned = use.isTuned();
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put(
                "server",
                "NettyServerBuilder"
                        + (isTuned ? "" : ", as the basics tutorial sets it up (grpc.io/docs/languages/java/basics)"));
        settings.put("client", "NettyChannelBuilder, plaintext, one channel for each neighbour, reused for all calls");
        settings.put("HTTP version", "2, without TLS");
        settings.put("connections", "one for each channel");
        settings.put(
                "executor, server",
                isTuned
                        ? "a virtual thread for each call (grpc.io/docs/guides/performance: provide a custom executor)"
                        : "grpc-java's shared cached thread pool");
        settings.put(
                "executor, client", "grpc-java's shared cached thread pool; blocking callers wait on their own thread");
        settings.put(
                "serializer",
                use == GrpcUse.MESSAGES
                        ? "Protobuf, generated messages, which handlers and clients work on"
                        : "Protobuf, generated messages, converted to and from the service's records");
        settings.put("TCP_NODELAY", "on: grpc-java's own choice");
        settings.put(
                "flow control window",
                isTuned
                        ? TUNED_WINDOW_BYTES + " bytes (NettyServerBuilder.flowControlWindow)"
                        : "1 MiB, grpc-java's own");
        settings.put(
                "message size", "at most " + MAX_MESSAGE_BYTES + " bytes (maxInboundMessageSize; 4 MiB by default)");
        settings.put(
                "large contents",
                "streamed, client or server, in messages of " + Chunks.CHUNK_BYTES
                        + " bytes: photos; all else is unary");
        settings.put("transport", "epoll where it fits, as in grpc-netty-shaded");
        settings.put("compression", "none");
        settings.put("retries", "grpc-java's own: only calls that never left, transparently");
        settings.put("errors", "gRPC status with description");
        return settings;
    }
}
