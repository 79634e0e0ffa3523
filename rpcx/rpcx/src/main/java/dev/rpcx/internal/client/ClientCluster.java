package dev.rpcx.internal.client;

import dev.rpcx.Choice;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.internal.discovery.SharedWatch;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * All instances of one service, as the registry names them, and the choice among them for each call. If no instance is
 * connected, a call waits until one is. The wait fails when each instance has failed to connect since it began, or when
 * the time for it is over.
 */
public final class ClientCluster extends Route implements Endpoints.Listener {
    /**
     * Maximum number of instances that are taken from a registry's list, since each instance has its own connections.
     */
    public static final int MAX_INSTANCES = 4096;

    /**
     * Minimum time between the use of two lists of a registry. If several lists come in that time, only the last is
     * used. So a registry that keeps changing its list does not make the client connect all the time.
     */
    private static final long APART_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum time for which the first connected instances leave waiting calls to instances that are about to connect.
     * Connections that begin together are established within a few milliseconds of each other. While calls wait, the
     * instances are also checked for free slots this often.
     */
    private static final long SPREAD_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /**
     * Maximum number of instances that the event loop looks at for waiting calls before it runs its other tasks. An
     * instance counts once for each call for which it is looked at. So many looks take about 1 ms.
     */
    public static final int LOOKS_AT_ONCE = 1 << 16;

    /** Maximum number of instances that {@link #toString} names, and so the errors of calls. */
    private static final int MAX_NAMED = 3;

    private final ClientCore client;
    private final int kept;
    private final int maxConnections;
    private final Choice choice;

    /**
     * Limits the attempts to connect to instances that have not kept a connection yet. They may exist only in the
     * registry.
     */
    private final ConnectThrottle named;

    /**
     * Limits the attempts to connect to instances that have kept a connection before. It is separate from the other
     * limit, so that instances which exist only in the registry do not hold them up.
     */
    private final ConnectThrottle known;

    private volatile Chooser chooser;
    private volatile String name = "no instance";
    /**
     * Lock that is held while the watch of the registry begins. It is a lock of its own because this runs the
     * registry's code, which may take long.
     */
    private final Object beginning = new Object();

    private volatile @Nullable Future<?> looks;
    private volatile Endpoints.@Nullable Watch watch;
    private volatile @Nullable Throwable registryFailure;

    // The fields from members to waiting are guarded by this.
    private Map<String, ClientAddress> members = new LinkedHashMap<>();

    /** Latest list of instances from the registry that is not in use yet; null if there is none. */
    private @Nullable List<Endpoint> pendingList;

    /** Whether a timer is set that puts {@link #pendingList} to use. */
    private boolean isTimed;

    /** Whether the registry has changed the weight of an instance since {@link #chooser} was created. */
    private boolean isWeighedAnew;

    /** Instances that the registry no longer names, but whose connections have not been told to end yet. */
    private Set<ClientAddress> ended = new LinkedHashSet<>();

    /**
     * For each instance, its connections that only finish their calls, by {@link ClientAddress#keyOf}. An instance that
     * the registry no longer names stays in this map until it has no such connections.
     */
    private final Map<String, DrainingConnections> draining = new HashMap<>();

    /** Time at which a list of the registry was last put to use; null if none has been. */
    private @Nullable Long takenNanos;

    /**
     * Number of failed attempts to connect so far, of all instances together. An attempt that fails while its instance
     * has another connection does not count.
     */
    private long failures;

    /**
     * Instances by the numbers of their latest failures to connect, {@link ClientAddress#failureNumber}. The first one
     * has not failed at all, or its latest failure is the oldest. If even the first one has failed since a call began
     * to wait, all instances have.
     */
    private TreeMap<Long, ClientAddress> byFailure = new TreeMap<>();

    /**
     * Instances that are ejected, in the order in which their ejections end. An instance whose ejection is over is
     * removed when the next one is ejected.
     */
    private PriorityQueue<ClientAddress> ejected = noneEjected();

    /**
     * Latest number given to an instance that has not failed to connect yet. It decides the instance's place in
     * {@link #byFailure}. These numbers go down from -1, so such instances come before those that have failed.
     */
    private long untried;

    /** Whether a timer is set that gives connections to all waiting calls, to whichever instance they go. */
    private boolean isSpreading;

    /** Whether a timer is set that looks for free slots on connected instances, for the calls that wait. */
    private boolean isLooking;

    /** Number of threads that are creating a proxy for this cluster at present. */
    private int creators;

    /**
     * Whether this cluster is of no use, since no thread could begin its watch of the registry. The next proxy then
     * gets a new cluster.
     */
    private boolean isGivenUp;

