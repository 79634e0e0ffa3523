package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.client.ClientCore;
import dev.rpcx.internal.client.ClientProxy;
import dev.rpcx.internal.client.ClientSettings;
import dev.rpcx.internal.discovery.EndpointsFixed;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.testing.Faults;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Creates proxies of interfaces, and holds the connections and threads that the proxies share. Thread-safe: any thread
 * may call a client and its proxies. One client in a process is enough, since any number of callers share a connection.
 *
 * <pre>{@code
 * try (Client client = Client.standard()) {
 *     Greeter greeter = client.create(Greeter.class);
 *     greeter.hello("world");
 * }
 * }</pre>
 */
public final class Client implements AutoCloseable {

    private final ClientCore core;

    /** TLS settings of this client's connections; null if the connections are plain. */
    private final @Nullable Tls tls;

    private Client(ClientSettings settings, @Nullable Tls tls) {
        core = new ClientCore(settings);
        this.tls = tls;
    }

    /**
     * Creates a client with the default settings: 10 s for a call, 3 s to connect, and one to four connections to each
     * address (see {@link Builder#connections(int, int)}). The caller has to close the client.
     */
    public static Client standard() {
        return builder().build();
    }

    /** Returns a builder for a client with other settings. Each setting has a default. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Creates a proxy of the interface. The proxy calls the server that the interface's {@link RPCXClient} annotation
     * names. The client connects to it with the first call.
     *
     * @throws IllegalArgumentException if the type is not an interface, has no annotation or no address in it, or has a
     *     method that cannot be called remotely: its types cannot be mapped ({@link dev.rpcx.schema.SchemaException}),
     *     or its times are outside the ranges that {@link Method} gives
     */
    public <T> T create(Class<T> type) {
        RPCXClient marked = ClientProxy.marked(type);
        if (marked.remoteServerAddress().isEmpty() || marked.remoteServerDomain() == 0) {
            throw new IllegalArgumentException(
                    type.getName()
                            + ": @RPCXClient without remoteServerAddress and remoteServerDomain (expected: both, or create(type, host, port))");
        }
        return create(type, marked.remoteServerAddress(), marked.remoteServerDomain());
    }

    /**
     * Creates a proxy as {@code create(type)} does, but for the server at this address. The address in the annotation
     * is not used.
     *
     * @param port 1 to 65535
     * @throws IllegalArgumentException if host or port is not allowed, or for the reasons that {@link #create(Class)}
     *     names, except that the annotation needs no address here
     */
    public <T> T create(Class<T> type, String host, int port) {
        return core.create(type, host, port);
    }

    /**
     * Creates a proxy that calls the instances of a service, which may come and go. Begins to connect immediately, in
     * the background. Each call goes to one of the instances, as {@link Builder#choice} says. Proxies that are created
     * with equal {@code endpoints} share their connections, which stay until the client closes.
     *
     * <p>If an instance refuses a call with {@link RPCXException.Code#NOT_FOUND} or
     * {@link RPCXException.Code#UNAUTHENTICATED}, and says that it has not executed the call, the call is retried once
     * at another instance. A call whose method takes or returns a stream is not retried. Each method has a separate
     * budget of at most 100 such retries, which gets ten more a second. If the other instance takes the call, the
     * budget gets this retry back.
     *
     * @throws IllegalArgumentException for the reasons that {@link #create(Class)} names, except that the annotation
     *     needs no address here; if the client uses the classic wire; or if it uses TLS without an expected name (see
     *     {@link Tls#expecting}), and the endpoints are not made by {@link Endpoints#of}
     * @throws IllegalStateException if the client is closed
     */
    public <T> T create(Class<T> type, Endpoints endpoints) {
        Given.notNull(endpoints, "endpoints", "instances of the service");
        if (core.isClassic()) {
            throw new IllegalArgumentException("several endpoints on the classic wire (expected: the native one)");
        }
        if (tls != null && !tls.hasName() && !(endpoints instanceof EndpointsFixed)) {
            throw new IllegalArgumentException(
                    "TLS to instances that a registry or DNS names, without a name that their"
                            + " certificates have to have (expected: Tls.expecting(name))");
        }
        return core.create(type, endpoints);
    }

    /**
     * Returns the methods that the server at this address publishes, as {@code service/method}, in alphabetical order.
     * For tools and health checks. Blocks no longer than the call timeout.
     *
     * @return the same list object as long as the client has the same connection to this server
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if the server cannot be reached or does not answer
     */
    public List<String> published(String host, int port) {
        return core.published(host, port);
    }

