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
 * Makes proxies of interfaces, and holds the connections and threads that the proxies share. Thread-safe. One client in
 * a process is enough: any number of callers share a connection.
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
     * Makes a new client with the standard settings: one connection to each address until that connection is crowded,
     * 10 s for a call, 3 s to connect. The caller has to close the client.
     */
    public static Client standard() {
        return builder().build();
    }

    /** Returns a builder for a client with settings of your own; each setting has a standard value. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Makes a proxy of the interface, which calls the server that the interface's {@link RPCXClient} annotation names.
     * The first call connects.
     *
     * @throws IllegalArgumentException the type is no interface, has no annotation, or no address in it, or has a
     *     method that cannot be called remotely: a method with types that cannot be mapped
     *     ({@link dev.rpcx.schema.SchemaException}), or with times that a call cannot have
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

    /** As {@code create(type)}, for a server at another address than that of the annotation. */
    public <T> T create(Class<T> type, String host, int port) {
        return core.create(type, host, port);
    }

    /**
     * As {@code create(type)}, for a service of several instances, which may come and go: each call goes to one of
     * them, as {@link Builder#choice} says. Proxies made with an equal {@code endpoints} share their connections, which
     * stay until the client closes. The client begins to connect at once, in the background.
     *
     * <p>A call that an instance refuses with {@link RPCXException.Code#NOT_FOUND} or
     * {@link RPCXException.Code#UNAUTHENTICATED}, not executed, is tried once more at another instance, unless it takes
     * or brings a stream. These second tries have a budget for each method, apart from that of retries: a hundred may
     * be spent at once, and ten a second after that. A second try that another instance takes is not counted.
     *
     * @throws IllegalArgumentException also if the client uses the classic wire, which cannot tell when an instance
     *     leaves; or if it uses TLS without an expected name, unless the endpoints are made by {@link Endpoints#of}:
     *     see {@link Tls#expecting}
     * @throws IllegalStateException the client is closed
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
     * Returns what the server at this address publishes, as {@code service/method}, in order. For tools, and to check
     * that the server answers. Blocks at most as long as a call.
     *
     * @return the same list as long as the client has the same connection to this server
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if the server cannot be reached or does not answer
     */
    public List<String> published(String host, int port) {
        return core.published(host, port);
    }

    /**
     * Ends the connections, and the threads unless other clients use them too. The client first waits for one-way calls
     * that their server has not acknowledged yet, for as long as they have time, at most 5 s. Other calls under way end
     * with {@link RPCXException.Code#UNAVAILABLE}. Blocks until all has ended, but at most 10 s: an event loop that a
     * callback holds up ends only after the callback. A second close does nothing.
     *
     * @throws IllegalStateException the calling thread is an event loop, which this method would have to wait for
     */
    @Override
    public void close() {
        core.close();
    }

    /** The core of this client, for tests. */
    ClientCore core() {
        return core;
    }

    /** Settings of a client, each with a standard value. */
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
        private int mostConnections = 4;
        private @Nullable Integer eventLoops;
        private boolean classic;
        private boolean inProcess;
        private Platform platform = Platform.MACHINE;
        private final List<Interceptor> interceptors = new ArrayList<>();

        private Builder() {}

        /**
         * Uses the classic wire, that of the paper, for servers that {@linkplain Server.Builder#classic serve} it. The
         * classic wire has one connection to each address, no streams, no cancel, no metadata and no second attempts.
         * So an interceptor of {@link Tokens} sends nothing, and a server that requires tokens refuses the call. The
         * client makes no use of what {@link Method#idempotent} and {@link Method#hedgeMillis} allow.
         */
        public Builder classic() {
            classic = true;
            return this;
        }

        /** Time for a call without streams, unless its method says otherwise: 1 µs to an hour; standard 10 s. */
        public Builder callTimeout(Duration time) {
            callTimeout = Given.callTime("callTimeout", time);
            return this;
        }

        /**
         * Time within which a server that has vanished is noticed, and calls under way to it end as unavailable: 100 ms
         * to 1 h; standard 10 s. A silent connection is asked for a sign of life at most three times within it. On the
         * classic wire, which has no such request, a host that has vanished is noticed within four times this time.
         */
        public Builder keepAlive(Duration time) {
            keepAlive = Given.micros(
                    Given.time(time, "keepAlive", Duration.ofMillis(100), Duration.ofHours(1), "100 ms to 1 h"));
            return this;
        }

        /** How one of several instances is chosen for a call; standard {@link Choice#LEAST_LOADED}. */
        public Builder choice(Choice way) {
            choice = Given.notNull(way, "choice", "one of Choice");
            return this;
        }

        /**
         * Opens a circuit breaker for a service when this share of its calls in the last 10 s, of which there must be
         * at least 20, could not be made, were refused as unavailable or overloaded, or were not answered in time.
         * While it is open, calls fail at once, not executed; after 1 s one call is tried, and one more each second
         * until one is answered. Any answer of a handler that has run counts as an answer, whatever its code. A call
         * without an answer does not count if it had less than nine tenths of its method's time, and less than twice
         * the time that answers of this method took lately. The share is above 0 and at most 1; standard: the breaker
         * never opens.
         */
        public Builder circuitBreaker(double share) {
            if (!(share > 0 && share <= 1)) {
                throw new IllegalArgumentException("circuitBreaker: " + share + " (expected: above 0, at most 1)");
            }
            failureShare = share;
            return this;
        }

        /** Uses TLS for the connections to every server; standard: plain connections. */
        public Builder tls(Tls client) {
            tls = Tls.checked(client, false);
            return this;
        }

        /** Time to connect, and as much again until the server has greeted the client: up to an hour; standard 3 s. */
        public Builder connectTimeout(Duration time) {
            connectTimeout = Given.callTime("connectTimeout", time);
            return this;
        }

        /** Exact number of connections to each address: 1 to 64. */
        public Builder connections(int count) {
            return connections(count, count);
        }

        /**
         * Number of connections to each address: {@code kept} at all times, and up to {@code most} while each has a
         * thousand calls under way, or three quarters of the calls that the server takes on one connection; both 1 to
         * 64. A call that finds all of them full waits, within its own time, as long as one more connection can be
         * made. Connections beyond {@code kept} are closed when they have had no call for 10 to 20 s and another
         * connection has room. Standard 1 to 4: one connection is fastest up to some hundred callers.
         */
        public Builder connections(int kept, int most) {
            if (kept < 1 || most < kept || most > 64) {
                throw new IllegalArgumentException("connections: " + kept + " to " + most
                        + " (expected: 1 to 64, the first no more than the second)");
            }
            connections = kept;
            mostConnections = most;
            return this;
        }

        /**
         * Number of event loop threads that serve only this client's connections: 1 to 1024. Without this setting the
         * client borrows the event loops that all such clients of the process share. There is one for each processor,
         * at most four; they end a second after the last such client has closed.
         */
        public Builder eventLoops(int count) {
            if (count < 1 || count > 1024) {
                throw new IllegalArgumentException("eventLoops: " + count + " (expected: 1 to 1024)");
            }
            eventLoops = count;
            return this;
        }

        /**
         * Calls servers in the same process that are {@linkplain Server.Builder#inProcess in process} too. A server is
         * found by its port, whatever the host is called. For tests: no sockets are used, and all else is as with
         * sockets.
         */
        public Builder inProcess() {
            inProcess = true;
            return this;
        }

        /** Longest time for which {@link Client#close} blocks. */
        Builder maxClose(Duration time) {
            maxClose = time;
            return this;
        }

        /** Runs the client on this platform, with event loops of its own. */
        Builder platform(Platform given) {
            platform = given;
            return eventLoops == null ? eventLoops(1) : this;
        }

        /**
         * For tests: inserts these faults into the frames of every connection, in both directions, in process as well
         * as on sockets. For the native wire only. The same seed gives the same faults to the same frames in the same
         * order.
         */
        public Builder faults(Faults badNetwork) {
            faults = Given.notNull(badNetwork, "faults", "Faults.seeded(…)");
            return this;
        }

        /** Adds an interceptor around every call, inside the interceptors that were added before. */
        public Builder interceptor(Interceptor interceptor) {
            interceptors.add(Given.notNull(interceptor, "interceptor", "an Interceptor"));
            return this;
        }

        /**
         * Makes the client. This method starts no thread and makes no connection: the first call does, or
         * {@code create} for several instances.
         *
         * @throws IllegalArgumentException the client has faults on the classic wire
         * @throws IllegalStateException the client has two interceptors of {@link Tokens} that sign, but a call carries
         *     one token
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
                    mostConnections,
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
