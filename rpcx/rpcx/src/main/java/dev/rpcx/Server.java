package dev.rpcx;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.handler.ssl.SslHandler;
import java.nio.channels.UnresolvedAddressException;
import java.security.Principal;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.jspecify.annotations.Nullable;

/**
 * Serves what a {@link RegistryServer} publishes, on one port: the native wire, and the classic one where asked to. Starts and stops once.
 *
 * <pre>{@code
 * try (Server server = new Server(9000, RegistryServer.registry(new Greetings())).start()) {
 *     …
 * }
 * }</pre>
 */
public final class Server implements AutoCloseable {
    /** A stop that is given more has this. */
    private static final int MOST_STOP_DAYS = 365;

    private static final Duration STOP_TIME = Duration.ofSeconds(5);

    /** When the time of a stop is over, handlers have so long to heed their interrupts, and the pool's threads to end. */
    private static final long HEED_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Event loops have so long to end, which a handler on one of them may keep from it. */
    private static final long LOOPS_END_NANOS = TimeUnit.SECONDS.toNanos(3);

    /** Time between two looks for places that nobody uses: each is a task for every connection, of which there are thousands. */
    private static final long MIN_RECLAIM_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final String host;
    private final int port;
    /** All that peers make this server hold. */
    private final Ledger ledger;

    /** Handlers, those on event loops not counted. */
    private final AtomicInteger running = new AtomicInteger();

    /** When the connections were last asked for places that they do not use. */
    private final AtomicLong reclaimedNanos;

    private final ServerPlatform platform;
    private final int eventLoops;
    private final boolean inProcess;
    private final boolean classic;
    private final long keepAliveNanos;
    private final long maxCallNanos;
    private final @Nullable Tls tls;
    private final List<String> published;
    private final ServerMethod[] byNumber;
    private final Map<String, ServerMethod> byName = new HashMap<>();
    private final List<ByteBuf> dictionary;
    private final Settings settings;

    /** Every connection, with what it speaks once that is known. */
    private final Map<Channel, ServedConnection> connections = new ConcurrentHashMap<>();

    private final Set<Channel> channels = ConcurrentHashMap.newKeySet();

    /** Connections that have said what they speak, until they are over and all their calls have ended. */
    private final Map<Channel, ServedConnection> served = new ConcurrentHashMap<>();

    private final Threads threads;
    private @Nullable Loops loops;
    private @Nullable Channel listening;

    /** A stop has begun. */
    private volatile boolean stopping;

    private volatile boolean isListenerClosed;

    /** Ends when a stop finds nothing under way any more. */
    private final CompletableFuture<Void> quiet = new CompletableFuture<>();

    /** Ends with {@link #quiet}, or when what is left has been cut off. */
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private volatile boolean cutOff;
    private final AtomicInteger unbegunNotices = new AtomicInteger();
    private final AtomicInteger interruptedNotices = new AtomicInteger();
    private final CountDownLatch stopped = new CountDownLatch(1);
    private final Complaint notices = new Complaint(System.getLogger(Server.class.getName()), InstantSource.system());

    /** With the standard settings. */
    public Server(int port, RegistryServer registry) {
        this(builder(registry).port(port));
    }

    private Server(Builder builder) {
        host = builder.host;
        port = builder.port;
        ledger = Ledger.ofServer(
                "server of port " + port,
                builder.maxConnections,
                builder.connectionsOfAddress(),
                builder.maxCalls,
                builder.maxRunning,
                builder.maxMessageBytes);
        ledger.watch(Resource.HANDLERS, running::get);
        platform = builder.platform;
        threads = platform.threads(builder.poolSize);
        quiet.thenRun(() -> drained.complete(null));
        reclaimedNanos = new AtomicLong(platform.ticker().nanoTime() - MIN_RECLAIM_NANOS);
        eventLoops = builder.eventLoops;
        inProcess = builder.inProcess;
        classic = builder.classic;
        keepAliveNanos = builder.keepAlive.toNanos();
        maxCallNanos = builder.maxCallTime.toNanos();
        tls = builder.tls;
        settings = new Settings(builder.maxMessageBytes, builder.maxCalls, Settings.INITIAL.defaultMicros());
        published = builder.registry.published();
        List<ServerMethod> methods = builder.registry.methods(
                builder.interceptors,
                builder.maxRunning,
                running,
                ledger.groups(),
                platform.ticker().nanoTime());
        byNumber = methods.toArray(new ServerMethod[0]);
        for (ServerMethod method : methods) {
            byName.put(MethodDictionary.key(method.service(), method.name()), method);
        }
        dictionary = dictionary(methods);
    }

