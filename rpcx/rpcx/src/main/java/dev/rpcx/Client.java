package dev.rpcx;

import dev.rpcx.testing.Faults;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes proxies of interfaces, and holds the connections and threads that they share. Thread-safe. One a process is
 * enough: any number of callers share a connection.
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

    /** TLS of this client's connections; null if they are plain. */
    private final @Nullable Tls tls;

    private Client(ClientSettings settings, @Nullable Tls tls) {
        core = new ClientCore(settings);
        this.tls = tls;
    }

    /**
     * A new one at each call, which whoever makes it closes. With the standard settings: one connection an address
     * until that is crowded, 10 s a call, 3 s to connect.
     */
    public static Client standard() {
        return builder().build();
    }

    /** With settings of one's own; each has a standard value. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * A proxy of the interface, which calls the server that its {@link RPCXClient} names. Does not connect: the first
     * call does.
     *
     * @throws IllegalArgumentException no interface, no annotation, no address in it, or a method that cannot be called
     *     remotely: one with types that cannot be mapped ({@link dev.rpcx.schema.SchemaException}), or times that a
     *     call cannot have
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

    /** The same for a server at another address than the annotation's. */
    public <T> T create(Class<T> type, String host, int port) {
        return core.create(type, host, port);
    }

    /**
     * The same for a service of several instances, which may come and go: each call goes to one of them, as {@link
     * Builder#choice} says. Proxies made with an equal {@code endpoints} share their connections, which stay until the
     * client closes. Connects at once, in the background.
     *
     * <p>A call that its instance refuses with {@link RPCXException.Code#NOT_FOUND} or {@link
     * RPCXException.Code#UNAUTHENTICATED}, not executed, is made once more at another one, unless it takes or brings a
     * stream. These tries take nothing from the retries of other calls, nor from such tries of other methods: of each
     * method a hundred may be spent at once and ten a second after that, and one that another instance takes is not
     * spent.
     *
     * @throws IllegalArgumentException also for a client of the classic wire, which cannot tell when an instance
     *     leaves; and for one with TLS that expects no name, unless the endpoints are {@link Endpoints#of} some: see
     *     {@link Tls#expecting}
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
     * What the server there publishes, as {@code service/method}, in order: for tools, and to see that it is there and
     * answers. Blocks at most as long as a call.
     *
     * @return the same list as long as the client has the same connection to this server
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if it cannot be reached or says nothing
     */
    public List<String> published(String host, int port) {
        return core.published(host, port);
    }

    /**
     * Ends the connections, and the threads unless other clients use them too. One-way calls of which their server has
     * not said yet that it has taken them are waited for first: for as long as they have time, 5 s at most. Other calls
     * under way end with {@link RPCXException.Code#UNAVAILABLE}. Blocks until that is done, but at most 10 s: what a
     * callback holds up on an event loop ends when the callback does. A second time does nothing.
     *
     * @throws IllegalStateException on an event loop, which it would have to wait for
     */
    @Override
    public void close() {
        core.close();
    }

    /** What stands behind this client: for tests. */
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
         * Speaks the paper's wire to servers that {@linkplain Server.Builder#classic serve} it: one connection an
         * address, no streams, no cancel, no metadata, no second attempts. So an interceptor of {@link Tokens} sends
         * nothing, and a server that requires tokens refuses the call; what {@link Method#idempotent} and
         * {@link Method#hedgeMillis} allow is not made use of.
         */
        public Builder classic() {
            classic = true;
            return this;
        }

        /** Time of a call without streams whose method does not say otherwise: 1 µs to an hour; standard 10 s. */
        public Builder callTimeout(Duration time) {
            callTimeout = Given.callTime("callTimeout", time);
            return this;
        }

        /**
         * A server that is gone without a word is noticed within this time, and calls under way to it end as
         * unavailable: 100 ms to 1 h; standard 10 s. A silent connection is asked for a sign of life, at most three
         * times in it. On the classic wire, which cannot ask, a host that is gone is noticed within four times this.
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
         * Breaks the circuit to a service when this share of its calls in the last 10 s, at least 20, could not be
         * made, were refused or not answered in time: for 1 s calls fail at once, not executed, then one is tried each
         * second until one is answered. What a handler that has run answers counts as an answer, whatever its code. A
         * call that was given less than nine tenths of what its method gives, and less than twice what answers to that
         * method lately took, says nothing when it gets none. Above 0, at most 1; standard: never.
         */
        public Builder circuitBreaker(double share) {
            if (!(share > 0 && share <= 1)) {
                throw new IllegalArgumentException("circuitBreaker: " + share + " (expected: above 0, at most 1)");
            }
            failureShare = share;
            return this;
        }

        /** Speaks TLS, to every server; standard: plain. */
        public Builder tls(Tls client) {
            tls = Tls.checked(client, false);
            return this;
        }

        /** Time to connect and to be greeted by the server: up to an hour; standard 3 s. */
        public Builder connectTimeout(Duration time) {
            connectTimeout = Given.callTime("connectTimeout", time);
            return this;
        }

        /** Connections to each address, no more and no less: 1 to 64. */
        public Builder connections(int count) {
            return connections(count, count);
        }

        /**
         * Connections to each address: {@code kept} of them always, up to {@code most} while a thousand calls are under
         * way on each, or three quarters of what the server takes on one; both 1 to 64. A call that finds all of them
         * full waits as long as one more can come, in its own time. Those beyond {@code kept} are closed when they have
         * had no call for 10 to 20 s and another one has room. Standard 1 to 4: one is fastest up to some hundred
         * callers.
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
         * Threads that serve the connections of this client alone: 1 to 1024. Standard: those that all clients of the
         * process share which do not say otherwise, one a processor, at most four; they end a second after the last
         * such client.
         */
        public Builder eventLoops(int count) {
            if (count < 1 || count > 1024) {
                throw new IllegalArgumentException("eventLoops: " + count + " (expected: 1 to 1024)");
            }
            eventLoops = count;
            return this;
        }

        /**
         * Calls the servers of this process that are {@linkplain Server.Builder#inProcess in process} too, by their
         * ports, whatever host is asked for: for tests, without sockets and with everything else.
         */
        public Builder inProcess() {
            inProcess = true;
            return this;
        }

        /** The longest that {@link Client#close} blocks. */
        Builder maxClose(Duration time) {
            maxClose = time;
            return this;
        }

        /** Runs on this one, with loops of its own. */
        Builder platform(Platform given) {
            platform = given;
            return eventLoops == null ? eventLoops(1) : this;
        }

        /**
         * For tests: the frames of every connection, both ways, meet these faults, in process as on sockets. For the
         * native wire. The same seed gives the same faults to the same frames in the same order.
         */
        public Builder faults(Faults badNetwork) {
            faults = Given.notNull(badNetwork, "faults", "Faults.seeded(…)");
            return this;
        }

        /** Adds one around every call, inside those added before. */
        public Builder interceptor(Interceptor interceptor) {
            interceptors.add(Given.notNull(interceptor, "interceptor", "an Interceptor"));
            return this;
        }

        /**
         * Starts no thread and makes no connection: the first call does.
         *
         * @throws IllegalArgumentException faults on the classic wire
         * @throws IllegalStateException two interceptors of {@link Tokens} that sign: a call carries one token
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
