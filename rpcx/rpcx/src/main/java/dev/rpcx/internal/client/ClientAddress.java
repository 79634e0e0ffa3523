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
 * Address of one instance, and the connections to it. A connection is made when it is first needed, and again when it
 * has ended. While the connections are crowded, extra ones are made, which are closed when they have had no call for a
 * while. Callers that find no connection wait together for one connection attempt.
 *
 * <p>After consecutive failures, the address makes longer and longer pauses, with jitter, before it connects again. A
 * failure is a connection attempt that failed, or a connection that ended as soon as it was established. In a pause of
 * up to 100 ms, calls wait for the end of the pause. In a longer pause, calls fail immediately.
 *
 * <p>As a member of a {@link ClientCluster}, the address keeps {@code kept} connections even if no call needs them.
 * After each connection attempt, the address notifies the cluster whether it has a connection.
 */
public final class ClientAddress extends Route {
    /** Time for which a server has to keep a connection before the server's earlier failures are forgotten. */
    static final long KEPT_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum number of consecutive failures after which an instance that has kept a connection for {@code KEPT_NANOS}
     * still counts as known. The pauses after that many failures take 14 to 27 s together, which is longer than a
     * restart takes.
     */
    private static final int MAX_KNOWN_FAILURES = 32;

    /**
     * Maximum number of draining connections; on the native wire, plus the number of connections that may be in use.
     */
    private static final int MAX_DRAINING = 4;

    private static final long WAITED_OUT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Interval at which connections are checked for free slots while calls wait for one more connection. */
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final ClientCore client;
    public final Endpoint endpoint;

    /** Result of {@link #toString}; null until the first call. */
    private @Nullable String name;

    private final @Nullable ClientCluster cluster;
    private @Nullable ConnectionAttempt<ClassicClientConnection> classic;

    /** Connections on the classic wire that were replaced while they had calls in flight. Guarded by {@code this}. */
    private final List<ClassicClientConnection> drainingClassic = new ArrayList<>(1);

    private final AtomicReferenceArray<@Nullable ConnectionAttempt<ClientConnection>> connections;

    /**
     * Number of connections that are kept even when they are idle. The other entries of {@link #connections} are for
     * extra connections, which are made when the existing ones are crowded, and closed when they are idle.
     */
    private final int kept;

    /**
     * Number of this instance's latest failure to connect; below 1 before the first failure. The cluster numbers the
     * failures of all its instances from 1. Guarded by the cluster.
     */
    long failureNumber;

    private final Health health;

    /** Whether a timer is set that gives existing connections to waiting calls. */
    private final AtomicBoolean isLooking = new AtomicBoolean();

    private volatile boolean retired;
    private volatile int weight;

    // the following fields are guarded by this, except draining, which is thread-safe
    /**
     * Draining connections of this instance. They stay in this list if a registry removes the instance and names it
     * again.
     */
    private final DrainingConnections draining;

    /**
     * Number of consecutive failures to connect. A connection that ends, or begins to drain, less than
     * {@code KEPT_NANOS} after it was established counts as a failure.
     */
    private int failures;

    /**
     * Whether the server has kept a connection for {@code KEPT_NANOS} before that connection ended, and has not failed
     * more than {@code MAX_KNOWN_FAILURES} times in a row since.
     */
    private boolean hasKept;

    /**
     * Whether the latest connection attempt has succeeded, at the time {@link #upNanos}, and no failure or end of a
     * connection has been recorded since.
     */
    private boolean isUp;

    private long upNanos;

    /** End of the pause: no connection attempt begins before this time. */
    private long pauseEndNanos;

    private @Nullable Throwable lastFailure;

    /** Whether a proxy of the client has this method: see {@link ClientCore#calls}. */
    boolean calls(String publishedName) {
        return client.calls(publishedName);
    }

    public ClientAddress(ClientCore client, Endpoint endpoint, int kept, int maxConnections) {
        this(client, endpoint, kept, maxConnections, null, new DrainingConnections());
    }

    /**
     * Creates a member of a cluster.
     *
     * @param draining the cluster's list of the instance's draining connections
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
     * Returns the weight of this instance, as the registry last reported it: 1 to {@link Endpoint#MAX_WEIGHT}. The
     * instance's share of the calls depends on its weight relative to those of the other instances.
     */
    public int weight() {
        return weight;
    }

    /**
     * Sets the weight that the registry reports. Connections and health stay as they are.
     *
     * @return whether the weight has changed
     */
    boolean weigh(int said) {
        boolean isOther = said != weight;
        weight = said;
        return isOther;
    }

    /**
     * Records that an attempt of a call at this instance has ended. In a cluster, this may eject the instance.
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
     * Records a failure of this instance, because another instance takes a call that this instance does not take. How
     * the call itself ends is recorded at the other instance.
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
     * Returns the least loaded connection, for a thread whose own connection is not ready. Returns null if no
     * connection is ready, or if all are full while the thread's own one is being attempted; the call then waits.
     *
     * <p>Outside a cluster, if another connection is ready, this method also begins to connect the thread's own one.
     * Inside a cluster it does not, since members connect even without calls.
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

    /** Whether there is a connection that is not crowded. */
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
     * Begins to connect, for later calls. Does nothing during a pause. But if the best existing connection is full,
     * calls wait for the new one, so the attempt is made in a short pause too, and connects when the pause is over.
     *
     * @param best the best existing connection
     */
    private void connectUnlessPaused(int index, ClientConnection best) {
        long patience = best.isFull() ? WAITED_OUT_NANOS : 0;
        // An attempt of a closed client fails immediately, and its failure would call this method again.
        if (pauseNanos() <= patience && !client.isClosed()) {
            connect(index, patience);
        }
    }

