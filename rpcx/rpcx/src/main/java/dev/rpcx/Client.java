package dev.rpcx;

import dev.rpcx.codec.Codecs;
import dev.rpcx.testing.Faults;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerAdapter;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.handler.ssl.SslHandler;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * Makes proxies of interfaces, and holds the connections and threads that they share. Thread-safe. One a process is enough: any number
 * of callers share a connection.
 *
 * <pre>{@code
 * try (Client client = Client.standard()) {
 *     Greeter greeter = client.create(Greeter.class);
 *     greeter.hello("world");
 * }
 * }</pre>
 */
public final class Client implements AutoCloseable {

    private final Duration callTimeout;
    private final int connections;
    private final int mostConnections;
    private final boolean classic;
    private final List<Interceptor> interceptors;
    private final Platform platform;

    /** All that servers make this client hold. */
    private final Ledger ledger = Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES);

    /** Pays for requests of calls that wait for a connection. */
    final Account waiting = new Account(ledger);

    /** One-way calls that have been accepted, and would be lost where the client ended now. */
    private final Set<CallFuture<?>> unsent = ConcurrentHashMap.newKeySet();

    private final Loops loops;

    /** Whence {@link #loops}, to be given back; null for those of this client alone. */
    private final @Nullable SharedLoops shared;

    private final Bootstrap bootstrap;
    private final Map<String, ClientAddress> addresses = new ConcurrentHashMap<>();
    final Map<Endpoints, ClientCluster> clusters = new ConcurrentHashMap<>();
    private final long keepAliveNanos;
    private final long connectNanos;
    private final Choice choice;
    private final double failureShare;
    private final @Nullable Tls tls;
    private final @Nullable Faults faults;
    private final AtomicLong opened = new AtomicLong();

    /** Each with the future that ends when its handlers have heard the last of it. */
    final Map<Channel, CompletableFuture<Void>> channels = new ConcurrentHashMap<>();

    /** Attempts to connect that have not ended yet, and that calls may wait for. */
    private final Set<Coming<?>> attempts = ConcurrentHashMap.newKeySet();

    /** The number of each method that proxies call, which all that call it share: there are as many as in the program. */
    private final Map<MethodKey, Integer> methods = new ConcurrentHashMap<>();

    /** The published names of the same: what connections remember of a server in any case. */
    private final Set<String> called = ConcurrentHashMap.newKeySet();

    private final AtomicInteger methodsMade = new AtomicInteger();

    /** What a connection looks a method up by, and what it compares. */
    private record MethodKey(String service, String method, int shape, boolean isAnswered) {}

    int numberOf(String service, String method, int shape, boolean isAnswered) {
        called.add(MethodDictionary.key(service, method));
        return methods.computeIfAbsent(
                new MethodKey(service, method, shape, isAnswered), key -> methodsMade.getAndIncrement());
    }

    /** Whether a proxy has a method of this {@link MethodDictionary#key}. */
    boolean calls(String publishedName) {
        return called.contains(publishedName);
    }

    private final long maxCloseNanos;
    private final Complaint oneWays = new Complaint(System.getLogger(Client.class.getName()), InstantSource.system());
    private volatile boolean closed;

    static {
        ThreadTools.prepare(List.of(
                CurrentCall.class,
                TimedContext.class,
                RPCXException.class,
                CallFuture.class,
                AsyncCall.class,
                CallbackFailures.class,
                ThrowableText.class,
                ClientMethod.class,
                ClientMethod.Async.class,
                ClassicMethod.class));
    }

    private Client(Builder builder) {
        callTimeout = builder.callTimeout;
        connections = builder.connections;
        mostConnections = builder.mostConnections;
        classic = builder.classic;
        keepAliveNanos = builder.keepAlive.toNanos();
        connectNanos = builder.connectTimeout.toNanos();
        choice = builder.choice;
        maxCloseNanos = builder.maxClose.toNanos();
        failureShare = builder.failureShare;
        tls = builder.tls;
        faults = builder.faults;
        interceptors = List.copyOf(builder.interceptors);
        platform = builder.platform;
        shared = builder.eventLoops != null ? null : builder.inProcess ? SharedLoops.IN_PROCESS : SharedLoops.SOCKETS;
        loops = shared == null
                ? platform.loops(Objects.requireNonNull(builder.eventLoops), Loops.CLIENT, builder.inProcess)
                : shared.take();
        bootstrap =
                loops.client().option(ChannelOption.CONNECT_TIMEOUT_MILLIS, (int) builder.connectTimeout.toMillis());
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
     * A proxy of the interface, which calls the server that its {@link RPCXClient} names. Does not connect: the first call does.
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
        return proxy(type, address(host, port));
    }

    /** The same one for all proxies. */
    ClientAddress address(String host, int port) {
        Endpoint endpoint = new Endpoint(host, port);
        return addresses.computeIfAbsent(
                ClientAddress.keyOf(endpoint), key -> new ClientAddress(this, endpoint, connections, mostConnections));
    }

    /**
     * The same for a service of several instances, which may come and go: each call goes to one of them, as {@link Builder#choice} says.
     * Proxies made with an equal {@code endpoints} share their connections, which stay until the client closes.
     * Connects
     * at once, in the background.
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
        if (classic) {
            throw new IllegalArgumentException("several endpoints on the classic wire (expected: the native one)");
        }
        if (tls != null && !tls.hasName() && !(endpoints instanceof EndpointsFixed)) {
            throw new IllegalArgumentException(
                    "TLS to instances that a registry or DNS names, without a name that their"
                            + " certificates have to have (expected: Tls.expecting(name))");
        }
        if (closed) {
            throw new IllegalStateException("the client is closed");
        }
        ClientCluster cluster = enter(endpoints);
        try {
            T proxy = proxy(type, cluster);
            // not in the map's lock: this is the registry's code
            cluster.start(endpoints);
            return proxy;
        } finally {
            if (cluster.leave()) {
                // nobody has it, and each failure would leave one more
                clusters.remove(endpoints, cluster);
            }
        }
    }

    /** One that nobody takes out of the map until this creator has left it. */
    private ClientCluster enter(Endpoints endpoints) {
        while (true) {
            ClientCluster cluster = clusters.computeIfAbsent(
                    endpoints, key -> new ClientCluster(this, connections, mostConnections, choice));
            if (cluster.enter()) {
                return cluster;
            }
            // the creator that has given it up is about to do the same
            clusters.remove(endpoints, cluster);
        }
    }

    /**
     * What the server there publishes, as {@code service/method}, in order: for tools, and to see that it is there and answers. Blocks at most
     * as long as a call.
     *
     * @return the same list as long as the client has the same connection to this server
     * @throws RPCXException {@link RPCXException.Code#UNAVAILABLE} if it cannot be reached or says nothing
     */
    public List<String> published(String host, int port) {
        Endpoint endpoint = new Endpoint(host, port);
        long deadline = platform.ticker().nanoTime() + callTimeout.toNanos();
        ClientConnection connection =
                address(host, port).await(0, deadline, new AnswerTimes(callTimeout.toNanos()), CircuitBreaker.GIVEN);
        try {
            return connection
                    .published()
                    .get(Math.max(0, deadline - platform.ticker().nanoTime()), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw Route.interrupted();
        } catch (ExecutionException | TimeoutException e) {
            throw RPCXException.refused(
                    RPCXException.Code.UNAVAILABLE, ClientAddress.keyOf(endpoint) + ": does not say what it publishes");
        }
    }

    private <T> T proxy(Class<T> type, Route route) {
        RPCXClient marked = ClientProxy.marked(type);
        ClientProxy proxy = new ClientProxy(
                type,
                marked.remoteServerName(),
                route,
                Codecs.standard(type),
                interceptors,
                callTimeout,
                classic,
                this);
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, proxy));
    }

    /** Methods with a number of their own: for tests. */
    int methodsMade() {
        return methodsMade.get();
    }

    long callTimeoutNanos() {
        return callTimeout.toNanos();
    }

    long keepAliveNanos() {
        return keepAliveNanos;
    }

    /** What an attempt that is under way and the next one may take: a call waits no longer for a connection. */
    long patienceNanos() {
        return 2 * connectNanos;
    }

    Ledger ledger() {
        return ledger;
    }

    Platform platform() {
        return platform;
    }

    boolean isClosed() {
        return closed;
    }

    @Nullable
    CircuitBreaker newBreaker() {
        return failureShare > 1 ? null : new CircuitBreaker(failureShare, platform.ticker()::nanoTime);
    }

    /** A task that can be cancelled; null if the client is closed, and it will not run. */
    @Nullable
    Future<?> timer(Runnable task, long nanos) {
        try {
            return closed ? null : loops.group.schedule(task, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException ended) {
            return null;
        }
    }

    /** A task that runs again and again until it is cancelled or throws; null if the client is closed. */
    @Nullable
    Future<?> repeat(Runnable task, long nanos) {
        try {
            return closed ? null : loops.group.scheduleWithFixedDelay(task, nanos, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException ended) {
            return null;
        }
    }

    /**
     * An attempt is about to begin. It ends with the client at the latest, whatever it waits for by then: the timers of
     * event loops that end do not run. To be said on an event loop, before its first timer is asked for: either that
     * finds the client closed, or {@link #end} finds the attempt.
     */
    void endWithThis(Coming<?> attempt) {
        attempts.add(attempt);
        attempt.whenComplete((connected, failure) -> attempts.remove(attempt));
    }

    /**
     * Runs a task on an event loop, whose stack is at its begin. What this throws is the caller's: the task may run all
     * the same.
     *
     * @return false if the client is closed, and the task will not run
     */
    boolean execute(Runnable task) {
        if (closed) {
            return false;
        }
        try {
            loops.group.execute(task);
            return true;
        } catch (RejectedExecutionException ended) {
            return false;
        }
    }

    /** @return false if the client is closed, and the task will not run; one that was taken before may run after the end */
    boolean schedule(Runnable task, long nanos) {
        if (closed) {
            return false;
        }
        try {
            loops.group.schedule(task, nanos, TimeUnit.NANOSECONDS);
            return true;
        } catch (RejectedExecutionException ended) {
            return false;
        }
    }

    /**
     * Connects, and ends the attempt with the failure; with the connection as soon as it stands where {@code atOnce},
     * behind the handshake of TLS if there is one, otherwise the connection itself does when the server has greeted it.
     * For what comes behind the connect it has the time to connect once more.
     */
    <C extends ChannelHandler> void open(
            ClientAddress address,
            BiFunction<Channel, Account, C> maker,
            CompletableFuture<C> attempt,
            boolean atOnce) {
        if (closed) {
            attempt.completeExceptionally(new IllegalStateException("the client is closed"));
            return;
        }
        AtomicReference<@Nullable C> made = new AtomicReference<>();
        try {
            ChannelFuture connecting = bootstrap
                    .clone()
                    .handler(new ChannelInitializer<Channel>() {
                        @Override
                        protected void initChannel(Channel channel) {
                            Account account = Objects.requireNonNull(ledger.open(null));
                            channel.closeFuture().addListener(over -> account.close());
                            C connection = maker.apply(channel, account);
                            made.set(connection);
                            if (tls != null) {
                                tls.engine()
                                        .addTo(
                                                channel,
                                                account,
                                                address.endpoint,
                                                KeepAlive.frameNanos(keepAliveNanos));
                            }
                            if (faults != null) {
                                channel.pipeline().addLast(new FaultyPipe(faults, opened.getAndIncrement()));
                            }
                            CompletableFuture<Void> over = new CompletableFuture<>();
                            channel.pipeline().addLast(connection, new ChannelHandlerAdapter() {
                                @Override
                                public void handlerRemoved(ChannelHandlerContext ctx) {
                                    channels.remove(channel);
                                    over.complete(null);
                                }
                            });
                            // last: nobody waits for a channel that could not be set up
                            channels.put(channel, over);
                        }
                    })
                    .connect(loops.remote(address.endpoint.host(), address.endpoint.port()));
            attempt.whenComplete((connected, failure) -> {
                boolean isClosing = made.get() instanceof WireConnection connection && connection.isClosed();
                if (failure != null && !isClosing) {
                    // whoever has ended the attempt: a channel that nobody waits for is closed, also while it connects;
                    // a connection that has ended it closes by itself, behind the word that says why
                    connecting.channel().close();
                }
            });
            connecting.addListener(done -> {
                C connection = made.get();
                if (!done.isSuccess() || connection == null) {
                    attempt.completeExceptionally(
                            done.cause() == null ? new IllegalStateException("not connected") : done.cause());
                } else if (closed) {
                    attempt.completeExceptionally(new IllegalStateException("the client is closed"));
                } else if (atOnce && tls == null) {
                    attempt.complete(connection);
                } else {
                    Channel channel = connecting.channel();
                    if (atOnce) {
                        completeOnceShaken(
                                attempt, connection, channel.pipeline().get(SslHandler.class));
                    }
                    Future<?> timer = channel.eventLoop()
                            .schedule(
                                    () -> attempt.completeExceptionally(
                                            new IllegalStateException("connected, but the server says nothing")),
                                    connectNanos,
                                    TimeUnit.NANOSECONDS);
                    attempt.whenComplete((greeted, failure) -> timer.cancel(false));
                }
            });
        } catch (Throwable e) {
            // an Error too: others wait for the end of the attempt
            attempt.completeExceptionally(e);
        }
    }

    /** Nobody greets on the classic wire: what the handshake says has to do. */
    private static <C> void completeOnceShaken(
            CompletableFuture<C> attempt, C connection, @Nullable SslHandler engine) {
        if (engine == null) {
            attempt.completeExceptionally(new IllegalStateException("closed before the handshake"));
            return;
        }
        engine.handshakeFuture().addListener(shaken -> {
            if (shaken.isSuccess()) {
                attempt.complete(connection);
            } else {
                attempt.completeExceptionally(shaken.cause());
            }
        });
    }

    void closesBehind(CallFuture<?> call) {
        unsent.add(call);
        call.onEnd((value, thrown) -> unsent.remove(call));
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
        LoopThread.refuse("Client.close", "another thread");
        long begin = System.nanoTime();
        CompletableFuture<?>[] accepted = oneWayCalls();
        await(CompletableFuture.allOf(accepted), maxCloseNanos / 2);
        CompletableFuture<Void> over = end(Client::onOwnThread);
        if (over == null) {
            return;
        }
        long left = maxCloseNanos - (System.nanoTime() - begin);
        await(over, left);
        if (shared == null) {
            loops.close(Math.max(0, maxCloseNanos - (System.nanoTime() - begin)));
        } else {
            shared.giveBack();
        }
    }

    /**
     * Waits until that has ended in some way, also where this thread is interrupted, and no longer than so. Without
     * {@code completeOnTimeout}: the first in a process has the JDK start a thread, which inherits from this one for as
     * long as the process lives.
     */
    private static void await(CompletableFuture<?> end, long maxNanos) {
        long begin = System.nanoTime();
        boolean isInterrupted = false;
        try {
            while (true) {
                try {
                    end.get(Math.max(0, maxNanos - (System.nanoTime() - begin)), TimeUnit.NANOSECONDS);
                    return;
                } catch (InterruptedException e) {
                    isInterrupted = true;
                } catch (ExecutionException | CancellationException | TimeoutException e) {
                    return;
                }
            }
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Those that have been accepted before, in this thread or in one that it has heard of, and have not ended. */
    private CompletableFuture<?>[] oneWayCalls() {
        List<CompletableFuture<?>> found = new ArrayList<>();
        for (Channel channel : channels.keySet()) {
            ClientConnection connection = channel.pipeline().get(ClientConnection.class);
            if (connection != null) {
                connection.slots.addOneWay(found);
            }
        }
        // behind the slots: a call that loses its slot is here before, and stays here until it ends
        found.addAll(unsent);
        return found.toArray(new CompletableFuture<?>[0]);
    }

    /**
     * The part of {@link #close} that nobody waits for. @return ends when no connection is left; null if the client was
     * closed before
     */
    @Nullable
    CompletableFuture<Void> end() {
        return end(Runnable::run);
    }

    /** @param registries runs what ends the watches, which is the registries' code: it may block, and may throw */
    private @Nullable CompletableFuture<Void> end(Executor registries) {
        synchronized (this) {
            if (closed) {
                return null;
            }
            closed = true;
        }
        List<CompletableFuture<?>> over = new ArrayList<>();
        // callbacks of calls that wait run on an event loop, and may never end
        for (Coming<?> attempt : attempts) {
            over.add(done(
                    loops.group,
                    () -> attempt.completeExceptionally(new IllegalStateException("the client is closed"))));
        }
        for (ClientCluster cluster : clusters.values()) {
            over.add(done(loops.group, cluster::endCalls));
        }
        for (Channel channel : channels.keySet()) {
            done(Runnable::run, () -> drop(channel));
        }
        over.addAll(channels.values());
        clusters.forEach((endpoints, cluster) ->
                over.add(done(endpoints instanceof EndpointsFixed ? Runnable::run : registries, cluster::endWatch)));
        return CompletableFuture.allOf(over.toArray(new CompletableFuture<?>[0]));
    }

    /** One step of the end, which goes on whatever this throws. @return ends normally, when the step has */
    private static CompletableFuture<Void> done(Executor place, Runnable step) {
        CompletableFuture<Void> over = new CompletableFuture<>();
        try {
            place.execute(() -> {
                try {
                    step.run();
                } catch (Throwable e) {
                    failed(e);
                } finally {
                    over.complete(null);
                }
            });
        } catch (Throwable e) {
            failed(e);
            over.complete(null);
        }
        return over;
    }

    /** Nobody else hears of it. Any thread. */
    void oneWayFailed(String call, Throwable thrown) {
        String how = thrown instanceof RPCXException known
                ? known.code() + ", " + known.executed()
                : thrown.getClass().getName();
        oneWays.log(call + " failed as " + how, null);
    }

    private static void failed(Throwable thrown) {
        System.getLogger(Client.class.getName())
                .log(System.Logger.Level.WARNING, "a client is closed, but for what has failed here", thrown);
    }

    private static void onOwnThread(Runnable task) {
        Thread thread = new Thread(task, "rpcx-close");
        // what never ends holds no program up
        thread.setDaemon(true);
        thread.start();
    }

    /** Ends the connections that are there; the next call makes a new one. */
    void dropConnections() {
        channels.keySet().forEach(Client::drop);
    }

    private static void drop(Channel channel) {
        ClientConnection connection = channel.pipeline().get(ClientConnection.class);
        if (connection != null) {
            connection.isDropped = true;
        }
        channel.close();
    }

    /** Settings of a client, each with a standard value. */
    public static final class Builder {
        private static final double NO_BREAKER = 2;

        private Duration callTimeout = Duration.ofSeconds(10);
        private Duration connectTimeout = Duration.ofSeconds(3);
        private Duration keepAlive = Duration.ofSeconds(10);
        private @Nullable Tls tls;
        private @Nullable Faults faults;
        private double failureShare = NO_BREAKER;
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
         * A server that is gone without a word is noticed within this time, and calls under way to it end as unavailable: 100 ms to 1 h;
         * standard 10 s. A silent connection is asked for a sign of life, at most three times in it. On the classic
         * wire, which cannot ask,
         * a host that is gone is noticed within four times this.
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
         * Breaks the circuit to a service when this share of its calls in the last 10 s, at least 20, could not be made, were refused or
         * not answered in time: for 1 s calls fail at once, not executed, then one is tried each
         * second until one is answered. What a handler that has run answers counts
         * as an answer, whatever its code. A call that was given less than nine tenths
         * of what its method gives, and less than twice what answers to that method lately took, says nothing when it gets none.
         * Above 0, at most 1; standard: never.
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
         * Threads that serve the connections of this client alone: 1 to 1024. Standard: those that all clients of the process share which do
         * not say otherwise, one a processor, at most four; they end a second after the last such client.
         */
        public Builder eventLoops(int count) {
            if (count < 1 || count > 1024) {
                throw new IllegalArgumentException("eventLoops: " + count + " (expected: 1 to 1024)");
            }
            eventLoops = count;
            return this;
        }

        /**
         * Calls the servers of this process that are {@linkplain Server.Builder#inProcess in process} too, by their ports, whatever host is
         * asked for: for tests, without sockets and with everything else.
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
         * For tests: the frames of every connection, both ways, meet these faults, in process as on sockets. For the native wire. The same seed
         * gives the same faults to the same frames in the same order.
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
            if (faults != null && classic) {
                throw new IllegalArgumentException("faults on the classic wire (expected: the native one)");
            }
            return new Client(this);
        }
    }
}
