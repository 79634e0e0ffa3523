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
 * Serves the methods that a {@link RegistryServer} publishes, on one port: on the native wire, and on the classic wire
 * where asked to. A server starts and stops once.
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

    /** Makes a server with the standard settings. */
    public Server(int port, RegistryServer registry) {
        this(builder(registry).port(port));
    }

    private Server(Builder builder) {
        core = new ServerCore(builder.settings(), builder::methods);
        published = builder.registry.published();
    }

    /** Returns a builder for a server with settings of your own; each setting has a standard value. */
    public static Builder builder(RegistryServer registry) {
        return new Builder(registry);
    }

    /**
     * Listens, and returns when the server can be reached. If this method fails, nothing of the server is left, and
     * the server counts as stopped. Any thread may call it. A thread of an event loop is blocked until the port is
     * bound, and while the name of the host is looked up.
     *
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if the port cannot be bound, the host does not
     *     resolve, or no event loops can be made
     * @throws IllegalStateException the server has been started or stopped before
     */
    public Server start() {
        core.start();
        return this;
    }

    /**
     * Returns the port on which the server listens: the given port, or for 0 the port that the system has chosen. It
     * can be asked for until a stop has ended.
     *
     * @throws IllegalStateException the server has not been started, or has stopped
     */
    public int port() {
        return core.port();
    }

    /** Returns the published methods, as {@code service/method}. */
    public List<String> services() {
        return published;
    }

    /** {@link #stop(Duration)} with 5 s. */
    public void stop() {
        stop(STOP_TIME);
    }

    @Override
    public void close() {
        stop();
    }

    /**
     * Takes no new connections, asks clients to send no more calls, finishes the calls under way, and closes. One-way
     * calls that the server has acknowledged are under way until their handlers have ended, and so are calls whose
     * callers are gone. When {@code time} is over, calls that are still under way are cut off: running handlers are
     * interrupted, and handlers that have not begun never begin. The log says how many one-way calls were cut off.
     *
     * <p>Returns when no socket and no thread is left, at the latest 5 s after {@code time}. What may be left then is
     * the thread of a handler that goes on though it has been interrupted, and, where that thread is an event loop, the
     * sockets of this loop until the handler returns. All threads of a server are daemon threads. A handler that calls
     * this method waits for itself until the time is over.
     *
     * <p>A client without calls closes its connections when it is asked to send no more calls. A peer that ignores this
     * request, and answers PINGs, keeps its connection until {@code time} is over, even if it does nothing else.
     *
     * <p>Any thread may call this method, once or more, also while another thread does: the shorter time counts. Before
     * {@link #start} there is nothing to wait for, and the server cannot be started afterwards.
     *
     * @param time from 0; a negative time counts as 0, and more than 365 days as 365 days
     * @throws IllegalStateException the calling thread is an event loop, which this method would have to wait for
     */
    public void stop(Duration time) {
        core.stop(time);
    }

    /**
     * Waits until the server has stopped. For a {@code main} with nothing else to do, since a server's threads do not
     * keep a process alive.
     *
     * @throws IllegalStateException the server has not been started, so there is nothing to wait for
     */
    public void awaitStop() throws InterruptedException {
        core.awaitStop();
    }

    /** The core of this server, for tests. */
    ServerCore core() {
        return core;
    }

    /** Settings of a server, each with a standard value. */
    public static final class Builder {
        private static final int MAX_CONNECTIONS = 10_000;

        /**
         * Bytes of heap for each connection in the standard limit of connections. A connection with TLS holds up to
         * 13 KiB while its handshake waits for the client, and is not charged for them; so all of these connections
         * together hold at most a fifth of the heap.
         */
        private static final long HEAP_OF_CONNECTION = 64 * 1024;

        /** Divisor of the standard limit of one address: an address may have one in this many of all connections. */
        private static final int PART_OF_ADDRESS = 5;

        /** Smallest standard limit of one address: a few clients behind one address need as many connections. */
        private static final int MIN_OF_ADDRESS = 64;

        /**
         * Divisor of the heap for the standard limit of a message. With it every share of the heap has room for four of
         * the largest messages.
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

        /** Address to listen on; standard: all addresses of the machine. */
        public Builder host(String address) {
            host = Given.notNull(address, "host", "an address to listen on");
            return this;
        }

        /** Port to listen on: 0 to 65535; standard 0, which lets the system choose. */
        public Builder port(int number) {
            port = checked("port", number, 0, 65_535);
            return this;
        }

        /**
         * Lets the server be reached only by clients of this process that are
         * {@linkplain Client.Builder#inProcess in process} too: no socket is opened, and the port is a number of this
         * process. All else is as with sockets, except the limits of the sockets' buffers. For tests.
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
         * Most connections at once; standard 10 000, or one for each 64 KiB of heap where that is less. A connection
         * beyond the limit is closed as it comes. An idle connection holds 4 KiB of heap, with TLS 9 KiB, and 13 KiB
         * during a handshake, or more where a client's certificates are large.
         */
        public Builder maxConnections(int count) {
            maxConnections = checked("maxConnections", count, 1, 1_000_000);
            return this;
        }

        /**
         * Most connections at once from one address; standard a fifth of {@code maxConnections}, or 64 where that is
         * more. A connection beyond the limit is closed as it comes.
         */
        public Builder maxConnectionsPerAddress(int count) {
            maxConnectionsPerAddress = checked("maxConnectionsPerAddress", count, 1, 1_000_000);
            return this;
        }

        int connectionsOfAddress() {
            int most = maxConnectionsPerAddress > 0
                    ? maxConnectionsPerAddress
                    : Math.max(MIN_OF_ADDRESS, maxConnections / PART_OF_ADDRESS);
            return Math.min(most, maxConnections);
        }

        /**
         * Most handlers running at once, not counting those on event loops: 4 to 1 000 000; standard 10 000. A call
         * beyond the limit is refused as overload, not executed. One connection may run as many handlers as the limit
         * still leaves, and one more: about half of all while it is alone, and less beside connections that run many.
         * The server itself finds a lower limit for a method whose calls wait for each other longer than their callers'
         * time allows: as many handlers as end in about half of that time, at least 4. Connections share that limit in
         * the same way, once there is a second connection.
         *
         * <p>Any number is safe for the heap, except for what handlers allocate themselves. The memory that a handler
         * is given without a charge is the smaller, the more handlers may run: at most 24 KiB for each, and a 16th of
         * the heap for all. Each call needs a place too. There is one place for each 64 KiB of heap, at least 2 048: on
         * a heap of 256 MiB no more than 4 096 handlers run, whatever is set here.
         */
        public Builder maxRunning(int count) {
            maxRunning = checked("maxRunning", count, AdmissionLimit.MIN, 1_000_000);
            return this;
        }

        /** Uses TLS for all connections; standard: plain connections. */
        public Builder tls(Tls server) {
            tls = Tls.checked(server, true);
            return this;
        }

        /**
         * Whether clients of the classic wire are served beside those of the native wire; standard: no. A classic
         * client has no tokens, no cancel and no deadline of its own, so a server takes it only where this is set.
         * Otherwise the client is told why, and its connection is closed. A server that requires tokens cannot serve
         * classic clients: {@link #build} throws then.
         */
        public Builder classic(boolean isServed) {
            classic = isServed;
            return this;
        }

        /**
         * Time within which a client that has vanished is noticed; a client that does not read is noticed within a
         * third more. 100 ms to 1 h; standard 60 s.
         */
        public Builder keepAlive(Duration time) {
            keepAlive = Given.time(time, "keepAlive", Duration.ofMillis(100), Duration.ofHours(1), "100 ms to 1 h");
            return this;
        }

        /**
         * Largest time of a call: 1 ms to 365 days; standard 1 h, which is the most that a Java client of RPCX asks
         * for. A request that asks for more has this time, and its client is not told so. The limit bounds how long the
         * handler of a one-way call goes on when its caller is gone. A call that takes or brings a stream has the time
         * that it asks for: its handler is told when the connection ends. A classic call has 60 s, or this time where
         * it is less.
         */
        public Builder maxCallTime(Duration time) {
            maxCallTime =
                    Given.time(time, "maxCallTime", Duration.ofMillis(1), Duration.ofDays(365), "1 ms to 365 days");
            return this;
        }

        /**
         * Most calls under way on one connection: 1 to 4096; standard 4096. All connections of an address together may
         * have this number times the number of connections that the address may have; handlers that go on after their
         * connections have ended are counted too.
         */
        public Builder maxCalls(int count) {
            maxCalls = checked("maxCalls", count, 1, Wire.MAX_SLOTS);
            return this;
        }

        /**
         * Most bytes of a request: 1 byte to 4 MiB, the largest message of the wire; standard 4 MiB, or a 64th of
         * the heap where that is less. The server has room for four such messages of each kind even where a share of
         * its heap would be less: with more than a 64th of the heap, the heap may be too small for what peers send.
         * Larger data is sent as a stream.
         */
        public Builder maxMessageBytes(int bytes) {
            maxMessageBytes = checked("maxMessageBytes", bytes, 1, Wire.MAX_MESSAGE_BYTES);
            return this;
        }

        /** Number of event loop threads that serve the connections; standard one for each processor, at most four. */
        public Builder eventLoops(int count) {
            eventLoops = checked("eventLoops", count, 1, 1024);
            return this;
        }

        /**
         * Number of threads of the pool: 1 to 10 000; standard eight for each processor, at least 64. One connection
         * may hold as many threads as are still free, and one more: about half of all while it is alone. Its other
         * calls wait, and connections are served in turn. See {@link RunOn.Place#POOL}.
         */
        public Builder poolSize(int threads) {
            poolSize = checked("poolSize", threads, 1, 10_000);
            return this;
        }

        /** Adds an interceptor around every handler, inside the interceptors that were added before. */
        public Builder interceptor(Interceptor interceptor) {
            interceptors.add(Given.notNull(interceptor, "interceptor", "an Interceptor"));
            return this;
        }

        /**
         * Makes the server, which does not listen before {@link Server#start}.
         *
         * @throws IllegalStateException the server is to serve the classic wire and to require tokens, which no classic
         *     request can carry; or it is to require tokens twice, where the second check would find each token used
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
