package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.client.ClientCore;
import dev.rpcx.internal.client.ClientProxy;
import dev.rpcx.internal.client.ClientSettings;
import dev.rpcx.internal.discovery.EndpointsFixed;
import dev.rpcx.internal.io.NettyVersion;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.testing.Faults;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Creates proxies, that is, objects that implement an interface by calling a server. The proxies share the connections
 * and threads of their client. One client in a process is enough, since any number of callers can share a connection.
 * Thread-safe: any thread may call a client and its proxies.
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

    /** TLS settings of the client's connections; null if the connections do not use TLS. */
    private final @Nullable Tls tls;

    private Client(ClientSettings settings, @Nullable Tls tls) {
        core = new ClientCore(settings);
        this.tls = tls;
    }

    /**
     * Creates a client with the default settings. The caller has to close the client. The defaults are 10 s for a call,
     * 3 s to connect, and one to four connections to each address (see {@link Builder#connections(int, int)}).
     *
     * @throws IllegalStateException if Netty is older than 4.2; the text names its version
     */
    public static Client standard() {
        return builder().build();
    }

    /**
     * Returns a builder for a client. Each setting of the builder has a default.
     *
     * @throws IllegalStateException if Netty is older than 4.2; the text names its version
     */
    public static Builder builder() {
        NettyVersion.check();
        return new Builder();
    }

    /**
     * Creates a proxy that calls the server named in the interface's {@link RPCXClient} annotation. The client connects
     * to that server at the first call, or in {@link #warmUp}. When it has connected, it logs which methods of the
     * interface the server does not have, or has with other parameters, another result, or types whose members the two
     * sides would take for others.
     *
     * @throws IllegalArgumentException if the type is not an interface
     * @throws IllegalArgumentException if the type has no {@link RPCXClient} annotation, or the annotation has no
     *     address
     * @throws IllegalArgumentException if a method of the type cannot be called remotely, for example because its types
     *     cannot be mapped ({@link dev.rpcx.schema.SchemaException}), or because its {@link Method#timeoutMillis} or
     *     {@link Method#hedgeMillis} is out of range
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
     * Creates a proxy that calls the server at the given address. The interface still needs an {@link RPCXClient}
     * annotation, but an address in the annotation is not used. The client connects to the server at the first call.
     *
     * @param port 1 to 65535
     * @throws IllegalArgumentException if {@code host} or {@code port} is not allowed, or if {@code type} is not
     *     allowed for a reason that {@link #create(Class)} names, other than a missing address
     */
    public <T> T create(Class<T> type, String host, int port) {
        return core.create(type, host, port);
    }

    /**
     * Creates a proxy that calls the instances of a service, which may come and go. The client begins to connect
     * immediately, in the background. {@link Builder#choice} decides which instance gets a call. Proxies that are
     * created with equal {@code endpoints} share their connections. The client stays connected to each instance until
     * the instance goes, or until the client closes.
     *
     * <p>If an instance refuses a call with {@link RPCXException.Code#NOT_FOUND} or
     * {@link RPCXException.Code#UNAUTHENTICATED}, and says that the call was not executed, the client retries the call
     * once at another instance. A call whose method takes or returns a stream is not retried. Each method has a
     * separate budget of at most 100 such retries, which gets ten more each second. If the other instance takes the
     * call, the budget gets this retry back.
     *
     * @throws IllegalArgumentException if {@code type} is not allowed for a reason that {@link #create(Class)} names,
     *     other than a missing address
     * @throws IllegalArgumentException if the client uses the classic wire
     * @throws IllegalArgumentException if the client uses TLS without an expected name (see {@link Tls#expecting}), and
     *     {@code endpoints} were not made by {@link Endpoints#of}
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
     * Prepares the calls of all proxies of this client, so that the first call does not have to wait for what later
     * calls have, and finds out whether calls can succeed. For each proxy, this method waits for a connection, uses the
     * codecs of each method once, and compares the methods with the list that the server has sent. No handler runs. The
     * constructors of the methods' messages can run, with the values of an empty message.
     *
     * <p>If the proxy calls several instances, this method waits for one of them. On the classic wire, this method only
     * waits for connections. Proxies to which nobody refers any more are left out. If this method throws, all proxies
     * that can be prepared have been prepared, and each proxy can be used. This method blocks no longer than the
     * client's call timeout ({@link Builder#callTimeout}).
     *
     * @throws RPCXException if calls would fail. The text names each server and each method for which this is so; the
     *     code is that of the first: {@link RPCXException.Code#UNAVAILABLE} or
     *     {@link RPCXException.Code#DEADLINE_EXCEEDED} if a server cannot be reached,
     *     {@link RPCXException.Code#NOT_FOUND} if it does not publish a method, and {@link RPCXException.Code#INVALID}
     *     if it has the method with other parameters, another result, or types whose members the two sides would take
     *     for others
     * @throws IllegalStateException if the calling thread is an event loop, or if the client is closed
     */
    public void warmUp() {
        core.warmUp();
    }

    /**
     * Returns the names of the methods that the server at this address publishes, for tools and health checks. Each
     * name is {@code service/method}, and the names are in alphabetical order. This method blocks no longer than the
     * client's call timeout ({@link Builder#callTimeout}).
     *
     * @return the names; the same list object as long as the client has the same connection to this server
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if the server cannot be reached or does not answer;
     *     {@link RPCXException.Code#DEADLINE_EXCEEDED} if the client is still connecting when the time is over
     * @throws IllegalStateException if the calling thread is an event loop
     */
    public List<String> published(String host, int port) {
        return core.published(host, port);
    }

    /**
     * Closes the connections, and ends the threads that no other client uses. The client first waits up to 5 s for the
     * servers to acknowledge one-way calls. All other calls in flight end with {@link RPCXException.Code#UNAVAILABLE}.
     * Closing a closed client does nothing.
     *
     * <p>This method blocks until the connections and the client's own event loops have ended, but at most 10 s. Event
     * loops that clients share end later (see {@link Builder#eventLoops}). An event loop that is running a callback
     * ends only after the callback.
     *
     * @throws IllegalStateException if the calling thread is an event loop
     */
    @Override
    public void close() {
        core.close();
    }

    /**
     * Returns the core of this client, that is, the object that makes the proxies and the connections. Tests use this
     * method.
     */
    ClientCore core() {
        return core;
    }

    /** Collects the settings of a client, and creates the client. Each setting has a default. */
    public static final class Builder {
        private Duration callTimeout = Duration.ofSeconds(10);
        private Duration connectTimeout = Duration.ofSeconds(3);
        private Duration keepAlive = Duration.ofSeconds(10);
        private @Nullable Tls tls;
        private @Nullable Faults faults;
        private double failureFraction = ClientSettings.NO_BREAKER;
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
         * Makes the client use the classic wire, for servers that {@linkplain Server.Builder#classic serve} the classic
         * wire. The classic wire is the protocol of the paper whose design RPCX follows (see {@link RPCXClient}). A
         * client on the classic wire has these limits:
         *
         * <ul>
         *   <li>The client has one connection to each address.
         *   <li>There are no streams, no cancel, no metadata, no retries and no hedges. {@link Method#idempotent} and
         *       {@link Method#hedgeMillis} are ignored.
         *   <li>Interceptors of {@link Tokens} send nothing, so a server that requires tokens refuses the calls.
         * </ul>
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
         * in flight to a vanished server end with {@link RPCXException.Code#UNAVAILABLE}. The client pings a server
         * that sends nothing, at most three times within the set time. On the classic wire, which has no pings,
         * noticing can take up to four times as long.
         */
        public Builder keepAlive(Duration time) {
            keepAlive = Given.micros(
                    Given.time(time, "keepAlive", Duration.ofMillis(100), Duration.ofHours(1), "100 ms to 1 h"));
            return this;
        }

        /**
         * Sets how the client chooses one of several instances for a call. The default is {@link Choice#LEAST_LOADED}.
         */
        public Builder choice(Choice way) {
            choice = Given.notNull(way, "choice", "one of Choice");
            return this;
        }

        /**
         * Adds a circuit breaker, which opens when the given fraction of the calls of the last 10 s has failed, if
         * there were at least 20 calls. While the breaker is open, calls fail immediately with
         * {@link RPCXException.Code#UNAVAILABLE}, and are not executed. Each address, and each set of instances, has a
         * separate breaker.
         *
         * <p>One second after opening, the breaker lets one call through as a trial, and usually one more trial each
         * second after that. The first trial that is answered closes the breaker. But once a trial has failed, trials
         * that began before it no longer count. Any answer of a handler counts as an answer, whatever its code.
         *
         * <p>A call has failed in these cases:
         *
         * <ul>
         *   <li>The client could not connect.
         *   <li>The call ended with {@link RPCXException.Code#UNAVAILABLE}, {@link RPCXException.Code#OVERLOADED} or
         *       {@link RPCXException.Code#PROTOCOL}, and the error came neither from the handler nor from a limit of
         *       the client.
         *   <li>The call's time ended without an answer, and the call had at least nine tenths of the time that its
         *       method allows.
         *   <li>The call's time ended without an answer, and the call had at least twice the longest time that a recent
         *       answer of its method took.
         * </ul>
         *
         * @param failureFraction fraction of failed calls that opens the breaker: above 0, at most 1; without this
         *     setting there is no breaker
         */
        public Builder circuitBreaker(double failureFraction) {
            if (!(failureFraction > 0 && failureFraction <= 1)) {
                throw new IllegalArgumentException(
                        "circuitBreaker: " + failureFraction + " (expected: above 0, at most 1)");
            }
            this.failureFraction = failureFraction;
            return this;
        }

        /** Makes the client use TLS for the connections to all servers. By default, connections do not use TLS. */
        public Builder tls(Tls client) {
            tls = Tls.checked(client, false);
            return this;
        }

        /**
         * Sets the maximum time to connect to a server: 1 µs to 1 h; default 3 s. A connected server has the same time
         * again to greet the client.
         */
        public Builder connectTimeout(Duration time) {
            connectTimeout = Given.callTime("connectTimeout", time);
            return this;
        }

        /** Sets one number, 1 to 64, as the minimum and the maximum of {@link #connections(int, int)}. */
        public Builder connections(int count) {
            return connections(count, count);
        }

        /**
         * Sets the minimum and the maximum number of connections to each address. One connection is fastest for up to
         * some hundred callers, so the default is 1 to 4.
         *
         * <ul>
         *   <li>The client keeps {@code min} connections open even without calls. For a proxy of a single address, the
         *       client opens each of these connections only when a call needs the connection.
         *   <li>While all connections are crowded, the client adds connections, up to {@code max}. A connection is
         *       crowded if it has 1024 calls in flight, or three quarters of the calls that the server takes on one
         *       connection, whichever is less.
         *   <li>A connection beyond {@code min} is closed if it has had no call for 10 to 20 s, and another connection
         *       is not crowded.
         *   <li>If no connection has room for a call, the call goes to another instance that has room.
         *   <li>If no other instance has room either, the client opens a new connection. The call waits for the new
         *       connection, at most until the call's time is over.
         *   <li>The client cannot open a new connection if there are {@code max} connections already, or while it
         *       pauses after a failure to connect. The call then fails at once with
         *       {@link RPCXException.Code#OVERLOADED} and is not executed.
         * </ul>
         *
         * @param min minimum: 1 to 64
         * @param max maximum: {@code min} to 64
         */
        public Builder connections(int min, int max) {
            if (min < 1 || max < min || max > 64) {
                throw new IllegalArgumentException("connections: " + min + " to " + max
                        + " (expected: 1 to 64, the first no more than the second)");
            }
            connections = min;
            maxConnections = max;
            return this;
        }

        /**
         * Sets the number of event loop threads, which serve only this client: 1 to 1024. Without this setting, the
         * client shares a pool of event loops with all other clients of the process that do not set the number. The
         * pool has one event loop for each processor, but at most four. The pool ends one second after the last client
         * that shares it has closed. Clients that use {@link #inProcess} share a separate pool.
         */
        public Builder eventLoops(int count) {
            if (count < 1 || count > 1024) {
                throw new IllegalArgumentException("eventLoops: " + count + " (expected: 1 to 1024)");
            }
            eventLoops = count;
            return this;
        }

        /**
         * Makes the client call servers in its own process, without sockets, for tests. The servers need the same
         * setting, {@link Server.Builder#inProcess}. The client finds a server by the port, and ignores the name of the
         * host.
         */
        public Builder inProcess() {
            inProcess = true;
            return this;
        }

        /**
         * Sets the maximum time for which {@link Client#close} blocks. At most half of this time is spent waiting for
         * servers to acknowledge one-way calls.
         */
        Builder maxClose(Duration time) {
            maxClose = time;
            return this;
        }

        /**
         * Makes the client use the event loops, the time and the random numbers of the given platform. The client
         * shares the event loops with no other client. The client has one event loop, unless {@link #eventLoops} sets
         * another number.
         */
        Builder platform(Platform given) {
            platform = given;
            return eventLoops == null ? eventLoops(1) : this;
        }

        /**
         * Inserts faults into the frames of calls, on every connection and in both directions, for tests. The same seed
         * gives the same faults to the same frames in the same order. Only the native wire can have faults.
         */
        public Builder faults(Faults badNetwork) {
            faults = Given.notNull(badNetwork, "faults", "Faults.seeded(…)");
            return this;
        }

        /**
         * Adds an interceptor around every call. Interceptors that were added earlier run around those that were added
         * later.
         */
        public Builder interceptor(Interceptor interceptor) {
            interceptors.add(Given.notNull(interceptor, "interceptor", "an Interceptor"));
            return this;
        }

        /**
         * Creates the client. Threads and connections are created later: at the first call, or when
         * {@link Client#create(Class, Endpoints)} creates a proxy.
         *
         * @throws IllegalArgumentException if the client has faults and uses the classic wire
         * @throws IllegalStateException if the client has two interceptors of {@link Tokens} that sign calls
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
                    failureFraction,
                    tls == null ? null : tls.engine(),
                    faults,
                    interceptors,
                    platform);
            return new Client(settings, tls);
        }
    }
}