    /**
     * Closes the connections, and ends the threads unless other clients use them too. First waits up to 5 s for the
     * servers to acknowledge one-way calls. Other calls in flight end with {@link RPCXException.Code#UNAVAILABLE}.
     * Blocks until everything has ended, but at most 10 s: an event loop that is running a callback ends only after the
     * callback. Closing a closed client does nothing.
     *
     * @throws IllegalStateException if the calling thread is an event loop
     */
    @Override
    public void close() {
        core.close();
    }

    /** Returns the core of this client, for tests. */
    ClientCore core() {
        return core;
    }

    /** Settings of a client. Each setting has a default. */
    public static final class Builder {
        private Duration callTimeout = Duration.ofSeconds(10);
        private Duration connectTimeout = Duration.ofSeconds(3);
        private Duration keepAlive = Duration.ofSeconds(10);
        private @Nullable Tls tls;
        private @Nullable Faults faults;
        private double failureShare = ClientSettings.NO_BREAKER;
        private Choice choice = Choice.LEAST_LOADED;
        private Duration maxClose = Duration.ofSeconds(10);
        private int connections = 1;
        private int maxConnections = 4;
        private @Nullable Integer eventLoops;
        private boolean classic;
        private boolean inProcess;
        private Platform platform = Platform.MACHINE;
        private final List<Interceptor> interceptors = new ArrayList<>();

        private Builder() {}

        /**
         * Uses the classic wire to call servers that {@linkplain Server.Builder#classic serve} it. It is the wire of
         * the paper whose design RPCX follows (see {@link RPCXClient}). It has one connection to each address, and no
         * streams, no cancel, no metadata, no retries and no hedges. {@link Method#idempotent} and
         * {@link Method#hedgeMillis} are ignored. Interceptors of {@link Tokens} send nothing, so a server that
         * requires tokens refuses the calls.
         */
        public Builder classic() {
            classic = true;
            return this;
        }

        /**
         * Sets the maximum time of a call: 1 µs to 1 h; default 10 s. The setting does not apply to methods that have
         * their own time ({@link Method#timeoutMillis}), or that take or return a stream.
         */
        public Builder callTimeout(Duration time) {
            callTimeout = Given.callTime("callTimeout", time);
            return this;
        }

        /**
         * Sets the maximum time until the client notices that a server has vanished: 100 ms to 1 h; default 10 s. Calls
         * in flight to that server then end as unavailable. The client pings a server that sends nothing, at most three
         * times in this period. On the classic wire, which has no pings, the client may take up to four times as long.
         */
        public Builder keepAlive(Duration time) {
            keepAlive = Given.micros(
                    Given.time(time, "keepAlive", Duration.ofMillis(100), Duration.ofHours(1), "100 ms to 1 h"));
            return this;
        }

        /** Sets how the client chooses one of several instances for a call. Default {@link Choice#LEAST_LOADED}. */
        public Builder choice(Choice way) {
            choice = Given.notNull(way, "choice", "one of Choice");
            return this;
        }

        /**
         * Adds a circuit breaker, which opens when this fraction of the calls of the last 10 s has failed, if there
         * were at least 20. While it is open, calls fail immediately as {@link RPCXException.Code#UNAVAILABLE}, not
         * executed. Each address, and each set of instances, has a separate breaker.
         *
         * <p>After 1 s the breaker lets one call through as a trial, and then one more each second. The first trial
         * that is answered closes the breaker, unless a later trial has failed. Any answer of a handler counts,
         * whatever its code.
         *
         * <p>A call has failed if it could not be made, ended as unavailable, as overloaded or with a protocol error,
         * or was not answered in time. A call that was not answered counts only if it had at least nine tenths of its
         * method's time, or at least twice the time that answers of this method took lately.
         *
         * @param share above 0, at most 1; without this setting there is no breaker
         */
        public Builder circuitBreaker(double share) {
            if (!(share > 0 && share <= 1)) {
                throw new IllegalArgumentException("circuitBreaker: " + share + " (expected: above 0, at most 1)");
            }
            failureShare = share;
            return this;
        }

        /** Uses TLS for the connections to all servers. Default: plain connections. */
        public Builder tls(Tls client) {
            tls = Tls.checked(client, false);
            return this;
        }

