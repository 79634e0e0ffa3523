package dev.rpcx;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * A server's address and the connections to it, made when first needed and made again when one is gone; more of them
 * while those that are there are crowded, which are closed again when they have had no call for a while. Callers that
 * find none wait for one attempt together. After attempts that failed in a row, or connections that ended as soon as
 * they were there, the server is left alone for longer and longer, with jitter: a call in a short pause waits for its
 * end, in a long one it fails at once.
 *
 * <p>As a member of a {@link ClientCluster} it keeps its connections by itself, and tells the cluster of each.
 */
final class ClientAddress extends Route {
    /** A server that has kept a connection for so long means to be called: what it did before counts no longer. */
    static final long KEPT_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** An instance that is started anew is back before: with the pauses between them these take half a minute. */
    private static final int MAX_KNOWN_FAILURES = 32;

    /** Connections that may be in the course of being left, beyond as many as may be in use. */
    private static final int MORE_LEFT = 4;

    private static final long WAITED_OUT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** How often a look is taken, while calls wait for one more connection, whether one that is there has room. */
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final ClientCore client;
    final Endpoint endpoint;

    /** What {@link #toString} gives, made when it is asked for first. */
    private @Nullable String name;

    private final @Nullable ClientCluster cluster;
    private @Nullable Attempt<ClassicClientConnection> classic;

    /** Connections on the classic wire that were left with calls under way. Guarded by this. */
    private final List<ClassicClientConnection> leftClassic = new ArrayList<>(1);

    private final AtomicReferenceArray<@Nullable Attempt<ClientConnection>> connections;

    /**
     * As many connections are kept; the others of {@link #connections} come when these are crowded, and go when idle.
     */
    private final int kept;

    /**
     * Number of its cluster's failure that was this instance's latest, counted from 1; below 1 before the first.
     * Guarded by the cluster.
     */
    long failedAs;

    private final Health health;

    /** A timer is there that looks for calls which wait. */
    private final AtomicBoolean isLooking = new AtomicBoolean();

    private volatile boolean retired;
    private volatile int weight;

    // guarded by this
    /** Of this instance, however often a registry has named it anew. */
    private final LeftConnections left;

    /** In a row; a connection that the server left or ended at once is one. */
    private int failures;

    /** The server has kept a connection for a while, and has not failed for a long time since. */
    private boolean hasKept;

    /** The last attempt has brought a connection, at {@link #upNanos}. */
    private boolean isUp;

    private long upNanos;

    /** Nobody connects before. */
    private long pauseEndNanos;

    private @Nullable Throwable lastFailure;

    /** As {@link ClientCore#calls}. */
    boolean calls(String publishedName) {
        return client.calls(publishedName);
    }

    ClientAddress(ClientCore client, Endpoint endpoint, int kept, int most) {
        this(client, endpoint, kept, most, null, new LeftConnections());
    }

    /** Makes a member of a cluster, which knows what is left of its instance. */
    ClientAddress(
            ClientCore client,
            Endpoint endpoint,
            int kept,
            int most,
            @Nullable ClientCluster cluster,
            LeftConnections left) {
        super(client);
        this.left = left;
        this.client = client;
        this.health = new Health(ticker());
        this.endpoint = endpoint;
        this.weight = endpoint.weight();
        this.cluster = cluster;
        this.kept = kept;
        this.connections = new AtomicReferenceArray<>(most);
        this.pauseEndNanos = ticker().nanoTime();
    }

    Health health() {
        return health;
    }

    /**
     * Share of the calls beside the other instances' that the registry has said last: 1 to {@link Endpoint#MAX_WEIGHT}.
     */
    int weight() {
        return weight;
    }

    /**
     * The registry says another weight: connections and health are the instance's, and stay. @return whether it is
     * another
     */
    boolean weigh(int said) {
        boolean isOther = said != weight;
        weight = said;
        return isOther;
    }

    /**
     * An attempt at a call has ended here.
     *
     * @param begunNanos when it was sent
     */
    void ended(Health.Outcome outcome, long begunNanos) {
        boolean isTooMuch = health.ended(outcome, begunNanos);
        if (isTooMuch && cluster != null) {
            cluster.eject(this);
        }
    }

