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
import dev.rpcx.internal.wire.MethodDictionary;
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
import org.jspecify.annotations.Nullable;

/**
 * Server behind its public class: it listens on one port, starts and stops once, and holds what its connections share.
 * Any thread may call it; its monitor guards the fields that are neither final nor volatile.
 *
 * <p>The class is long because stopping is a part of it: what a stop waits for, cuts off and counts are the
 * connections, handlers and loops that starting makes, under the same monitor.
 */
public final class ServerCore {
    /** Users know the logger by the name of the public class. */
    private static final String LOGGER = "dev.rpcx.Server";

    /** Maximum time of a stop, in days. A stop that is given more has this time. */
    private static final int MAX_STOP_DAYS = 365;

    /**
     * Time that handlers have, after the time of a stop, to heed their interrupts. The pool's threads have as long to
     * end.
     */
    private static final long INTERRUPT_GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Time that event loops have to end; a handler on one of them may keep it from ending. */
    private static final long LOOPS_END_NANOS = TimeUnit.SECONDS.toNanos(3);

    /**
     * Minimum time between two rounds in which the connections are asked for places that nobody uses: each round is a
     * task for every one of thousands of connections.
     */
    private static final long MIN_RECLAIM_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final String host;
    private final int port;

    /** All that peers make this server hold. */
    private final Ledger ledger;

    /** Number of running handlers, those on event loops not counted. */
    private final AtomicInteger running = new AtomicInteger();

    /** Time at which the connections were last asked for places that they do not use. */
    private final AtomicLong reclaimedNanos;

    private final ServerPlatform platform;
    private final int eventLoops;
    private final boolean inProcess;
    private final boolean classic;
    private final long keepAliveNanos;
    private final long maxCallNanos;
    private final @Nullable TlsEngine tls;
    private final ServerMethod[] byNumber;
    private final Map<String, ServerMethod> byName = new HashMap<>();
    private final List<ByteBuf> dictionary;
    private final Settings settings;

    /** Open connections of which it is known which wire they speak, by channel. */
    private final Map<Channel, ServedConnection> connections = new ConcurrentHashMap<>();

    private final Set<Channel> channels = ConcurrentHashMap.newKeySet();

    /**
     * Connections of which it is known which wire they speak, by channel, until they are over and all their calls have
     * ended.
     */
    private final Map<Channel, ServedConnection> served = new ConcurrentHashMap<>();

    private final Threads threads;
    private @Nullable Loops loops;
    private @Nullable Channel listening;

    /** Port of {@link #listening}. The channel may not know its port any more once a stop has closed it. */
    private int boundPort;

    /** Whether a stop has begun. */
    private volatile boolean stopping;

    private volatile boolean isListenerClosed;

    /** Completes when a stop finds nothing under way any more. */
    private final CompletableFuture<Void> quiet = new CompletableFuture<>();

    /** Completes with {@link #quiet}, or when what is left has been cut off. */
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private volatile boolean cutOff;
    private final AtomicInteger unbegunNotices = new AtomicInteger();
    private final AtomicInteger interruptedNotices = new AtomicInteger();
    private final CountDownLatch stopped = new CountDownLatch(1);
    private final RateLimitedLog notices = new RateLimitedLog(System.getLogger(LOGGER), InstantSource.system());

    /** Makes the published methods from what the server has made before. */
    public interface MethodFactory {
        /**
         * Makes the methods, with numbers from 1.
         *
         * @param running counter of the handlers of all methods, those on event loops not counted
         * @param groups groups of the callers
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
        ledger.watch(Resource.HANDLERS, running::get);
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

    /** Forgets a connection that is over and of which all calls have ended. A second time does nothing. */
    void ended(Channel channel) {
        served.remove(channel);
        lookWhetherQuiet();
    }