        /**
         * Sets the maximum time to connect: 1 µs to 1 h; default 3 s. The connected server then has the same time again
         * to greet the client.
         */
        public Builder connectTimeout(Duration time) {
            connectTimeout = Given.callTime("connectTimeout", time);
            return this;
        }

        /** Sets the exact number of connections to each address: 1 to 64. */
        public Builder connections(int count) {
            return connections(count, count);
        }

        /**
         * Sets the number of connections to each address. Default 1 to 4: one connection is fastest up to some hundred
         * callers.
         *
         * <p>The client always keeps {@code kept} connections. While all connections are crowded, it adds more, up to
         * {@code most}. A connection is crowded if it has 1024 calls in flight, or three quarters of the calls that the
         * server takes on one connection if that is less. A connection beyond {@code kept} is closed if it has had no
         * call for 10 to 20 s and another connection has room.
         *
         * <p>If no connection takes a further call, a call waits for a new connection, but not beyond its own time. If
         * no further connection may be added, the call fails as {@link RPCXException.Code#OVERLOADED}, not executed,
         * unless another instance takes it.
         *
         * @param kept 1 to 64
         * @param most {@code kept} to 64
         */
        public Builder connections(int kept, int most) {
            if (kept < 1 || most < kept || most > 64) {
                throw new IllegalArgumentException("connections: " + kept + " to " + most
                        + " (expected: 1 to 64, the first no more than the second)");
            }
            connections = kept;
            maxConnections = most;
            return this;
        }

        /**
         * Sets the number of event loop threads, which then serve only this client: 1 to 1024. Without this setting,
         * the client shares a pool with the other clients of the process that have no such setting. The pool has one
         * event loop for each processor, at most four, and ends one second after the last of these clients has closed.
         * Clients that use {@code inProcess} share a separate pool.
         */
        public Builder eventLoops(int count) {
            if (count < 1 || count > 1024) {
                throw new IllegalArgumentException("eventLoops: " + count + " (expected: 1 to 1024)");
            }
            eventLoops = count;
            return this;
        }

        /**
         * Makes the client call servers in its own process, without sockets. For tests. The servers need the same
         * setting, {@link Server.Builder#inProcess}. The client finds a server by its port, whatever the name of the
         * host is.
         */
        public Builder inProcess() {
            inProcess = true;
            return this;
        }

        /**
         * Sets the maximum time for which {@link Client#close} blocks. At most half of it is spent waiting for one-way
         * calls.
         */
        Builder maxClose(Duration time) {
            maxClose = time;
            return this;
        }

        /**
         * Runs the client on this platform, with event loops that no other client uses: one, unless {@code eventLoops}
         * has set another number before.
         */
        Builder platform(Platform given) {
            platform = given;
            return eventLoops == null ? eventLoops(1) : this;
        }

        /**
         * Inserts these faults into the frames of every connection, in both directions. For tests. The same seed gives
         * the same faults to the same frames in the same order. Only the native wire gets faults.
         */
        public Builder faults(Faults badNetwork) {
            faults = Given.notNull(badNetwork, "faults", "Faults.seeded(…)");
            return this;
        }

        /** Adds an interceptor around every call. It runs inside the interceptors that were added before. */
        public Builder interceptor(Interceptor interceptor) {
            interceptors.add(Given.notNull(interceptor, "interceptor", "an Interceptor"));
            return this;
        }

        /**
         * Creates the client. Threads and connections are made later: with the first call, or with {@code create} for
         * several instances.
         *
         * @throws IllegalArgumentException if the client has faults and uses the classic wire
         * @throws IllegalStateException if the client has two interceptors of {@link Tokens} that sign
         */
        public Client build() {
            long signing = interceptors.stream()
                    .filter(Tokens.Signing.class::isInstance)
                    .count();
            if (signing > 1) {
                throw new IllegalStateException("Tokens.signing or forwarding: " + signing
                        + " interceptors (expected: one, since a call carries one token)");
            }
            ClientSettings settings = new ClientSettings(
                    callTimeout,
                    connectTimeout,
                    keepAlive,
                    maxClose,
                    connections,
                    maxConnections,
                    eventLoops,
                    inProcess,
                    classic,
                    choice,
                    failureShare,
                    tls == null ? null : tls.engine(),
                    faults,
                    interceptors,
                    platform);
            return new Client(settings, tls);
        }
    }
}
