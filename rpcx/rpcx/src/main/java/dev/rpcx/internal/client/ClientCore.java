package dev.rpcx.internal.client;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.RateLimitedLog;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.StreamErrors;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.discovery.EndpointsFixed;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.internal.io.SharedLoops;
import dev.rpcx.internal.io.TlsEngine;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.ConnectionErrors;
import dev.rpcx.internal.wire.FaultyPipe;
import dev.rpcx.internal.wire.KeepAlive;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireConnection;
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
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;
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
 * Makes the proxies of a client, opens its connections, and closes the client. The methods of the public class
 * {@code Client} delegate to this class, which is thread-safe.
 *
 * <p>Closing the client has to find every connection, every try to connect and every watch of a registry, even one
 * that a call begins at the same moment. So the code that closes the client is in the same class as the code that opens
 * connections.
 */
public final class ClientCore {
    /** Log messages appear under the name of the public class {@code Client}, since users do not know this class. */
    private static final String LOGGER = "dev.rpcx.Client";

    private final ClientSettings settings;
    private final Platform platform;
    private final long keepAliveNanos;
    private final long connectNanos;
    private final long maxCloseNanos;
    private final @Nullable TlsEngine tls;
    private final @Nullable Faults faults;

    /**
     * Counts and limits what the client holds for all of its connections and waiting calls. Most of these amounts are
     * bytes of memory; others are streams and timers.
     */
    private final Ledger ledger = Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES);

    /** Counts the bytes of the encoded requests of calls that wait for a connection. */
    final Account waiting = new Account(ledger);

    /**
     * The one-way calls that {@link #close} waits for, besides the one-way calls that have a slot of a connection.
     * {@link #awaitOnClose} adds a call, on any thread, and the end of the call removes it.
     */
    private final Set<CallFuture<?>> unsent = ConcurrentHashMap.newKeySet();

    private final Loops loops;

    /** The pool from which {@link #loops} are borrowed; null if this client has its own event loops. */
    private final @Nullable SharedLoops shared;

    private final Bootstrap bootstrap;

    /** The addresses of this client, each under its {@link ClientAddress#keyOf}. Any thread can add an address. */
    private final Map<String, ClientAddress> addresses = new ConcurrentHashMap<>();

    /**
     * The clusters of this client. A thread that creates a proxy adds the cluster of the proxy if the map does not have
     * it, and removes a cluster that no proxy uses. The thread that closes the client reads the map, see
     * {@link #closed}.
     */
    public final Map<Endpoints, ClientCluster> clusters = new ConcurrentHashMap<>();

    /**
     * Number of connections to which the simulated {@link #faults} have been added so far. This is also the number of
     * the next such connection, since they are numbered from 0. Event loops increase the count.
     */
    private final AtomicLong opened = new AtomicLong();

    /**
     * Maps each open channel to a future. The future completes when Netty has closed the channel, and begins to remove
     * the channel's handlers. Event loops add and remove channels, and any thread reads the map, see {@link #closed}.
     */
    public final Map<Channel, CompletableFuture<Void>> channels = new ConcurrentHashMap<>();

    /**
     * The tries to connect that have not ended. {@link #end} makes each of them fail, so that no call waits for them
     * any longer. An event loop adds a try, and the thread that ends the try removes it.
     */
    private final Set<PendingConnection<?>> pendingConnections = ConcurrentHashMap.newKeySet();

    /**
     * Maps the methods of the proxies to their numbers. Two proxies use the same number for a method if they declare
     * the method with an equal {@link MethodKey}. Any thread that creates a proxy adds methods.
     */
    private final Map<MethodKey, Integer> methods = new ConcurrentHashMap<>();

    /**
     * The methods that proxies call, by their published names, with the different schemas that proxies have of each,
     * by hash. When a server sends its list of methods, the connection always remembers the numbers of the methods that
     * are in this map at that moment, and compares their schemas. The numbers of other methods are remembered only up
     * to a limit. Any thread that creates a proxy adds methods and schemas, and event loops read the map.
     */
    private final Map<String, Map<Long, MethodSchema>> called = new ConcurrentHashMap<>();

    /**
     * The proxies that somebody still has. Threads that create proxies add them, and event loops read the set, all
     * under the lock of the set itself. An event loop stores a new connection before it reads this set, and a thread
     * adds a new proxy before it looks for a connection. So the methods of the proxy are compared with those of the
     * connection's server by one of the two threads.
     */
    private final Set<ClientProxy> proxies =
            Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /**
     * Number of methods in {@link #methods}, and the number that the next new method gets. A thread that creates a
     * proxy raises it for each new method.
     */
    private final AtomicInteger methodsMade = new AtomicInteger();

    private final RateLimitedLog oneWays = new RateLimitedLog(System.getLogger(LOGGER), InstantSource.system());

    private final RateLimitedLog misfits = new RateLimitedLog(System.getLogger(LOGGER), InstantSource.system());

    /**
     * Whether the client is closed. The thread that closes the client sets this field, and then reads
     * {@link #pendingConnections}, {@link #clusters} and {@link #channels}. A thread that begins a try to connect, the
     * watch of a cluster or a channel first stores it, and then reads this field. So either the closing thread finds
     * the try, watch or channel, or the other thread sees that the client is closed. Otherwise a try, a watch or a
     * channel could outlive the client.
     */
    private volatile boolean closed;

    /**
     * Identifies a method in {@link #methods}. The names of the service and the method are looked up in the server's
     * list of methods. The other components are needed to check that both sides agree on the parameters and the result.
     */
    private record MethodKey(String service, String method, int shape, long schemaHash, boolean isAnswered) {}

    static {
        ThreadTools.prepare(List.of(
                CurrentCall.class,
                TimedContext.class,
                RPCXException.class,
                CallFuture.class,
                AsyncCall.class,
                Attempts.class,
                CallbackFailures.class,
                ThrowableText.class,
                ConnectionErrors.class,
                StreamErrors.class,
                ClientCallErrors.class,
                ClientMethod.class,
                RequestWriter.class,
                ReplyReader.class,
                ClientSteps.class,
                BlockingCall.class,
                FutureCall.class,
                ClientStream.class,
                Hedge.class,
                Hedge.Leg.class,
                ClassicMethod.class));
    }

    public ClientCore(ClientSettings settings) {
        this.settings = settings;
        platform = settings.platform();
        keepAliveNanos = settings.keepAlive().toNanos();
        connectNanos = settings.connectTimeout().toNanos();
        maxCloseNanos = settings.maxClose().toNanos();
        tls = settings.tls();
        faults = settings.faults();
        Integer ownLoops = settings.eventLoops();
        shared = ownLoops != null ? null : settings.inProcess() ? SharedLoops.IN_PROCESS : SharedLoops.SOCKETS;
        loops = shared == null
                ? platform.loops(Objects.requireNonNull(ownLoops), Loops.CLIENT, settings.inProcess())
                : shared.borrow();
        bootstrap =
                loops.client().option(ChannelOption.CONNECT_TIMEOUT_MILLIS, connectMillis(settings.connectTimeout()));
    }

    /**
     * Converts a connect timeout to milliseconds for Netty. The result is rounded up, since Netty takes 0 for no
     * timeout.
     */
    public static int connectMillis(Duration time) {
        return Math.toIntExact(time.plusNanos(999_999).toMillis());
    }

    public boolean isClassic() {
        return settings.classic();
    }

    /** Creates a proxy that calls the server at this host and port. */
    public <T> T create(Class<T> type, String host, int port) {
        return proxy(type, address(host, port));
    }

    /**
     * Returns the {@link ClientAddress} of this host and port. All proxies for the same host and port share that
     * object.
     */
    public ClientAddress address(String host, int port) {
        Endpoint endpoint = new Endpoint(host, port);
        return addresses.computeIfAbsent(
                ClientAddress.keyOf(endpoint),
                key -> new ClientAddress(this, endpoint, settings.connections(), settings.maxConnections()));
    }

    /**
     * Creates a proxy that calls the instances of a service. The client begins to connect to the instances immediately,
     * in the background.
     *
     * @throws IllegalStateException if the client is closed
     */
    public <T> T create(Class<T> type, Endpoints endpoints) {
        if (closed) {
            throw new IllegalStateException("the client is closed");
        }
        ClientCluster cluster = beginCreating(endpoints);
        try {
            T proxy = proxy(type, cluster);
            // This runs the registry's code, so this thread must not hold a lock of the map of clusters.
            cluster.start(endpoints);
            return proxy;
        } finally {
            if (cluster.endCreating()) {
                // No proxy uses the cluster. If the cluster stayed in the map, each failure to create a proxy would
                // leave another cluster there.
                clusters.remove(endpoints, cluster);
            }
        }
    }

    /**
     * Returns the cluster for these endpoints, and creates the cluster if there is none. The map {@code clusters} keeps
     * the cluster until the calling thread has called {@code endCreating} on the cluster.
     */
    private ClientCluster beginCreating(Endpoints endpoints) {
        while (true) {
            ClientCluster cluster = clusters.computeIfAbsent(
                    endpoints,
                    key -> new ClientCluster(
                            this, settings.connections(), settings.maxConnections(), settings.choice()));
            if (cluster.beginCreating()) {
                return cluster;
            }
            // Another thread has given this cluster up and is about to remove it from the map. This thread removes it
            // too, so that the next pass of the loop does not find it again.
            clusters.remove(endpoints, cluster);
        }
    }

    private <T> T proxy(Class<T> type, Route route) {
        if (type == EncodedCalls.class) {
            if (settings.classic()) {
                throw new IllegalArgumentException(type.getName() + " on the classic wire (expected: the native one)");
            }
            return type.cast(new EncodedCaller(
                    this, route, settings.interceptors(), settings.callTimeout(), MethodSchema.UNKNOWN));
        }
        RPCXClient marked = ClientProxy.marked(type);
        ClientProxy proxy = new ClientProxy(
                type,
                marked.remoteServerName(),
                route,
                Codecs.standard(type),
                settings.interceptors(),
                settings.callTimeout(),
                settings.classic(),
                this);
        T made = type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, proxy));
        proxies.add(proxy);
        ClientConnection open = route.anyOpen();
        if (open != null) {
            logMisfits(open, List.of(proxy));
        }
        return made;
    }

    private List<ClientProxy> proxies() {
        synchronized (proxies) {
            return new ArrayList<>(proxies);
        }
    }

    /** Logs which methods of the proxies of this route the server of a connection does not have. */
    void logMisfits(ClientConnection connection, Route route) {
        logMisfits(
                connection,
                proxies().stream().filter(proxy -> proxy.isOf(route)).toList());
    }

    private void logMisfits(ClientConnection connection, List<ClientProxy> callers) {
        Set<String> found = new LinkedHashSet<>();
        for (ClientProxy proxy : callers) {
            proxy.misfits(connection).forEach(misfit -> found.add(misfit.getMessage()));
        }
        if (!found.isEmpty()) {
            misfits.log("calls of a proxy will fail: " + String.join("; ", found), null);
        }
    }

    /** Does what {@code Client.warmUp} describes. */
    public void warmUp() {
        LoopThread.refuseOnLoop("Client.warmUp", "another thread");
        if (closed) {
            throw new IllegalStateException("the client is closed");
        }
        long deadline = platform.ticker().nanoTime() + callTimeoutNanos();
        List<ClientProxy> all = proxies();
        // all addresses begin to connect before this thread waits for the first of them
        all.forEach(ClientProxy::connect);
        Map<String, RPCXException> failures = new LinkedHashMap<>();
        for (ClientProxy proxy : all) {
            proxy.warmUp(deadline).forEach(failure -> failures.putIfAbsent(failure.getMessage(), failure));
        }
        if (!failures.isEmpty()) {
            throw ClientCallErrors.notReady(List.copyOf(failures.values()));
        }
    }

    /**
     * Asks the server at this host and port which methods it publishes. Blocks for the client's call timeout at most.
     *
     * @return the methods, in the form {@code service/method}
     */
    public List<String> published(String host, int port) {
        Endpoint endpoint = new Endpoint(host, port);
        long deadline = platform.ticker().nanoTime() + callTimeoutNanos();
        ClientConnection connection =
                address(host, port).await(0, deadline, new AnswerTimes(callTimeoutNanos()), CircuitBreaker.PERMITTED);
        try {
            return connection
                    .published()
                    .get(Math.max(0, deadline - platform.ticker().nanoTime()), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ClientCallErrors.interrupted(RPCXException.Executed.NOT_EXECUTED);
        } catch (ExecutionException | TimeoutException e) {
            throw RPCXException.refused(
                    RPCXException.Code.UNAVAILABLE,
                    ClientAddress.keyOf(endpoint) + ": the server has not sent the list of what it publishes");
        }
    }

    /** Returns the number by which this client knows a method. Equal arguments always give the same number. */
    int numberOf(String service, String method, int shape, MethodSchema schema, boolean isAnswered) {
        called.computeIfAbsent(MethodDictionary.key(service, method), name -> new ConcurrentHashMap<>())
                .putIfAbsent(schema.hash(), schema);
        return methods.computeIfAbsent(
                new MethodKey(service, method, shape, schema.hash(), isAnswered), key -> methodsMade.getAndIncrement());
    }

    /**
     * Whether any proxy has this method.
     *
     * @param publishedName name of the method, made by {@link MethodDictionary#key}
     */
    boolean calls(String publishedName) {
        return called.containsKey(publishedName);
    }

    /**
     * Returns the different schemas that proxies have of a method, by hash; none if no proxy has the method.
     *
     * @param publishedName name of the method, made by {@link MethodDictionary#key}
     */
    Map<Long, MethodSchema> schemas(String publishedName) {
        return called.getOrDefault(publishedName, Map.of());
    }

    /** Returns how many methods have been given a number. Only tests call this. */
    public int methodsMade() {
        return methodsMade.get();
    }

    long callTimeoutNanos() {
        return settings.callTimeout().toNanos();
    }

    long keepAliveNanos() {
        return keepAliveNanos;
    }

    /**
     * Returns the longest time, in nanoseconds, for which a call waits for a connection to any instance of a service.
     * The time is twice the connect timeout. So if the call begins to wait during a try to connect, it can wait for the
     * end of that try and also for a second try. This holds if in each try, the server greets the client within the
     * connect timeout.
     *
     * <p>A try to connect that nothing else has ended is ended after twice the returned time. That time begins when the
     * try begins to connect.
     */
    long patienceNanos() {
        return 2 * connectNanos;
    }

    public Ledger ledger() {
        return ledger;
    }

    public Platform platform() {
        return platform;
    }

    public boolean isClosed() {
        return closed;
    }

    @Nullable
    CircuitBreaker newBreaker() {
        double failureFraction = settings.failureFraction();
        return failureFraction > 1 ? null : new CircuitBreaker(failureFraction, platform.ticker()::nanoTime);
    }

    /**
     * Runs a task on an event loop after a delay.
     *
     * @return future that can cancel the task; null if the client is closed and the task will not run
     */
    @Nullable
    Future<?> timer(Runnable task, long nanos) {
        try {
            return closed ? null : loops.group.schedule(task, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException ended) {
            return null;
        }
    }

    /**
     * Runs a task on an event loop again and again, until the task is cancelled or throws.
     *
     * @param nanos delay before the first run, and from the end of each run to the next run
     * @return future that can cancel the task; null if the client is closed and the task will not run
     */
    public @Nullable Future<?> repeat(Runnable task, long nanos) {
        try {
            return closed ? null : loops.group.scheduleWithFixedDelay(task, nanos, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException ended) {
            return null;
        }
    }

    /**
     * Registers a try to connect, so that {@link #end} makes the try fail. Otherwise the try might never end, since a
     * closed event loop runs no timers. Must be called on an event loop, before the try sets its first timer. If
     * {@code end} runs at the same time, it either finds the try, or has closed the client before the try sets its
     * timer. In the second case, the timer is refused, and the try fails.
     */
    void endWithThis(PendingConnection<?> pending) {
        pendingConnections.add(pending);
        pending.whenComplete((connected, failure) -> pendingConnections.remove(pending));
    }

    /**
     * Runs a task on an event loop. The task starts with an empty call stack, even if the caller is on that event loop.
     * If this method throws, the task can run nevertheless.
     *
     * @return false if the client is closed, so that the task will not run
     */
    public boolean execute(Runnable task) {
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

    /**
     * Runs a task on an event loop after a delay. A task that has been accepted can still run after the client is
     * closed.
     *
     * @return false if the client is closed, so that the task will not run
     */
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
     * Opens a connection to an address, and completes {@code result} with the connection or with the failure.
     * Connecting the channel can take up to the connect timeout. After that, the TLS handshake and the server's
     * greeting together can take up to the same time again.
     *
     * @param atOnce true to complete {@code result} as soon as the channel is connected and the TLS handshake, if there
     *     is one, has ended; false if the connection itself completes {@code result} when the server has sent its
     *     greeting
     */
    <C extends ChannelHandler> void open(
            ClientAddress address, BiFunction<Channel, Account, C> maker, CompletableFuture<C> result, boolean atOnce) {
        if (closed) {
            result.completeExceptionally(new IllegalStateException("the client is closed"));
            return;
        }
        // Stored on the event loop of the channel, and read by any thread that ends the try.
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
                                tls.addTo(channel, account, address.endpoint, KeepAlive.frameNanos(keepAliveNanos));
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
                            // The map gets the channel last. Closing the client waits for each channel in the map, and
                            // must not wait for a channel that could not be set up.
                            channels.put(channel, over);
                        }
                    })
                    .connect(loops.remote(address.endpoint.host(), address.endpoint.port()));
            result.whenComplete((connected, failure) -> {
                boolean isClosing = made.get() instanceof WireConnection connection && connection.isClosed();
                if (failure != null && !isClosing) {
                    // The try has failed, so its channel is closed, even if the channel is still connecting. If the
                    // connection is closing already, it closes its channel itself, after it has sent the server the
                    // reason.
                    connecting.channel().close();
                }
            });
            connecting.addListener(done -> {
                C connection = made.get();
                if (!done.isSuccess() || connection == null) {
                    result.completeExceptionally(
                            done.cause() == null ? new IllegalStateException("not connected") : done.cause());
                } else if (closed) {
                    result.completeExceptionally(new IllegalStateException("the client is closed"));
                } else if (atOnce && tls == null) {
                    result.complete(connection);
                } else {
                    Channel channel = connecting.channel();
                    if (atOnce) {
                        completeAfterHandshake(
                                result, connection, channel.pipeline().get(SslHandler.class));
                    }
                    Future<?> timer = channel.eventLoop()
                            .schedule(
                                    () -> result.completeExceptionally(new IllegalStateException(
                                            "connected, but the server has not answered in time")),
                                    connectNanos,
                                    TimeUnit.NANOSECONDS);
                    result.whenComplete((greeted, failure) -> timer.cancel(false));
                }
            });
        } catch (Throwable e) {
            // Errors are caught too, since calls wait until the future "result" completes.
            result.completeExceptionally(e);
        }
    }

    /**
     * Completes a try to connect when the TLS handshake of the connection has ended. Used on the classic wire, where
     * the server sends no greeting.
     *
     * @param engine the connection's TLS handler; null if the connection was closed before the handshake
     */
    private static <C> void completeAfterHandshake(
            CompletableFuture<C> result, C connection, @Nullable SslHandler engine) {
        if (engine == null) {
            result.completeExceptionally(new IllegalStateException("closed before the handshake"));
            return;
        }
        engine.handshakeFuture().addListener(shaken -> {
            if (shaken.isSuccess()) {
                result.complete(connection);
            } else {
                result.completeExceptionally(shaken.cause());
            }
        });
    }

    /** Registers a one-way call that has been accepted, so that {@link #close} waits for the end of that call. */
    public void awaitOnClose(CallFuture<?> call) {
        unsent.add(call);
        call.onEnd((value, thrown) -> unsent.remove(call));
    }

    /**
     * Closes the client, as {@code Client.close} describes.
     *
     * @throws IllegalStateException if called on an event loop, since closing waits for the event loops
     */
    public void close() {
        LoopThread.refuseOnLoop("Client.close", "another thread");
        long begin = System.nanoTime();
        CompletableFuture<?>[] accepted = oneWayCalls();
        await(CompletableFuture.allOf(accepted), maxCloseNanos / 2);
        CompletableFuture<Void> over = end(ClientCore::onOwnThread);
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
     * Waits until {@code end} has completed, with or without success, but no longer than {@code maxNanos}. An interrupt
     * does not end the wait. The method {@code completeOnTimeout} is not used, since the JDK would start a thread for
     * it. That thread would never end, and would keep what it inherits from its caller, for example the context class
     * loader.
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

    /**
     * Returns the futures of the one-way calls that have not ended. Calls that other threads make at the same moment
     * can be missing.
     */
    private CompletableFuture<?>[] oneWayCalls() {
        List<CompletableFuture<?>> found = new ArrayList<>();
        for (Channel channel : channels.keySet()) {
            ClientConnection connection = channel.pipeline().get(ClientConnection.class);
            if (connection != null) {
                connection.slots.addOneWay(found);
            }
        }
        // An event loop adds a call to the set "unsent" before the call loses its slot, and the call stays there until
        // it ends. So this thread misses no such call if it searches the slots first and reads the set afterwards. Held
        // by {@code EarlyCallsTest.aOneWayCallThatLosesItsSlotWhileItsClientClosesIsWaitedFor}.
        found.addAll(unsent);
        return found.toArray(new CompletableFuture<?>[0]);
    }

    /**
     * Marks the client as closed, and closes its connections. Ends its tries to connect, its waiting calls and its
     * watches. This is the part of {@link #close} that does not wait. Only the code of the registries can block,
     * because it runs on the calling thread here. The event loops stay open.
     *
     * @return future that completes when no connection, try to connect or watch remains; null if the client was closed
     *     before
     */
    public @Nullable CompletableFuture<Void> end() {
        return end(Runnable::run);
    }

    /**
     * Marks the client as closed, and closes its connections. Ends its tries to connect, its waiting calls and its
     * watches. This is the part of {@link #close} that does not wait. The event loops stay open.
     *
     * @param registries executor that ends the watches of registries, since a registry's code can block or throw
     * @return future that completes when no connection, try to connect or watch remains; null if the client was closed
     *     before
     */
    private @Nullable CompletableFuture<Void> end(Executor registries) {
        synchronized (this) {
            if (closed) {
                return null;
            }
            closed = true;
        }
        List<CompletableFuture<?>> over = new ArrayList<>();
        // Ending a try runs the callbacks of the calls that wait for it. The callbacks run on an event loop and
        // not on this thread, since a callback might never return.
        for (PendingConnection<?> pending : pendingConnections) {
            over.add(done(
                    loops.group,
                    () -> pending.completeExceptionally(new IllegalStateException("the client is closed"))));
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

    /**
     * Runs one step of closing the client. An exception of the step is only logged, so that the other steps still run.
     *
     * @return future that completes normally when the step has returned or thrown
     */
    private static CompletableFuture<Void> done(Executor executor, Runnable step) {
        CompletableFuture<Void> over = new CompletableFuture<>();
        try {
            executor.execute(() -> {
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

    /**
     * Logs that a one-way call has failed, since its caller is usually not told. At most one failure a minute is
     * logged; the next message says how many failures were not logged. Any thread can call this method.
     */
    void oneWayFailed(String call, Throwable thrown) {
        String how = thrown instanceof RPCXException known
                ? known.code() + ", " + known.executed()
                : thrown.getClass().getName();
        oneWays.log(call + " failed as " + how, null);
    }

    private static void failed(Throwable thrown) {
        System.getLogger(LOGGER)
                .log(System.Logger.Level.WARNING, "a part of closing a client has failed; the rest is closed", thrown);
    }

    private static void onOwnThread(Runnable task) {
        Thread thread = new Thread(task, "rpcx-close");
        // A task that never ends must not keep the process alive.
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Begins to close all connections of this client, and does not wait. Once a connection is closed, a call that needs
     * one opens a new connection.
     */
    public void dropConnections() {
        channels.keySet().forEach(ClientCore::drop);
    }

    private static void drop(Channel channel) {
        ClientConnection connection = channel.pipeline().get(ClientConnection.class);
        if (connection != null) {
            connection.isDropped = true;
        }
        channel.close();
    }
}