    /**
     * Calls that wait for a connection, in the order in which they began to wait. A call is removed when its wait ends,
     * for whatever reason.
     */
    private final Set<Waiting> waiting = new LinkedHashSet<>();

    /** A call that waits for a connection, and the future of that connection. */
    private final class Waiting extends PendingConnection<ClientConnection> {
        private final int key;

        /** Value of {@link #failures} when the call began to wait. */
        private final long came;

        private volatile @Nullable Future<?> timer;

        Waiting(int key, long came) {
            this.key = key;
            this.came = came;
            whenComplete((connected, failure) -> leave());
        }

        void startTimer() {
            Future<?> started = client.timer(
                    () -> completeExceptionally(new IllegalStateException("no instance could be reached in time")),
                    client.patienceNanos());
            timer = started;
            if (started == null) {
                completeExceptionally(new IllegalStateException("the client is closed"));
            } else if (isDone()) {
                started.cancel(false);
            }
        }

        private void leave() {
            ClientCluster.this.remove(this);
            Future<?> started = timer;
            if (started != null) {
                started.cancel(false);
            }
        }

        @Override
        void abandon() {
            cancel(false);
        }
    }

    public ClientCluster(ClientCore client, int kept, int maxConnections, Choice choice) {
        super(client);
        this.client = client;
        this.kept = kept;
        this.maxConnections = maxConnections;
        this.choice = choice;
        this.named = new ConnectThrottle(client);
        this.known = new ConnectThrottle(client);
        this.chooser = Chooser.of(choice, new ClientAddress[0], client.platform());
    }

    /**
     * Records that a thread begins to create a proxy for this cluster.
     *
     * @return false if nobody may use this cluster any more, so that the thread has to create another one
     */
    synchronized boolean enter() {
        if (isGivenUp) {
            return false;
        }
        creators++;
        return true;
    }

    /**
     * Called when a thread has finished creating a proxy for this cluster, even if it has failed.
     *
     * @return true if the cluster is of no use now: the watch of the registry has not begun, and no other thread is
     *     creating a proxy
     */
    boolean leave() {
        synchronized (this) {
            creators--;
            if (creators > 0 || watch != null) {
                return false;
            }
            isGivenUp = true;
            // A watch that failed to begin may have named instances before it failed. They are forgotten.
            pendingList = null;
            Set<ClientAddress> nowEnded = new LinkedHashSet<>(ended);
            nowEnded.addAll(members.values());
            ended = nowEnded;
            members = new LinkedHashMap<>();
            byFailure = new TreeMap<>();
            ejected = noneEjected();
            chooser = Chooser.of(choice, new ClientAddress[0], client.platform());
        }
        connectAndRetire();
        return true;
    }

    /**
     * Begins to watch the registry for the instances of the service. Only the first call of this method that succeeds
     * does so.
     *
     * @throws IllegalStateException if the client is closed
     */
    public ClientCluster start(Endpoints endpoints) {
        synchronized (beginning) {
            if (watch == null) {
                watch = SharedWatch.of(endpoints, this);
            }
            // Scheduled only when the watch has begun: the end of the watch cancels the task.
            if (looks == null) {
                looks = client.repeat(this::lookAfter, LOOK_NANOS);
            }
        }
        // The client sets its closed flag before it reads the watch. So either the client sees this watch, or this
        // thread sees the closed flag.
        if (client.isClosed()) {
            endWatch();
            throw new IllegalStateException("the client is closed");
        }
        return this;
    }

    /** Ends the watch of the registry. This runs the registry's code, which may block. */
    void endWatch() {
        Future<?> last = looks;
        if (last != null) {
            last.cancel(false);
        }
        Endpoints.Watch over = watch;
        if (over != null) {
            over.close();
        }
    }

    /** Fails all calls that wait for a connection, since the client is closed. Runs the callbacks of these calls. */
    void endCalls() {
        failAll(new IllegalStateException("the client is closed"));
    }

    private void failAll(Throwable why) {
        List<Waiting> given;
        synchronized (this) {
            given = List.copyOf(waiting);
            waiting.clear();
        }
        given.forEach(call -> call.completeExceptionally(why));
    }

    /** Ends a cluster that no client ends. Only for tests. */
    public void close() {
        endWatch();
        endCalls();
    }

    public ConnectThrottle connectThrottle(boolean isKnown) {
        return isKnown ? known : named;
    }

    @Override
    public boolean hasOthers(@Nullable ClientAddress used) {
        return used == null ? chooser.all.length > 1 : chooser.hasBeside(List.of(used));
    }

