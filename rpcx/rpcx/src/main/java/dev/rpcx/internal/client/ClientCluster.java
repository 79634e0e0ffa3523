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
 * All instances of one service, as the registry names them. For each call, a {@link Chooser} chooses one of the
 * instances. If no instance is connected, the call waits. The call fails when every instance has failed to connect
 * since the call began to wait, when the registry fails before it has named an instance, or when the call has waited
 * too long.
 */
public final class ClientCluster extends Route implements Endpoints.Listener {
    /**
     * Maximum number of instances that are taken from a registry's list. There is a maximum because each instance has
     * its own connections.
     */
    public static final int MAX_INSTANCES = 4096;

    /**
     * Minimum time between the use of two lists of a registry. If several lists come in that time, only the last one is
     * used. So a registry that keeps changing its list does not make the client connect all the time.
     */
    private static final long MIN_LIST_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Longest time for which calls wait for instances that are still connecting, after another instance has connected.
     * Connections that begin together are established within a few milliseconds of each other. This time is also the
     * interval at which connected instances are checked for free slots, while calls wait.
     */
    private static final long SPREAD_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /**
     * Maximum number of instances that the event loop looks at for waiting calls before it runs its other tasks. An
     * instance counts once for each call for which the loop looks at it. Looking at this number of instances takes
     * about 1 ms.
     */
    public static final int MAX_LOOKS_AT_ONCE = 1 << 16;

    /** Maximum number of instances that {@link #toString} and the errors of calls name. */
    private static final int MAX_NAMED = 3;

    private final ClientCore client;
    private final int kept;
    private final int maxConnections;
    private final Choice choice;

    /**
     * Limits the tries to connect to instances that may exist only in the registry. Such an instance has never kept a
     * connection, or has failed too often since it last kept one.
     */
    private final ConnectThrottle named;

    /**
     * Limits the tries to connect to all other instances: each has kept a connection, and has not failed too often
     * since it last kept one. The limit is separate from {@link #named}, so that instances which exist only in the
     * registry do not hold up these instances.
     */
    private final ConnectThrottle known;

    // The next two fields are stored under the lock of {@code this}, and read by any thread without the lock.
    private volatile Chooser chooser;
    private volatile String name = "no instance";
    /**
     * Lock that is held while the watch of the registry begins. The lock of the cluster is not used for this, because
     * the registry's code runs while the watch begins, and may take long.
     */
    private final Object beginning = new Object();

    /**
     * The repeated task {@link #lookAfter}; null if it has not been scheduled. Stored under the lock
     * {@link #beginning}, and read by any thread that ends the watch.
     */
    private volatile @Nullable Future<?> looks;

    /**
     * The watch of the registry; null if it has not begun. Stored under the lock {@link #beginning}, and read by any
     * thread that ends the watch or finishes creating a proxy. The thread that stores the watch then reads whether
     * the client is closed. The method {@link #start} says why this order matters.
     */
    private volatile Endpoints.@Nullable Watch watch;

    /**
     * The failure that the registry has reported last; null if it has named instances since. Stored and read under the
     * lock of {@code this}.
     */
    private volatile @Nullable Throwable registryFailure;

    // The fields from members to waiting are guarded by this.
    private Map<String, ClientAddress> members = new LinkedHashMap<>();

    /** Latest list of the registry that is not in use yet; null if there is none. */
    private @Nullable List<Endpoint> pendingList;

    /**
     * Whether a timer is set that calls {@link #applyPending}, so that the instances in {@link #pendingList} are used.
     */
    private boolean isTimed;

    /** Whether the registry has changed the weight of an instance since {@link #chooser} was created. */
    private boolean isWeighedAnew;

    /** Instances that no longer belong to this cluster, but whose connections have not been instructed to end yet. */
    private Set<ClientAddress> ended = new LinkedHashSet<>();

    /**
     * Connections of each instance that only finish their calls, under the instance's {@link ClientAddress#keyOf}. An
     * instance that the registry no longer names stays in this map as long as it has such connections. Once it has
     * none, the next list that changes the instances or their weights removes it from the map.
     */
    private final Map<String, DrainingConnections> draining = new HashMap<>();

    /**
     * Time in nanoseconds at which this cluster last began to use a new list from the registry; null if it has used no
     * list yet.
     */
    private @Nullable Long takenNanos;