    /** Another instance takes a call that this one does not. The call goes on, and is counted when it ends. */
    void refused() {
        if (health.ended(Health.Outcome.FAILED) && cluster != null) {
            cluster.eject(this);
        }
    }

    @Override
    boolean hasOthers(@Nullable ClientAddress used) {
        return false;
    }

    @Override
    @Nullable
    ClientConnection readyBeside(List<ClientAddress> asked) {
        return null;
    }

    @Override
    @Nullable
    ClientConnection ready(int key) {
        return ready();
    }

    @Nullable
    ClientConnection ready() {
        ClientConnection own = ready(connections.get(index()));
        if (own == null) {
            return connections.length() > 1 ? another() : null;
        }
        if (connections.length() > kept ? own.isCrowded() : connections.length() > 1 && own.isFull()) {
            return lessCrowded(own);
        }
        return own;
    }

    private static @Nullable ClientConnection ready(@Nullable Coming<ClientConnection> found) {
        if (found != null && found.isDone() && !found.isCompletedExceptionally()) {
            ClientConnection connection = found.join();
            return connection.isUsable() && !connection.isParting ? connection : null;
        }
        return null;
    }

    /**
     * This thread's own connection is not there. A member of a cluster connects by itself, and is asked here by whoever
     * compares instances. Where the others take no call, this one waits for its own, and there is none.
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

    /** No call needs one more connection now. */
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

    /** For the calls to come. Where the best that is there takes none they wait, also for the end of a short pause. */
    private void connectUnlessPaused(int index, ClientConnection best) {
        long patience = best.isFull() ? WAITED_OUT_NANOS : 0;
        // the attempt of a client that is closed fails at once, and has whoever it tells look here again
        if (pauseNanos() <= patience && !client.isClosed()) {
            connect(index, patience);
        }
    }

    /**
     * The least loaded that is there. Where that is crowded too, one more begins to connect: for the calls to come.
     * Where it takes no call at all, this one waits for what is coming, and there is none.
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

    /** What takes calls before what does not, and of two of a kind the one that its loop has seen fewer on. */
    private static boolean isBetter(ClientConnection one, ClientConnection than) {
        boolean isFull = one.isFull();
        return isFull == than.isFull() ? one.load() < than.load() : !isFull;
    }

    private static boolean isComing(@Nullable Attempt<ClientConnection> found) {
        return found != null && !found.asked().isDone();
    }

    /** A thread keeps to one connection: its calls stay in order and its path warm. */
    private int index() {
        return kept == 1 ? 0 : (int) (Thread.currentThread().getId() % kept);
    }

    @Override
    Coming<ClientConnection> connect(int key) {
        int index = index();
        ClientConnection own = ready(connections.get(index));
        Coming<ClientConnection> other = own == null || !own.isFull() ? null : withRoom();
        return other == null ? connect(index, WAITED_OUT_NANOS) : other;
    }

    /** A connection that takes a call, or one that is coming; null if there is neither. */
    private @Nullable Coming<ClientConnection> withRoom() {
        Coming<ClientConnection> coming = null;
        for (int i = 0; i < connections.length(); i++) {
            Attempt<ClientConnection> found = connections.get(i);
            ClientConnection connection = ready(found);
            if (connection != null && !connection.isFull()) {
                return found;
            }
            if (isComing(found)) {
                coming = found;
            }
        }
        return coming;
    }

    /**
     * A call waits for a connection that is coming. Those that are there tell nobody when they have room again, which
     * would cost every call something: so it is looked for, as long as such calls wait.
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

    /** Calls that wait for a connection which is coming take one that is there, as far as that has room. */
    private void look() {
        boolean isAnyLeft = false;
        for (int i = 0; i < connections.length(); i++) {
            Attempt<ClientConnection> coming = connections.get(i);
            if (coming != null && !coming.isDone()) {
                tell(coming);
                isAnyLeft |= coming.isWaitedFor();
            }
        }
        if (isAnyLeft) {
            lookSoon();
        }
    }

    private void tell(Attempt<ClientConnection> coming) {
        ClientConnection least = leastLoaded();
        if (least == null) {
            return;
        }
        // a caller who blocks takes its slot only when it runs
        for (int room = least.room(); room > 0 && !least.isFull(); room--) {
            if (!coming.tellFirst(least)) {
                return;
            }
        }
    }

