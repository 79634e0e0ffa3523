package dev.rpcx.internal.client;

import dev.rpcx.Endpoint;
import dev.rpcx.RPCXException;
import dev.rpcx.VisibleText;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * One instance of a service, that is, one host and port, and this client's connections to it. It connects when a call
 * first needs a connection, and again when a connection has ended. While its connections are crowded (see
 * {@link ClientConnection#isCrowded}), it makes extra ones, which are closed when they have had no call for a while.
 * Calls that find no connection wait together for one attempt to connect.
 *
 * <p>After consecutive failures, the address makes longer and longer pauses, of random length (see {@link Backoff}),
 * before it connects again. A failure is an attempt to connect that failed, or a connection that ended as soon as it
 * was established. If the rest of the pause is 100 ms or less, calls wait for its end. Otherwise they fail immediately.
 *
 * <p>In a {@link ClientCluster}, the address keeps its normal connections even if no call needs them. It tells the
 * cluster after each attempt whether it has a connection.
 */
public final class ClientAddress extends Route {
    /**
     * Time after which a connection counts as a success. If the server has kept a connection this long, its earlier
     * failures are forgotten.
     */
    static final long KEPT_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Number of consecutive failures up to which a server that once kept a connection still counts as known. Known
     * servers have their own limit for attempts to connect. The pauses after so many failures add up to 14 to 27 s,
     * longer than a restart takes.
     */
    private static final int MAX_KNOWN_FAILURES = 32;

    /**
     * Maximum number of draining connections, that is, ones that only finish their calls. On the native wire, the
     * maximum number of connections in use is added to it.
     */
    private static final int MAX_DRAINING = 4;

    private static final long WAITED_OUT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Time between two checks whether a connection has free slots, while calls wait for another connection. */
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final ClientCore client;
    public final Endpoint endpoint;

    /** Result of {@link #toString}, computed when it is first needed; null before that. */
    private @Nullable String name;

    private final @Nullable ClientCluster cluster;
    private @Nullable ConnectionAttempt<ClassicClientConnection> classic;

    /**
     * Connections on the classic wire that were replaced, and finish their calls. Ones that have ended are removed when
     * the next one is replaced. Guarded by {@code this}.
     */
    private final List<ClassicClientConnection> drainingClassic = new ArrayList<>(1);

    private final AtomicReferenceArray<@Nullable ConnectionAttempt<ClientConnection>> connections;

    /**
     * Number of normal connections, which stay open when they have no calls. They have the first indexes in
     * {@link #connections}. The other indexes are for extra connections, which are made while the existing ones are
     * crowded, and closed when they have had no call for a while.
     */
    private final int kept;

    /**
     * Number of this instance's latest failure to connect; below 1 if this instance has not failed. The
     * {@link ClientCluster} numbers the failures of all its instances together, from 1. Guarded by the lock of the
     * cluster.
     */
    long failureNumber;

    private final Health health;

    /** Whether a timer is set that checks whether connections have free slots for the calls that wait. */
    private final AtomicBoolean isLooking = new AtomicBoolean();

    private volatile boolean retired;
    private volatile int weight;

    // the following fields are guarded by this, except draining, which is thread-safe
    /**
     * Connections of this instance that only finish their calls. In a {@link ClientCluster}, the cluster keeps this
     * list, so it survives if the registry removes the instance and names it again.
     */
    private final DrainingConnections draining;

    /**
     * Number of consecutive failures to connect. A connection that ends, or takes no new calls any more, less than
     * {@code KEPT_NANOS} after it was established counts as a failure too.
     */
    private int failures;

    /**
     * Whether the server has kept a connection for {@code KEPT_NANOS}. It is set when that connection ends or takes no
     * new calls any more, and cleared after more than {@code MAX_KNOWN_FAILURES} consecutive failures.
     */
    private boolean hasKept;

    /**
     * Whether the latest attempt to connect has succeeded, at the time {@link #upNanos}. It becomes false when a
     * failure or the end of a connection is recorded.
     */
    private boolean isUp;

    private long upNanos;

    /** Time at which the pause ends. No attempt to connect begins before it. */
    private long pauseEndNanos;

    private @Nullable Throwable lastFailure;

    /** Whether a proxy of this client has the method with this name. See {@link ClientCore#calls}. */
    boolean calls(String publishedName) {
        return client.calls(publishedName);
    }

    public ClientAddress(ClientCore client, Endpoint endpoint, int kept, int maxConnections) {
        this(client, endpoint, kept, maxConnections, null, new DrainingConnections());
    }

    /**
     * Creates an instance that belongs to a cluster.
     *
     * @param kept number of normal connections, which stay open when they have no calls
     * @param maxConnections maximum number of connections, including the normal ones
     * @param draining list of the instance's connections that only finish their calls, which the cluster keeps
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
     * With {@code Choice.WEIGHTED_ROUND_ROBIN} and {@code CONSISTENT_HASH}, an instance with twice the weight of
     * another gets about twice as many calls. {@code LEAST_LOADED} ignores the weights.
     */
    public int weight() {
        return weight;
    }

    /**
     * Sets the weight that the registry reports for this instance. This changes nothing else.
     *
     * @return whether the weight is different from before
     */
    boolean weigh(int said) {
        boolean isOther = said != weight;
        weight = said;
        return isOther;
    }

    /**
     * Records how an attempt of a call at this instance has ended. If the instance has failed too often, its cluster
     * may eject it.
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
     * Records that this instance has refused a call that another instance takes, which counts as a failure of this one.
     * How the call ends at the other instance is recorded there.
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
     * Returns the connection with the fewest calls, for a thread whose own connection is not ready. Returns null if no
     * connection is ready. Also returns null if all are full and an attempt to make the thread's own one is in
     * progress; the call then waits for that.
     *
     * <p>Outside a cluster, this also begins to make the thread's own connection, for its later calls. In a cluster
     * this is not needed, since there the instances connect on their own.
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

    /** Whether a connection is ready that takes calls and is not crowded. See {@link ClientConnection#isCrowded}. */
    boolean hasRoom() {
        ClientConnection least = leastLoaded();
        return least != null && !least.isCrowded();
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
     * Begins to make one more connection for later calls, unless the address is in a pause. If even the best connection
     * is full, calls wait for the new one. Then the attempt is also made during a pause of up to 100 ms, and connects
     * at its end.
     *
     * @param index index of the new connection in {@link #connections}
     * @param best the best of the connections that are ready
     */
    private void connectUnlessPaused(int index, ClientConnection best) {
        long patience = best.isFull() ? WAITED_OUT_NANOS : 0;
        // An attempt of a closed client fails immediately, and its failure would call this method again.
        if (pauseNanos() <= patience && !client.isClosed()) {
            connect(index, patience);
        }
    }

    /**
     * Returns the connection with the fewest calls, for a thread whose own connection is crowded or full. If even the
     * returned one is crowded, begins to make one more. Returns null if all are full and one more is being made; the
     * call then waits for it. But during a pause of more than 100 ms, returns a full connection.
     *
     * @param own the thread's own connection
     */
    private @Nullable ClientConnection lessCrowded(ClientConnection own) {
        ClientConnection least = own;
        int free = -1;
        boolean isComing = false;
        for (int i = 0; i < connections.length(); i++) {
            ConnectionAttempt<ClientConnection> found = connections.get(i);
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
        return isComing && least.isFull() && pauseNanos() <= WAITED_OUT_NANOS ? null : least;
    }

    /**
     * Whether the first connection should get the next call rather than the second. A connection that is not full is
     * better than a full one; otherwise, the one with fewer calls is better. Calls that the event loop has not sent yet
     * are not counted as load.
     */
    private static boolean isBetter(ClientConnection one, ClientConnection than) {
        boolean isFull = one.isFull();
        return isFull == than.isFull() ? one.load() < than.load() : !isFull;
    }

    private static boolean isComing(@Nullable ConnectionAttempt<ClientConnection> found) {
        return found != null && !found.ensureScheduled().isDone();
    }

    /**
     * Returns the index of the connection that the calling thread normally uses. A thread always gets the same index.
     * So the thread's calls stay in order, and what they use stays in the processor's caches.
     */
    private int index() {
        return kept == 1 ? 0 : (int) (Thread.currentThread().getId() % kept);
    }

    @Override
    public PendingConnection<ClientConnection> connect(int key) {
        int index = index();
        ClientConnection own = ready(connections.get(index));
        PendingConnection<ClientConnection> other = own == null || !own.isFull() ? null : withRoom();
        return other == null ? connect(index, WAITED_OUT_NANOS) : other;
    }

    /**
     * Returns a connection that is not full. If there is none, returns an attempt to connect that is in progress.
     * Returns null if there is neither.
     */
    private @Nullable PendingConnection<ClientConnection> withRoom() {
        PendingConnection<ClientConnection> pending = null;
        for (int i = 0; i < connections.length(); i++) {
            ConnectionAttempt<ClientConnection> found = connections.get(i);
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
     * Sets a timer that looks for free slots on existing connections, for the calls that wait for a new one. It is set
     * again as long as calls wait. A connection does not announce a free slot, since that would cost time in every
     * call.
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
            ConnectionAttempt<ClientConnection> pending = connections.get(i);
            if (pending != null && !pending.isDone()) {
                serveWaiting(pending);
                isAnyLeft |= pending.isWaitedFor();
            }
        }
        if (isAnyLeft) {
            lookSoon();
        }
    }

    private void serveWaiting(ConnectionAttempt<ClientConnection> pending) {
        ClientConnection least = leastLoaded();
        if (least == null) {
            return;
        }
        // Free slots are counted down here, since a blocked caller takes its slot only when its thread runs.
        for (int room = least.room(); room > 0 && !least.isFull(); room--) {
            if (!pending.giveToFirst(least)) {
                return;
            }
        }
    }

    /**
     * Returns the connection with this index, or the attempt to make it, which it begins if there is none. If the
     * address is in a pause that is too long to wait for, it returns an attempt that has failed already.
     *
     * @param patienceNanos longest pause for whose end the attempt waits
     */
    private PendingConnection<ClientConnection> connect(int index, long patienceNanos) {
        while (true) {
            ConnectionAttempt<ClientConnection> found = connections.get(index);
            if (found != null && isUsableOrComing(found)) {
                return found.ensureScheduled();
            }
            long pause = pauseNanos();
            if (pause > patienceNanos) {
                return inPause(pause);
            }
            ConnectionAttempt<ClientConnection> attempt = new ConnectionAttempt<>(index) {
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
            if (connections.compareAndSet(index, found, attempt)) {
                return attempt.ensureScheduled();
            }
        }
    }

    /**
     * One attempt to make a connection, and the future of that connection. It is a task of an event loop. If a caller's
     * stack is exhausted before it has given the task to the loop, the next caller that finds the attempt does so.
     */
    private abstract class ConnectionAttempt<C> extends PendingConnection<C> implements Runnable {
        private final AtomicBoolean hasBegun = new AtomicBoolean();

        /**
         * Whether the event loop has got this task. Also true if the client is closed, so that the loop will not take
         * it. Call no method between giving the task to the loop and setting this field, since an exhausted stack would
         * then leave it false.
         */
        private volatile boolean isScheduled;

        ConnectionAttempt(int index) {
            whenComplete((connected, failure) -> attempted(index, failure));
        }

        ConnectionAttempt<C> ensureScheduled() {
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
                    // The timer that gives existing connections to waiting calls is not set. The call waits for the end
                    // of this attempt, unless another call sets the timer.
                    ThreadTools.report(e);
                }
            }
            return isAdded;
        }

        /**
         * Begins the attempt, or does nothing if it has begun already. The event loop may run this twice, since two
         * callers may have given it the task. Event loop only.
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

        /** Goes on with the attempt when the pause is over. In a cluster, it then waits for {@link ConnectThrottle}. */
        private void begin() {
            if (retired) {
                // retire() may have looked at the connections before this attempt was one of them
                completeExceptionally(noLongerThere());
                return;
            }
            ClientCluster of = cluster;
            if (of == null) {
                start();
            } else {
                of.connectThrottle(isKnown()).enter(this, this::start);
            }
        }

        /**
         * Connects, unless the attempt has ended already. In a cluster, {@link ConnectThrottle} decides when this runs.
         */
        private void start() {
            if (isDone()) {
                return;
            }
            try {
                // This timer ends the attempt whatever else happens, so that nobody waits forever.
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

    private void open(ConnectionAttempt<ClientConnection> attempt, boolean isExtra) {
        client.open(
                this,
                (channel, account) -> new ClientConnection(
                        channel, account, this, isExtra, client.callTimeoutNanos(), client.keepAliveNanos(), attempt),
                attempt,
                false);
    }

    private synchronized long pauseNanos() {
        return pauseEndNanos - ticker().nanoTime();
    }

    /**
     * Whether the server has ever kept a connection for {@code KEPT_NANOS}, and has not failed too often since.
     * Otherwise, it may exist only in a registry.
     */
    private synchronized boolean isKnown() {
        return hasKept || isUp && ticker().nanoTime() - upNanos >= KEPT_NANOS;
    }

    /**
     * Returns an attempt to connect that has already failed, because the address pauses after earlier failures.
     *
     * @param nanos remaining time of the pause
     */
    private synchronized <C> PendingConnection<C> inPause(long nanos) {
        PendingConnection<C> failed = new PendingConnection<>();
        String why = failures + " attempts to connect failed, the next is in " + TimeUnit.NANOSECONDS.toMillis(nanos)
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

    private void attempted(int index, @Nullable Throwable failure) {
        synchronized (this) {
            if (failure == null) {
                // the number of failures stays until the server has kept the connection for KEPT_NANOS
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
            // The attempt has failed, but the instance has another connection, which the waiting calls get.
            notified.connected(this);
        }
        keepConnected(index);
    }

    private synchronized void pauseAfter(Throwable failure) {
        long now = ticker().nanoTime();
        lastFailure = failure;
        if (now - pauseEndNanos < 0) {
            // The address is in a pause already, since another attempt or connection has failed after this one had
            // begun. Connections that end together count as one failure.
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
     * Records that an established connection has ended, or takes no more calls. If it was established for less than
     * {@code KEPT_NANOS}, this counts as a failure, and a pause follows.
     *
     * @param upNanos how long the connection was established
     * @param memoryWanted what this side had no memory for, if the connection ended for that reason; null otherwise.
     *     This only changes the error that later calls see.
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
            // In a cluster, a pause follows even if the server has kept the connection: no call waits only for this
            // instance, and when a server stops, all its clients lose their connections at the same time.
            pauseEndNanos += Backoff.nanos(1, client.platform().random());
        }
    }

    /**
     * Called when a connection takes no more calls, since it has ended or only finishes its calls. Runs on the
     * connection's event loop, at most once for each connection. It has to run before the connection's calls end. A
     * call that ends may connect again, and by then the loss of this connection must be recorded.
     */
    void lost(ClientConnection connection) {
        if (connection.hasBegun()) {
            // Before the dictionary is complete, the connection has no calls, and its failed attempt is recorded
            // instead.
            if (!connection.isDropped) {
                ended(connection.upNanos(), connection.memoryWanted());
            }
            if (!connection.isClosed() && connection.load() > 0) {
                addDraining(connection);
            }
        }
        for (int index = 0; cluster != null && index < kept; index++) {
            ConnectionAttempt<ClientConnection> held = connections.get(index);
            if (held != null && held.isDone() && !held.isCompletedExceptionally() && held.join() == connection) {
                keepConnected(index);
            }
        }
    }

    /**
     * Adds a connection that only finishes its calls. If there are too many of these now, ends the oldest of them,
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
            ConnectionAttempt<ClientConnection> held = connections.get(index);
            if (held != null && held.isDone() && !held.isCompletedExceptionally() && held.join() == connection) {
                connections.compareAndSet(index, held, null);
            }
        }
    }

    /**
     * Begins to make each normal connection that is missing. Normal connections stay open when they have no calls. Does
     * nothing if the instance has been removed from its service, or if the client is closed.
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
     * Called when this instance no longer belongs to its service, normally because the registry no longer names it. Its
     * connections finish their calls, and then end. An attempt to connect fails immediately.
     */
    void retire() {
        retired = true;
        for (int index = 0; index < connections.length(); index++) {
            ConnectionAttempt<ClientConnection> held = connections.get(index);
            if (held != null && !held.completeExceptionally(noLongerThere()) && !held.isCompletedExceptionally()) {
                held.join().retire();
            }
        }
    }

    private IllegalStateException noLongerThere() {
        return new IllegalStateException("the registry no longer names " + this);
    }

    /**
     * Returns the number of calls in flight on the connection that {@code ready()} returns. Returns
     * {@code Integer.MAX_VALUE} if there is none, or if it is full.
     */
    public int load() {
        ClientConnection connection = ready();
        return connection == null || connection.isFull() ? Integer.MAX_VALUE : connection.load();
    }

    /**
     * Returns the connection on the classic wire, or the attempt to make it. There is only one. After failures, the
     * address pauses as on the native wire.
     */
    @Override
    public synchronized PendingConnection<ClassicClientConnection> connectClassic() {
        ConnectionAttempt<ClassicClientConnection> found = classic;
        if (found != null
                && (!found.isDone()
                        || !found.isCompletedExceptionally() && found.join().isUsable())) {
            return found.ensureScheduled();
        }
        long pause = pauseNanos();
        if (pause > WAITED_OUT_NANOS) {
            return inPause(pause);
        }
        if (found != null && !found.isCompletedExceptionally() && !tryReplaceClassic(found.join())) {
            return found.ensureScheduled();
        }
        ConnectionAttempt<ClassicClientConnection> attempt = new ConnectionAttempt<>(0) {
            @Override
            void open() {
                openClassic(this);
            }
        };
        classic = attempt;
        return attempt.ensureScheduled();
    }

    /**
     * Decides whether a connection on the classic wire that cannot be used normally is replaced by a new one. One that
     * has ended always is. One that only finishes its calls is, unless {@code MAX_DRAINING} replaced ones have not
     * ended. In that case it stays in use, since the server may have refused only single calls.
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

    private void openClassic(PendingConnection<ClassicClientConnection> attempt) {
        client.open(
                this,
                (channel, account) -> {
                    channel.closeFuture().addListener(over -> endedClassic(attempt));
                    return new ClassicClientConnection(
                            channel, account, client.platform(), toString(), client.keepAliveNanos());
                },
                attempt,
                true);
    }

    /**
     * Records the end of the connection on the classic wire, before its callers get their errors. Does nothing if the
     * attempt failed, or if the connection has been replaced.
     *
     * @param attempt the attempt that made the connection
     */
    private synchronized void endedClassic(PendingConnection<ClassicClientConnection> attempt) {
        if (attempt == classic && attempt.isDone() && !attempt.isCompletedExceptionally()) {
            ended(ticker().nanoTime() - upNanos, attempt.join().memoryWanted());
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
     * Returns the key of an instance as text for errors and logs, with invisible characters made visible. The registry
     * decides what the host contains, so it may be anything.
     */
    static String visible(String key) {
        return VisibleText.line(key, Endpoint.MAX_HOST_LENGTH + 6);
    }
}
