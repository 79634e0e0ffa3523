package dev.rpcx;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Serves what a {@link RegistryServer} publishes, on one port: the native wire, and the classic one where asked to.
 * Starts and stops once.
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

    /** With the standard settings. */
    public Server(int port, RegistryServer registry) {
        this(builder(registry).port(port));
    }

    private Server(Builder builder) {
        core = new ServerCore(builder.settings(), builder::methods);
        published = builder.registry.published();
    }

    /** With settings of one's own; each has a standard value. */
    public static Builder builder(RegistryServer registry) {
        return new Builder(registry);
    }

    /**
     * Listens, and returns when it can be reached. Where that fails nothing is left of it, and the server is one that
     * was stopped. Any thread may call it; one of an event loop is blocked until the port is had, and while the name of
     * the host is looked up.
     *
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if the port cannot be had, the host does not
     *     resolve, or no event loops can be made
     * @throws IllegalStateException the server has been started or stopped before
     */
    public Server start() {
        core.start();
        return this;
    }

    /**
     * The port it listens on: the one given, or for 0 the one the system chose. Until a stop has ended.
     *
     * @throws IllegalStateException the server has not been started, or has stopped
     */
    public int port() {
        return core.port();
    }

    /** What it publishes, as {@code service/method}. */
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
     * Takes no new connections, asks clients to send no more calls, finishes those under way, closes. One-way calls
     * that it has acknowledged are under way until their handlers have ended, and so are calls whose callers are gone.
     * After {@code time} what is still under way is cut off: its handlers are interrupted, those that have not begun
     * never do. The log says how many one-way calls that were.
     *
     * <p>Returns when no socket and no thread is left, at the latest 5 s after {@code time}. What may be left then is
     * the thread of a handler that goes on though it has been interrupted, and, where that is an event loop, the
     * sockets of this loop until the handler returns. All of them are daemon threads. A handler that calls this waits
     * for itself until the time is over.
     *
     * <p>A client that has no calls closes its connections when it is asked to send no more. A peer that passes over
     * that, and answers PINGs, keeps its connection until {@code time} is over, also where it does nothing.
     *
     * <p>Any thread may call it, once or more, also while another one does: the shorter time counts. Before
     * {@link #start} it has nothing to wait for, and the server can be started no more.
     *
     * @param time from 0, which a negative one is; more than 365 days are 365 days
     * @throws IllegalStateException on an event loop, which it would have to wait for
     */
    public void stop(Duration time) {
        core.stop(time);
    }

    /**
     * Waits until the server has stopped: for a {@code main} with nothing else to do. A server's threads do not keep a
     * process alive.
     *
     * @throws IllegalStateException the server has not been started, so there is nothing to wait for
     */
    public void awaitStop() throws InterruptedException {
        core.awaitStop();
    }

    /** For tests. */
    ServerCore core() {
        return core;
    }

    /** Settings of a server, each with a standard value. */
    public static final class Builder {
        private static final int MOST_CONNECTIONS = 10_000;

        /**
         * Heap for each connection of the standard. One with TLS holds up to 13 KiB while its handshake waits for the
         * client, which nobody charges; so all of them hold a fifth at most.
         */
        private static final long HEAP_OF_CONNECTION = 64 * 1024;

        /** One address has one in so many of all connections. */
        private static final int PART_OF_ADDRESS = 5;

        /** A few clients behind one address need so many, however few a server takes. */
        private static final int LEAST_OF_ADDRESS = 64;

        /** Every share of the heap has room for four of the largest messages then. */
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

        /** Address to listen on; standard all. */
        public Builder host(String address) {
            host = Given.notNull(address, "host", "an address to listen on");
            return this;
        }

        /** 0 to 65535; standard 0, which lets the system choose. */
        public Builder port(int number) {
            port = checked("port", number, 0, 65_535);
            return this;
        }

        /**
         * Is reached by clients of this process that are {@linkplain Client.Builder#inProcess in process} too, and by
         * no others: no socket is opened, the port is a number of this process. All else is as with sockets, but for
         * their buffers' limits: for tests.
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
            return (int) Math.min(MOST_CONNECTIONS, Math.max(1, heapBytes / HEAP_OF_CONNECTION));
        }

        /**
         * Connections at once; standard 10 000, or one for each 64 KiB of heap where that is less. One more is closed
         * as it comes. At rest one holds 4 KiB of heap, with TLS 9, and 13 in the middle of a handshake; more where a
         * client's certificates are large.
         */
        public Builder maxConnections(int count) {
            maxConnections = checked("maxConnections", count, 1, 1_000_000);
            return this;
        }

        /**
         * Connections at once from one address; standard a fifth of all, or 64 where that is more. One more is closed
         * as it comes.
         */
        public Builder maxConnectionsPerAddress(int count) {
            maxConnectionsPerAddress = checked("maxConnectionsPerAddress", count, 1, 1_000_000);
            return this;
        }

        int connectionsOfAddress() {
            int most = maxConnectionsPerAddress > 0
                    ? maxConnectionsPerAddress
                    : Math.max(LEAST_OF_ADDRESS, maxConnections / PART_OF_ADDRESS);
            return Math.min(most, maxConnections);
        }

        /**
         * Handlers running at once, those on event loops not counted: 4 to 1 000 000; standard 10 000. One more call is
         * refused as overload, not executed. One connection may run as many as are still free of them, and one more:
         * about a half while it is alone, and less beside others that run many. A method whose calls wait for each
         * other longer than their callers' time allows has a lower limit, which the server finds by itself: as many as
         * it can finish in some half of that time, 4 at least. Connections share that limit in the same way, once a
         * second one is there.
         *
         * <p>Any number is safe for the heap, but for what handlers make themselves: what a handler may be given
         * without being charged for it is the less, the more of them may run (24 KiB at most, all of them a 16th of the
         * heap). Each call has a place too, of which there is one for each 64 KiB of heap, 2 048 at least: on a heap of
         * 256 MiB no more than 4 096 handlers run, whatever is set here.
         */
        public Builder maxRunning(int count) {
            maxRunning = checked("maxRunning", count, AdmissionLimit.LEAST, 1_000_000);
            return this;
        }

        /** Speaks TLS and nothing else; standard: plain. */
        public Builder tls(Tls server) {
            tls = Tls.checked(server, true);
            return this;
        }

        /**
         * Whether clients of the classic wire are served beside those of the native one; standard: no. A classic client
         * has no tokens, no cancel and no deadline of its own, so a server takes it only where it is asked to.
         * Otherwise it is told why, and closed. A server that requires tokens cannot serve it: {@link #build} says so.
         */
        public Builder classic(boolean isServed) {
            classic = isServed;
            return this;
        }

        /**
         * A client that is gone without a word is noticed within this time, one that reads nothing within a third more:
         * 100 ms to 1 h; standard 60 s.
         */
        public Builder keepAlive(Duration time) {
            keepAlive = Given.time(time, "keepAlive", Duration.ofMillis(100), Duration.ofHours(1), "100 ms to 1 h");
            return this;
        }

        /**
         * Largest time of a call: 1 ms to 365 days; standard 1 h, which is the most that a client of ours asks for. A
         * request that asks for more has this time, and is not told. It bounds how long the handler of a one-way call
         * goes on when its caller is gone. A call that takes or brings a stream has the time that it asks for: its
         * handler is told when the connection ends. A classic call has 60 s, or this time where it is less.
         */
        public Builder maxCallTime(Duration time) {
            maxCallTime =
                    Given.time(time, "maxCallTime", Duration.ofMillis(1), Duration.ofDays(365), "1 ms to 365 days");
            return this;
        }

        /**
         * Calls under way on one connection: 1 to 4096, the standard. All connections of an address together have so
         * many for each connection that the address may have; handlers that go on when their connections are gone are
         * among them.
         */
        public Builder maxCalls(int count) {
            maxCalls = checked("maxCalls", count, 1, Wire.MAX_SLOTS);
            return this;
        }

        /**
         * Bytes of a request, from 1 to 4 MiB, which is the most that the wire has; standard 4 MiB, or a 64th of the
         * heap where that is less. The server has room for four such messages, of each kind, also where a share of its
         * heap would be less: with more than a 64th of the heap it may be too small for what its peers send. Larger
         * data goes as a stream.
         */
        public Builder maxMessageBytes(int bytes) {
            maxMessageBytes = checked("maxMessageBytes", bytes, 1, Wire.MAX_MESSAGE_BYTES);
            return this;
        }

        /** Threads that serve the connections; standard one a processor, at most four. */
        public Builder eventLoops(int count) {
            eventLoops = checked("eventLoops", count, 1, 1024);
            return this;
        }

        /**
         * Threads of the pool, 1 to 10 000; standard eight a processor, at least 64. One connection may hold as many as
         * are still free of them, and one more: about a half while it is alone. Its other calls wait, and connections
         * have their turns one after the other. See {@link RunOn.Place#POOL}.
         */
        public Builder poolSize(int threads) {
            poolSize = checked("poolSize", threads, 1, 10_000);
            return this;
        }

        /** Adds one around every handler, inside those added before. */
        public Builder interceptor(Interceptor interceptor) {
            interceptors.add(Given.notNull(interceptor, "interceptor", "an Interceptor"));
            return this;
        }

        /**
         * Does not listen: {@link Server#start} does.
         *
         * @throws IllegalStateException if the server is to serve the classic wire and to require tokens, which no
         *     classic request can carry; if it is to require tokens twice, where the second look would find each token
         *     used
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