    @Override
    public @Nullable ClientConnection ready(int key) {
        return chooser.pick(key);
    }

    @Override
    public @Nullable ClientConnection readyBeside(List<ClientAddress> asked) {
        return chooser.pickBeside(asked);
    }

    @Override
    boolean hasFreeBeside(ClientAddress asked) {
        return chooser.hasFreeBeside(asked);
    }

    @Override
    public PendingConnection<ClientConnection> connect(int key) {
        Waiting call;
        synchronized (this) {
            call = new Waiting(key, failures);
            Throwable failure = registryFailure;
            if (members.isEmpty() && failure != null) {
                call.completeExceptionally(failure);
                return call;
            }
            waiting.add(call);
        }
        try {
            call.startTimer();
            // an instance may have connected since the caller looked for a connection
            ClientConnection ready = ready(key);
            if (ready != null) {
                call.complete(ready);
            } else {
                lookSoon();
            }
        } catch (Throwable e) {
            // An Error is caught too, since a call that has no timer might wait forever.
            call.completeExceptionally(e);
        }
        return call;
    }

    private synchronized void lookSoon() {
        if (!isLooking) {
            isLooking = client.schedule(this::look, SPREAD_NANOS);
        }
    }

    /**
     * Gives connections to the calls that wait while instances are connected, and sets the timer for the next time.
     * Such calls wait because these instances were full, and a full instance does not announce a free slot.
     */
    private void look() {
        boolean isSpread;
        synchronized (this) {
            isLooking = false;
            if (waiting.isEmpty()) {
                return;
            }
            isSpread = isSpreading;
        }
        for (ClientAddress member : chooser.all) {
            if (member.isConnected()) {
                lookSoon();
                if (!isSpread) {
                    serve(waitingNow(), null);
                }
                return;
            }
        }
    }

    private synchronized List<Waiting> waitingNow() {
        return List.copyOf(waiting);
    }

    private synchronized void remove(Waiting call) {
        waiting.remove(call);
    }

    /** Returns the chooser for the instances that are used at present. Only for tests. */
    public Chooser chooser() {
        return chooser;
    }

    /** Returns the number of calls that wait for a connection. Only for tests. */
    public synchronized int waiting() {
        return waiting.size();
    }

    @Override
    public PendingConnection<ClassicClientConnection> connectClassic() {
        throw new IllegalStateException("several endpoints on the classic wire (expected: the native one)");
    }

    /**
     * Called when an instance has a connection. It gets its share of the waiting calls immediately. If other instances
     * are still connecting for the first time, the rest wait up to {@code SPREAD_NANOS} for them. So the first
     * connected instance does not get all calls.
     */
    void connected(ClientAddress address) {
        List<Waiting> served;
        synchronized (this) {
            int all = waiting.size();
            if (all == 0) {
                return;
            }
            int share = share(all);
            if (share < all && !isSpreading) {
                isSpreading = client.schedule(this::serveAll, SPREAD_NANOS);
            }
            served = waiting.stream().limit(isSpreading ? share : all).toList();
        }
        serve(served, address);
    }

    /**
     * Returns how many of the waiting calls one instance should get, rounded up. They are divided among that instance
     * and all those that are still connecting for the first time. The caller holds the lock of {@code this}.
     *
     * @param calls number of the waiting calls
     */
    private int share(int calls) {
        int coming = 0;
        for (ClientAddress member : chooser.all) {
            if (member.failureNumber < 1 && !member.isConnected()) {
                coming++;
            }
        }
        return calls / (coming + 1) + (calls % (coming + 1) == 0 ? 0 : 1);
    }

    private void serveAll() {
        synchronized (this) {
            isSpreading = false;
        }
        serve(waitingNow(), null);
    }

    /**
     * Gives connections to waiting calls. If there are many calls, it does so in several tasks, so that the event loop
     * can run other tasks in between.
     *
     * @param address an instance that has just connected; it gets a call for which the chooser finds no connection.
     *     Null if there is none.
     */
    private void serve(List<Waiting> served, @Nullable ClientAddress address) {
        int max = Math.max(1, LOOKS_AT_ONCE / Math.max(1, chooser.all.length));
        for (Waiting call : served.subList(0, Math.min(max, served.size()))) {
            if (call.isDone()) {
                continue;
            }
            ClientConnection ready = ready(call.key);
            if (ready == null && address != null) {
                // the given instance gets the call, if it has a connection that is not full
                ClientConnection other = address.ready();
                ready = other == null || other.isFull() ? null : other;
            }
            if (ready == null) {
                // the choice has looked at all instances, and would not find a connection for the next call either
                lookSoon();
                return;
            }
            call.complete(ready);
        }
        if (max < served.size()) {
            // if the client is closed, this task does not run, and the end of the client fails these calls
            client.execute(() -> serve(served.subList(max, served.size()), address));
        }
    }

