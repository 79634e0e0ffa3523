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
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.discovery.EndpointsFixed;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.internal.io.SharedLoops;
import dev.rpcx.internal.io.TlsEngine;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
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
 * Core of a client: its proxies, its connections, and its end. Each {@code Client} passes everything on to its core.
 * Thread-safe.
 *
 * <p>The class is long because it also ends the client. For that it has to find every connection, connection attempt
 * and watch, even one that a call makes at the same moment.
 */
public final class ClientCore {
    /** Name of the log, which is the name of the public class. */
    private static final String LOGGER = "dev.rpcx.Client";

    private final ClientSettings settings;
    private final Platform platform;
    private final long keepAliveNanos;
    private final long connectNanos;
    private final long maxCloseNanos;
    private final @Nullable TlsEngine tls;
    private final @Nullable Faults faults;

    /** Charges for everything that servers make this client hold. */
    private final Ledger ledger = Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES);

    /** Account that is charged for the requests of calls that wait for a connection. */
    final Account waiting = new Account(ledger);

    /** One-way calls that have been accepted and would be lost if the client ended now. */
    private final Set<CallFuture<?>> unsent = ConcurrentHashMap.newKeySet();

    private final Loops loops;

    /** Pool that has lent {@link #loops}; null if this client has its own event loops. */
    private final @Nullable SharedLoops shared;

    private final Bootstrap bootstrap;
    private final Map<String, ClientAddress> addresses = new ConcurrentHashMap<>();
    public final Map<Endpoints, ClientCluster> clusters = new ConcurrentHashMap<>();

    /**
     * Number of connections so far into whose frames {@link #faults} are inserted; also the number of the next such
     * connection.
     */
    private final AtomicLong opened = new AtomicLong();

    /**
     * Each open channel, with the future that completes when the channel has ended and its handlers have been removed.
     */
    public final Map<Channel, CompletableFuture<Void>> channels = new ConcurrentHashMap<>();

    /** Connection attempts that have not ended. Calls may wait for them. */
    private final Set<PendingConnection<?>> connectionAttempts = ConcurrentHashMap.newKeySet();

    /** Number of each method that proxies call. All proxies that call a method share its number. */
    private final Map<MethodKey, Integer> methods = new ConcurrentHashMap<>();

    /**
     * Published names of the methods that proxies call. Connections always keep a server's dictionary entries for these
     * names.
     */
    private final Set<String> called = ConcurrentHashMap.newKeySet();

    private final AtomicInteger methodsMade = new AtomicInteger();

    private final RateLimitedLog oneWays = new RateLimitedLog(System.getLogger(LOGGER), InstantSource.system());
    private volatile boolean closed;

    /**
     * Key of a method in {@link #methods}. A connection looks {@code service} and {@code method} up in the server's
     * dictionary, and compares the shapes of both sides with the help of {@code shape} and {@code isAnswered}.
     */
    private record MethodKey(String service, String method, int shape, boolean isAnswered) {}

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

    /** Returns the connect timeout for Netty in milliseconds. It is rounded up, since Netty takes 0 for no timeout. */
    public static int connectMillis(Duration time) {
        return Math.toIntExact(time.plusNanos(999_999).toMillis());
    }

    public boolean isClassic() {
        return settings.classic();
    }

    /** Creates a proxy that calls the server at this address. */
    public <T> T create(Class<T> type, String host, int port) {
        return proxy(type, address(host, port));
    }

    /** Returns the address object of this host and port, which all proxies share. */
    public ClientAddress address(String host, int port) {
        Endpoint endpoint = new Endpoint(host, port);
        return addresses.computeIfAbsent(
                ClientAddress.keyOf(endpoint),
                key -> new ClientAddress(this, endpoint, settings.connections(), settings.maxConnections()));
    }

    /**
     * Creates a proxy that calls the instances of a service. Begins to connect immediately, in the background.
     *
     * @throws IllegalStateException if the client is closed
     */
    public <T> T create(Class<T> type, Endpoints endpoints) {
        if (closed) {
            throw new IllegalStateException("the client is closed");
        }
        ClientCluster cluster = enter(endpoints);
        try {
            T proxy = proxy(type, cluster);
            // Outside the lock of the map, since this runs the registry's code.
            cluster.start(endpoints);
            return proxy;
        } finally {
            if (cluster.leave()) {
                // Nobody uses the cluster. If it stayed in the map, each failure to create a proxy would add another
                // cluster.
                clusters.remove(endpoints, cluster);
            }
        }
    }

    /** Returns the cluster of these endpoints. It stays in the map until this thread has called {@code leave} on it. */
    private ClientCluster enter(Endpoints endpoints) {
        while (true) {
            ClientCluster cluster = clusters.computeIfAbsent(
                    endpoints,
                    key -> new ClientCluster(
                            this, settings.connections(), settings.maxConnections(), settings.choice()));
            if (cluster.enter()) {
                return cluster;
            }
            // the thread that has given the cluster up is about to remove it too
            clusters.remove(endpoints, cluster);
        }
    }

    private <T> T proxy(Class<T> type, Route route) {
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
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, proxy));
    }

    /**
     * Returns what the server at this address publishes, as {@code service/method}. Blocks for at most the time that a
     * call has by default.
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
            throw Route.interrupted();
        } catch (ExecutionException | TimeoutException e) {
            throw RPCXException.refused(
                    RPCXException.Code.UNAVAILABLE,
                    ClientAddress.keyOf(endpoint) + ": the server has not sent the list of what it publishes");
        }
    }

    /** Returns the number of this method, which is the same each time. */
    int numberOf(String service, String method, int shape, boolean isAnswered) {
        called.add(MethodDictionary.key(service, method));
        return methods.computeIfAbsent(
                new MethodKey(service, method, shape, isAnswered), key -> methodsMade.getAndIncrement());
    }

    /** Whether a proxy has a method with this {@link MethodDictionary#key}. */
    boolean calls(String publishedName) {
        return called.contains(publishedName);
    }

    /** Returns how many methods have a number. For tests. */
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
     * Returns the longest time that a call waits for a connection to any instance of a service, in nanoseconds. It is
     * enough for the connection attempt in progress and for the next one, if the server greets each of them within the
     * connect timeout. A connection attempt ends at the latest after twice the time that this method returns.
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
        double share = settings.failureShare();
        return share > 1 ? null : new CircuitBreaker(share, platform.ticker()::nanoTime);
    }

    /**
     * Schedules a task that can be cancelled.
     *
     * @return null if the client is closed and the task will not run
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
     * Schedules a task that is repeated until it is cancelled or throws.
     *
     * @param nanos time before the first run, and from the end of each run to the next run
     * @return null if the client is closed and the task will not run
     */
    public @Nullable Future<?> repeat(Runnable task, long nanos) {
        try {
            return closed ? null : loops.group.scheduleWithFixedDelay(task, nanos, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException ended) {
            return null;
        }
    }

    /**
     * Registers a connection attempt that is about to begin, so that it ends when the client ends: a closed event loop
     * runs no timers. Must be called before the attempt's first timer is set. Then either that timer finds the client
     * closed, or {@link #end} finds the attempt. Event loop only.
     */
    void endWithThis(PendingConnection<?> attempt) {
        connectionAttempts.add(attempt);
        attempt.whenComplete((connected, failure) -> connectionAttempts.remove(attempt));
    }

    /**
     * Runs a task on an event loop, at the base of the loop's stack. If this method throws, the task may run
     * nevertheless.
     *
     * @return false if the client is closed and the task will not run
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
     * Runs a task on an event loop after a delay. A task that has been accepted may run after the end of the client.
     *
     * @return false if the client is closed and the task will not run
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
     * Connects, and completes the attempt with the connection or with the failure. The TLS handshake and the server's
     * greeting may take the connect timeout once more.
     *
     * @param atOnce true if the attempt completes as soon as the connection is established, with TLS after the TLS
     *     handshake; false if the connection itself completes the attempt when the server has greeted it
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
                            // Added last, so that nobody waits for a channel that could not be set up.
                            channels.put(channel, over);
                        }
                    })
                    .connect(loops.remote(address.endpoint.host(), address.endpoint.port()));
            attempt.whenComplete((connected, failure) -> {
                boolean isClosing = made.get() instanceof WireConnection connection && connection.isClosed();
                if (failure != null && !isClosing) {
                    // The channel of a failed attempt is closed, even while it still connects. But if the connection
                    // has ended the attempt, it closes the channel itself, after it has told the server why.
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
                        completeAfterHandshake(
                                attempt, connection, channel.pipeline().get(SslHandler.class));
                    }
                    Future<?> timer = channel.eventLoop()
                            .schedule(
                                    () -> attempt.completeExceptionally(new IllegalStateException(
                                            "connected, but the server has not answered in time")),
                                    connectNanos,
                                    TimeUnit.NANOSECONDS);
                    attempt.whenComplete((greeted, failure) -> timer.cancel(false));
                }
            });
        } catch (Throwable e) {
            // An Error is caught too, since calls wait for the end of the attempt.
            attempt.completeExceptionally(e);
        }
    }

    /** Completes a connection attempt on the classic wire after the TLS handshake, since no greeting follows. */
    private static <C> void completeAfterHandshake(
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

    /** Makes the end of the client wait for the end of this call, which has been accepted. */
    public void awaitOnClose(CallFuture<?> call) {
        unsent.add(call);
        call.onEnd((value, thrown) -> unsent.remove(call));
    }

    /**
     * Ends the client, as described at {@code Client.close}.
     *
     * @throws IllegalStateException on an event loop, since this method would have to wait for that loop
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
     * Waits until {@code end} has ended in any way, but no longer than {@code maxNanos}, even if the thread is
     * interrupted. Does not use {@code completeOnTimeout}, which would make the JDK start a thread that keeps for good
     * what it inherits from its caller.
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

    /** Returns the one-way calls that have not ended. Calls that other threads make at the same time may be missing. */
    private CompletableFuture<?>[] oneWayCalls() {
        List<CompletableFuture<?>> found = new ArrayList<>();
        for (Channel channel : channels.keySet()) {
            ClientConnection connection = channel.pipeline().get(ClientConnection.class);
            if (connection != null) {
                connection.slots.addOneWay(found);
            }
        }
        // Read after the slots: a call is added to this set before it loses its slot, and stays until it ends.
        found.addAll(unsent);
        return found.toArray(new CompletableFuture<?>[0]);
    }

    /**
     * Does the part of {@link #close} that does not wait.
     *
     * @return future that completes when no connection, connection attempt or watch remains; null if the client was
     *     closed before
     */
    public @Nullable CompletableFuture<Void> end() {
        return end(Runnable::run);
    }

    /**
     * Does the part of {@link #close} that does not wait.
     *
     * @param registries executor that ends the watches of registries, since the registries' code may block and may
     *     throw
     * @return future that completes when no connection, connection attempt or watch remains; null if the client was
     *     closed before
     */
    private @Nullable CompletableFuture<Void> end(Executor registries) {
        synchronized (this) {
            if (closed) {
                return null;
            }
            closed = true;
        }
        List<CompletableFuture<?>> over = new ArrayList<>();
        // the callbacks of waiting calls run on an event loop, since they may never return
        for (PendingConnection<?> attempt : connectionAttempts) {
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

    /**
     * Runs one step of the end of the client. Whatever the step throws is only logged, so that the next steps follow.
     *
     * @return future that completes normally when the step has ended
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

    /** Logs the failure of a one-way call, since nobody else learns of it. Thread-safe: any thread may call this. */
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
        // a task that never ends must not keep the process alive
        thread.setDaemon(true);
        thread.start();
    }

    /** Closes the existing connections; the next call makes a new one. */
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
