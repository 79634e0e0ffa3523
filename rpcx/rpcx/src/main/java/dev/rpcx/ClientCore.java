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
 * A client: its proxies, its connections, and its end. The routes of its calls connect and set timers by it. Each
 * {@code Client} has one, and passes everything on to it. Thread-safe.
 *
 * <p>It is long because the end of a client is a part of it: what the end waits for and cuts off are the same
 * connections, attempts and watches that calls make, and each has to be found whichever came first.
 */
final class ClientCore {
    /** Name of the log, which is the public class's. */
    private static final String LOGGER = "dev.rpcx.Client";

    private final ClientSettings settings;
    private final Platform platform;
    private final long keepAliveNanos;
    private final long connectNanos;
    private final long maxCloseNanos;
    private final @Nullable TlsEngine tls;
    private final @Nullable Faults faults;

    /** All that servers make this client hold. */
    private final Ledger ledger = Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES);

    /** Pays for requests of calls that wait for a connection. */
    final Account waiting = new Account(ledger);

    /** One-way calls that have been accepted and would be lost if the client ended now. */
    private final Set<CallFuture<?>> unsent = ConcurrentHashMap.newKeySet();

    private final Loops loops;

    /** Pool that {@link #loops} was borrowed from; null if this client has its own. */
    private final @Nullable SharedLoops shared;

    private final Bootstrap bootstrap;
    private final Map<String, ClientAddress> addresses = new ConcurrentHashMap<>();
    final Map<Endpoints, ClientCluster> clusters = new ConcurrentHashMap<>();

    /** Count of connections that faults were added to: the number of the next one. */
    private final AtomicLong opened = new AtomicLong();

    /** Each open channel with the future that ends when its handlers have heard the last of it. */
    final Map<Channel, CompletableFuture<Void>> channels = new ConcurrentHashMap<>();

    /** Attempts to connect that have not ended yet, and that calls may wait for. */
    private final Set<Coming<?>> attempts = ConcurrentHashMap.newKeySet();

    /** Number of each method that proxies call, which all that call it share: there are as many as in the program. */
    private final Map<MethodKey, Integer> methods = new ConcurrentHashMap<>();

    /** Published names of these methods: what connections remember of a server in any case. */
    private final Set<String> called = ConcurrentHashMap.newKeySet();

    private final AtomicInteger methodsMade = new AtomicInteger();

    private final Complaint oneWays = new Complaint(System.getLogger(LOGGER), InstantSource.system());
    private volatile boolean closed;

    /** What a connection looks a method up by, and what it compares. */
    private record MethodKey(String service, String method, int shape, boolean isAnswered) {}

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
                Hedge.class,
                Hedge.Leg.class,
                ClassicMethod.class));
    }

    ClientCore(ClientSettings settings) {
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
                : shared.take();
        int connectMillis = (int) settings.connectTimeout().toMillis();
        bootstrap = loops.client().option(ChannelOption.CONNECT_TIMEOUT_MILLIS, connectMillis);
    }

    boolean isClassic() {
        return settings.classic();
    }

    /** A proxy that calls the server at this address. */
    <T> T create(Class<T> type, String host, int port) {
        return proxy(type, address(host, port));
    }

    /** The address that all proxies share. */
    ClientAddress address(String host, int port) {
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
    <T> T create(Class<T> type, Endpoints endpoints) {
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

    /** A cluster that nobody takes out of the map until this creator has left it. */
    private ClientCluster enter(Endpoints endpoints) {
        while (true) {
            ClientCluster cluster = clusters.computeIfAbsent(
                    endpoints,
                    key -> new ClientCluster(
                            this, settings.connections(), settings.mostConnections(), settings.choice()));
            if (cluster.enter()) {
                return cluster;
            }
            // the creator that has given it up is about to do the same
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
    List<String> published(String host, int port) {
        Endpoint endpoint = new Endpoint(host, port);
        long deadline = platform.ticker().nanoTime() + callTimeoutNanos();
        ClientConnection connection =
                address(host, port).await(0, deadline, new AnswerTimes(callTimeoutNanos()), CircuitBreaker.GIVEN);
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
    int methodsMade() {
        return methodsMade.get();
    }

    long callTimeoutNanos() {
        return settings.callTimeout().toNanos();
    }

    long keepAliveNanos() {
        return keepAliveNanos;
    }

    /** Longest that a call waits for a connection: time for an attempt that is under way and for the next one. */
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
        double share = settings.failureShare();
        return share > 1 ? null : new CircuitBreaker(share, platform.ticker()::nanoTime);
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
     * event loops that end do not run. An event loop has to say so before it asks for the attempt's first timer: either
     * that timer finds the client closed, or {@link #end} finds the attempt.
     */
    void endWithThis(Coming<?> attempt) {
        attempts.add(attempt);
        attempt.whenComplete((connected, failure) -> attempts.remove(attempt));
    }

    /**
     * Runs a task on an event loop, at the base of its stack. What this throws is the caller's: the task may run all
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

    /**
     * Runs a task on an event loop after so long.
     *
     * @return false if the client is closed, and the task will not run; one that was taken before may run after the end
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
     * Connects, and ends the attempt with the failure or with the connection. Where {@code atOnce} is true, the
     * connection ends it as soon as it stands, and after the TLS handshake if there is one; otherwise the connection
     * does so itself when the server has greeted it. What follows the connect may take the connect time once more.
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

    /** Ends an attempt on the classic wire with the TLS handshake, since nobody greets there. */
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

    /** The end of the client waits for the end of this call, which has been accepted. */
    void closesBehind(CallFuture<?> call) {
        unsent.add(call);
        call.onEnd((value, thrown) -> unsent.remove(call));
    }

    /**
     * Ends the client as {@code Client.close} says.
     *
     * @throws IllegalStateException on an event loop, which it would have to wait for
     */
    void close() {
        LoopThread.refuse("Client.close", "another thread");
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
     * Waits until this has ended in some way, also where the thread is interrupted, and for so long at most. It does
     * without {@code completeOnTimeout}: the first one in a process has the JDK start a thread, which inherits from its
     * caller for as long as the process lives.
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

    /** One-way calls that were accepted before, in this thread or in one that it has heard of, and have not ended. */
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
     * Does the part of {@link #close} that nobody waits for.
     *
     * @return ends when no connection is left; null if the client was closed before
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

    /**
     * Takes one step of the end, which goes on whatever the step throws.
     *
     * @return ends normally when the step has ended
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

    /** Logs the failure of a one-way call, of which nobody else hears. Any thread. */
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
        // what never ends holds no program up
        thread.setDaemon(true);
        thread.start();
    }

    /** Ends the connections that are there; the next call makes a new one. */
    void dropConnections() {
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
