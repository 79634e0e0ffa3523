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
 * Address of one instance and the connections to it. A connection is made when it is first needed, and made again when
 * it is gone. More connections are made while the existing ones are crowded, and are closed again when they have had no
 * call for a while. Callers that find no connection wait for one connection attempt together. After consecutive
 * connection attempts that failed, or connections that ended as soon as they were established, the address makes longer
 * and longer pauses, with jitter, before it connects again. A call in a short pause waits for the end of the pause; a
 * call in a long pause fails at once.
 *
 * <p>As a member of a {@link ClientCluster} the address keeps its connections by itself, and tells the cluster at the
 * end of each connection attempt whether it has a connection.
 */
public final class ClientAddress extends Route {
    /** Time for which a server has to keep a connection before its earlier failures are forgotten. */
    static final long KEPT_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum number of consecutive failures of an instance that still counts as known. The pauses after them take 14
     * to 27 s together; an instance that restarts is back sooner.
     */
    private static final int MAX_KNOWN_FAILURES = 32;

    /**
     * On the native wire as many connections may drain as may be in use, and this many more; on the classic wire this
     * many in all.
     */
    private static final int MORE_LEFT = 4;

    private static final long WAITED_OUT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Interval at which existing connections are checked for room while calls wait for one more connection. */
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final ClientCore client;
    public final Endpoint endpoint;

    /** Result of {@link #toString}; null until the first call. */
    private @Nullable String name;

    private final @Nullable ClientCluster cluster;
    private @Nullable Attempt<ClassicClientConnection> classic;

    /** Connections on the classic wire that were replaced while they had calls in flight. Guarded by {@code this}. */
    private final List<ClassicClientConnection> leftClassic = new ArrayList<>(1);

    private final AtomicReferenceArray<@Nullable Attempt<ClientConnection>> connections;

    /**
     * Number of connections that are kept also when they are idle. The other entries of {@link #connections} are filled
     * when these are crowded, and cleared when idle.
     */
    private final int kept;

    /**
     * Number of this instance's latest failure to connect, in the cluster's count of failures from 1; below 1 before
     * the instance's first failure. Guarded by the cluster.
     */
    long failureNumber;

    private final Health health;

    /** Whether a timer is set that serves waiting calls from existing connections. */
    private final AtomicBoolean isLooking = new AtomicBoolean();

    private volatile boolean retired;
    private volatile int weight;

    // guarded by this, except draining, which is thread-safe
    /** Draining connections of this instance, however often a registry has removed it and named it anew. */
    private final DrainingConnections draining;

    /**
     * Consecutive failures to connect. A connection that ends, or begins to drain, within {@code KEPT_NANOS} counts as
     * one.
     */
    private int failures;

    /**
     * Whether a connection has ended that the server had kept for {@code KEPT_NANOS}, and the server has not failed
     * more than {@code MAX_KNOWN_FAILURES} times in a row since.
     */
    private boolean hasKept;

    /**
     * Whether the latest connection attempt brought a connection, at {@link #upNanos}. False once a failure or the end
     * of a connection has been recorded.
     */
    private boolean isUp;

    private long upNanos;

    /** End of the pause: no connection attempt begins before this time. */
    private long pauseEndNanos;

    private @Nullable Throwable lastFailure;

    /** See {@link ClientCore#calls}. */
    boolean calls(String publishedName) {
        return client.calls(publishedName);
    }

    public ClientAddress(ClientCore client, Endpoint endpoint, int kept, int most) {
        this(client, endpoint, kept, most, null, new DrainingConnections());
    }

    /** Creates a member of a cluster. {@code draining} is the cluster's list of the instance's draining connections. */
    public ClientAddress(
            ClientCore client,
            Endpoint endpoint,
            int kept,
            int most,
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
        this.connections = new AtomicReferenceArray<>(most);
        this.pauseEndNanos = ticker().nanoTime();
    }

    public Health health() {
        return health;
    }

    /**
     * Share of the calls relative to the other instances, as the registry reported it last: 1 to
     * {@link Endpoint#MAX_WEIGHT}.
     */
    public int weight() {
        return weight;
    }