    /** @param patienceNanos a pause longer than this is not waited out */
    private Coming<ClientConnection> connect(int index, long patienceNanos) {
        while (true) {
            Attempt<ClientConnection> found = connections.get(index);
            if (found != null && isUsableOrComing(found)) {
                return found.asked();
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
                return attempt.asked();
            }
        }
    }

    /**
     * An attempt to connect, in its connection's place until that is there. It begins on an event loop, whose stack is
     * at its begin. A caller whose own stack ends before it has asked the loop leaves an attempt that the next one who
     * finds it asks for; so there is none that does not begin, and one that has begun ends.
     */
    private abstract class Attempt<C> extends Coming<C> implements Runnable {
        private final AtomicBoolean hasBegun = new AtomicBoolean();

        /** The event loop knows. Stored when it does, with nothing called between. */
        private volatile boolean isAsked;

        Attempt(int index) {
            whenComplete((connected, failure) -> attempted(index, failure));
        }

        Attempt<C> asked() {
            if (!isAsked) {
                if (!client.execute(this)) {
                    completeExceptionally(new IllegalStateException("the client is closed"));
                }
                isAsked = true;
            }
            return this;
        }

        @Override
        boolean add(Waiter<C> waiter) {
            boolean isAdded = super.add(waiter);
            if (isAdded) {
                try {
                    lookSoon();
                } catch (Throwable e) {
                    // the call waits for this attempt alone, unless another one asks
                    ThreadTools.report(e);
                }
            }
            return isAdded;
        }

        /** On an event loop. It may have been asked twice. */
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

        /** The pause is over. */
        private void begin() {
            if (retired) {
                // whoever retired the address may have looked before the attempt was there
                completeExceptionally(noLongerThere());
                return;
            }
            ClientCluster of = cluster;
            if (of == null) {
                start();
            } else {
                of.openings(isKnown()).enter(this, this::start);
            }
        }

