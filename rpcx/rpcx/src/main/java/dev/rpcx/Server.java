package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.ledger.AddressGroups;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.ServerCore;
import dev.rpcx.internal.server.ServerMethod;
import dev.rpcx.internal.server.ServerPlatform;
import dev.rpcx.internal.server.ServerSettings;
import dev.rpcx.internal.wire.Wire;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Serves the methods that a {@link RegistryServer} publishes, on one port. It can be started only once. Clients of the
 * classic wire are served only if {@link Builder#classic} is set.
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
    private final List<String> published;

    /**
     * Creates a server with the default settings.
     *
     * @param port port to listen on: 0 to 65535; with 0 the system chooses a free port
     */
    public Server(int port, RegistryServer registry) {
        this(builder(registry).port(port));
    }

    private Server(Builder builder) {
        core = new ServerCore(builder.settings(), builder::methods);
        published = builder.registry.published();
    }

    /** Returns a builder for a server with other settings. Each setting has a default. */
    public static Builder builder(RegistryServer registry) {
        return new Builder(registry);
    }

    /**
     * Starts to listen, and returns when clients can reach the server. If this method fails, the server counts as
     * stopped, and nothing of it remains. Blocks the calling thread, even an event loop, until the name of the host has
     * been looked up and the port is bound.
     *
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if the port cannot be bound, the host does not
     *     resolve, or no event loops can be made
     * @throws IllegalStateException if the server has been started or stopped before
     */
    public Server start() {
        core.start();
        return this;
    }

    /**
     * Returns the port on which the server listens. If port 0 was set, this is the port that the system has chosen. The
     * method works from {@link #start} until the server has stopped completely.
     *
     * @throws IllegalStateException if the server has not been started, or has stopped
     */
    public int port() {
        return core.port();
    }

    /** Returns the published methods as {@code service/method}, in the order of registration. */
    public List<String> services() {
        return published;
    }

    /** Stops the server as {@link #stop(Duration)} does with a time of 5 s. */
    public void stop() {
        stop(STOP_TIME);
    }

    @Override
    public void close() {
        stop();
    }

    /**
     * Stops the server. It takes no new connections, asks its clients to send no more calls, finishes the calls under
     * way, and closes. When {@code time} is over, running handlers are interrupted, and handlers that have not started
     * never start. A one-way call that the server has acknowledged, and a call whose caller is gone, are under way
     * until their handlers have ended. The log says how many one-way calls were cut off.
     *
     * <p>Blocks until all sockets and threads of the server have ended, but at most 5 s longer than {@code time}. After
     * that, only handlers that ignore the interrupt can remain, with their threads. If such a thread is an event loop,
     * its sockets remain too. All threads of a server are daemon threads. A handler that calls this method waits for
     * itself until the time is over.
     *
     * <p>A client without calls closes its connections when it is asked to send no more calls. A peer that ignores this
     * request, and answers PINGs, keeps its connection until {@code time} is over.
     *
     * <p>Any thread may call this method, also while another thread is running it: the shortest of the times counts. A
     * server that is stopped before {@link #start} cannot be started afterwards.
     *
     * @param time 0 or more; a negative time counts as 0, and more than 365 days count as 365 days
     * @throws IllegalStateException if the calling thread is an event loop
     */
    public void stop(Duration time) {
        core.stop(time);
    }

    /**
     * Blocks until the server has stopped. For a {@code main} method that has nothing else to do: the threads of a
     * server do not keep its process alive.
     *
     * @throws IllegalStateException if the server has been neither started nor stopped
     */
    public void awaitStop() throws InterruptedException {
        core.awaitStop();
    }

    /** Returns the core of this server, for tests. */
    ServerCore core() {
        return core;
    }

    /** Settings of a server. Each setting has a default. */
    public static final class Builder {
        private static final int MAX_CONNECTIONS = 10_000;

        /**
         * The default maximum number of connections is the heap divided by this many bytes, but at most 10 000. During
         * a TLS handshake, a connection holds up to 13 KiB that no charge counts. With this number, all handshakes
         * together hold at most about a fifth of the heap.
         */
        private static final long HEAP_OF_CONNECTION = 64 * 1024;

        /** The default limit on connections of one address is the limit on all connections, divided by this number. */
        private static final int PART_OF_ADDRESS = 5;

        /** Smallest default limit on connections of one address, so that a few clients can share an address. */
        private static final int MIN_OF_ADDRESS = 64;

        /**
         * The default limit of a message is the heap divided by this number. The smallest pool of messages is a 16th of
         * the heap, so every pool has room for four of the largest messages.
         */
        private static final long HEAP_OF_MESSAGE = 64;

        private final RegistryServer registry;
        private final List<Interceptor> interceptors = new ArrayList<>();
        private String host = "0.0.0.0";
        private int port;
        private @Nullable Tls tls;
        private Duration keepAlive = Duration.ofSeconds(60);
        private Duration maxCallTime = Duration.ofHours(1);
        private boolean inProcess;
        private ServerPlatform platform = ServerPlatform.HOST;
        private boolean classic;
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

        /** Sets the address to listen on. Default: all addresses of the machine. */
        public Builder host(String address) {
            host = Given.notNull(address, "host", "an address to listen on");
            return this;
        }

        /** Sets the port to listen on: 0 to 65535. Default 0, which lets the system choose a free port. */
        public Builder port(int number) {
            port = checked("port", number, 0, 65_535);
            return this;
        }

        /**
         * Serves only clients of this process, without sockets. For tests. The clients need the same setting,
         * {@link Client.Builder#inProcess}. The port is only a number within this process. There are no socket buffers,
         * and so none of their limits; everything else is as with sockets.
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
         * Sets the maximum number of connections at a time: 1 to 1 000 000. Default 10 000, or one for each 64 KiB of
         * heap if that is less. A connection beyond the limit is closed as soon as it is opened. An idle connection
         * holds 4 KiB of heap, or 9 KiB with TLS. During a TLS handshake it holds 13 KiB, or more if a client's
         * certificates are large.
         */
        public Builder maxConnections(int count) {
            maxConnections = checked("maxConnections", count, 1, 1_000_000);
            return this;
        }

        /**
         * Sets the maximum number of connections from one address at a time: 1 to 1 000 000. Default: a fifth of
         * {@code maxConnections}, but at least 64. All IPv6 addresses of one /64 network count as one address. A
         * connection beyond the limit is closed as soon as it is opened.
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
         * Sets the maximum number of handlers that run at a time, not counting those on event loops: 4 to 1 000 000.
         * Default 10 000. A call beyond the limit is refused as overload, and is not executed. A connection gets one
         * more handler only if it runs at most as many handlers as may still start within the maximum. So a connection
         * can run about half of the maximum while it is the only one, and fewer while other connections run many.
         *
         * <p>If calls of a method wait for each other longer than their callers' time allows, the server sets a lower
         * limit for that method. It is the number of handlers with which calls end in about half of their callers'
         * time, but at least 4. Several connections share this limit as they share the maximum.
         *
         * <p>Whatever number is set here, RPCX itself does not fill the heap; what handlers allocate is not limited.
         * Memory that is not charged is limited to 24 KiB for each handler, and to a 16th of the heap for all handlers,
         * so the more handlers may run, the less each one has. The number of calls under way is limited to one for each
         * 64 KiB of heap, or to 2 048 if that is more. So on a heap of 256 MiB no more than 4 096 handlers run,
         * whatever is set here.
         */
        public Builder maxRunning(int count) {
            maxRunning = checked("maxRunning", count, AdmissionLimit.MIN, 1_000_000);
            return this;
        }

        /** Uses TLS for all connections. Default: plain connections. */
        public Builder tls(Tls server) {
            tls = Tls.checked(server, true);
            return this;
        }

        /**
         * Sets whether the server also serves clients of the classic wire. Default: no, since a classic client has no
         * tokens, and cannot cancel a call or give it a deadline. If this is not set, the server sends such a client
         * the reason, and closes the connection. A server that requires tokens cannot serve classic clients:
         * {@link #build} throws then.
         */
        public Builder classic(boolean isServed) {
            classic = isServed;
            return this;
        }

        /**
         * Sets the maximum time until the server notices that a client has vanished: 100 ms to 1 h; default 60 s. If a
         * client is still connected but does not read, the server may take up to 4/3 of this time to notice it.
         */
        public Builder keepAlive(Duration time) {
            keepAlive = Given.time(time, "keepAlive", Duration.ofMillis(100), Duration.ofHours(1), "100 ms to 1 h");
            return this;
        }

        /**
         * Sets the maximum time of a call: 1 ms to 365 days. Default 1 h, the longest time that a Java client of RPCX
         * asks for in a call without streams. A request that asks for more gets this time, and its client is not
         * informed. The limit bounds how long the handler of a one-way call goes on when its caller is gone. A call
         * whose method takes or returns a stream has no such limit. A call on the classic wire has 60 s, or the time
         * that is set here if that is less.
         */
        public Builder maxCallTime(Duration time) {
            maxCallTime =
                    Given.time(time, "maxCallTime", Duration.ofMillis(1), Duration.ofDays(365), "1 ms to 365 days");
            return this;
        }

        /**
         * Sets the maximum number of calls under way on one connection: 1 to 4096; default 4096. All connections of an
         * address together may have this number, multiplied by the number of connections that the address may have.
         * Handlers that go on after their connections have ended count too.
         */
        public Builder maxCalls(int count) {
            maxCalls = checked("maxCalls", count, 1, Wire.MAX_SLOTS);
            return this;
        }

        /**
         * Sets the maximum size of a request in bytes: 1 byte to 4 MiB. Default 4 MiB, or a 64th of the heap if that is
         * less. Send larger data as a stream. Each pool of the server, such as that of requests, has room for at least
         * four messages of this size. So if this setting is more than a 64th of the heap, the heap may be too small for
         * what peers send.
         */
        public Builder maxMessageBytes(int bytes) {
            maxMessageBytes = checked("maxMessageBytes", bytes, 1, Wire.MAX_MESSAGE_BYTES);
            return this;
        }

        /**
         * Sets the number of event loop threads that serve the connections: 1 to 1024. Default: one for each processor,
         * at most four.
         */
        public Builder eventLoops(int count) {
            eventLoops = checked("eventLoops", count, 1, 1024);
            return this;
        }

        /**
         * Sets the number of threads of the pool: 1 to 10 000. Default: eight for each processor, at least 64. A
         * connection gets one more thread only if it holds at most as many threads as are still free. So a connection
         * that is the only one can hold about half of all threads. Other calls wait, and connections with waiting calls
         * are served in rotation. See {@link RunOn.Place#POOL}.
         */
        public Builder poolSize(int threads) {
            poolSize = checked("poolSize", threads, 1, 10_000);
            return this;
        }

        /** Adds an interceptor around every handler. It runs inside the interceptors that were added before. */
        public Builder interceptor(Interceptor interceptor) {
            interceptors.add(Given.notNull(interceptor, "interceptor", "an Interceptor"));
            return this;
        }

        /**
         * Creates the server. It does not listen before {@link Server#start}.
         *
         * @throws IllegalStateException if the server serves the classic wire and requires tokens, or if it has two
         *     interceptors that require tokens
         */
        public Server build() {
            long requiring = interceptors.stream()
                    .filter(Tokens.Requiring.class::isInstance)
                    .count();
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
                    keepAlive.toNanos(),
                    maxCallTime.toNanos(),
                    maxConnections,
                    connectionsOfAddress(),
                    maxCalls,
                    maxRunning,
                    maxMessageBytes);
        }

        private List<ServerMethod> methods(AtomicInteger running, AddressGroups groups, long nowNanos) {
            return registry.methods(interceptors, maxRunning, running, groups, nowNanos);
        }

        private static int checked(String name, int value, int low, int high) {
            if (value < low || value > high) {
                throw new IllegalArgumentException(name + ": " + value + " (expected: " + low + " to " + high + ")");
            }
            return value;
        }
    }
}