    /**
     * Sets the weight that the registry reports. Connections and health belong to the instance, and stay.
     *
     * @return whether the weight has changed
     */
    boolean weigh(int said) {
        boolean isOther = said != weight;
        weight = said;
        return isOther;
    }

    /**
     * Records that an attempt of a call at this instance has ended.
     *
     * @param begunNanos when the attempt was sent
     */
    public void ended(Health.Outcome outcome, long begunNanos) {
        boolean isTooMuch = health.ended(outcome, begunNanos);
        if (isTooMuch && cluster != null) {
            cluster.eject(this);
        }
    }

    /**
     * Records a failure of this instance, since another one takes a call that this one does not take. The end of the
     * call itself is counted at the other one.
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
     * The least loaded connection, for a thread whose own connection is missing; null if there is none. Outside a
     * cluster the thread's own connection begins to connect here, if there is another one; a member of a cluster
     * connects by itself, and is asked here when instances are compared. Returns null too if all connections are full
     * while the thread's own connection is being attempted: the call then waits for that one.
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

    /** Whether the least loaded connection is not crowded, so that no call needs one more connection now. */
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
     * Begins to connect, for the calls to come. If the best existing connection is full, calls wait for the new one,
     * and a short pause is waited out; otherwise nothing begins in a pause.
     */
    private void connectUnlessPaused(int index, ClientConnection best) {
        long patience = best.isFull() ? WAITED_OUT_NANOS : 0;
        // a connection attempt of a closed client fails at once, and whoever is told of the failure comes here again
        if (pauseNanos() <= patience && !client.isClosed()) {
            connect(index, patience);
        }
    }