    /**
     * Number of failed tries to connect so far, to all instances together. A try does not count if its instance
     * has another connection.
     */
    private long failures;

    /**
     * Instances under their {@link ClientAddress#failureNumber}, that is, in the order of their latest failures to
     * connect. The first instance has not failed yet, or its latest failure is the oldest. So if the first instance has
     * failed since a certain time, all instances have.
     */
    private TreeMap<Long, ClientAddress> byFailure = new TreeMap<>();

    /**
     * Instances that are ejected, that is, that normally get no calls for a while. The instance whose ejection ends
     * first is at the head of the queue. Instances whose ejection is over are removed when the next one is ejected.
     */
    private PriorityQueue<ClientAddress> ejected = noneEjected();

    /**
     * The {@link ClientAddress#failureNumber} that the latest new instance got when it was added; 0 if none was added
     * yet. New instances get the numbers -1, -2 and so on, so in {@link #byFailure} they come before instances that
     * have failed to connect.
     */
    private long untried;

    /**
     * Whether a timer is set that ends the wait for instances that are still connecting. When the timer fires, all
     * waiting calls go to the instances that are connected.
     */
    private boolean isSpreading;

    /** Whether a timer is set that looks for free slots on connected instances, for the calls that wait. */
    private boolean isLooking;

    /**
     * Number of threads that are creating a proxy for this cluster at present. Each thread is counted from before it
     * begins the watch until the watch has begun or has failed to begin. So the last of these threads sees whether
     * there is a watch, and gives the cluster up if there is none. Without this count, a thread could give the cluster
     * up while another thread begins the watch. Tested by
     * {@code WatchesTest.aCreatorThatWaitsForAWatchThatFailsBeginsItsOwn}.
     */
    private int creators;

    /**
     * Whether this cluster must not be used any more, because all threads that created proxies for it have finished,
     * and none of them has begun the cluster's watch of the registry. The next proxy gets a new cluster.
     */
    private boolean isGivenUp;

    /**
     * Calls that wait for a connection, in the order in which they began to wait. A call is removed when it stops
     * waiting, for whatever reason.
     */
    private final Set<Waiting> waiting = new LinkedHashSet<>();

    /** A call that waits for a connection, and the future of that connection. */
    private final class Waiting extends PendingConnection<ClientConnection> {
        private final int key;

        /**
         * Value of {@link #failures} when the call began to wait. If each instance has a higher failure number, each
         * has failed to connect since.
         */
        private final long came;

        /**
         * The timer that ends the call's wait for a connection; null if there is no timer. The thread that begins the
         * wait stores the timer, and then checks whether this future has completed. The thread that ends the wait
         * completes this future, and then reads the timer. So at least one of these threads cancels the timer. In
         * another order, the timer could keep the call in memory until the timer runs.
         */
        private volatile @Nullable Future<?> timer;

