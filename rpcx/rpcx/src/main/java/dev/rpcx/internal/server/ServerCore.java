package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.RateLimitedLog;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.io.HalfClose;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.TlsEngine;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.AddressGroups;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.SchemaFrames;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import java.nio.channels.UnresolvedAddressException;
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
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Implementation of the public class {@code Server}. A server listens on one port, can be started and stopped once, and
 * holds what its connections share. The class is thread-safe: its monitor guards the fields that are neither final nor
 * volatile.
 *
 * <p>The class is long because the start and the stop work on the same connections, handlers and event loops, under the
 * same monitor.
 */
public final class ServerCore {
    /** Name of the logger, which is the name of the public class, since users know only that class. */
    private static final String LOGGER = "dev.rpcx.Server";

    /** Maximum time for stopping the server, in days. A longer time is shortened to this value. */
    private static final int MAX_STOP_DAYS = 365;

    /**
     * Maximum time, in nanoseconds, for which a stop of the server waits for cut-off connections and interrupted
     * handlers to end. If all of them end in time, the stop then waits for the threads of the pool to end, again for at
     * most this time.
     */
    private static final long MAX_INTERRUPT_GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum time for which a stop waits for the event loops to end, in nanoseconds. The time is limited because a
     * handler can block its event loop.
     */
    private static final long MAX_LOOPS_END_NANOS = TimeUnit.SECONDS.toNanos(3);

    /**
     * Minimum time between two reclaims of unused places by {@link #reclaimIdlePlaces}, in nanoseconds. Reclaims are
     * limited because each of them queues a task for every native connection that holds a place.
     */
    private static final long MIN_RECLAIM_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final String host;
    private final int port;

    /** Counts everything that clients cause this server to hold, for example calls and bytes. */
    private final Ledger ledger;

    /** Number of running handlers, except those on event loops. */
    private final AtomicInteger running = new AtomicInteger();

    /**
     * Time at which {@link #reclaimIdlePlaces} last asked the connections for unused places, in nanoseconds. If several
     * event loops want to ask at once, only the one that changes the time asks.
     */
    private final AtomicLong reclaimedNanos;

    private final ServerPlatform platform;
    private final int eventLoops;
    private final boolean inProcess;
    private final boolean classic;
    private final @Nullable TranslatedWire translated;
    private final long keepAliveNanos;
    private final long maxCallNanos;
    private final @Nullable TlsEngine tls;
    private final ServerMethod[] byNumber;
    private final Map<String, ServerMethod> byName = new HashMap<>();
    private final List<ByteBuf> dictionary;

    /**
     * Payloads of the SCHEMA frames of those methods for which a client has asked, by the number of the method. Event
     * loops add them, and all connections send the same ones.
     */
    private final Map<Integer, List<ByteBuf>> schemas = new ConcurrentHashMap<>();

    private final Settings settings;

    // Event loops change the next three collections. After the end of an event loop, any thread can remove a connection
    // from "served". Event loops and the thread that stops the server look through the collections.

    /** Connections whose channels are open, by channel. {@link #register} adds them. */
    private final Map<Channel, ServedConnection> connections = new ConcurrentHashMap<>();

    /** Open channels that have an account. */
    private final Set<Channel> channels = ConcurrentHashMap.newKeySet();

    /**
     * Connections that have not ended, or whose calls have not all ended. The key is the channel of the connection.
     * {@link #register} adds connections. The channel of a native connection that has ended can still be open, to send
     * the last bytes.
     */
    private final Map<Channel, ServedConnection> served = new ConcurrentHashMap<>();

    private final Threads threads;
    private @Nullable Loops loops;
    private @Nullable Channel listening;

    /** Port of {@link #listening}. The port is stored because a closed channel may no longer know its port. */
    private int boundPort;

    /**
     * Whether the server has begun to stop. The thread that stops the server first sets the field, while holding the
     * monitor, and then looks through {@link #channels}. An event loop first adds a new channel or connection, and then
     * reads the field. So either the stopping thread finds the channel or connection, or the event loop sees that the
     * server is stopping. In another order, the stop could miss a new connection.
     */
    private volatile boolean stopping;

    /** Whether the listener is closed. Written by the listener's event loop, and read by {@link #completeIfQuiet}. */
    private volatile boolean isListenerClosed;