    /**
     * The least loaded connection. If that is crowded too, one more connection begins to connect, for the calls to
     * come. Returns null if all connections are full while one more is being attempted: the call then waits for that
     * one, unless a long pause is on.
     */
    private @Nullable ClientConnection lessCrowded(ClientConnection own) {
        ClientConnection least = own;
        int free = -1;
        boolean isComing = false;
        for (int i = 0; i < connections.length(); i++) {
            Attempt<ClientConnection> found = connections.get(i);
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
     * Prefers a connection that is not full to a full one, and of two alike the one with the smaller load, which leaves
     * out calls that its event loop has not sent yet.
     */
    private static boolean isBetter(ClientConnection one, ClientConnection than) {
        boolean isFull = one.isFull();
        return isFull == than.isFull() ? one.load() < than.load() : !isFull;
    }

    private static boolean isComing(@Nullable Attempt<ClientConnection> found) {
        return found != null && !found.ensureScheduled().isDone();
    }

    /**
     * Index of the calling thread's own connection. A thread keeps to one: its calls stay in order and its path warm.
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

    /** A connection that is not full, or else one that is being attempted; null if there is neither. */
    private @Nullable PendingConnection<ClientConnection> withRoom() {
        PendingConnection<ClientConnection> pending = null;
        for (int i = 0; i < connections.length(); i++) {
            Attempt<ClientConnection> found = connections.get(i);
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
     * Sets a timer that checks existing connections for room, since a call waits for a connection that is being
     * attempted. A connection does not announce that it has room again, since that would cost every call something; so
     * the timer checks as long as such calls wait.
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

    /** Gives existing connections, as far as they have room, to calls that wait for a connection being attempted. */
    private void look() {
        boolean isAnyLeft = false;
        for (int i = 0; i < connections.length(); i++) {
            Attempt<ClientConnection> pending = connections.get(i);
            if (pending != null && !pending.isDone()) {
                serveWaiting(pending);
                isAnyLeft |= pending.isWaitedFor();
            }
        }
        if (isAnyLeft) {
            lookSoon();
        }
    }

    private void serveWaiting(Attempt<ClientConnection> pending) {
        ClientConnection least = leastLoaded();
        if (least == null) {
            return;
        }
        // room is counted down here, since a blocked caller takes its slot only when its thread runs
        for (int room = least.room(); room > 0 && !least.isFull(); room--) {
            if (!pending.tellFirst(least)) {
                return;
            }
        }
    }

    /** @param patienceNanos longest pause that is waited out */
    private PendingConnection<ClientConnection> connect(int index, long patienceNanos) {
        while (true) {
            Attempt<ClientConnection> found = connections.get(index);
            if (found != null && isUsableOrComing(found)) {
                return found.ensureScheduled();
            }
            long pause = pauseNanos();
            if (pause > patienceNanos) {
                return inPause(pause);
            }
            Attempt<ClientConnection> attempt = new Attempt<>(index) {
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
     * Connection attempt, which stands for its connection until that is established. It begins on an event loop, at the
     * base of the stack. If the stack of a caller is exhausted before the caller has asked the loop, the attempt stays,
     * and the next caller that finds it asks the loop. So every attempt that a call waits for begins, and every attempt
     * that has begun ends.
     */
    private abstract class Attempt<C> extends PendingConnection<C> implements Runnable {
        private final AtomicBoolean hasBegun = new AtomicBoolean();

        /**
         * Whether the event loop has taken the task, or the client was closed. No method is called between the loop's
         * taking it and the store, so that an exhausted stack cannot part the two.
         */
        private volatile boolean isScheduled;

        Attempt(int index) {
            whenComplete((connected, failure) -> attempted(index, failure));
        }

        Attempt<C> ensureScheduled() {
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
                    // the call waits for this attempt alone, unless another call sets the timer
                    ThreadTools.report(e);
                }
            }
            return isAdded;
        }

        /** Event loop only. The loop may have been asked twice for the same attempt. */
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

        /** Runs once the pause is over. */
        private void begin() {
            if (retired) {
                // retire() may have looked at the connections before this attempt was among them
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
         * Starts the attempt, unless it has ended before. In a cluster {@code ConnectThrottle} decides when this runs.
         */
        private void start() {
            if (isDone()) {
                return;
            }
            try {
                // the timer ends the attempt whatever happens on the way, so that nobody waits for ever
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

    private void open(Attempt<ClientConnection> attempt, boolean isExtra) {
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

    /** Whether the server has kept a connection for {@code KEPT_NANOS}, and is not only named by a registry. */
    private synchronized boolean isKnown() {
        return hasKept || isUp && ticker().nanoTime() - upNanos >= KEPT_NANOS;
    }

    /** Returns a connection attempt that has failed already, since the address is in a pause. */
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
                // the number of failures stays, until the server has kept the connection for a while
                lastFailure = null;
                isUp = true;
                upNanos = ticker().nanoTime();
                pauseEndNanos = upNanos;
            } else {
                pauseAfter(failure);
            }
        }
        ClientCluster told = cluster;
        if (told == null) {
            if (failure == null) {
                look();
            }
            return;
        }
        if (failure == null) {
            told.connected(this);
            return;
        }
        if (leastLoaded() == null) {
            told.failed(this, failure);
        } else {
            // calls that have waited for one more connection take an existing one
            told.connected(this);
        }
        keepConnected(index);
    }

    private synchronized void pauseAfter(Throwable failure) {
        long now = ticker().nanoTime();
        lastFailure = failure;
        if (now - pauseEndNanos < 0) {
            // this attempt or connection began before the pause, beside the one that failed first: connections that end
            // together count as one failure
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
     * Records that an established connection has ended or begun to drain. If a server ends each connection as soon as
     * it is established, the pauses before the next one grow, however the server ends them.
     *
     * @param upNanos how long the connection was established
     * @param memoryWanted what this side had no memory for, if that has ended the connection, which brings a pause too;
     *     null otherwise
     */
    private synchronized void ended(long upNanos, @Nullable String memoryWanted) {
        if (upNanos < KEPT_NANOS) {
            if (!retired) {
                pauseAfter(
                        memoryWanted == null
                                ? new IllegalStateException(
                                        "the server ended the last connection as soon as it was there")
                                : LocalFailure.noRoom(memoryWanted, RPCXException.Executed.NOT_EXECUTED));
            }
            return;
        }
        failures = 0;
        hasKept = true;
        isUp = false;
        pauseEndNanos = ticker().nanoTime();
        if (cluster != null) {
            // a pause all the same: no call waits for this instance alone, and all clients of a server that stops lose
            // their connections together
            pauseEndNanos += Backoff.nanos(1, client.platform().random());
        }
    }

    /**
     * Called when a connection takes no more calls, since it is over or draining: at most once for each connection, on
     * its event loop, before its calls are told, since these may connect again.
     */
    void lost(ClientConnection connection) {
        if (connection.hasBegun()) {
            // a connection that has not begun has no calls, and its attempt has failed or is about to
            if (!connection.isDropped) {
                ended(connection.upNanos(), connection.memoryWanted());
            }
            if (!connection.isClosed() && connection.load() > 0) {
                addDraining(connection);
            }
        }
        for (int index = 0; cluster != null && index < kept; index++) {
            Attempt<ClientConnection> held = connections.get(index);
            if (held != null && held.isDone() && !held.isCompletedExceptionally() && held.join() == connection) {
                keepConnected(index);
            }
        }
    }

    /** Adds a draining connection with calls in flight. Only a limited number of these stay: the oldest one ends. */
    private void addDraining(ClientConnection connection) {
        ClientConnection oldest = draining.add(connection, connections.length() + MORE_LEFT);
        if (oldest != null) {
            oldest.endLeft();
        }
    }

    /** Drops every reference to a connection that is over. */
    void forget(ClientConnection connection) {
        draining.remove(connection);
        for (int index = 0; index < connections.length(); index++) {
            Attempt<ClientConnection> held = connections.get(index);
            if (held != null && held.isDone() && !held.isCompletedExceptionally() && held.join() == connection) {
                connections.compareAndSet(index, held, null);
            }
        }
    }

    /**
     * Keeps each of the {@code kept} connections, or a connection attempt in its place, until the address is retired.
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
     * Called when the instance no longer belongs to its service. Its calls are finished, then its connections end. A
     * connection attempt in progress ends at once.
     */
    void retire() {
        retired = true;
        for (int index = 0; index < connections.length(); index++) {
            Attempt<ClientConnection> held = connections.get(index);
            if (held != null && !held.completeExceptionally(noLongerThere()) && !held.isCompletedExceptionally()) {
                held.join().retire();
            }
        }
    }

    private IllegalStateException noLongerThere() {
        return new IllegalStateException("the registry no longer names " + this);
    }

    /** Load of the connection that {@code ready()} returns; {@code Integer.MAX_VALUE} for none and for a full one. */
    public int load() {
        ClientConnection connection = ready();
        return connection == null || connection.isFull() ? Integer.MAX_VALUE : connection.load();
    }

    /**
     * The one connection on the classic wire. Failed connection attempts bring the same pauses as on the native wire.
     */
    @Override
    public synchronized PendingConnection<ClassicClientConnection> connectClassic() {
        Attempt<ClassicClientConnection> found = classic;
        if (found != null
                && (!found.isDone()
                        || !found.isCompletedExceptionally() && found.join().isUsable())) {
            return found.ensureScheduled();
        }
        long pause = pauseNanos();
        if (pause > WAITED_OUT_NANOS) {
            return inPause(pause);
        }
        if (found != null && !found.isCompletedExceptionally() && !isLeftClassic(found.join())) {
            return found.ensureScheduled();
        }
        Attempt<ClassicClientConnection> attempt = new Attempt<>(0) {
            @Override
            void open() {
                openClassic(this);
            }
        };
        classic = attempt;
        return attempt.ensureScheduled();
    }

    /**
     * Whether the connection is replaced.
     *
     * @return false if the connection stays in use: enough connections have been replaced already, and the server's
     *     refusal that made it unusable may concern single calls only
     */
    private boolean isLeftClassic(ClassicClientConnection connection) {
        leftClassic.removeIf(ClassicClientConnection::isOver);
        if (connection.isOver()) {
            return true;
        }
        return leftClassic.size() < MORE_LEFT && leftClassic.add(connection);
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
     * Records the end of the connection of an attempt, before its calls are told. The connection was established unless
     * the attempt has failed. A connection that was replaced, and finished its calls beside the next one, says nothing
     * of the next one.
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

    /** Key that identifies an instance: the same host and port with another weight is the same instance. */
    public static String keyOf(Endpoint endpoint) {
        return endpoint.host() + ":" + endpoint.port();
    }

    /** An endpoint's key as visible text for errors and logs, since its host is whatever a registry says. */
    static String visible(String key) {
        return VisibleText.line(key, Endpoint.MAX_HOST_LENGTH + 6);
    }
}
