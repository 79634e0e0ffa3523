package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.io.NettyVersion;
import dev.rpcx.internal.ledger.AddressGroups;
import dev.rpcx.internal.schema.ProtoNames;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.GrpcProvider;
import dev.rpcx.internal.server.ServerCore;
import dev.rpcx.internal.server.ServerMethod;
import dev.rpcx.internal.server.ServerPlatform;
import dev.rpcx.internal.server.ServerSettings;
import dev.rpcx.internal.server.ServiceIndex;
import dev.rpcx.internal.server.TranslatedWire;
import dev.rpcx.internal.wire.Wire;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Serves the methods of a {@link RegistryServer} on one port. A server object can be started only once. Clients that
 * speak the classic wire, that is, the simpler of RPCX's two wire protocols, are served only if {@link Builder#classic}
 * is set, and clients of gRPC only if {@link Builder#grpc} is.
 *
 * <pre>{@code
 * try (Server server = new Server(9000, RegistryServer.registry(new Greetings())).start()) {
 *     …
 * }
 * }</pre>
 */
public final class Server implements AutoCloseable {
    private static final Duration STOP_TIME = Duration.ofSeconds(5);

    private final ServerCore core;

    /** Services of the user, without those that RPCX adds. */
    private final RegistryServer registry;

    private final List<String> published;

    /**
     * Creates a server for the methods of this registry, with the default settings.
     *
     * @param port port to listen on: 0 to 65535; with 0 the system chooses a free port
     * @throws IllegalStateException if Netty is older than 4.2; the text names its version
     */
    public Server(int port, RegistryServer registry) {
        this(builder(registry).port(port));
    }

    private Server(Builder builder) {
        RegistryServer all = builder.registry();
        core = new ServerCore(
                builder.settings(), (running, groups, nowNanos) -> builder.methods(all, running, groups, nowNanos));
        registry = builder.registry;
        published = all.published();
    }

    /**
     * Returns a builder for a server of this registry. The builder has a default for each setting.
     *
     * @throws IllegalStateException if Netty is older than 4.2; the text names its version
     */
    public static Builder builder(RegistryServer registry) {
        NettyVersion.check();
        return new Builder(registry);
    }

    /**
     * Starts to listen on the port, and returns when clients can reach the server. This method blocks the calling
     * thread until the name of the host has been looked up and the port is bound. It also blocks an event loop that
     * calls it. If the start fails before the port is bound, the server counts as stopped, and leaves no threads or
     * sockets behind.
     *
     * <p>If services were compiled without RPCX's annotation processor, which javac runs from JDK 23 on only if it is
     * told to, the first server of the process with such services logs their names and what does not hold for them, at
     * level INFO of the logger {@code dev.rpcx.processor}.
     *
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if the port cannot be bound, the name of the host
     *     cannot be resolved, or no event loops can be created
     * @throws IllegalStateException if the server has been started or stopped before
     */
    public Server start() {
        core.start();
        ServiceIndex.logUnprocessed(registry.types());
        return this;
    }

    /**
     * Returns the port on which the server listens. If port 0 was set, this is the port that the system has chosen. The
     * port is available from {@link #start} until the server has stopped completely.
     *
     * @throws IllegalStateException if the server has not been started, or has stopped completely
     */
    public int port() {
        return core.port();
    }

    /** Returns the names of the published methods as {@code service/method}, in the order of registration. */
    public List<String> services() {
        return published;
    }

    /** Stops the server as {@link #stop(Duration)} does, with a time of 5 s. */
    public void stop() {
        stop(STOP_TIME);
    }

    @Override
    public void close() {
        stop();
    }

    /**
     * Stops the server, and lets the calls under way end within {@code time}. The server takes no new connections, asks
     * its clients to send no more calls, and closes when no call is under way any more. When {@code time} is over:
     *
     * <ul>
     *   <li>Running handlers are interrupted.
     *   <li>Handlers that have not started never start.
     *   <li>The log says how many one-way calls were cut off.
     * </ul>
     *
     * <p>Two kinds of calls are under way until their handlers have ended, although nobody waits for a reply: one-way
     * calls that the server has acknowledged, and calls whose callers are gone.
     *
     * <p>This method blocks until all sockets and threads of the server have ended, but at most 5 s longer than
     * {@code time}. After that, only handlers that ignore the interrupt can remain, with their threads. If such a
     * thread is an event loop, the sockets of this event loop remain too. All threads of a server are daemon threads. A
     * handler that calls this method waits for itself until {@code time} is over.
     *
     * <p>A client without calls closes its connections when the server asks it to send no more calls. A client that
     * ignores this request, and answers the server's PINGs, keeps its connection until {@code time} is over.
     *
     * <p>Several threads can call this method at the same time: the shortest of their times counts. A server that is
     * stopped before {@link #start} cannot be started afterwards.
     *
     * @param time 0 or more; a negative time counts as 0, and more than 365 days count as 365 days
     * @throws IllegalStateException if the calling thread is an event loop
     */
    public void stop(Duration time) {
        core.stop(time);
    }

    /**
     * Blocks until the server has stopped. This is for a {@code main} method that has nothing else to do, because the
     * threads of a server do not keep the process alive.
     *
     * @throws IllegalStateException if the server has been neither started nor stopped
     */
    public void awaitStop() throws InterruptedException {
        core.awaitStop();
    }

    /** Returns the object that does the work of this server, for tests. */
    ServerCore core() {
        return core;
    }

    /** Collects the settings of a server. Each setting has a default. */
    public static final class Builder {
        private static final int MAX_CONNECTIONS = 10_000;

        /**
         * Number of heap bytes for each connection, from which the default maximum number of connections is computed.
         * During a TLS handshake, a connection holds about 13 KiB that the server's memory limits do not count, or more
         * if the client's certificates are large. 13 KiB are a fifth of 64 KiB. So with this default and small
         * certificates, all handshakes together hold at most about a fifth of the heap.
         */
        private static final long HEAP_OF_CONNECTION = 64 * 1024;

        /**
         * The default limit on connections of one address is the limit on all connections, divided by this number, but
         * at least {@link #MIN_OF_ADDRESS}.
         */
        private static final int PART_OF_ADDRESS = 5;

        /**
         * The default limit on connections of one address is at least this number, so that a few clients can share an
         * address. If the limit on all connections is lower than this number, the default is that limit.
         */
        private static final int MIN_OF_ADDRESS = 64;

        /**
         * The default maximum size of a message is the size of the heap, divided by this number. The server's smallest
         * pool of memory for messages is a 16th of the heap, so each pool has room for four of the largest messages.
         */
        private static final long HEAP_OF_MESSAGE = 64;

        private final RegistryServer registry;
        private final List<Interceptor> interceptors = new ArrayList<>();

        /** {@link #registry}, and the service that describes its services; null if the server does not have that. */
        private @Nullable RegistryServer reflecting;

        private String host = "0.0.0.0";
        private int port;
        private @Nullable Tls tls;
        private Duration keepAlive = Duration.ofSeconds(60);
        private Duration maxCallTime = Duration.ofHours(1);
        private boolean inProcess;
        private ServerPlatform platform = ServerPlatform.HOST;
        private boolean classic;

        /** Makes the wire of gRPC for the server's methods; null if the server does not speak gRPC. */
        private @Nullable GrpcProvider grpc;

        /** Package of the {@code .proto} by which clients of gRPC call; empty if it has none. */
        private String grpcPackage = "";

        private int maxConnections = standardConnections(Runtime.getRuntime().maxMemory());
        private int maxConnectionsPerAddress;
        private int maxRunning = 10_000;
        private int maxCalls = Wire.MAX_SLOTS;
        private int maxMessageBytes = standardMessageBytes(Runtime.getRuntime().maxMemory());
        private int eventLoops = Math.min(4, Runtime.getRuntime().availableProcessors());
        private int poolSize = Math.max(64, 8 * Runtime.getRuntime().availableProcessors());

        private Builder(RegistryServer registry) {
            this.registry = Given.notNull(registry, "registry", "a RegistryServer");
        }

        /** Sets the address or host name to listen on. Default: all addresses of the machine. */
        public Builder host(String address) {
            host = Given.notNull(address, "host", "an address to listen on");
            return this;
        }

        /** Sets the port to listen on: 0 to 65535. With 0, the default, the system chooses a free port. */
        public Builder port(int number) {
            port = checked("port", number, 0, 65_535);
            return this;
        }

        /**
         * Makes the server serve only clients of this process, without sockets. This is for tests. The clients need the
         * same setting, {@link Client.Builder#inProcess}. The port is only a number within this process. There are no
         * socket buffers, so their limits do not apply. There are no client addresses either, so the limits for one
         * address do not apply. Everything else is as with sockets.
         */
        public Builder inProcess() {
            inProcess = true;
            return this;
        }

        Builder platform(ServerPlatform given) {
            platform = given;
            return this;
        }

        static int standardMessageBytes(long heapBytes) {
            return (int) Math.min(Wire.MAX_MESSAGE_BYTES, heapBytes / HEAP_OF_MESSAGE);
        }

        static int standardConnections(long heapBytes) {
            return (int) Math.min(MAX_CONNECTIONS, Math.max(1, heapBytes / HEAP_OF_CONNECTION));
        }

        /**
         * Sets the maximum number of open connections: 1 to 1 000 000. The default is 10 000, or one for each 64 KiB of
         * heap if that is less. A connection above the maximum is closed as soon as it is opened.
         *
         * <p>An idle connection holds 4 KiB of heap, or 9 KiB with TLS. During a TLS handshake, a connection holds
         * 13 KiB, or more if the client's certificates are large.
         */
        public Builder maxConnections(int count) {
            maxConnections = checked("maxConnections", count, 1, 1_000_000);
            return this;
        }

        /**
         * Sets the maximum number of open connections from one address: 1 to 1 000 000. The default is a fifth of
         * {@link #maxConnections}, but at least 64. All IPv6 addresses of one /64 network count as one address. A
         * connection above the maximum is closed as soon as it is opened.
         */
        public Builder maxConnectionsPerAddress(int count) {
            maxConnectionsPerAddress = checked("maxConnectionsPerAddress", count, 1, 1_000_000);
            return this;
        }

        int connectionsOfAddress() {
            int max = maxConnectionsPerAddress > 0
                    ? maxConnectionsPerAddress
                    : Math.max(MIN_OF_ADDRESS, maxConnections / PART_OF_ADDRESS);
            return Math.min(max, maxConnections);
        }

        /**
         * Sets the maximum number of handlers that run at the same time: 4 to 1 000 000. The default is 10 000.
         * Handlers on event loops do not count. A call above the maximum is refused as
         * {@link RPCXException.Code#OVERLOADED}, and is not executed.
         *
         * <p>Connections share the maximum. A connection can start another handler only if the part of the maximum that
         * is still free is at least as large as the number of handlers that the connection already runs. For example,
         * with a maximum of 10 000, a connection that runs 4 000 handlers can start another while at most 6 000
         * handlers run in all. So a connection can run about half of the maximum while no other connection runs
         * handlers, and fewer while others run many.
         *
         * <p>If calls of a method wait for each other longer than their callers' time allows, the server sets a lower
         * limit for that method. This limit is the number of handlers with which calls end in about half of their
         * callers' time, but at least 4. Connections share this limit as they share the maximum.
         *
         * <p>Two limits depend on the heap, whatever number is set here, so RPCX itself does not fill the heap:
         *
         * <ul>
         *   <li>The number of calls under way is at most one for each 64 KiB of heap, or 2 048 if that is more. So on a
         *       heap of 256 MiB, at most 4 096 handlers run.
         *   <li>The server does not count some memory of each running handler's call, such as a small request and its
         *       metadata. This memory is at most 24 KiB for each call, and at most a 16th of the heap for all calls
         *       together. So the more handlers can run, the less of this memory each call has.
         * </ul>
         *
         * <p>The memory that handlers themselves allocate is not limited.
         */
        public Builder maxRunning(int count) {
            maxRunning = checked("maxRunning", count, AdmissionLimit.MIN_LIMIT, 1_000_000);
            return this;
        }

        /** Sets the TLS settings of all connections. Without this setting, the connections are not encrypted. */
        public Builder tls(Tls server) {
            tls = Tls.checked(server, true);
            return this;
        }

        /**
         * Makes the server describe its services, with their methods and messages, to tools that have none of their
         * classes, such as the command {@code rpcx}. It publishes the service {@code rpcx.reflection} for that, whose
         * callers pass the interceptors of the server like all others. By default, a server tells its clients only the
         * names of services and methods and, if a client asks when it connects, the members of their messages. With
         * {@link #grpc}, the server also has the reflection of gRPC, for tools such as grpcurl. The library
         * {@code com.google.protobuf:protobuf-java} has to be on the class path.
         *
         * @throws dev.rpcx.schema.SchemaException if that library is missing, or if two methods of a service, or two
         *     components of a message, have the same name in a {@code .proto}
         */
        public Builder reflection() {
            reflecting = registry.reflecting();
            return this;
        }

        /**
         * Sets whether the server also serves clients that speak the classic wire, the simpler of RPCX's two wire
         * protocols. The default is false, since a classic client has no tokens, and cannot cancel a call or give a
         * call a deadline. With false, the server sends a classic client an error that names this setting, and closes
         * the connection. A server that requires tokens cannot serve classic clients, and {@link #build} throws for
         * this combination.
         */
        public Builder classic(boolean isServed) {
            classic = isServed;
            return this;
        }

        /**
         * Makes the server serve clients of gRPC too, on the same port: over HTTP/2, with TLS or without. This needs
         * the library {@code rpcx-grpc}. Clients call by the {@code .proto} that {@code SchemaTool} exports, with
         * unary calls and with streams in both directions. Handlers, interceptors, tokens and all limits are the same
         * as for other clients. The server also answers the health checks of gRPC. By default, the server does not
         * speak gRPC. {@code rpcx/spec/grpc.md} says how calls, metadata and errors are mapped.
         *
         * @param protoPackage package of the exported {@code .proto}, such as {@code com.acme.greeter}; empty for none
         * @throws IllegalArgumentException if this is no package of a {@code .proto}
         * @throws IllegalStateException if {@code rpcx-grpc} is not on the class path
         */
        public Builder grpc(String protoPackage) {
            grpcPackage = ProtoNames.checkedPackage(
                    Given.notNull(protoPackage, "protoPackage", "that of the exported .proto; empty for none"));
            grpc = GrpcProvider.find();
            return this;
        }

        /**
         * Sets the maximum time until the server notices that a client has vanished: 100 ms to 1 h. The default is
         * 60 s. For a client that is still connected but does not read, the server can need up to 4/3 of this time.
         */
        public Builder keepAlive(Duration time) {
            keepAlive = Given.time(time, "keepAlive", Duration.ofMillis(100), Duration.ofHours(1), "100 ms to 1 h");
            return this;
        }

        /**
         * Sets the maximum time of a call: 1 ms to 365 days. The default is 1 h, the longest time that a Java client of
         * RPCX asks for in a call without streams. A request that asks for more gets the maximum, and its client is not
         * informed. The maximum bounds how long the handler of a one-way call goes on after its caller is gone.
         *
         * <p>Two kinds of calls are exceptions:
         *
         * <ul>
         *   <li>A call whose method takes or returns a stream has no maximum time.
         *   <li>The maximum time of a call on the classic wire is 60 s, or the time that is set here if that is less.
         * </ul>
         */
        public Builder maxCallTime(Duration time) {
            maxCallTime =
                    Given.time(time, "maxCallTime", Duration.ofMillis(1), Duration.ofDays(365), "1 ms to 365 days");
            return this;
        }

        /**
         * Sets the maximum number of calls under way on one connection: 1 to 4096. The default is 4096. The maximum for
         * all connections from one address together is this number, multiplied by the maximum number of connections
         * from one address. A handler that goes on after its connection has ended still counts for its address.
         */
        public Builder maxCalls(int count) {
            maxCalls = checked("maxCalls", count, 1, Wire.MAX_SLOTS);
            return this;
        }

        /**
         * Sets the maximum size of a request, or of an item of a client's stream, in bytes: 1 byte to 4 MiB. The
         * default is 4 MiB, or a 64th of the heap if that is less. Send larger data as a stream.
         *
         * <p>The server has memory pools for requests, for replies and for items of streams. Each of these pools has
         * room for at least four messages of this size. The smallest of them is a 16th of the heap. If this size is
         * more than a 64th of the heap, four messages need more than a 16th, so the pool gets larger. The heap can then
         * become too small for what clients send.
         */
        public Builder maxMessageBytes(int bytes) {
            maxMessageBytes = checked("maxMessageBytes", bytes, 1, Wire.MAX_MESSAGE_BYTES);
            return this;
        }

        /**
         * Sets the number of event loop threads that serve the connections: 1 to 1024. The default is one for each
         * processor, but at most four.
         */
        public Builder eventLoops(int count) {
            eventLoops = checked("eventLoops", count, 1, 1024);
            return this;
        }

        /**
         * Sets the number of threads, 1 to 10 000, in the pool that runs handlers with {@link RunOn.Place#POOL}. The
         * default is eight for each processor, but at least 64. A connection may take another thread if it holds at
         * most as many threads as are free. For example, a connection gets at most 51 of 100 threads while no other
         * connection holds threads. Further calls wait, and connections with waiting calls are served in rotation.
         */
        public Builder poolSize(int threads) {
            poolSize = checked("poolSize", threads, 1, 10_000);
            return this;
        }

        /** Adds an interceptor, which runs around every handler and inside the interceptors that were added before. */
        public Builder interceptor(Interceptor interceptor) {
            interceptors.add(Given.notNull(interceptor, "interceptor", "an Interceptor"));
            return this;
        }

        /**
         * Creates the server. The server does not listen before {@link Server#start}.
         *
         * @throws IllegalStateException if the server serves the classic wire and requires tokens, or if the server has
         *     two interceptors that require tokens
         * @throws IllegalArgumentException if the server speaks gRPC, and two methods have the same name there
         */
        public Server build() {
            long requiring = requiringTokens();
            if (requiring > 1) {
                throw new IllegalStateException("Tokens.requiring: " + requiring
                        + " interceptors (expected: one, since a token is good for one use; give it a function that"
                        + " knows the secrets of all)");
            }
            if (classic && requiring > 0) {
                throw new IllegalStateException(
                        "classic(true) beside Tokens.requiring: a classic request carries no token, so each would"
                                + " be refused (expected: one of the two, or a server on another port for classic"
                                + " clients)");
            }
            return new Server(this);
        }

        /** Returns the number of interceptors that require tokens. */
        private long requiringTokens() {
            return interceptors.stream()
                    .filter(Tokens.Requiring.class::isInstance)
                    .count();
        }

        private @Nullable Function<List<ServerMethod>, TranslatedWire> translated() {
            GrpcProvider provider = grpc;
            String protoPackage = grpcPackage;
            String tokenEntry = requiringTokens() > 0 ? Tokens.ENTRY : null;
            return provider == null ? null : methods -> provider.wire(protoPackage, tokenEntry, methods);
        }

        private ServerSettings settings() {
            return new ServerSettings(
                    platform,
                    host,
                    port,
                    inProcess,
                    eventLoops,
                    poolSize,
                    tls == null ? null : tls.engine(),
                    classic,
                    translated(),
                    keepAlive.toNanos(),
                    maxCallTime.toNanos(),
                    maxConnections,
                    connectionsOfAddress(),
                    maxCalls,
                    maxRunning,
                    maxMessageBytes);
        }

        /** Returns the registry with what this server publishes. */
        private RegistryServer registry() {
            RegistryServer all = reflecting == null ? registry : reflecting;
            GrpcProvider provider = grpc;
            if (provider == null) {
                return all;
            }
            List<String> services = registry.services().stream()
                    .map(name -> ProtoNames.service(grpcPackage, name))
                    .toList();
            return all.with(provider.services(services, reflecting == null ? null : registry.files(grpcPackage)));
        }

        private List<ServerMethod> methods(
                RegistryServer all, AtomicInteger running, AddressGroups groups, long nowNanos) {
            return all.methods(interceptors, maxRunning, running, groups, nowNanos);
        }

        private static int checked(String name, int value, int low, int high) {
            if (value < low || value > high) {
                throw new IllegalArgumentException(name + ": " + value + " (expected: " + low + " to " + high + ")");
            }
            return value;
        }
    }
}