    /**
     * Called when an attempt to connect to an instance has failed, and the instance has no other connection. Each
     * waiting call fails if by now all instances have failed since it began to wait.
     */
    void failed(ClientAddress address, Throwable why) {
        List<Waiting> given = new ArrayList<>();
        synchronized (this) {
            if (byFailure.get(address.failureNumber) != address) {
                // the instance is no longer a member
                return;
            }
            // Added first: if adding fails, the instance still has its old entry.
            byFailure.put(failures + 1, address);
            byFailure.remove(address.failureNumber);
            failures++;
            address.failureNumber = failures;
            long all = byFailure.firstKey();
            for (Waiting call : waiting) {
                if (call.came >= all) {
                    // Not all instances have failed since this call was made. The calls behind it are even younger.
                    break;
                }
                given.add(call);
            }
            given.forEach(waiting::remove);
        }
        given.forEach(call -> call.completeExceptionally(why));
    }

    /**
     * Ejects an instance that has failed too often, so that it gets no calls for a while. Does nothing if more than
     * half of all instances would be ejected then.
     */
    synchronized void eject(ClientAddress address) {
        for (ClientAddress first = ejected.peek();
                first != null && !first.health().isEjected();
                first = ejected.peek()) {
            ejected.remove();
        }
        boolean isMember = members.get(ClientAddress.keyOf(address.endpoint)) == address;
        if (isMember && !address.health().isEjected() && (ejected.size() + 1) * 2 <= members.size()) {
            address.health().eject();
            ejected.add(address);
        }
    }

    // ---- what the registry says

    @Override
    public void found(List<Endpoint> all) {
        if (all.isEmpty()) {
            return;
        }
        synchronized (this) {
            registryFailure = null;
            if (isGivenUp) {
                return;
            }
            pendingList = all;
            long wait = untilNextNanos();
            if (wait > 0 && !isTimed) {
                isTimed = client.schedule(this::applyPending, wait);
            }
            if (wait > 0 && isTimed) {
                return;
            }
        }
        applyPending();
    }

    /**
     * Returns the time until the next list of the registry may be used; 0 or less if it may be used now. The caller
     * holds the lock of {@code this}.
     */
    private long untilNextNanos() {
        Long last = takenNanos;
        return last == null
                ? 0
                : last + APART_NANOS - client.platform().ticker().nanoTime();
    }

    /**
     * Finishes work that an Error has interrupted, for example an OutOfMemoryError. This may be the use of a list, the
     * connecting of an instance, or the serving of a waiting call. Runs once a second.
     */
    private void lookAfter() {
        if (client.isClosed()) {
            return;
        }
        try {
            boolean isLate;
            synchronized (this) {
                isLate = pendingList != null && untilNextNanos() <= 0;
            }
            if (isLate) {
                applyPending();
            }
        } catch (Throwable e) {
            failedHere(e);
        }
        try {
            connectAndRetire();
            serveAll();
        } catch (Throwable e) {
            failedHere(e);
        }
    }

    /**
     * Logs that a part of {@link #lookAfter} or {@link #connectAndRetire} has failed. The next run of {@code lookAfter}
     * tries it again.
     */
    private static void failedHere(Throwable thrown) {
        try {
            System.getLogger("dev.rpcx.discovery")
                    .log(
                            System.Logger.Level.WARNING,
                            "looking after the instances has failed, and is tried again in a second",
                            thrown);
        } catch (Throwable unspeakable) {
            // the log has failed too, and a lost log line is the lesser evil
        }
    }