    /** Completes when the server is stopping, its listener is closed, and all connections and calls have ended. */
    private final CompletableFuture<Void> quiet = new CompletableFuture<>();

    /**
     * Completes during a stop, when all connections and calls have ended, or when the event loops have been instructed
     * to cut them off.
     */
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    /**
     * Whether the time for the stop is over, so that no handler starts any more. Written by the thread that stops the
     * server, or by an event loop when the time of {@link #drain} is over. Threads that run handlers read the field
     * before a handler starts, and event loops read it in {@link #lingerNanos}. Tested by
     * {@code StopTest.noHandlerOfAnEventLoopBeginsAfterwards}.
     */
    private volatile boolean cutOff;

    // Event loops add to the next two numbers. The thread that stops the server first adds to them for connections
    // whose event loop has ended, and then takes them.
    private final AtomicInteger unbegunNotices = new AtomicInteger();
    private final AtomicInteger interruptedNotices = new AtomicInteger();

    /** The thread that stops the server counts this latch down at the end. {@link #awaitStop} waits for the latch. */
    private final CountDownLatch stopped = new CountDownLatch(1);

    private final RateLimitedLog notices = new RateLimitedLog(System.getLogger(LOGGER), InstantSource.system());

    private final HandlerFailures failures = new HandlerFailures();

    /** Makes the methods that a server publishes. The server passes in the objects that the methods share. */
    public interface MethodFactory {
        /**
         * Returns the published methods in the order of their numbers, which begin at 1.
         *
         * @param running counter of the running handlers of all methods; handlers on event loops are not counted
         * @param groups groups of connections, by the addresses of the clients
         * @param nowNanos current time by the server's ticker, in nanoseconds
         */
        List<ServerMethod> methods(AtomicInteger running, AddressGroups groups, long nowNanos);
    }

    public ServerCore(ServerSettings given, MethodFactory factory) {
        host = given.host();
        port = given.port();
        ledger = Ledger.ofServer(
                "server of port " + port,
                given.maxConnections(),
                given.maxConnectionsPerAddress(),
                given.maxCalls(),
                given.maxRunning(),
                given.maxMessageBytes());
        ledger.addCounter(Resource.HANDLERS, running::get);
        platform = given.platform();
        threads = platform.threads(given.poolSize());
        quiet.thenRun(() -> drained.complete(null));
        reclaimedNanos = new AtomicLong(platform.ticker().nanoTime() - MIN_RECLAIM_NANOS);
        eventLoops = given.eventLoops();
        inProcess = given.inProcess();
        classic = given.classic();
        keepAliveNanos = given.keepAliveNanos();
        maxCallNanos = given.maxCallNanos();
        tls = given.tls();
        settings = new Settings(given.maxMessageBytes(), given.maxCalls(), Settings.INITIAL.defaultMicros());
        List<ServerMethod> methods =
                factory.methods(running, ledger.groups(), platform.ticker().nanoTime());
        byNumber = methods.toArray(new ServerMethod[0]);
        for (ServerMethod method : methods) {
            byName.put(MethodDictionary.key(method.service(), method.name()), method);
        }
        dictionary = dictionary(methods);
        Function<List<ServerMethod>, TranslatedWire> further = given.translated();
        translated = further == null ? null : further.apply(methods);
    }

    private static List<ByteBuf> dictionary(List<ServerMethod> methods) {
        List<ByteBuf> frames = new ArrayList<>();
        ByteBuf scratch = Unpooled.buffer();
        ByteBuf entry = Unpooled.buffer();
        ByteBuf frame = Unpooled.buffer();
        for (ServerMethod m : methods) {
            entry.clear();
            long schemaHash = m.schema().hash();
            MethodDictionary.write(entry, scratch, m.service(), m.name(), m.number(), schemaHash, m.shape());
            if (frame.readableBytes() + entry.readableBytes() > Wire.MAX_PAYLOAD_BYTES) {
                frames.add(frame);
                frame = Unpooled.buffer();
            }
            frame.writeBytes(entry);
        }
        frames.add(frame);
        return frames;
    }

    /**
     * Removes a connection from {@link #served}. Called when the connection and all its calls have ended. A repeated
     * call for the same connection does nothing.
     */
    void ended(Channel channel) {
        served.remove(channel);
        completeIfQuiet();
    }