        /** It is the attempt's turn, unless it has ended before. */
        private void start() {
            if (isDone()) {
                return;
            }
            try {
                // whatever happens on the way: nobody waits for an attempt that has no end
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

    /** The server is not one that has only been named. */
    private synchronized boolean isKnown() {
        return hasKept || isUp && ticker().nanoTime() - upNanos >= KEPT_NANOS;
    }

    /** Has failed already. */
    private synchronized <C> Coming<C> inPause(long nanos) {
        Coming<C> failed = new Coming<>();
        String why = failures + " attempts to connect failed, the next is in " + TimeUnit.NANOSECONDS.toMillis(nanos)
                + " ms: "
                + (lastFailure == null
                        ? ""
                        : VisibleText.line(ThrowableText.message(lastFailure), ThrowableText.MAX_WHY));
        failed.completeExceptionally(
                OwnEnd.isNoRoom(lastFailure)
                        ? OwnEnd.noRoom(why, RPCXException.Executed.NOT_EXECUTED)
                        : new IllegalStateException(
                                why, lastFailure != null && VisibleText.isOf(lastFailure) ? lastFailure : null));
        return failed;
    }

    private void attempted(int index, @Nullable Throwable failure) {
        synchronized (this) {
            if (failure == null) {
                // failures are forgotten once the server has kept the connection for a while
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
            // calls that have waited for one more take what there is
            told.connected(this);
        }
        keepConnected(index);
    }

    private synchronized void pauseAfter(Throwable failure) {
        long now = ticker().nanoTime();
        lastFailure = failure;
        if (now - pauseEndNanos < 0) {
            // begun before the pause, beside the one that failed first: all connections that end together are one
            // failure
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
     * A connection that was there is no longer: a server that ends each as soon as it is there is given the next one
     * later and later, however it ends them.
     *
     * @param upNanos how long it was there
     * @param memoryWanted what this side had no memory for, if that has ended it: there is a pause then too
     */
    private synchronized void ended(long upNanos, @Nullable String memoryWanted) {
        if (upNanos < KEPT_NANOS) {
            if (!retired) {
                pauseAfter(
                        memoryWanted == null
                                ? new IllegalStateException(
                                        "the server ended the last connection as soon as it was there")
                                : OwnEnd.noRoom(memoryWanted, RPCXException.Executed.NOT_EXECUTED));
            }
            return;
        }
        failures = 0;
        hasKept = true;
        isUp = false;
        pauseEndNanos = ticker().nanoTime();
        if (cluster != null) {
            // no call waits for just this one, and all clients of a server that stops lose it together
            pauseEndNanos += Backoff.nanos(1, client.platform().random());
        }
    }

    /**
     * A connection that was there takes no more calls: it is over, or being left. Once each, on its event loop, before
     * its calls hear of it: they may connect again.
     */
    void lost(ClientConnection connection) {
        if (connection.hasBegun()) {
            // otherwise it has no calls, and its attempt has failed or is about to
            if (!connection.isDropped) {
                ended(connection.upNanos(), connection.memoryWanted());
            }
            if (!connection.isClosed() && connection.load() > 0) {
                left(connection);
            }
        }
        for (int index = 0; cluster != null && index < kept; index++) {
            Attempt<ClientConnection> held = connections.get(index);
            if (held != null && held.isDone() && !held.isCompletedExceptionally() && held.join() == connection) {
                keepConnected(index);
            }
        }
    }

    /** A connection may have calls under way while it is being left. Only so many of them stay. */
    private void left(ClientConnection connection) {
        ClientConnection oldest = left.add(connection, connections.length() + MORE_LEFT);
        if (oldest != null) {
            oldest.endLeft();
        }
    }

    /** A connection is over: nothing of it is held any longer. */
    void forget(ClientConnection connection) {
        left.remove(connection);
        for (int index = 0; index < connections.length(); index++) {
            Attempt<ClientConnection> held = connections.get(index);
            if (held != null && held.isDone() && !held.isCompletedExceptionally() && held.join() == connection) {
                connections.compareAndSet(index, held, null);
            }
        }
    }

    /** From now on there is a connection, or an attempt at one, until the address is retired. */
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
     * The instance is no longer one of its service's: its calls are finished, then its connections end. An attempt to
     * connect ends at once.
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

    /** Calls under way on this thread's connection; the most there are where it takes no more. */
    int load() {
        ClientConnection connection = ready();
        return connection == null || connection.isFull() ? Integer.MAX_VALUE : connection.load();
    }

    /** The one connection on the classic wire. After attempts that failed it is left alone as on the native wire. */
    @Override
    synchronized Coming<ClassicClientConnection> connectClassic() {
        Attempt<ClassicClientConnection> found = classic;
        if (found != null
                && (!found.isDone()
                        || !found.isCompletedExceptionally() && found.join().isUsable())) {
            return found.asked();
        }
        long pause = pauseNanos();
        if (pause > WAITED_OUT_NANOS) {
            return inPause(pause);
        }
        if (found != null && !found.isCompletedExceptionally() && !isLeftClassic(found.join())) {
            return found.asked();
        }
        Attempt<ClassicClientConnection> attempt = new Attempt<>(0) {
            @Override
            void open() {
                openClassic(this);
            }
        };
        classic = attempt;
        return attempt.asked();
    }

    /** @return false where it is used on: so many are left already, and what it was left for may mean single calls */
    private boolean isLeftClassic(ClassicClientConnection connection) {
        leftClassic.removeIf(ClassicClientConnection::isOver);
        if (connection.isOver()) {
            return true;
        }
        return leftClassic.size() < MORE_LEFT && leftClassic.add(connection);
    }

    private void openClassic(Coming<ClassicClientConnection> attempt) {
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
     * The one connection is over, before its calls hear of it; it was there unless its attempt has failed. One that was
     * left, and has had calls to end beside the next one, says nothing of that.
     */
    private synchronized void endedClassic(Coming<ClassicClientConnection> attempt) {
        if (attempt == classic && attempt.isDone() && !attempt.isCompletedExceptionally()) {
            ended(ticker().nanoTime() - upNanos, attempt.join().memoryWanted());
        }
    }

    private static boolean isUsableOrComing(Coming<ClientConnection> found) {
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

    /** What tells an instance from others: the same host and port with another weight is the same instance. */
    static String keyOf(Endpoint endpoint) {
        return endpoint.host() + ":" + endpoint.port();
    }

    /** Of an endpoint's key, whose host is whatever a registry says: for errors and logs. */
    static String visible(String key) {
        return VisibleText.line(key, Endpoint.MAX_HOST_LENGTH + 6);
    }
}