    /** Uses the latest list of the registry instead of the present one, if there is a newer one. */
    private void applyPending() {
        if (client.isClosed()) {
            return;
        }
        synchronized (this) {
            isTimed = false;
            List<Endpoint> all = pendingList;
            if (all == null) {
                return;
            }
            Map<String, ClientAddress> now = new LinkedHashMap<>();
            TreeMap<Long, ClientAddress> nowByFailure = new TreeMap<>();
            PriorityQueue<ClientAddress> nowEjected = noneEjected();
            Set<ClientAddress> nowEnded = new LinkedHashSet<>(ended);
            long nowUntried = untried;
            for (Endpoint endpoint : taken(all)) {
                if (now.containsKey(ClientAddress.keyOf(endpoint))) {
                    // if a list names an instance twice, the first entry counts
                    continue;
                }
                ClientAddress held = members.get(ClientAddress.keyOf(endpoint));
                if (held == null) {
                    DrainingConnections before =
                            draining.computeIfAbsent(ClientAddress.keyOf(endpoint), first -> new DrainingConnections());
                    held = new ClientAddress(client, endpoint, kept, maxConnections, this, before);
                    held.failureNumber = --nowUntried;
                } else {
                    isWeighedAnew |= held.weigh(endpoint.weight());
                }
                now.put(ClientAddress.keyOf(endpoint), held);
                nowByFailure.put(held.failureNumber, held);
                if (held.health().isEjected()) {
                    nowEjected.add(held);
                }
            }
            for (ClientAddress member : members.values()) {
                if (now.get(ClientAddress.keyOf(member.endpoint)) != member) {
                    nowEnded.add(member);
                }
            }
            if (nowUntried == untried && nowEnded.size() == ended.size() && !isWeighedAnew) {
                pendingList = null;
                // a list that changes nothing counts as applied too
                takenNanos = client.platform().ticker().nanoTime();
                return;
            }
            Chooser nowChooser = Chooser.of(choice, now.values().toArray(new ClientAddress[0]), client.platform());
            String nowName = named(now.keySet());
            takenNanos = client.platform().ticker().nanoTime();
            // members that end now keep their entries, since their connections are about to drain
            draining.entrySet()
                    .removeIf(of -> of.getValue().isEmpty()
                            && !now.containsKey(of.getKey())
                            && !members.containsKey(of.getKey()));
            // Nothing below can fail. If a step above has failed, the list is still in pendingList and is applied
            // later.
            members = now;
            byFailure = nowByFailure;
            ejected = nowEjected;
            ended = nowEnded;
            untried = nowUntried;
            chooser = nowChooser;
            name = nowName;
            isWeighedAnew = false;
            pendingList = null;
        }
        connectAndRetire();
    }

    /**
     * Connects the instances that are not connected. Also ends the connections of instances that the registry no longer
     * names; they finish their calls first.
     */
    private void connectAndRetire() {
        ClientAddress[] all = chooser.all;
        // Each client begins at a random member, since otherwise all clients would connect to the same members first.
        int first = all.length == 0 ? 0 : client.platform().random().nextInt(all.length);
        for (int i = 0; i < all.length; i++) {
            ClientAddress member = all[(first + i) % all.length];
            try {
                member.keepConnected();
            } catch (Throwable e) {
                // the other members connect in any case
                failedHere(e);
            }
        }
        List<ClientAddress> former;
        synchronized (this) {
            former = List.copyOf(ended);
        }
        for (ClientAddress each : former) {
            try {
                each.retire();
                synchronized (this) {
                    ended.remove(each);
                }
            } catch (Throwable e) {
                failedHere(e);
            }
        }
    }

    private static PriorityQueue<ClientAddress> noneEjected() {
        return new PriorityQueue<>((one, other) -> one.health().comesBackBefore(other.health()));
    }

    /**
     * Returns the instances of a registry's list that are used. If the list has more than {@code MAX_INSTANCES}, those
     * that are in use already are preferred; otherwise the order of the list decides.
     */
    private List<Endpoint> taken(List<Endpoint> all) {
        if (all.size() <= MAX_INSTANCES) {
            return all;
        }
        Map<String, Endpoint> taken = new LinkedHashMap<>();
        for (boolean isHeld : new boolean[] {true, false}) {
            for (Endpoint endpoint : all) {
                if (taken.size() < MAX_INSTANCES && members.containsKey(ClientAddress.keyOf(endpoint)) == isHeld) {
                    taken.put(ClientAddress.keyOf(endpoint), endpoint);
                }
            }
        }
        return List.copyOf(taken.values());
    }

    @Override
    public void failed(Throwable why) {
        synchronized (this) {
            registryFailure = why;
            if (!members.isEmpty() || waiting.isEmpty()) {
                return;
            }
        }
        // The waiting calls do not fail on the registry's thread, since that would run their callers' code there.
        client.execute(() -> failWithoutInstances(why));
    }

    private void failWithoutInstances(Throwable why) {
        synchronized (this) {
            if (!members.isEmpty()) {
                return;
            }
        }
        failAll(why);
    }

    private static String named(Set<String> keys) {
        String first =
                keys.stream().limit(MAX_NAMED).map(ClientAddress::visible).collect(Collectors.joining(", "));
        return keys.size() <= MAX_NAMED ? first : first + " and " + (keys.size() - MAX_NAMED) + " more";
    }

    @Override
    public String toString() {
        return name;
    }
}