        Waiting(int key, long came) {
            this.key = key;
            this.came = came;
            whenComplete((connected, failure) -> stopWaiting());
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

        private void stopWaiting() {
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
     * @return false if this cluster must not be used any more; the thread has to use another cluster for its proxy
     */
    synchronized boolean beginCreating() {
        if (isGivenUp) {
            return false;
        }
        creators++;
        return true;
    }

    /**
     * Records that a thread has finished creating a proxy for this cluster, successfully or not. If the watch of the
     * registry has not begun, and no other thread is creating a proxy, this method gives up the cluster.
     *
     * @return true if the cluster has been given up, and must not be used any more
     */
    boolean endCreating() {
        synchronized (this) {
            creators--;
            if (creators > 0 || watch != null) {
                return false;
            }
            isGivenUp = true;
            // The registry may have named instances even if the watch then failed to begin. The code below removes
            // these instances.
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
     * Begins to watch the registry for the instances of the service. A watch that has begun already is kept.
     *
     * @throws IllegalStateException if the client is closed
     */
    public ClientCluster start(Endpoints endpoints) {
        synchronized (beginning) {
            if (watch == null) {
                watch = SharedWatch.of(endpoints, this);
            }
            // The task lookAfter() is scheduled only after the watch has begun. If the watch failed to begin, nothing
            // would cancel the task, because only the end of the watch cancels it.
            if (looks == null) {
                looks = client.repeat(this::lookAfter, LOOK_NANOS);
            }
        }
        // This thread has stored the watch, and now reads the client's closed flag. The thread that closes the client
        // sets the flag first, and then reads the field watch. Therefore either that thread sees this watch and ends
        // it, or this thread sees the closed flag. Otherwise the watch could outlive the client. Tested by
        // {@code WatchesTest.aWatchThatBeginsWhileItsClientClosesEnds}.
        if (client.isClosed()) {
            endWatch();
            throw new IllegalStateException("the client is closed");
        }
        return this;
    }

    /** Ends the watch of the registry. The registry's code runs in this method, and may block. */
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

    /**
     * Fails all calls that wait for a connection, because the client is closed. The callbacks of these calls run in
     * this method.
     */
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

    /**
     * Ends the watch and all waiting calls. Only for tests that create a cluster themselves, since no client ends such
     * a cluster.
     */
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
    @Nullable
    ClientConnection anyOpen() {
        for (ClientAddress member : chooser.all) {
            ClientConnection open = member.anyOpen();
            if (open != null) {
                return open;
            }
        }
        return null;
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
            // An instance may have connected since the caller of this method looked for a connection. This thread looks
            // again after it has added the call to the waiting ones, and an event loop looks at the waiting calls after
            // the instance has connected. So at least one of the two finds both the call and the connection. Otherwise
            // the call could wait until the next look.
            ClientConnection ready = ready(key);
            if (ready != null) {
                call.complete(ready);
            } else {
                lookSoon();
            }
        } catch (Throwable e) {
            // Errors are caught too. The failure may have prevented the timer that limits the wait, and without that
            // timer the call might wait forever.
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
     * Looks for free slots on connected instances, and gives their connections to waiting calls. Sets the timer for the
     * next look, because a full instance does not announce a free slot. Does nothing if no call waits or no instance is
     * connected. While {@link #isSpreading} is true, only sets the timer.
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
     * Called when an instance has a connection. A part of the waiting calls, or all of them, immediately get
     * connections: see {@link #share}. The chooser decides for each of these calls whether it goes to this instance or
     * to another connected instance. The other calls wait up to {@code SPREAD_NANOS} for the instances that are not
     * connected, but have never failed to connect. So the instance that connects first does not get all calls.
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
     * Returns how many waiting calls should get connections when an instance has connected. The waiting calls are
     * divided equally among the instance that has connected and all instances that are not connected, but have never
     * failed to connect. The result is the part of one instance, rounded up. The caller holds the lock of {@code this}.
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
     * Gives connections to waiting calls. Many calls are served in several tasks, so that the event loop can run other
     * tasks in between.
     *
     * @param served the waiting calls
     * @param address an instance that has just connected, which gets a call if the chooser finds no connection; null if
     *     no instance has just connected
     */
    private void serve(List<Waiting> served, @Nullable ClientAddress address) {
        int max = Math.max(1, MAX_LOOKS_AT_ONCE / Math.max(1, chooser.all.length));
        for (Waiting call : served.subList(0, Math.min(max, served.size()))) {
            if (call.isDone()) {
                continue;
            }
            ClientConnection ready = ready(call.key);
            if (ready == null && address != null) {
                // The instance that has just connected gets the call, if its connection is not full.
                ClientConnection other = address.ready();
                ready = other == null || other.isFull() ? null : other;
            }
            if (ready == null) {
                // The chooser has looked at all instances and found no connection for this call. It would find none for
                // the next call, so the remaining calls wait for the next look.
                lookSoon();
                return;
            }
            call.complete(ready);
        }
        if (max < served.size()) {
            // A closed client does not run this task, but fails the calls that wait.
            client.execute(() -> serve(served.subList(max, served.size()), address));
        }
    }

    /**
     * Fails each waiting call for which every instance has failed to connect since the call began to wait. Called when
     * a try to connect to {@code address} has failed, and that instance has no other connection.
     */
    void failed(ClientAddress address, Throwable why) {
        List<Waiting> given = new ArrayList<>();
        synchronized (this) {
            if (byFailure.get(address.failureNumber) != address) {
                // The instance no longer belongs to this cluster.
                return;
            }
            // The new entry is added before the old one is removed. So the instance still has its old entry if adding
            // fails.
            byFailure.put(failures + 1, address);
            byFailure.remove(address.failureNumber);
            failures++;
            address.failureNumber = failures;
            long all = byFailure.firstKey();
            for (Waiting call : waiting) {
                if (call.came >= all) {
                    // At least one instance has not failed since this call began to wait, so this call goes on waiting.
                    // The calls behind this one in the list began to wait later, so they go on waiting too.
                    break;
                }
                given.add(call);
            }
            given.forEach(waiting::remove);
        }
        given.forEach(call -> call.completeExceptionally(why));
    }

    /**
     * Ejects an instance that has failed too often, so that it normally gets no calls for a while. Does nothing if more
     * than half of all instances would then be ejected.
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
     * Returns the time in nanoseconds until the next list of the registry can be used; 0 or less if there is nothing to
     * wait for. The caller holds the lock of {@code this}.
     */
    private long untilNextNanos() {
        Long last = takenNanos;
        return last == null
                ? 0
                : last + MIN_LIST_INTERVAL_NANOS - client.platform().ticker().nanoTime();
    }

    /**
     * Repeats work that an {@code Error}, for example an {@code OutOfMemoryError}, may have interrupted. The work is to
     * use the registry's new list if its time has come, to connect to instances, and to serve waiting calls. Runs once
     * a second.
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
     * Logs that a part of {@link #lookAfter} or {@link #connectAndRetire} has failed. {@code lookAfter} repeats that
     * part within a second.
     */
    private static void failedHere(Throwable thrown) {
        try {
            System.getLogger("dev.rpcx.discovery")
                    .log(
                            System.Logger.Level.WARNING,
                            "looking after the instances has failed, and is tried again in a second",
                            thrown);
        } catch (Throwable unspeakable) {
            // Logging has failed too. The lost log line must not stop the caller's work.
        }
    }

    /** Begins to use the latest list of the registry. Does nothing if that list is in use already. */
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
                    // If a list names an instance twice, only the first entry counts.
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
                // A list that changes nothing counts as used, so the next list has to wait for MIN_LIST_INTERVAL_NANOS.
                takenNanos = client.platform().ticker().nanoTime();
                return;
            }
            Chooser nowChooser = Chooser.of(choice, now.values().toArray(new ClientAddress[0]), client.platform());
            String nowName = named(now.keySet());
            takenNanos = client.platform().ticker().nanoTime();
            // The map members still has the instances of the previous list. An instance that leaves the service now
            // keeps its entry, even an empty one, since its connections will only finish their calls from now on.
            draining.entrySet()
                    .removeIf(of -> of.getValue().isEmpty()
                            && !now.containsKey(of.getKey())
                            && !members.containsKey(of.getKey()));
            // The assignments below cannot fail. If a step above fails, the list stays in pendingList and is used
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
     * Begins to make the normal connections that instances lack, that is, connections that stay open without calls.
     * Also instructs the connections of instances that no longer belong to this cluster to finish their calls and to
     * end.
     */
    private void connectAndRetire() {
        ClientAddress[] all = chooser.all;
        // The loop begins at a random instance. Otherwise all clients would connect to the same instances first.
        int first = all.length == 0 ? 0 : client.platform().random().nextInt(all.length);
        for (int i = 0; i < all.length; i++) {
            ClientAddress member = all[(first + i) % all.length];
            try {
                member.keepConnected();
            } catch (Throwable e) {
                // The loop goes on, so that the other instances connect in any case.
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
     * Returns the instances of a registry's list that are used, at most {@code MAX_INSTANCES}. If the list is longer,
     * instances that are in use already are preferred, and otherwise those that come first in the list.
     */
    private List<Endpoint> taken(List<Endpoint> all) {
        if (all.size() <= MAX_INSTANCES) {
            return all;
        }
        Map<String, Endpoint> taken = new LinkedHashMap<>();
        for (boolean isHeld : new boolean[] {true, false}) {
            for (Endpoint endpoint : all) {
                if (taken.size() < MAX_INSTANCES && members.containsKey(ClientAddress.keyOf(endpoint)) == isHeld) {
                    taken.putIfAbsent(ClientAddress.keyOf(endpoint), endpoint);
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
        // Another thread fails the calls, since failing them here would run their callers' code on the registry's
        // thread.
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
