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
 * Core of a client: its proxies, its connections, and its end. The routes of its calls connect and set timers through
 * it. Each {@code Client} has one core, and passes everything on to it. Thread-safe.
 *
 * <p>The class is long because the end of a client is a part of it: the end waits for and cuts off the same
 * connections, connection attempts and watches that calls make, and has to find each of them, whichever came first.
 */
public final class ClientCore {
    /** Name of the log: that of the public class. */
    private static final String LOGGER = "dev.rpcx.Client";

    private final ClientSettings settings;
    private final Platform platform;
    private final long keepAliveNanos;
    private final long connectNanos;
    private final long maxCloseNanos;
    private final @Nullable TlsEngine tls;
    private final @Nullable Faults faults;

    /** Charges for all that servers make this client hold. */
    private final Ledger ledger = Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES);

    /** Account that is charged for the requests of calls that wait for a connection. */
    final Account waiting = new Account(ledger);

    /** One-way calls that have been accepted and would be lost if the client ended now. */
    private final Set<CallFuture<?>> unsent = ConcurrentHashMap.newKeySet();

    private final Loops loops;

    /** Pool that {@link #loops} was borrowed from; null if this client has its own. */
    private final @Nullable SharedLoops shared;

    private final Bootstrap bootstrap;
    private final Map<String, ClientAddress> addresses = new ConcurrentHashMap<>();
    public final Map<Endpoints, ClientCluster> clusters = new ConcurrentHashMap<>();

    /** Number of connections that faults were added to; it numbers the next one. */
    private final AtomicLong opened = new AtomicLong();

    /** Each open channel, with the future that completes when the channel is over for its handlers. */
    public final Map<Channel, CompletableFuture<Void>> channels = new ConcurrentHashMap<>();

    /** Connection attempts that have not ended yet; calls may wait for them. */
    private final Set<PendingConnection<?>> attempts = ConcurrentHashMap.newKeySet();

    /**
     * Number of each method that proxies call. All proxies that call a method share its number, so there are as many
     * numbers as methods in the program.
     */
    private final Map<MethodKey, Integer> methods = new ConcurrentHashMap<>();

    /** Published names of these methods. Connections keep a server's dictionary entries for these names in any case. */
    private final Set<String> called = ConcurrentHashMap.newKeySet();

    private final AtomicInteger methodsMade = new AtomicInteger();

    private final RateLimitedLog oneWays = new RateLimitedLog(System.getLogger(LOGGER), InstantSource.system());
    private volatile boolean closed;

    /** Key of a method: the values by which a connection looks the method up, and those that it compares. */
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

    /** Connect timeout for Netty, in milliseconds, rounded up: Netty takes 0 for no timeout. */
    public static int connectMillis(Duration time) {
        return Math.toIntExact(time.plusNanos(999_999).toMillis());
    }

    public boolean isClassic() {
        return settings.classic();
    }

    /** A proxy that calls the server at this address. */
    public <T> T create(Class<T> type, String host, int port) {
        return proxy(type, address(host, port));
    }

    /** The address object of this host and port, which all proxies share. */
    public ClientAddress address(String host, int port) {
        Endpoint endpoint = new Endpoint(host, port);
        return addresses.computeIfAbsent(
                ClientAddress.keyOf(endpoint),
                key -> new ClientAddress(this, endpoint, settings.connections(), settings.mostConnections()));
    }

    /**
     * A proxy that calls the instances of a service. Connects at once, in the background.
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
            // outside the map's lock, since this runs the registry's code
            cluster.start(endpoints);
            return proxy;
        } finally {
            if (cluster.leave()) {
                // nobody uses the cluster, and each failure would leave one more in the map
                clusters.remove(endpoints, cluster);
            }
        }
    }

    /** The cluster of these endpoints. It stays in the map until this creator has left it. */
    private ClientCluster enter(Endpoints endpoints) {
        while (true) {
            ClientCluster cluster = clusters.computeIfAbsent(
                    endpoints,
                    key -> new ClientCluster(
                            this, settings.connections(), settings.mostConnections(), settings.choice()));
            if (cluster.enter()) {
                return cluster;
            }
            // the creator that has given the cluster up is about to remove it too
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

    /** Asks the server at this address what it publishes. Blocks at most as long as a call. */
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
                    RPCXException.Code.UNAVAILABLE, ClientAddress.keyOf(endpoint) + ": does not say what it publishes");
        }
    }

    /** The number of this method, the same each time. */
    int numberOf(String service, String method, int shape, boolean isAnswered) {
        called.add(MethodDictionary.key(service, method));
        return methods.computeIfAbsent(
                new MethodKey(service, method, shape, isAnswered), key -> methodsMade.getAndIncrement());
    }

    /** Whether a proxy has a method of this {@link MethodDictionary#key}. */
    boolean calls(String publishedName) {
        return called.contains(publishedName);
    }

    /** Count of methods that have a number of their own: for tests. */
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
     * Longest time that a call waits for a connection to any instance of a service: enough for a connection attempt in
     * progress and the next one, if each takes no more than the connect time until it is greeted. A connection attempt
     * itself ends after twice this time at the latest.
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

    /** Schedules a task that can be cancelled. Returns null if the client is closed, and the task will not run. */
    @Nullable
    Future<?> timer(Runnable task, long nanos) {
        try {
            return closed ? null : loops.group.schedule(task, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException ended) {
            return null;
        }
    }

    /** Schedules a task that repeats until it is cancelled or throws. Returns null if the client is closed. */
    public @Nullable Future<?> repeat(Runnable task, long nanos) {
        try {
            return closed ? null : loops.group.scheduleWithFixedDelay(task, nanos, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException ended) {
            return null;
        }
    }

    /**
     * Registers a connection attempt that is about to begin. The attempt ends with the client at the latest, whatever
     * it waits for by then, since the timers of event loops that end do not run. The event loop has to call this method
     * before it sets the attempt's first timer: then either that timer finds the client closed, or {@link #end} finds
     * the attempt.
     */
    void endWithThis(PendingConnection<?> attempt) {
        attempts.add(attempt);
        attempt.whenComplete((connected, failure) -> attempts.remove(attempt));
    }

    /**
     * Runs a task on an event loop, at the base of the loop's stack. If this method throws, the caller has to deal with
     * it, and the task may run all the same.
     *
     * @return false if the client is closed, and the task will not run
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
     * Runs a task on an event loop after a delay.
     *
     * @return false if the client is closed, and the task will not run; a task that was accepted before may run after
     *     the end of the client
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
     * Connects, and completes the attempt with the failure or with the connection. If {@code atOnce} is true, the
     * attempt completes as soon as the connection is established, and after the TLS handshake if there is one;
     * otherwise the connection itself completes the attempt when the server has greeted it. The steps that follow the
     * connect may take the connect time once more.
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
                            // last, so that nobody waits for a channel that could not be set up
                            channels.put(channel, over);
                        }
                    })
                    .connect(loops.remote(address.endpoint.host(), address.endpoint.port()));
            attempt.whenComplete((connected, failure) -> {
                boolean isClosing = made.get() instanceof WireConnection connection && connection.isClosed();
                if (failure != null && !isClosing) {
                    // whoever has ended the attempt, a channel that nobody waits for is closed, also while it connects;
                    // a connection that has ended the attempt closes by itself, behind the error that says why
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
                                    () -> attempt.completeExceptionally(
                                            new IllegalStateException("connected, but the server says nothing")),
                                    connectNanos,
                                    TimeUnit.NANOSECONDS);
                    attempt.whenComplete((greeted, failure) -> timer.cancel(false));
                }
            });
        } catch (Throwable e) {
            // catches an Error too, since others wait for the end of the attempt
            attempt.completeExceptionally(e);
        }
    }

    /** Completes a connection attempt on the classic wire after the TLS handshake, since no server greets there. */
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
     * Ends the client as {@code Client.close} says.
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
     * Waits until {@code end} has ended in some way, for {@code maxNanos} at most, also if the thread is interrupted.
     * It does not use {@code completeOnTimeout}: the first use in a process makes the JDK start a thread, which keeps
     * what it inherits from its caller for as long as the process lives.
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
     * One-way calls that have not ended, and that were accepted before, in this thread or in one that it has
     * synchronized with.
     */
    private CompletableFuture<?>[] oneWayCalls() {
        List<CompletableFuture<?>> found = new ArrayList<>();
        for (Channel channel : channels.keySet()) {
            ClientConnection connection = channel.pipeline().get(ClientConnection.class);
            if (connection != null) {
                connection.slots.addOneWay(found);
            }
        }
        // read after the slots: a call enters unsent before it loses its slot, and stays there until it ends
        found.addAll(unsent);
        return found.toArray(new CompletableFuture<?>[0]);
    }

    /**
     * Does the part of {@link #close} that waits for nothing.
     *
     * @return future that completes when no connection is left; null if the client was closed before
     */
    public @Nullable CompletableFuture<Void> end() {
        return end(Runnable::run);
    }

    /**
     * @param registries executor that ends the watches, which runs the registries' code: it may block, and may throw
     */
    private @Nullable CompletableFuture<Void> end(Executor registries) {
        synchronized (this) {
            if (closed) {
                return null;
            }
            closed = true;
        }
        List<CompletableFuture<?>> over = new ArrayList<>();
        // the callbacks of waiting calls run on an event loop, since they may never end
        for (PendingConnection<?> attempt : attempts) {
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
     * Takes one step of the end of the client. The end goes on whatever the step throws.
     *
     * @return future that completes normally when the step has ended
     */
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

    /** Logs the failure of a one-way call, since nobody else is told of it. Any thread. */
    void oneWayFailed(String call, Throwable thrown) {
        String how = thrown instanceof RPCXException known
                ? known.code() + ", " + known.executed()
                : thrown.getClass().getName();
        oneWays.log(call + " failed as " + how, null);
    }

    private static void failed(Throwable thrown) {
        System.getLogger(LOGGER)
                .log(System.Logger.Level.WARNING, "a client is closed, but for what has failed here", thrown);
    }

    private static void onOwnThread(Runnable task) {
        Thread thread = new Thread(task, "rpcx-close");
        // a task that never ends must not keep the program alive
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