    /** Carries out {@code Server.start}. */
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
                throw new RPCXException(
                        RPCXException.Code.UNAVAILABLE,
                        host + ":" + port + ": cannot listen: " + whyNot(bound.cause()),
                        RPCXException.Executed.NOT_EXECUTED,
                        bound.cause());
            }
            boundPort = group.port(bound.channel().localAddress());
            listening = bound.channel();
        } finally {
            if (listening == null) {
                // the loops are the server's own, so this thread is none of those that are waited for
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
            // for example because no file descriptor is left for the loops
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
        // done first: whatever fails after this closes the channel, and so ends the account
        closeWith(channel, account);
        HalfClose.allow(channel, this::lingerNanos);
        if (stopping) {
            // the stop may have gone through all channels before this one was among them
            closeUngreeted(channel);
        }
        if (tls != null) {
            tls.addTo(channel, account, ServerConnection.frameNanos(Sniffer.silentNanos(this)));
        }
        channel.pipeline().addLast(new Sniffer(this, account));
    }

    /** Makes the account end with the channel. */
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

    /**
     * Time that the last bytes written to a connection that has ended have to leave. A stop has a time of its own
     * instead.
     */
    private long lingerNanos() {
        return cutOff ? 0 : stopping ? Long.MAX_VALUE : keepAliveNanos;
    }

    /** Registers a connection of which it is known now which wire it speaks. */
    public void register(Channel channel, ServedConnection connection) {
        served.put(channel, connection);
        connections.put(channel, connection);
        if (channel.closeFuture().isDone()) {
            // what was written to greet the client has met a socket that was reset, and the listener that forgets the
            // connection has run already
            connections.remove(channel);
            ended(channel);
        }
        if (stopping) {
            connection.drain();
        }
    }

    /** Port that the server listens on, until a stop has ended. */
    public synchronized int port() {
        if (listening == null) {
            throw new IllegalStateException("the server does not listen (expected: started, not stopped)");
        }
        return boundPort;
    }

    /** Carries out {@code Server.stop}. */
    public void stop(Duration time) {
        LoopThread.refuseOnLoop("Server.stop", "another thread");
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
        Loops group = startDrain();
        if (group != null) {
            if (!hasEnded(drained, nanos)) {
                cutOff();
            }
            boolean isQuiet = hasEnded(quiet, INTERRUPT_GRACE_NANOS);
            // whatever comes from here on finds that it comes too late
            cutOff = true;
            group.close(LOOPS_END_NANOS);
            // what goes on after a connection is known only a moment after its channel is closed, and no loop checks it
            // any more
            served.values().forEach(connection -> inAnyCase(connection::cutOff));
            threads.close();
            if (isQuiet) {
                threads.awaitEnd(INTERRUPT_GRACE_NANOS);
            }
        }
    }

    /** Waits for the future, also when this thread is interrupted. @return false if the time was over first */
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
                // the time that is left says whether to wait on
            }
            left = nanos - (System.nanoTime() - begin);
        } while (left > 0 && !future.isDone());
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
        return future.isDone();
    }

    /**
     * Begins what {@link #stop} does, without the waiting and without what comes after that.
     *
     * @return future that completes when all connections and calls have ended, or when those left over have been cut
     *     off
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

    /** Given time in nanoseconds: no more than a timer takes, and 0 where the time is negative. */
    private static long nanos(Duration given) {
        Duration time = Given.notNull(given, "time", "from 0");
        long most = TimeUnit.DAYS.toNanos(MAX_STOP_DAYS);
        return time.isNegative() ? 0 : time.compareTo(Duration.ofNanos(most)) > 0 ? most : time.toNanos();
    }

    /**
     * Closes the listener, and asks all connections to end. Only the first of several calls does so.
     *
     * @return loops of the server; null if there is nothing to be ended, since the server was not started
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
        // done before the listener is closed: a loop that a handler blocks closes it late, and must not keep the
        // connections of other loops from their end
        drainConnections();
        listener.close().addListener(ended -> {
            // connections that have come meanwhile
            drainConnections();
            isListenerClosed = true;
            lookWhetherQuiet();
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

    /**
     * Does one of several things at the server's end. An exception, for example for want of memory, keeps none of the
     * others from being done.
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

    /** Whether the server has been cut off, so that no handler starts any more. Any thread. */
    public boolean isCutOff() {
        return cutOff;
    }

    /** Counts notices of one connection that were acknowledged and have been cut off. Any thread. */
    void noticesCutOff(int unbegun, int interrupted) {
        unbegunNotices.addAndGet(unbegun);
        interruptedNotices.addAndGet(interrupted);
    }

    /** Logs the notices that have been cut off: nobody else hears of them. */
    private void tellOfNotices() {
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
     * Closes a channel that has not been greeted. The channel's event loop decides about that: a connection that it has
     * greeted meanwhile has seen that the server stops, and may have calls under way.
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

    /** Number of connections that are open, or that are gone and have calls which have not ended. For tests. */
    public int served() {
        return served.size();
    }

    public int running() {
        return running.get();
    }

    /**
     * Asks all connections for the places that they keep for later calls, since places are few: the pool is for calls,
     * and not for what is left of past ones. Called before no place is left, since the connections of other event loops
     * take a moment to give places back. Any thread.
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

    /** Maximum time of a call without a stream. */
    public long maxCallNanos() {
        return maxCallNanos;
    }

    /** Whether the classic wire is served. */
    boolean classic() {
        return classic;
    }

    /**
     * Logs a notice that has failed, of which nobody else hears. The text of the error is not logged, since a peer may
     * have a part in it. Any thread.
     */
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
    public ServerMethod method(int number) {
        return number >= 1 && number <= byNumber.length ? byNumber[number - 1] : null;
    }

    @Nullable
    public ServerMethod method(String publishedName) {
        return byName.get(publishedName);
    }
}