    /** With settings of one's own; each has a standard value. */
    public static Builder builder(RegistryServer registry) {
        return new Builder(registry);
    }

    private static List<ByteBuf> dictionary(List<ServerMethod> methods) {
        List<ByteBuf> frames = new ArrayList<>();
        ByteBuf scratch = Unpooled.buffer();
        ByteBuf entry = Unpooled.buffer();
        ByteBuf frame = Unpooled.buffer();
        for (ServerMethod m : methods) {
            entry.clear();
            MethodDictionary.write(entry, scratch, m.service(), m.name(), m.number(), m.schemaHash(), m.shape());
            if (frame.readableBytes() + entry.readableBytes() > Wire.MAX_PAYLOAD_BYTES) {
                frames.add(frame);
                frame = Unpooled.buffer();
            }
            frame.writeBytes(entry);
        }
        frames.add(frame);
        return frames;
    }

    /** The channel's connection is over, and all its calls have ended. More than once does nothing. */
    void ended(Channel channel) {
        served.remove(channel);
        lookWhetherQuiet();
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
    public synchronized Server start() {
        if (stopping) {
            throw new IllegalStateException("the server was stopped before (expected: a new one)");
        }
        if (loops != null) {
            throw new IllegalStateException("the server was started before (expected: a new one)");
        }
        try {
            Loops group = loops();
            ServerBootstrap bootstrap = group.server().childHandler(new ChannelInitializer<Channel>() {
                @Override
                protected void initChannel(Channel channel) {
                    accept(channel);
                }
            });
            ChannelFuture bound = group.bind(bootstrap, host, port);
            if (!bound.isSuccess()) {
                throw new RPCXException(
                        RPCXException.Code.UNAVAILABLE,
                        host + ":" + port + ": cannot listen: " + whyNot(bound.cause()),
                        RPCXException.Executed.NOT_EXECUTED,
                        bound.cause());
            }
            listening = bound.channel();
        } finally {
            if (listening == null) {
                // its loops are its own, so this thread is none of those that it waits for
                end(0);
            }
        }
        return this;
    }

    private Loops loops() {
        try {
            Loops made = platform.loops(eventLoops, "rpcx-server", inProcess);
            loops = made;
            return made;
        } catch (RuntimeException e) {
            // such as without a descriptor left for them
            throw new RPCXException(
                    RPCXException.Code.UNAVAILABLE,
                    host + ":" + port + ": cannot listen: " + ThrowableText.message(e),
                    RPCXException.Executed.NOT_EXECUTED,
                    e);
        }
    }

    private String whyNot(Throwable failure) {
        return failure instanceof UnresolvedAddressException
                ? "the host " + host + " does not resolve (expected: a name or an address of this machine)"
                : ThrowableText.message(failure);
    }

    private void accept(Channel channel) {
        Account account = stopping ? null : ledger.open(channel.remoteAddress());
        if (account == null) {
            channel.close();
            return;
        }
        // first: whatever fails behind this closes the channel
        closeWith(channel, account);
        HalfClose.allow(channel, this::lastWordsNanos);
        if (stopping) {
            // whoever stops the server may have looked at all channels before this one was among them
            closeUngreeted(channel);
        }
        if (tls != null) {
            tls.addTo(channel, account, ServerConnection.frameNanos(Sniffer.silentNanos(this)));
        }
        channel.pipeline().addLast(new Sniffer(this, account));
    }

    /** The account ends with the channel. */
    private void closeWith(Channel channel, Account account) {
        boolean isKept = false;
        try {
            channels.add(channel);
            channel.closeFuture().addListener(over -> {
                account.close();
                channels.remove(channel);
                connections.remove(channel);
                lookWhetherQuiet();
            });
            isKept = true;
        } finally {
            if (!isKept) {
                channels.remove(channel);
                account.close();
            }
        }
    }

    /** What was written last to a connection that has ended has so long to leave; a stop has its own time. */
    private long lastWordsNanos() {
        return cutOff ? 0 : stopping ? Long.MAX_VALUE : keepAliveNanos;
    }

    /** A connection has said what it speaks. */
    void greeted(Channel channel, ServedConnection connection) {
        served.put(channel, connection);
        connections.put(channel, connection);
        if (channel.closeFuture().isDone()) {
            // what was written to greet it has met a socket that was reset, and whoever forgets it has been here before
            connections.remove(channel);
            ended(channel);
        }
        if (stopping) {
            connection.leave();
        }
    }

    /**
     * The port it listens on: the one given, or for 0 the one the system chose. Until a stop has ended.
     *
     * @throws IllegalStateException the server has not been started, or has stopped
     */
    public synchronized int port() {
        if (listening == null || loops == null) {
            throw new IllegalStateException("the server does not listen (expected: started, not stopped)");
        }
        return loops.port(listening.localAddress());
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
     * Takes no new connections, asks clients to send no more calls, finishes those under way, closes. One-way calls that it has acknowledged
     * are under way until their handlers have ended, and so are calls whose callers are gone. After {@code time} what is still under way is cut
     * off: its handlers are interrupted, those that have not begun never do. The log says how many one-way calls that were.
     *
     * <p>Returns when no socket and no thread is left, at the latest 5 s after {@code time}. What may be left then is the thread of a handler
     * that goes on though it has been interrupted, and, where that is an event loop, the sockets of this loop until the handler returns. All of
     * them are daemon threads. A handler that calls this waits for itself until the time is over.
     *
     * <p>A client that has no calls closes its connections when it is asked to send no more. A peer that passes over
     * that, and answers PINGs, keeps its connection until {@code time} is over, also where it does nothing.
     *
     * <p>Any thread may call it, once or more, also while another one does: the shorter time counts. Before {@link #start} it has nothing to
     * wait for, and the server can be started no more.
     *
     * @param time from 0, which a negative one is; more than 365 days are 365 days
     * @throws IllegalStateException on an event loop, which it would have to wait for
     */
    public void stop(Duration time) {
        LoopThread.refuse("Server.stop", "another thread");
        end(nanos(time));
    }

    /** Ends all that has been started, and waits for that. */
    private void end(long nanos) {
        try {
            endAll(nanos);
            tellOfNotices();
        } finally {
            synchronized (this) {
                listening = null;
            }
            stopped.countDown();
        }
    }

    private void endAll(long nanos) {
        Loops group = leave();
        if (group != null) {
            if (!hasEnded(drained, nanos)) {
                cutOff();
            }
            boolean isQuiet = hasEnded(quiet, HEED_NANOS);
            // whatever comes from here on finds that it comes too late
            cutOff = true;
            group.close(LOOPS_END_NANOS);
            // what a connection leaves behind is known a moment after its channel is closed, and no loop looks at it
            // any more
            served.values().forEach(connection -> inAnyCase(connection::cutOff));
            threads.close();
            if (isQuiet) {
                threads.awaitEnd(HEED_NANOS);
            }
        }
    }

    /** Waits, whether it is interrupted or not. @return false if the time was over first */
    private static boolean hasEnded(CompletableFuture<Void> future, long nanos) {
        boolean isInterrupted = false;
        long begin = System.nanoTime();
        long left = nanos;
        do {
            try {
                future.get(left, TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                isInterrupted = true;
            } catch (ExecutionException | TimeoutException e) {
                // the time says whether to go on
            }
            left = nanos - (System.nanoTime() - begin);
        } while (left > 0 && !future.isDone());
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
        return future.isDone();
    }

    /**
     * What {@link #stop} does, but for the waiting and what comes behind it.
     *
     * @return ends when all connections and calls have, or when those left over have been cut off
     */
    CompletableFuture<Void> drain(Duration time) {
        long nanos = nanos(time);
        Loops group = leave();
        if (group != null && !drained.isDone()) {
            Future<?> timer = group.group.schedule(this::cutOff, nanos, TimeUnit.NANOSECONDS);
            drained.whenComplete((done, failure) -> timer.cancel(false));
        }
        return drained;
    }

    /** As much of it as a timer takes; no time where it is negative. */
    private static long nanos(Duration given) {
        Duration time = Given.notNull(given, "time", "from 0");
        long most = TimeUnit.DAYS.toNanos(MOST_STOP_DAYS);
        return time.isNegative() ? 0 : time.compareTo(Duration.ofNanos(most)) > 0 ? most : time.toNanos();
    }

    /**
     * Closes the listener, and asks all connections to end. The first of several calls does.
     *
     * @return null if there is nothing to be ended: the server was not started
     */
    private @Nullable Loops leave() {
        Loops group;
        Channel listener;
        synchronized (this) {
            group = loops;
            listener = listening;
            if (stopping) {
                return group;
            }
            stopping = true;
        }
        if (group == null || listener == null) {
            quiet.complete(null);
            return group;
        }
        // a loop that a handler blocks closes the listener late, and keeps no connection of others from its end
        askToLeave();
        listener.close().addListener(ended -> {
            // those that have come meanwhile
            askToLeave();
            isListenerClosed = true;
            lookWhetherQuiet();
        });
        return group;
    }

    private void askToLeave() {
        for (Channel channel : channels) {
            ServedConnection connection = connections.get(channel);
            inAnyCase(() -> {
                if (connection != null) {
                    connection.leave();
                } else {
                    closeUngreeted(channel);
                }
            });
        }
    }

    /**
     * Does one of several things at the server's end. What it throws, as where the memory is at its end, keeps none of
     * the others from being done.
     */
    private static void inAnyCase(Runnable one) {
        try {
            one.run();
        } catch (Throwable t) {
            ThreadTools.report(t);
        }
    }

    private void lookWhetherQuiet() {
        if (isListenerClosed && channels.isEmpty() && served.isEmpty()) {
            quiet.complete(null);
        }
    }

    private void cutOff() {
        cutOff = true;
        for (Channel channel : channels) {
            if (!connections.containsKey(channel)) {
                inAnyCase(channel::close);
            }
        }
        served.values().forEach(connection -> inAnyCase(connection::cutOff));
        drained.complete(null);
    }

    /** No handler begins any more. Any thread may ask. */
    boolean isCutOff() {
        return cutOff;
    }

    /** One-way calls that were acknowledged and have been cut off, by a connection. Any thread. */
    void noticesCutOff(int unbegun, int interrupted) {
        unbegunNotices.addAndGet(unbegun);
        interruptedNotices.addAndGet(interrupted);
    }

    /** Nobody else hears of them. */
    private void tellOfNotices() {
        int unbegun = unbegunNotices.getAndSet(0);
        int interrupted = interruptedNotices.getAndSet(0);
        if (unbegun > 0 || interrupted > 0) {
            Complaint.warn(
                    System.getLogger(Server.class.getName()),
                    "the time for stopping was over before all one-way calls that had been acknowledged were done: "
                            + unbegun + " were not executed, " + interrupted + " were interrupted",
                    null);
        }
    }

    /**
     * The channel's event loop decides: a connection that it has greeted meanwhile has seen that the server stops, and
     * may have calls under way.
     */
    private void closeUngreeted(Channel channel) {
        channel.eventLoop().execute(() -> {
            if (!connections.containsKey(channel)) {
                channel.close();
            }
        });
    }

    /**
     * Waits until the server has stopped: for a {@code main} with nothing else to do. A server's threads do not keep a process alive.
     *
     * @throws IllegalStateException the server has not been started, so there is nothing to wait for
     */
    public void awaitStop() throws InterruptedException {
        synchronized (this) {
            if (loops == null && !stopping) {
                throw new IllegalStateException("the server was not started (expected: start before awaitStop)");
            }
        }
        stopped.await();
    }

    Ledger ledger() {
        return ledger;
    }

    /** Whom the certificate names that the client has shown; null without one. */
    static @Nullable Principal peer(Channel channel) {
        SslHandler handler = channel.pipeline().get(SslHandler.class);
        if (handler == null) {
            return null;
        }
        try {
            return handler.engine().getSession().getPeerPrincipal();
        } catch (SSLPeerUnverifiedException none) {
            return null;
        }
    }

    int connections() {
        return connections.size();
    }

    /** Connections that are open, and those that are gone and have calls which have not ended. For tests. */
    int served() {
        return served.size();
    }

    int running() {
        return running.get();
    }

    /**
     * Places for calls are few. Those that connections keep for calls to come go back to all, so that the pool holds
     * calls, and not what is left of past ones. This is said before there are none, as the connections of other event
     * loops take a moment. Any thread.
     */
    void placesAreFew(long nowNanos) {
        long last = reclaimedNanos.get();
        if (nowNanos - last >= MIN_RECLAIM_NANOS && reclaimedNanos.compareAndSet(last, nowNanos)) {
            connections.values().forEach(ServedConnection::giveUpIdlePlaces);
        }
    }

    long keepAliveNanos() {
        return keepAliveNanos;
    }

    /** No call without a stream has more time. */
    long maxCallNanos() {
        return maxCallNanos;
    }

    /** Whether the classic wire is served. */
    boolean classic() {
        return classic;
    }

    /** A notice has failed, of which nobody else hears. Its text is not logged, since a peer may have a part in it. Any thread. */
    void noticeFailed(ServerMethod method, RPCXException why) {
        notices.log(
                "a notice of " + method.service() + "/" + method.name() + " failed as " + why.code() + ", "
                        + why.executed() + ", and its caller does not hear of it",
                null);
    }

    Settings settings() {
        return settings;
    }

    List<ByteBuf> dictionary() {
        return dictionary;
    }

    Threads threads() {
        return threads;
    }

    @Nullable
    ServerMethod method(int number) {
        return number >= 1 && number <= byNumber.length ? byNumber[number - 1] : null;
    }

    @Nullable
    ServerMethod method(String publishedName) {
        return byName.get(publishedName);
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
         * Is reached by clients of this process that are {@linkplain Client.Builder#inProcess in process} too, and by no others: no socket
         * is opened, the port is a number of this process. All else is as with sockets, but for their buffers' limits: for tests.
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
         * Connections at once; standard 10 000, or one for each 64 KiB of heap where that is less. One more is closed as it comes. At rest
         * one holds 4 KiB of heap, with TLS 9, and 13 in the middle of a handshake; more where a client's certificates are large.
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
         * Handlers running at once, those on event loops not counted: 4 to 1 000 000; standard 10 000. One more call is refused as overload, not
         * executed. One connection may run as many as are still free of them, and one more: about a half while it is alone, and less beside others
         * that run many. A method whose calls wait for each other longer than their callers' time allows has a lower limit, which the server finds by
         * itself: as many as it can finish in some half of that time, 4 at least. Connections share that limit in the same way, once a
         * second one is there.
         *
         * <p>Any number is safe for the heap, but for what handlers make themselves: what a handler may be given without
         * being charged for it is the less, the more of them may run (24 KiB at most, all of them a 16th of the heap).
         * Each call has a place too, of which there is one for each 64 KiB of heap, 2 048 at least: on a heap of 256 MiB
         * no more than 4 096 handlers run, whatever is set here.
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
         * Whether clients of the classic wire are served beside those of the native one; standard: no. A classic client has no tokens, no
         * cancel and no deadline of its own, so a server takes it only where it is asked to. Otherwise it is told why, and closed. A server
         * that requires tokens cannot serve it: {@link #build} says so.
         */
        public Builder classic(boolean isServed) {
            classic = isServed;
            return this;
        }

        /**
         * A client that is gone without a word is noticed within this time, one that reads nothing within a third more: 100 ms to 1 h;
         * standard 60 s.
         */
        public Builder keepAlive(Duration time) {
            keepAlive = Given.time(time, "keepAlive", Duration.ofMillis(100), Duration.ofHours(1), "100 ms to 1 h");
            return this;
        }

        /**
         * Largest time of a call: 1 ms to 365 days; standard 1 h, which is the most that a client of ours asks for. A request that asks for
         * more has this time, and is not told. It bounds how long the handler of a one-way call goes on when its caller is gone. A call that
         * takes or brings a stream has the time that it asks for: its handler is told when the connection ends. A classic call has 60 s, or
         * this time where it is less.
         */
        public Builder maxCallTime(Duration time) {
            maxCallTime =
                    Given.time(time, "maxCallTime", Duration.ofMillis(1), Duration.ofDays(365), "1 ms to 365 days");
            return this;
        }

        /**
         * Calls under way on one connection: 1 to 4096, the standard. All connections of an address together have so many for each connection
         * that the address may have; handlers that go on when their connections are gone are among them.
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
         * Threads of the pool, 1 to 10 000; standard eight a processor, at least 64. One connection may hold as many as are still free of them,
         * and one more: about a half while it is alone. Its other calls wait, and connections have their turns one after the other. See
         * {@link RunOn.Place#POOL}.
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
         * @throws IllegalStateException if the server is to serve the classic wire and to require tokens, which no classic request can carry;
         *     if it is to require tokens twice, where the second look would find each token used
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
                                + " be refused (expected: one of the two, or a server on another port for classic clients)");
            }
            return new Server(this);
        }

        private static int checked(String name, int value, int low, int high) {
            if (value < low || value > high) {
                throw new IllegalArgumentException(name + ": " + value + " (expected: " + low + " to " + high + ")");
            }
            return value;
        }
    }
}