    /** Starts the server, as {@code Server.start} describes. */
    public synchronized void start() {
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
                throw cannotListen(host, port, whyNot(bound.cause()), bound.cause());
            }
            boundPort = group.port(bound.channel().localAddress());
            listening = bound.channel();
        } finally {
            if (listening == null) {
                // the event loops are new, so this thread is not one of them and can wait for their end
                end(0);
            }
        }
    }

    private Loops loops() {
        try {
            Loops made = platform.loops(eventLoops, "rpcx-server", inProcess);
            loops = made;
            return made;
        } catch (RuntimeException e) {
            // for example, there is no free file descriptor for the event loops
            throw cannotListen(host, port, ThrowableText.message(e), e);
        }
    }

    /** Returns the error for a server that cannot listen on its host and port: UNAVAILABLE, NOT_EXECUTED. */
    private static RPCXException cannotListen(String host, int port, String why, Throwable cause) {
        return new RPCXException(
                RPCXException.Code.UNAVAILABLE,
                host + ":" + port + ": cannot listen: " + why,
                RPCXException.Executed.NOT_EXECUTED,
                cause);
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
        // closeWith comes first: a later failure closes the channel, and closing the channel closes the account
        closeWith(channel, account);
        HalfClose.allow(channel, this::lingerNanos);
        if (stopping) {
            // a stop may have gone through all channels before this channel was added to them
            closeUngreeted(channel);
        }
        if (tls != null) {
            tls.addTo(
                    channel,
                    account,
                    ServerConnection.frameNanos(Sniffer.silentNanos(this)),
                    translated == null ? null : translated.applicationProtocol());
        }
        channel.pipeline().addLast(new Sniffer(this, account));
    }

    /**
     * Adds a channel to the open channels, and closes its account when the channel is closed. If adding the channel
     * fails, this method closes the account.
     */
    private void closeWith(Channel channel, Account account) {
        boolean isKept = false;
        try {
            channels.add(channel);
            channel.closeFuture().addListener(over -> {
                account.close();
                channels.remove(channel);
                connections.remove(channel);
                completeIfQuiet();
            });
            isKept = true;
        } finally {
            if (!isKept) {
                channels.remove(channel);
                account.close();
                completeIfQuiet();
            }
        }
    }

    /**
     * Returns how long, in nanoseconds, {@link HalfClose} may take to send the last bytes of a connection that has
     * ended. {@link HalfClose} allows at least 2 s, even if the result is smaller. The result is:
     *
     * <ul>
     *   <li>before a stop: the keep-alive time;
     *   <li>during a stop: {@code Long.MAX_VALUE}, that is, no limit;
     *   <li>after the time for the stop is over: 0.
     * </ul>
     */
    private long lingerNanos() {
        return cutOff ? 0 : stopping ? Long.MAX_VALUE : keepAliveNanos;
    }

    /**
     * Adds a native connection whose preface is complete, or a classic connection whose first byte has arrived. If the
     * server is stopping, the connection is asked to end.
     */
    public void register(Channel channel, ServedConnection connection) {
        served.put(channel, connection);
        connections.put(channel, connection);
        if (channel.closeFuture().isDone()) {
            // the channel was closed while the greeting was written, so the channel's close listener ran before the
            // connection was added
            connections.remove(channel);
            ended(channel);
        }
        if (stopping) {
            connection.drain();
        }
    }

    /**
     * Returns the port on which the server listens. If port 0 was given, the result is the port that the system chose.
     *
     * @throws IllegalStateException the server has not been started, or has stopped
     */
    public synchronized int port() {
        if (listening == null) {
            throw new IllegalStateException("the server does not listen (expected: started, not stopped)");
        }
        return boundPort;
    }

    /** Stops the server, as {@code Server.stop} describes. */
    public void stop(Duration time) {
        LoopThread.refuseOnLoop("Server.stop", "another thread");
        end(nanos(time));
    }

    /**
     * Stops the server as far as it was started, and waits for a limited time until its connections, event loops and
     * threads have ended.
     *
     * @param nanos nanoseconds after which the remaining connections and calls are cut off
     */
    private void end(long nanos) {
        try {
            endAll(nanos);
            logCutOffNotices();
        } finally {
            synchronized (this) {
                listening = null;
            }
            stopped.countDown();
        }
    }

    private void endAll(long nanos) {
        Loops group = startDrain();
        if (group != null) {
            if (!hasEnded(drained, nanos)) {
                cutOff();
            }
            boolean isQuiet = hasEnded(quiet, MAX_INTERRUPT_GRACE_NANOS);
            // from now on, no handler starts
            cutOff = true;
            group.close(MAX_LOOPS_END_NANOS);
            // the closed event loops no longer look for calls that have lost their connection, so this thread cuts off
            // those that no earlier cut-off has reached
            served.values().forEach(connection -> inAnyCase(connection::cutOff));
            threads.close();
            if (isQuiet) {
                threads.awaitEnd(MAX_INTERRUPT_GRACE_NANOS);
            }
        }
    }

    /**
     * Waits until the future completes or the time is over. An interrupt does not end the wait, and is restored
     * afterwards.
     *
     * @return false if the time was over before the future completed
     */
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
                // the wait has ended with an exception; the condition of the loop decides whether to wait again
            }
            left = nanos - (System.nanoTime() - begin);
        } while (left > 0 && !future.isDone());
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
        return future.isDone();
    }

    /**
     * Begins to stop the server, and does not wait for the end. Unlike {@link #stop}, this method does not end the
     * event loops and the threads.
     *
     * @param time time after which the remaining connections and calls are cut off
     * @return future that completes when all connections and calls have ended, or when the event loops have been
     *     instructed to cut them off. This method always returns the same future.
     */
    public CompletableFuture<Void> drain(Duration time) {
        long nanos = nanos(time);
        Loops group = startDrain();
        if (group != null && !drained.isDone()) {
            Future<?> timer = group.group.schedule(this::cutOff, nanos, TimeUnit.NANOSECONDS);
            drained.whenComplete((done, failure) -> timer.cancel(false));
        }
        return drained;
    }

    /**
     * Returns the given time in nanoseconds. A negative time becomes 0, and a time above {@code MAX_STOP_DAYS} becomes
     * {@code MAX_STOP_DAYS}. Timers accept a delay of this maximum, but may refuse a longer one.
     */
    private static long nanos(Duration given) {
        Duration time = Given.notNull(given, "time", "0 or more");
        long max = TimeUnit.DAYS.toNanos(MAX_STOP_DAYS);
        return time.isNegative() ? 0 : time.compareTo(Duration.ofNanos(max)) > 0 ? max : time.toNanos();
    }

    /**
     * Begins to close the listener, and asks all connections to end. Only the first call has an effect.
     *
     * @return event loops of the server; null if the server has not been started
     */
    private @Nullable Loops startDrain() {
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
        // the connections come first, since a handler that blocks the listener's event loop can delay the closing of
        // the listener
        drainConnections();
        listener.close().addListener(ended -> {
            // this second pass reaches connections that were accepted too late for the first pass, but before the
            // listener was closed
            drainConnections();
            isListenerClosed = true;
            completeIfQuiet();
        });
        return group;
    }

    private void drainConnections() {
        for (Channel channel : channels) {
            ServedConnection connection = connections.get(channel);
            inAnyCase(() -> {
                if (connection != null) {
                    connection.drain();
                } else {
                    closeUngreeted(channel);
                }
            });
        }
    }

    /** Runs one step of a stop. If the step throws, the exception is only reported, so that the next step can run. */
    private static void inAnyCase(Runnable one) {
        try {
            one.run();
        } catch (Throwable t) {
            ThreadTools.report(t);
        }
    }

    /**
     * Completes {@link #quiet} if the listener is closed, and no channel and no call is left. Any thread may call this
     * method. Each thread first removes its channel or connection, or sets {@code isListenerClosed}, and then calls
     * this method. So the last thread finds that nothing is left. In the other order, no thread might find this, and a
     * stop could wait until its time is over.
     */
    private void completeIfQuiet() {
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

    /**
     * Returns whether a stop of the server has reached the point after which no handler starts. Can be called on any
     * thread.
     */
    public boolean isCutOff() {
        return cutOff;
    }

    /**
     * Counts the notices (one-way calls) that a stop has cut off on one connection. The stop logs the totals of all
     * connections. Can be called on any thread.
     *
     * @param unbegun number of notices whose handlers had not started
     * @param interrupted number of notices whose handlers have been interrupted
     */
    void noticesCutOff(int unbegun, int interrupted) {
        unbegunNotices.addAndGet(unbegun);
        interruptedNotices.addAndGet(interrupted);
    }

    /** Logs how many acknowledged notices (one-way calls) have been cut off, since their callers are not told. */
    private void logCutOffNotices() {
        int unbegun = unbegunNotices.getAndSet(0);
        int interrupted = interruptedNotices.getAndSet(0);
        if (unbegun > 0 || interrupted > 0) {
            RateLimitedLog.warn(
                    System.getLogger(LOGGER),
                    "the time for stopping was over before all one-way calls that had been acknowledged were done: "
                            + unbegun + " were not executed, " + interrupted + " were interrupted",
                    null);
        }
    }

    /**
     * Queues a task on the channel's event loop that closes the channel if it has no connection yet, for example
     * because the preface of a native client is incomplete. The task does nothing if {@link #register} has added the
     * connection by then. Called only while the server stops, when {@code register} asks each new connection to end.
     */
    private void closeUngreeted(Channel channel) {
        channel.eventLoop().execute(() -> {
            if (!connections.containsKey(channel)) {
                channel.close();
            }
        });
    }

    /** Blocks until the server has stopped. */
    public void awaitStop() throws InterruptedException {
        synchronized (this) {
            if (loops == null && !stopping) {
                throw new IllegalStateException("the server was not started (expected: start before awaitStop)");
            }
        }
        stopped.await();
    }

    public Ledger ledger() {
        return ledger;
    }

    public int connections() {
        return connections.size();
    }

    /** Returns the number of connections that have not ended, or have calls that have not ended. For tests. */
    public int served() {
        return served.size();
    }

    public int running() {
        return running.get();
    }

    /**
     * Asks all connections to give back places that they keep for later calls. Does nothing if the connections were
     * last asked less than {@code MIN_RECLAIM_NANOS} ago. Can be called on any thread.
     *
     * <p>Called when a call needs a new place, in two cases:
     *
     * <ul>
     *   <li>The place is refused.
     *   <li>More than half of the server's places are taken. The connections are asked before any place is refused,
     *       because connections on other event loops need a moment to give places back.
     * </ul>
     */
    void reclaimIdlePlaces(long nowNanos) {
        long last = reclaimedNanos.get();
        if (nowNanos - last >= MIN_RECLAIM_NANOS && reclaimedNanos.compareAndSet(last, nowNanos)) {
            connections.values().forEach(ServedConnection::giveUpIdlePlaces);
        }
    }

    long keepAliveNanos() {
        return keepAliveNanos;
    }

    /** Returns the maximum time of a call without a stream, in nanoseconds. */
    public long maxCallNanos() {
        return maxCallNanos;
    }

    /** Returns whether this server accepts connections of the classic wire. */
    boolean classic() {
        return classic;
    }

    /** Returns the wire that this server translates into the native one, such as gRPC; null if there is none. */
    @Nullable
    TranslatedWire translated() {
        return translated;
    }

    /**
     * Logs that a notice (one-way call) has failed, since the caller of a notice does not get the error. At most one
     * such failure a minute is logged. The log message also says how many failures have been left out since the
     * previous message. It does not contain the text of the error, since a part of the text can come from a client. Can
     * be called on any thread.
     */
    void noticeFailed(ServerMethod method, RPCXException why) {
        notices.log(
                "a notice of " + method.service() + "/" + method.name() + " failed as " + why.code() + ", "
                        + why.executed() + ", and its caller does not hear of it",
                null);
    }

    /** Returns the log of the exceptions of handlers. Can be called on any thread. */
    HandlerFailures failures() {
        return failures;
    }

    Settings settings() {
        return settings;
    }

    List<ByteBuf> dictionary() {
        return dictionary;
    }

    /**
     * Returns the payloads of the SCHEMA frames for one method. There are none if no method has this number, or if the
     * dictionary has no hash of its schema.
     */
    List<ByteBuf> schema(int number) {
        ServerMethod method = method(number);
        MethodSchema schema = method == null ? MethodSchema.UNKNOWN : method.schema();
        return schema.hash() == MethodSchema.NO_HASH
                ? List.of()
                : schemas.computeIfAbsent(number, first -> SchemaFrames.answer(number, schema.types()));
    }

    Threads threads() {
        return threads;
    }

    @Nullable
    public ServerMethod method(int number) {
        return number >= 1 && number <= byNumber.length ? byNumber[number - 1] : null;
    }

    @Nullable
    public ServerMethod method(String publishedName) {
        return byName.get(publishedName);
    }
}
