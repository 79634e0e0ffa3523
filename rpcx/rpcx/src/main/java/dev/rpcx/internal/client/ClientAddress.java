package dev.rpcx.internal.client;

import dev.rpcx.Endpoint;
import dev.rpcx.RPCXException;
import dev.rpcx.VisibleText;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.schema.MethodSchema;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * One instance of a service, that is, one host and port, with this client's connections to it. Outside a
 * {@link ClientCluster}, the address does not connect before a call needs a connection. If a connection has ended, the
 * address connects again when the next call needs one. If all connections are crowded (see
 * {@link ClientConnection#isCrowded}), the address makes an extra connection, which closes after some time without
 * calls. Calls that need the same connection wait together for one try to make it.
 *
 * <p>After a failure to connect, a pause follows, in which the address does not connect. Consecutive failures make the
 * pauses longer, up to a limit; see {@link Backoff}. A connection that ends as soon as it is established counts as a
 * failure too. Calls that find no connection wait for the end of a pause if at most 100 ms of the pause remain;
 * otherwise they fail immediately.
 *
 * <p>In a {@link ClientCluster}, the address keeps its normal connections even if no call needs them. Calls that find
 * no connection wait in the cluster, and do not fail because of a pause. After each try to connect, the address
 * notifies the cluster whether there is a connection.
 */
public final class ClientAddress extends Route {
    /**
     * Minimum time for which a server has to keep a connection, so that the connection counts as a success. When a
     * successful connection ends or takes no new calls any more, the earlier failures of the server are forgotten.
     */
    static final long KEPT_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum number of consecutive failures to connect after which a server still counts as known. A server becomes
     * known when it keeps a connection for {@link #KEPT_NANOS}. In a cluster, the tries to connect to known servers
     * have a {@link ConnectThrottle} of their own. A pause follows each failure. The pauses after 32 failures add up to
     * 14 to 27 s, which is longer than a restart takes.
     */
    private static final int MAX_KNOWN_FAILURES = 32;

    /**
     * Maximum number of connections on the classic wire that only finish their calls. On the native wire, the maximum
     * is this number plus the maximum number of connections in use.
     */
    private static final int MAX_DRAINING = 4;

    private static final long MAX_WAITED_OUT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Interval at which existing connections are checked for free slots, while calls wait for a new connection. */
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final ClientCore client;
    public final Endpoint endpoint;

    /**
     * Result of {@link #toString}; null until that method is called for the first time. Any thread stores it, and all
     * threads store the same text.
     */
    private @Nullable String name;

    private final @Nullable ClientCluster cluster;

    /** The latest try to make a connection on the classic wire; null if there was none. Guarded by {@code this}. */
    private @Nullable Connecting<ClassicClientConnection> classic;

    /**
     * Connections on the classic wire that have been replaced, and only finish their calls. Connections that have ended
     * are removed when the next connection is replaced. Guarded by {@code this}.
     */
    private final List<ClassicClientConnection> drainingClassic = new ArrayList<>(1);

    /**
     * The connections on the native wire, or the tries to make them, by index. Any thread that needs a connection
     * stores its try here by a compare-and-set. A try that could not be stored is never begun, so there is
     * only one try at a time for each index. An event loop removes a connection that has ended, also by a
     * compare-and-set, so that it does not remove a later try.
     */
    private final AtomicReferenceArray<@Nullable Connecting<ClientConnection>> connections;

    /**
     * Number of normal connections, that is, connections that stay open when they have no calls. Normal connections
     * have the indexes below this number in {@link #connections}. The other indexes are for extra connections, which
     * are made when the existing ones are crowded.
     */
    private final int kept;

    /**
     * Number that the {@link ClientCluster} has given to this instance's latest failure to connect; below 1 if the
     * instance has not failed. A failure does not count if the instance has another connection. The cluster numbers the
     * failures of all its instances together, from 1. Guarded by the lock of the cluster.
     */
    long failureNumber;

    private final Health health;

    /**
     * Whether a timer is set that looks for free slots on existing connections, for calls that wait for a new
     * connection. Any thread sets the field after it has added a call to the waiting ones, and an event loop clears it
     * before it looks for waiting calls. So either the event loop finds the call, or the thread sets another timer.
     * Otherwise the call could wait although slots are free.
     */
    private final AtomicBoolean isLooking = new AtomicBoolean();

    /**
     * Whether the instance no longer belongs to its service. Set by the thread that runs {@link #retire}, and read by
     * any thread.
     */
    private volatile boolean retired;

    /** The weight that the registry has last reported. Stored under the lock of the cluster, and read by any thread. */
    private volatile int weight;

    // The fields from failures to lastFailure are guarded by this.
    /**
     * Connections of this instance that take no new calls and only finish their calls. In a {@link ClientCluster}, the
     * cluster keeps this list too, so the list survives if the registry removes the instance and names it again.
     */
    private final DrainingConnections draining;

    /**
     * Number of consecutive failures to connect. A connection that took calls for less than {@link #KEPT_NANOS} counts
     * as a failure too.
     */
    private int failures;

    /**
     * Whether the server has kept a connection for {@link #KEPT_NANOS}. Set to true when that connection ends or takes
     * no new calls any more. Set to false again when {@link #failures} is more than {@link #MAX_KNOWN_FAILURES}.
     */
    private boolean hasKept;

    /**
     * Whether the latest try to connect has succeeded and, since that try, no end of a connection has been recorded. On
     * the native wire, the end of a connection is recorded when the connection takes no new calls any more, even if the
     * connection still finishes calls.
     */
    private boolean isUp;

    /** Time at which a try to connect last succeeded. */
    private long upNanos;

    /** Time before which no try to connect begins. The time has passed if the address is not in a pause. */
    private long pauseEndNanos;

    private @Nullable Throwable lastFailure;

    /** Returns whether a proxy of this client has a method with this published name. See {@link ClientCore#calls}. */
    boolean calls(String publishedName) {
        return client.calls(publishedName);
    }

    /** Returns the schemas that this client's proxies have of a method. See {@link ClientCore#schemas}. */
    Map<Long, MethodSchema> schemas(String publishedName) {
        return client.schemas(publishedName);
    }

    public ClientAddress(ClientCore client, Endpoint endpoint, int kept, int maxConnections) {
        this(client, endpoint, kept, maxConnections, null, new DrainingConnections());
    }

    /**
     * Creates an instance of a service.
     *
     * @param kept number of normal connections, which stay open when they have no calls
     * @param maxConnections maximum number of connections, including the normal ones
     * @param cluster cluster to which the instance belongs; null if there is none
     * @param draining list for the instance's connections that only finish their calls; a cluster holds the same list
     */
    public ClientAddress(
            ClientCore client,
            Endpoint endpoint,
            int kept,
            int maxConnections,
            @Nullable ClientCluster cluster,
            DrainingConnections draining) {
        super(client);
        this.draining = draining;
        this.client = client;
        this.health = new Health(ticker());
        this.endpoint = endpoint;
        this.weight = endpoint.weight();
        this.cluster = cluster;
        this.kept = kept;
        this.connections = new AtomicReferenceArray<>(maxConnections);
        this.pauseEndNanos = ticker().nanoTime();
    }

    public Health health() {
        return health;
    }

    /**
     * Returns the weight of this instance, from 1 to {@link Endpoint#MAX_WEIGHT}, as the registry last reported it.
     * With {@code Choice.WEIGHTED_ROUND_ROBIN}, an instance with twice the weight of another gets about twice as many
     * calls. With {@code CONSISTENT_HASH}, about twice as many values of the {@code RouteBy} argument belong to the
     * instance; the weights do not matter for calls without such an argument. With {@code LEAST_LOADED}, the weights do
     * not matter for any call.
     */
    public int weight() {
        return weight;
    }

    /**
     * Sets the weight of this instance. A {@link Chooser} that was created before goes on with the old weight.
     *
     * @param said weight that the registry reports
     * @return whether the weight is different from before
     */
    boolean weigh(int said) {
        boolean isOther = said != weight;
        weight = said;
        return isOther;
    }

    /**
     * Records how an attempt of a call at this instance has ended. If the instance has failed too often, its cluster
     * may eject it, so that it gets no calls for a while.
     *
     * @param begunNanos time at which the attempt was sent
     */
    public void ended(Health.Outcome outcome, long begunNanos) {
        boolean isTooMuch = health.ended(outcome, begunNanos);
        if (isTooMuch && cluster != null) {
            cluster.eject(this);
        }
    }

    /**
     * Records a failure of this instance, because this instance has refused a call that another instance has taken. The
     * end of that call is recorded at the other instance.
     */
    public void refused() {
        if (health.ended(Health.Outcome.FAILED) && cluster != null) {
            cluster.eject(this);
        }
    }

    @Override
    public boolean hasOthers(@Nullable ClientAddress used) {
        return false;
    }

    @Override
    public @Nullable ClientConnection readyBeside(List<ClientAddress> asked) {
        return null;
    }

    @Override
    public @Nullable ClientConnection ready(int key) {
        return ready();
    }

    public @Nullable ClientConnection ready() {
        ClientConnection own = ready(connections.get(index()));
        if (own == null) {
            return connections.length() > 1 ? another() : null;
        }
        if (connections.length() > kept ? own.isCrowded() : connections.length() > 1 && own.isFull()) {
            return lessCrowded(own);
        }
        return own;
    }

    private static @Nullable ClientConnection ready(@Nullable PendingConnection<ClientConnection> found) {
        if (found != null && found.isDone() && !found.isCompletedExceptionally()) {
            ClientConnection connection = found.join();
            return connection.isUsable() && !connection.isParting ? connection : null;
        }
        return null;
    }

    /**
     * Returns the connection with the fewest calls, for a thread whose own connection (see {@link #index}) is not
     * ready. Returns null in two cases, and the call then has to wait:
     *
     * <ul>
     *   <li>No connection is ready.
     *   <li>All ready connections are full, and the thread's own connection is being made.
     * </ul>
     *
     * <p>Outside a cluster, if a connection is ready, this method also begins to make the thread's own connection, for
     * later calls: see {@link #connectUnlessPaused}. In a cluster, this method does not do so, because a cluster makes
     * the thread's own connection even if no call needs it.
     */
    private @Nullable ClientConnection another() {
        ClientConnection least = leastLoaded();
        if (least != null && cluster == null) {
            connectUnlessPaused(index(), least);
        }
        return least != null && least.isFull() && isComing(connections.get(index())) ? null : least;
    }

    boolean isConnected() {
        return leastLoaded() != null;
    }

    /**
     * Whether this instance has a connection that takes calls and is not crowded. See
     * {@link ClientConnection#isCrowded}.
     */
    boolean hasRoom() {
        ClientConnection least = leastLoaded();
        return least != null && !least.isCrowded();
    }

    @Override
    @Nullable
    ClientConnection anyOpen() {
        return leastLoaded();
    }

    /** Logs which methods of this client's proxies the server of a new connection does not have. */
    void logMisfits(ClientConnection connection) {
        client.logMisfits(connection, cluster == null ? this : cluster);
    }

    private @Nullable ClientConnection leastLoaded() {
        ClientConnection least = null;
        for (int i = 0; i < connections.length(); i++) {
            ClientConnection connection = ready(connections.get(i));
            if (connection != null && (least == null || isBetter(connection, least))) {
                least = connection;
            }
        }
        return least;
    }

    /**
     * Begins to make one more connection. Does nothing if the client is closed, or if the address is in a pause. There
     * is one exception: if even the best connection is full, this method accepts a pause that ends within 100 ms,
     * because calls then wait for the new connection. In this case, the try connects at the end of the pause.
     *
     * @param index index of the new connection in {@link #connections}
     * @param best the best of the connections that are ready
     */
    private void connectUnlessPaused(int index, ClientConnection best) {
        long patience = best.isFull() ? MAX_WAITED_OUT_NANOS : 0;
        // In a closed client, the try would fail immediately, and the failure would lead to another call of this
        // method.
        if (pauseNanos() <= patience && !client.isClosed()) {
            connect(index, patience);
        }
    }

    /**
     * Returns the connection with the fewest calls, for a thread whose own connection is crowded or full. A connection
     * that is not full comes before all full ones: see {@link #isBetter}.
     *
     * <p>If even the returned connection is crowded, this method begins to make one more connection, if
     * {@link #connectUnlessPaused} allows it. It begins none if one is being made already, if there is no free index in
     * {@link #connections}, or if the instance has been removed from its service.
     *
     * <p>Returns null if all connections are full and one more is being made, so that the call waits for the new one.
     * But if the address is in a pause and will not connect for more than 100 ms, returns a full connection.
     *
     * @param own the thread's own connection, see {@link #index}
     */
    private @Nullable ClientConnection lessCrowded(ClientConnection own) {
        ClientConnection least = own;
        int free = -1;
        boolean isComing = false;
        for (int i = 0; i < connections.length(); i++) {
            Connecting<ClientConnection> found = connections.get(i);
            ClientConnection connection = ready(found);
            if (connection == null) {
                free = i;
                isComing |= isComing(found);
            } else if (isBetter(connection, least)) {
                least = connection;
            }
        }
        if (free >= 0 && !isComing && !retired && least.isCrowded()) {
            connectUnlessPaused(free, least);
            isComing = isComing(connections.get(free));
        }
        return isComing && least.isFull() && pauseNanos() <= MAX_WAITED_OUT_NANOS ? null : least;
    }

    /**
     * Returns whether the first of two connections should get the next call. A connection that is not full is better
     * than a full one. If both are full, or neither is, the connection with fewer calls is better. Calls that the event
     * loop has not sent yet are not counted.
     */
    private static boolean isBetter(ClientConnection one, ClientConnection than) {
        boolean isFull = one.isFull();
        return isFull == than.isFull() ? one.load() < than.load() : !isFull;
    }

    private static boolean isComing(@Nullable Connecting<ClientConnection> found) {
        return found != null && !found.ensureScheduled().isDone();
    }

    /**
     * Returns the index in {@link #connections} of the connection that the calling thread normally uses. A thread
     * always gets the same index. So the thread's calls stay in order, and the data that they use stays in the
     * processor's caches.
     */
    private int index() {
        return kept == 1 ? 0 : (int) (Thread.currentThread().getId() % kept);
    }

    @Override
    public PendingConnection<ClientConnection> connect(int key) {
        int index = index();
        ClientConnection own = ready(connections.get(index));
        PendingConnection<ClientConnection> other = own == null || !own.isFull() ? null : withRoom();
        return other == null ? connect(index, MAX_WAITED_OUT_NANOS) : other;
    }

    /**
     * Returns a connection that is not full. If all are full, returns a try to connect that is in progress; null
     * if there is none.
     */
    private @Nullable PendingConnection<ClientConnection> withRoom() {
        PendingConnection<ClientConnection> pending = null;
        for (int i = 0; i < connections.length(); i++) {
            Connecting<ClientConnection> found = connections.get(i);
            ClientConnection connection = ready(found);
            if (connection != null && !connection.isFull()) {
                return found;
            }
            if (isComing(found)) {
                pending = found;
            }
        }
        return pending;
    }

    /**
     * Sets a timer that looks for free slots on existing connections, for the calls that wait for a new connection. The
     * timer is set again as long as such calls wait. Connections do not announce free slots themselves, since that
     * would cost time in every call.
     */
    private void lookSoon() {
        if (!isConnected() || !isLooking.compareAndSet(false, true)) {
            return;
        }
        boolean isSet = false;
        try {
            isSet = client.schedule(this::lookByTimer, LOOK_NANOS);
        } finally {
            if (!isSet) {
                isLooking.set(false);
            }
        }
    }

    private void lookByTimer() {
        isLooking.set(false);
        look();
    }

    /** Gives existing connections that have free slots to the calls that wait for a new connection. */
    private void look() {
        boolean isAnyLeft = false;
        for (int i = 0; i < connections.length(); i++) {
            Connecting<ClientConnection> pending = connections.get(i);
            if (pending != null && !pending.isDone()) {
                serveWaiting(pending);
                isAnyLeft |= pending.isWaitedFor();
            }
        }
        if (isAnyLeft) {
            lookSoon();
        }
    }

    private void serveWaiting(Connecting<ClientConnection> pending) {
        ClientConnection least = leastLoaded();
        if (least == null) {
            return;
        }
        // The variable room counts the free slots down here. A blocked caller takes its slot only later, when its
        // thread runs, so the connection does not know yet that the slot is needed.
        for (int room = least.room(); room > 0 && !least.isFull(); room--) {
            if (!pending.giveToFirst(least)) {
                return;
            }
        }
    }

    /**
     * Returns the connection with this index, or the try to make that connection. If there is neither, begins a try. In
     * a pause after a failure, the try connects at the end of the pause. If the pause goes on for more than
     * {@code patienceNanos}, returns a try that has already failed.
     *
     * @param patienceNanos maximum time for which a try waits for the end of a pause
     */
    private PendingConnection<ClientConnection> connect(int index, long patienceNanos) {
        while (true) {
            Connecting<ClientConnection> found = connections.get(index);
            if (found != null && isUsableOrComing(found)) {
                return found.ensureScheduled();
            }
            long pause = pauseNanos();
            if (pause > patienceNanos) {
                return inPause(pause);
            }
            Connecting<ClientConnection> connecting = new Connecting<>(index) {
                @Override
                void open() {
                    ClientAddress.this.open(this, index >= kept);
                }

                @Override
                @Nullable
                ClientConnection instead() {
                    return leastLoaded();
                }
            };
            if (connections.compareAndSet(index, found, connecting)) {
                return connecting.ensureScheduled();
            }
        }
    }

    /**
     * One try to make a connection, and the future of that connection. The try is a task of an event loop. A
     * caller whose stack is exhausted may fail to give the task to the loop. In that case, the next caller that finds
     * the try gives the task to the loop.
     */
    private abstract class Connecting<C> extends PendingConnection<C> implements Runnable {
        /**
         * Whether this try has begun. Two callers can give the try to two event loops. Only the event loop that sets
         * this field first begins the try.
         */
        private final AtomicBoolean hasBegun = new AtomicBoolean();

        /**
         * Whether this try, which is a task, has been given to an event loop, or has failed because the client is
         * closed. A caller that finds the field false gives the try to an event loop. Two callers can do so at the same
         * time, see {@link #hasBegun}. Any thread reads and sets the field.
         *
         * <p>No method may be called between giving the try to the event loop and setting this field. If the stack were
         * exhausted, such a call would fail, and the field would stay false.
         */
        private volatile boolean isScheduled;

        Connecting(int index) {
            whenComplete((connected, failure) -> connectEnded(index, failure));
        }

        Connecting<C> ensureScheduled() {
            if (!isScheduled) {
                if (!client.execute(this)) {
                    completeExceptionally(new IllegalStateException("the client is closed"));
                }
                isScheduled = true;
            }
            return this;
        }

        @Override
        public boolean add(Waiter<C> waiter) {
            boolean isAdded = super.add(waiter);
            if (isAdded) {
                try {
                    lookSoon();
                } catch (Throwable e) {
                    // The timer that looks for free slots on existing connections has not been set. Unless another call
                    // sets that timer, this call waits until this try to connect has ended.
                    ThreadTools.report(e);
                }
            }
            return isAdded;
        }

        /**
         * Begins the try. Does nothing if the try has begun already, since two callers may have given this task
         * to the event loop. Event loop only.
         */
        @Override
        public void run() {
            if (!hasBegun.compareAndSet(false, true)) {
                return;
            }
            try {
                client.endWithThis(this);
                long pause = pauseNanos();
                if (pause <= 0) {
                    begin();
                } else if (!client.schedule(this::begin, pause)) {
                    completeExceptionally(new IllegalStateException("the client is closed"));
                }
            } catch (Throwable e) {
                completeExceptionally(e);
            }
        }

        /**
         * Goes on with the try to connect. Called when the address is not in a pause any more. In a cluster, the
         * try now waits until {@link ConnectThrottle} lets it connect.
         */
        private void begin() {
            if (retired) {
                // The try ends itself here, because retire(), on another thread, may have looked at the list of
                // connections before this try was in the list. That thread sets the field before it looks, and this
                // try was in the list before this event loop reads the field. So one of the two ends the try.
                // Otherwise the client could stay connected to the instance.
                completeExceptionally(noLongerThere());
                return;
            }
            ClientCluster of = cluster;
            if (of == null) {
                start();
                return;
            }
            try {
                of.connectThrottle(isKnown()).enter(this, this::start);
            } catch (Throwable e) {
                // enter() has failed. If a timer has called this method after a pause, no other code would end the
                // try to connect. Therefore the try is ended here.
                completeExceptionally(e);
            }
        }

        /**
         * Connects, unless this try to connect has ended already, for example because the instance has been removed
         * from its service. In a cluster, {@link ConnectThrottle} calls this method.
         */
        private void start() {
            if (isDone()) {
                return;
            }
            try {
                // This timer ends the try if nothing else does, so that no call waits forever.
                Future<?> end = client.timer(
                        () -> completeExceptionally(new IllegalStateException("no connection in time")),
                        2 * client.patienceNanos());
                if (end == null) {
                    completeExceptionally(new IllegalStateException("the client is closed"));
                    return;
                }
                whenComplete((connected, failure) -> end.cancel(false));
                open();
            } catch (Throwable e) {
                completeExceptionally(e);
            }
        }

        abstract void open();
    }

    private void open(Connecting<ClientConnection> connecting, boolean isExtra) {
        client.open(
                this,
                (channel, account) -> new ClientConnection(
                        channel,
                        account,
                        this,
                        isExtra,
                        client.callTimeoutNanos(),
                        client.keepAliveNanos(),
                        connecting),
                connecting,
                false);
    }

    private synchronized long pauseNanos() {
        return pauseEndNanos - ticker().nanoTime();
    }

    /**
     * Returns whether the server has kept a connection for {@link #KEPT_NANOS}, and has not had more than
     * {@link #MAX_KNOWN_FAILURES} consecutive failures since. Until a server has kept a connection, only the registry
     * says that the server exists.
     */
    private synchronized boolean isKnown() {
        return hasKept || isUp && ticker().nanoTime() - upNanos >= KEPT_NANOS;
    }

    /**
     * Returns a try to connect that has already failed. Used if the address is in a pause (see {@link #pauseEndNanos}),
     * and the pause is too long to wait for its end.
     *
     * @param nanos remaining time of the pause
     */
    private synchronized <C> PendingConnection<C> inPause(long nanos) {
        PendingConnection<C> failed = new PendingConnection<>();
        String why = failures + " tries to connect failed, the next is in " + TimeUnit.NANOSECONDS.toMillis(nanos)
                + " ms: "
                + (lastFailure == null
                        ? ""
                        : VisibleText.line(ThrowableText.message(lastFailure), ThrowableText.MAX_WHY));
        failed.completeExceptionally(
                LocalFailure.isNoRoom(lastFailure)
                        ? LocalFailure.noRoom(why, RPCXException.Executed.NOT_EXECUTED)
                        : new IllegalStateException(
                                why, lastFailure != null && VisibleText.isOf(lastFailure) ? lastFailure : null));
        return failed;
    }

    private void connectEnded(int index, @Nullable Throwable failure) {
        synchronized (this) {
            if (failure == null) {
                // The number of failures is not reset here, since the server may still end this connection at once.
                lastFailure = null;
                isUp = true;
                upNanos = ticker().nanoTime();
                pauseEndNanos = upNanos;
            } else {
                pauseAfter(failure);
            }
        }
        ClientCluster notified = cluster;
        if (notified == null) {
            if (failure == null) {
                look();
            }
            return;
        }
        if (failure == null) {
            notified.connected(this);
            return;
        }
        if (leastLoaded() == null) {
            notified.failed(this, failure);
        } else {
            // The try has failed, but the instance has another connection. The waiting calls get that connection.
            notified.connected(this);
        }
        keepConnected(index);
    }

    private synchronized void pauseAfter(Throwable failure) {
        long now = ticker().nanoTime();
        lastFailure = failure;
        if (now - pauseEndNanos < 0) {
            // The address is in a pause already, because another try has failed or another connection has ended.
            // Connections that end together count as one failure.
            return;
        }
        if (isUp && now - upNanos >= KEPT_NANOS) {
            failures = 0;
        }
        isUp = false;
        failures++;
        hasKept &= failures <= MAX_KNOWN_FAILURES;
        pauseEndNanos = now + Backoff.nanos(failures, client.platform().random());
    }

    /**
     * Records that an established connection has ended, or takes no new calls any more. A connection that was
     * established for less than {@link #KEPT_NANOS} counts as a failure to connect, and a pause follows. If the
     * instance has been removed from its service, the end of so short a connection is not recorded.
     *
     * @param upNanos time in nanoseconds for which the connection was established
     * @param memoryWanted what this side had no memory for, if the connection ended for that reason; null otherwise. It
     *     affects only the error that later calls get.
     */
    private synchronized void ended(long upNanos, @Nullable String memoryWanted) {
        if (upNanos < KEPT_NANOS) {
            if (!retired) {
                pauseAfter(
                        memoryWanted == null
                                ? new IllegalStateException(
                                        "the server ended the last connection as soon as it was established")
                                : LocalFailure.noRoom(memoryWanted, RPCXException.Executed.NOT_EXECUTED));
            }
            return;
        }
        failures = 0;
        hasKept = true;
        isUp = false;
        pauseEndNanos = ticker().nanoTime();
        if (cluster != null) {
            // In a cluster, a pause follows even after a connection that the server has kept. If the server has
            // stopped, all its clients lose their connections at the same time, and must not all connect again at once.
            // Calls can go to other instances during the pause.
            pauseEndNanos += Backoff.nanos(1, client.platform().random());
        }
    }

    /**
     * Called when a connection has ended, or takes no new calls and only finishes the present ones. This method has to
     * run before the connection's calls end: a call that ends may connect again, and the loss of the connection must be
     * recorded by that time. Runs on the connection's event loop, at most once for each connection.
     */
    void lost(ClientConnection connection) {
        if (connection.hasBegun()) {
            // The connection has begun to take calls, since the server has sent the complete list of its methods. A
            // connection that ends before that has no calls, and its end is recorded as a failed try to connect.
            if (!connection.isDropped) {
                ended(connection.upNanos(), connection.memoryWanted());
            }
            if (!connection.isClosed() && connection.load() > 0) {
                addDraining(connection);
            }
        }
        for (int index = 0; cluster != null && index < kept; index++) {
            Connecting<ClientConnection> held = connections.get(index);
            if (held != null && held.isDone() && !held.isCompletedExceptionally() && held.join() == connection) {
                keepConnected(index);
            }
        }
    }

    /**
     * Adds a connection that only finishes its calls. If there are too many of these connections, ends the oldest one
     * together with its calls.
     */
    private void addDraining(ClientConnection connection) {
        ClientConnection oldest = draining.add(connection, connections.length() + MAX_DRAINING);
        if (oldest != null) {
            oldest.endDraining();
        }
    }

    /** Removes a connection that has ended from all lists of this address. */
    void forget(ClientConnection connection) {
        draining.remove(connection);
        for (int index = 0; index < connections.length(); index++) {
            Connecting<ClientConnection> held = connections.get(index);
            if (held != null && held.isDone() && !held.isCompletedExceptionally() && held.join() == connection) {
                connections.compareAndSet(index, held, null);
            }
        }
    }

    /**
     * Begins to make the normal connections that are missing, that is, the connections that stay open without calls.
     * Does nothing if the instance has been removed from its service, or if the client is closed.
     */
    void keepConnected() {
        for (int index = 0; index < kept; index++) {
            keepConnected(index);
        }
    }

    private void keepConnected(int index) {
        if (index < kept && !retired && !client.isClosed()) {
            connect(index, Long.MAX_VALUE);
        }
    }

    /**
     * Called when this instance no longer belongs to its service, normally because the registry no longer names it. The
     * instance's connections finish their calls, and then end. Tries to connect to the instance fail immediately.
     */
    void retire() {
        retired = true;
        for (int index = 0; index < connections.length(); index++) {
            Connecting<ClientConnection> held = connections.get(index);
            if (held != null && !held.completeExceptionally(noLongerThere()) && !held.isCompletedExceptionally()) {
                held.join().retire();
            }
        }
    }

    private IllegalStateException noLongerThere() {
        return new IllegalStateException("the registry no longer names " + this);
    }

    /**
     * Returns the number of calls in flight on the connection that {@link #ready()} returns. Returns
     * {@code Integer.MAX_VALUE} if there is no such connection, or if the connection is full. Like {@code ready}, this
     * method may begin to make a connection.
     */
    public int load() {
        ClientConnection connection = ready();
        return connection == null || connection.isFull() ? Integer.MAX_VALUE : connection.load();
    }

    /**
     * Returns the connection on the classic wire that new calls use, or the try to make it. If there is neither,
     * begins to connect. But if the address is in a pause after a failure to connect, and more than 100 ms of the pause
     * remain, returns a try that has already failed.
     */
    @Override
    public synchronized PendingConnection<ClassicClientConnection> connectClassic() {
        Connecting<ClassicClientConnection> found = classic;
        if (found != null
                && (!found.isDone()
                        || !found.isCompletedExceptionally() && found.join().isUsable())) {
            return found.ensureScheduled();
        }
        long pause = pauseNanos();
        if (pause > MAX_WAITED_OUT_NANOS) {
            return inPause(pause);
        }
        if (found != null && !found.isCompletedExceptionally() && !tryReplaceClassic(found.join())) {
            return found.ensureScheduled();
        }
        Connecting<ClassicClientConnection> connecting = new Connecting<>(0) {
            @Override
            void open() {
                openClassic(this);
            }
        };
        classic = connecting;
        return connecting.ensureScheduled();
    }

    /**
     * Decides whether to replace a connection on the classic wire that cannot be used normally. A connection that has
     * ended is always replaced. A connection that only finishes its calls is replaced if fewer than
     * {@link #MAX_DRAINING} replaced connections are still open. Otherwise the connection stays in use, because the
     * server may have refused only single calls, and may accept the next ones.
     *
     * @return whether to replace the connection
     */
    private boolean tryReplaceClassic(ClassicClientConnection connection) {
        drainingClassic.removeIf(ClassicClientConnection::isOver);
        if (connection.isOver()) {
            return true;
        }
        return drainingClassic.size() < MAX_DRAINING && drainingClassic.add(connection);
    }

    private void openClassic(PendingConnection<ClassicClientConnection> connecting) {
        client.open(
                this,
                (channel, account) -> {
                    channel.closeFuture().addListener(over -> endedClassic(connecting));
                    return new ClassicClientConnection(
                            channel, account, client.platform(), toString(), client.keepAliveNanos());
                },
                connecting,
                true);
    }

    /**
     * Records the end of a connection on the classic wire. Called on the event loop, before callers get the errors of
     * their calls on the connection. In the other order, the next call of one of these callers could connect without a
     * pause. Does nothing if the try failed, or if its connection has been replaced.
     *
     * @param connecting the try that made the connection
     */
    private synchronized void endedClassic(PendingConnection<ClassicClientConnection> connecting) {
        if (connecting == classic && connecting.isDone() && !connecting.isCompletedExceptionally()) {
            ended(ticker().nanoTime() - upNanos, connecting.join().memoryWanted());
        }
    }

    private static boolean isUsableOrComing(PendingConnection<ClientConnection> found) {
        return !found.isDone()
                || !found.isCompletedExceptionally() && found.join().isUsable();
    }

    @Override
    public String toString() {
        String known = name;
        if (known == null) {
            known = visible(keyOf(endpoint));
            name = known;
        }
        return known;
    }

    /**
     * Returns the key of an instance: its host and port. Endpoints with the same key are the same instance, even if
     * their weights differ.
     */
    public static String keyOf(Endpoint endpoint) {
        return endpoint.host() + ":" + endpoint.port();
    }

    /**
     * Returns the key of an instance as text for errors and logs, with invisible characters made visible. The host in
     * the key comes from the registry, and may contain any characters.
     */
    static String visible(String key) {
        return VisibleText.line(key, Endpoint.MAX_HOST_LENGTH + 6);
    }
}