    /**
     * Returns the least loaded connection, for a thread whose own connection is crowded or full. If even the least
     * loaded one is crowded, begins to connect one more. Returns null if all are full while one more is being
     * attempted; the call then waits. During a long pause, returns a full connection instead of null.
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
     * Whether {@code one} is the better connection. A connection that is not full is better than a full one. If both
     * are full, or neither is, the one with the smaller load is better. The load does not count calls that the event
     * loop has not sent yet.
     */
    private static boolean isBetter(ClientConnection one, ClientConnection than) {
        boolean isFull = one.isFull();
        return isFull == than.isFull() ? one.load() < than.load() : !isFull;
    }

    private static boolean isComing(@Nullable ConnectionAttempt<ClientConnection> found) {
        return found != null && !found.ensureScheduled().isDone();
    }

    /**
     * Returns the index of the calling thread's own connection. The index of a thread never changes, so that its calls
     * stay in order, and what they use stays in the processor's caches.
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

    /** Returns a connection that is not full, or else one that is being attempted; null if there is neither. */
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
     * Sets a timer that gives free slots to calls that wait for a connection attempt. The timer is set again as long as
     * calls wait. Connections do not announce free slots, since that would slow down every call.
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

    /** Gives free slots of existing connections to calls that wait for a connection attempt. */
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
     * Returns the connection with this index, or its attempt. If there is neither, begins an attempt. But if the pause
     * is longer than {@code patienceNanos}, begins none, and returns an attempt that has failed already.
     *
     * @param patienceNanos longest pause that is waited out
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
     * Attempt to make a connection, and the future of that connection. The attempt runs on an event loop. If a caller's
     * stack is exhausted before the attempt is scheduled, the next caller that finds the attempt schedules it.
     */
    private abstract class ConnectionAttempt<C> extends PendingConnection<C> implements Runnable {
        private final AtomicBoolean hasBegun = new AtomicBoolean();

        /**
         * Whether the event loop has accepted the task, or the client was closed. No method may be called between the
         * loop's acceptance and the store of this field: an exhausted stack would prevent the store.
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

        /** Runs the attempt, but only once: the loop may have been asked twice to run it. Event loop only. */
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

        /** Begins the attempt when the pause is over. */
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
         * Starts the attempt, unless it has ended already. In a cluster, {@code ConnectThrottle} decides when this
         * runs.
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
     * Whether the server has kept a connection for {@code KEPT_NANOS}. A server that has not may exist only in a
     * registry.
     */
    private synchronized boolean isKnown() {
        return hasKept || isUp && ticker().nanoTime() - upNanos >= KEPT_NANOS;
    }

    /**
     * Returns a connection attempt that has failed already, since the address is in a pause.
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
     * Records that an established connection has ended or begun to drain. If the connection was established for less
     * than {@code KEPT_NANOS}, that counts as a failure.
     *
     * @param upNanos how long the connection was established
     * @param memoryWanted what this side had no memory for, if that has ended the connection; null otherwise. It
     *     decides which failure is recorded, but not whether a pause follows.
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
     * Called when a connection takes no more calls, since it has ended or is draining. Called at most once for each
     * connection, on its event loop, and before the calls on the connection end: a call that ends may connect again,
     * and the loss of this connection has to be recorded by then.
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
     * Adds a draining connection with calls in flight. If there are too many draining connections now, the oldest one
     * ends, and its calls with it.
     */
    private void addDraining(ClientConnection connection) {
        ClientConnection oldest = draining.add(connection, connections.length() + MAX_DRAINING);
        if (oldest != null) {
            oldest.endDraining();
        }
    }

    /** Drops every reference to a connection that has ended. */
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
     * Makes sure that each of the {@code kept} connections is established or being attempted. Does nothing if the
     * address is retired or the client is closed.
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
     * Called when the instance no longer belongs to its service. Its connections finish their calls, and then end. A
     * connection attempt in progress ends immediately.
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
     * Returns the load of the connection that {@code ready()} returns; {@code Integer.MAX_VALUE} if there is no
     * connection or it is full.
     */
    public int load() {
        ClientConnection connection = ready();
        return connection == null || connection.isFull() ? Integer.MAX_VALUE : connection.load();
    }

    /**
     * Returns the only connection on the classic wire, or its attempt. Failed connection attempts are followed by the
     * same pauses as on the native wire.
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
     * Whether a connection that is not usable is replaced by another one.
     *
     * @return true for a connection that has ended, and for a draining one unless {@code MAX_DRAINING} replaced
     *     connections have not ended. Otherwise the draining one stays in use: the server may have refused only single
     *     calls.
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
     * Records the end of the connection that {@code attempt} has made, before the callers of its calls get their
     * errors. Does nothing if the attempt has not succeeded, or if another connection has replaced this one.
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
     * Returns the key that identifies an instance. Endpoints with the same host and port are the same instance, even if
     * their weights differ.
     */
    public static String keyOf(Endpoint endpoint) {
        return endpoint.host() + ":" + endpoint.port();
    }

    /** Returns an endpoint's key as visible text for errors and logs. The host is whatever a registry says. */
    static String visible(String key) {
        return VisibleText.line(key, Endpoint.MAX_HOST_LENGTH + 6);
    }
}
