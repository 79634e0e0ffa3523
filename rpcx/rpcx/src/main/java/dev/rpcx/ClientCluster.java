package dev.rpcx;

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
 * The instances of a service, each with its connections, and the choice among them. A call that finds none connected
 * waits until one is, or until each has been tried once.
 */
final class ClientCluster extends Route implements Endpoints.Listener {
    /** Instances that are taken of what a registry says: each has connections of its own, and a registry may lie. */
    static final int MAX_INSTANCES = 4096;

    /**
     * What a registry says is taken this much apart at least, and only the last of it: one that says something else all
     * the time is no reason to connect all the time.
     */
    private static final long APART_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Calls that wait for a connection leave one that is there to others of them for so long at most, where more are
     * about to come: connections that begin together are there together, but for a few milliseconds.
     */
    private static final long SPREAD_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /** So many instances are looked at, for calls that wait, before an event loop has its other tasks: some 1 ms. */
    static final int LOOKS_AT_ONCE = 1 << 16;

    /** Instances that the error of a call names. */
    private static final int MAX_NAMED = 3;

    private final ClientCore client;
    private final int kept;
    private final int most;
    private final Choice choice;

    /** Attempts to connect to instances of which a registry says that they are there. */
    private final Openings named;

    /** To those that have kept a connection: they do not wait behind whatever a registry names. */
    private final Openings known;

    private volatile Chooser chooser;
    private volatile String name = "no instance";
    /** Held while the watch begins, which is the registry's code. */
    private final Object beginning = new Object();

    private volatile @Nullable Future<?> looks;
    private volatile Endpoints.@Nullable Watch watch;
    private volatile @Nullable Throwable registryFailure;

    // guarded by this
    private Map<String, ClientAddress> members = new LinkedHashMap<>();

    /** What the registry has said last and has not been taken yet; null if it has. */
    private @Nullable List<Endpoint> said;

    /** A timer is there that takes {@link #said}. */
    private boolean isTimed;

    /** A member has another weight than the one that {@link #chooser} was made with. */
    private boolean isWeighedAnew;

    /** No longer members; each leaves when it has been told so. */
    private Set<ClientAddress> ended = new LinkedHashSet<>();

    /** The connections being left of each member, and of former ones until they have none, by their endpoints' keys. */
    private final Map<String, LeftConnections> left = new HashMap<>();

    /** When the instances changed last; null before the first time. */
    private @Nullable Long takenNanos;

    /** Attempts to connect that have failed so far. */
    private long failures;

    /**
     * The instances by {@link ClientAddress#failedAs}. A call has seen all of them fail when the first of these has
     * failed since it came: so a call that waits keeps one number, however many instances there are.
     */
    private TreeMap<Long, ClientAddress> byFailure = new TreeMap<>();

    /**
     * Members that are left out, the first to come back first. Each call that fails may ask how many they are: it need
     * not look at all members for that.
     */
    private PriorityQueue<ClientAddress> out = noneOut();

    /** Before all failures: the last number that an instance has got which has not failed yet. */
    private long untried;

    /** A timer is there that serves all calls which wait. */
    private boolean isSpreading;

    /** A timer is there that looks whether an instance has room again. */
    private boolean isLooking;

    /** Threads that create a proxy of this. */
    private int creators;

    /** The last creator has left, and none of them has begun the watch: nobody uses this, and nobody will. */
    private boolean isGivenUp;

    /** Calls without a connection, in the order in which they came; each leaves when it ends, whoever ends it. */
    private final Set<Waiting> waiting = new LinkedHashSet<>();

    /** What one call without a connection waits for. */
    private final class Waiting extends Coming<ClientConnection> {
        private final int key;

        /** {@link #failures} when the call came. */
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

    ClientCluster(ClientCore client, int kept, int most, Choice choice) {
        super(client);
        this.client = client;
        this.kept = kept;
        this.most = most;
        this.choice = choice;
        this.named = new Openings(client);
        this.known = new Openings(client);
        this.chooser = Chooser.of(choice, new ClientAddress[0], client.platform());
    }

    /** A proxy is about to be made of this. @return false if this has been given up, and another one is to be made */
    synchronized boolean enter() {
        if (isGivenUp) {
            return false;
        }
        creators++;
        return true;
    }

    /**
     * The proxy has been made, or could not be.
     *
     * @return whether this has been given up: its watch has not begun, and no other creator is about to begin it
     */
    boolean leave() {
        synchronized (this) {
            creators--;
            if (creators > 0 || watch != null) {
                return false;
            }
            isGivenUp = true;
            // a watch may have failed behind the first instances that it has named
            said = null;
            Set<ClientAddress> nowEnded = new LinkedHashSet<>(ended);
            nowEnded.addAll(members.values());
            ended = nowEnded;
            members = new LinkedHashMap<>();
            byFailure = new TreeMap<>();
            out = noneOut();
            chooser = Chooser.of(choice, new ClientAddress[0], client.platform());
        }
        settle();
        return true;
    }

    /**
     * Begins to hear of instances, once, however often it is called.
     *
     * @throws IllegalStateException if the client is closed
     */
    ClientCluster start(Endpoints endpoints) {
        synchronized (beginning) {
            if (watch == null) {
                watch = SharedWatch.of(endpoints, this);
            }
            // behind the watch, without which nobody would end them
            if (looks == null) {
                looks = client.repeat(this::lookAfter, LOOK_NANOS);
            }
        }
        // the end of the client looks for the watch after it has closed the client: one of the two sees the other
        if (client.isClosed()) {
            endWatch();
            throw new IllegalStateException("the client is closed");
        }
        return this;
    }

    /** Hears of no instances any more. Runs the registry's code, which may block. */
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

    /** Ends the calls that wait for a connection, and so runs their callbacks. */
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

    /** For tests: a cluster of no client's. */
    void close() {
        endWatch();
        endCalls();
    }

    Openings openings(boolean isKnown) {
        return isKnown ? known : named;
    }

    @Override
    boolean hasOthers(@Nullable ClientAddress used) {
        return used == null ? chooser.all.length > 1 : chooser.hasBeside(List.of(used));
    }

    @Override
    @Nullable
    ClientConnection ready(int key) {
        return chooser.pick(key);
    }

    @Override
    @Nullable
    ClientConnection readyBeside(List<ClientAddress> asked) {
        return chooser.pickBeside(asked);
    }

    @Override
    boolean hasFreeBeside(ClientAddress asked) {
        return chooser.hasFreeBeside(asked);
    }

    @Override
    Coming<ClientConnection> connect(int key) {
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
            // whatever was connected between the caller's look and now
            ClientConnection ready = ready(key);
            if (ready != null) {
                call.complete(ready);
            } else {
                lookSoon();
            }
        } catch (Throwable e) {
            // an Error too: a call without a timer might wait for ever
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
     * Calls may wait though an instance is there, which takes no more of them and does not say when it does again.
     * Where none is there the first to come serves them.
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

    /** For tests. */
    Chooser chooser() {
        return chooser;
    }

    /** Calls that wait for a connection: for tests. */
    synchronized int waiting() {
        return waiting.size();
    }

    @Override
    Coming<ClassicClientConnection> connectClassic() {
        throw new IllegalStateException("several endpoints on the classic wire (expected: the native one)");
    }

    /**
     * An instance has a connection. It serves its share of the calls that wait, at once, and leaves the rest to
     * instances that are still being connected to for the first time, for a moment: the first to be there would have
     * all of them.
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

    /** Of so many calls, rounded up, beside all instances that may be there soon. Under this lock. */
    private int share(int calls) {
        int coming = 0;
        for (ClientAddress member : chooser.all) {
            if (member.failedAs < 1 && !member.isConnected()) {
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
     * The choice for one call may look at all instances: so it is made for so many calls at a time that others have
     * their turn between.
     *
     * @param address has a connection, perhaps not this thread's; null for any
     */
    private void serve(List<Waiting> served, @Nullable ClientAddress address) {
        int most = Math.max(1, LOOKS_AT_ONCE / Math.max(1, chooser.all.length));
        for (Waiting call : served.subList(0, Math.min(most, served.size()))) {
            if (call.isDone()) {
                continue;
            }
            ClientConnection ready = ready(call.key);
            if (ready == null && address != null) {
                // on another connection of the same instance, unless that takes no more: then more comes elsewhere
                ClientConnection other = address.ready();
                ready = other == null || other.isFull() ? null : other;
            }
            if (ready == null) {
                // that was a look at all instances, and for the next call it is the same
                lookSoon();
                return;
            }
            call.complete(ready);
        }
        if (most < served.size()) {
            // where the client is closed its end tells them
            client.execute(() -> serve(served.subList(most, served.size()), address));
        }
    }

    /** An instance could not be reached. */
    void failed(ClientAddress address, Throwable why) {
        List<Waiting> given = new ArrayList<>();
        synchronized (this) {
            if (byFailure.get(address.failedAs) != address) {
                // it is no longer one of them
                return;
            }
            // first, since this is what may fail: an instance stays one of them
            byFailure.put(failures + 1, address);
            byFailure.remove(address.failedAs);
            failures++;
            address.failedAs = failures;
            long all = byFailure.firstKey();
            for (Waiting call : waiting) {
                if (call.came >= all) {
                    // as those behind it
                    break;
                }
                given.add(call);
            }
            given.forEach(waiting::remove);
        }
        given.forEach(call -> call.completeExceptionally(why));
    }

    /** An instance has failed too many calls: it is left out, unless half of all are already. */
    synchronized void eject(ClientAddress address) {
        for (ClientAddress first = out.peek(); first != null && !first.health().isOut(); first = out.peek()) {
            out.remove();
        }
        boolean isMember = members.get(ClientAddress.keyOf(address.endpoint)) == address;
        if (isMember && !address.health().isOut() && (out.size() + 1) * 2 <= members.size()) {
            address.health().leaveOut();
            out.add(address);
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
            said = all;
            long wait = untilNextNanos();
            if (wait > 0 && !isTimed) {
                isTimed = client.schedule(this::take, wait);
            }
            if (wait > 0 && isTimed) {
                return;
            }
        }
        take();
    }

    /** Until the instances may change again: how long that has to wait. Under this lock. */
    private long untilNextNanos() {
        Long last = takenNanos;
        return last == null
                ? 0
                : last + APART_NANOS - client.platform().ticker().nanoTime();
    }

    /**
     * Once a second: whatever an Error has cut off on the way of an instance, of a list or of a call goes on here.
     * Without one there is nothing to do.
     */
    private void lookAfter() {
        if (client.isClosed()) {
            return;
        }
        try {
            boolean isLate;
            synchronized (this) {
                isLate = said != null && untilNextNanos() <= 0;
            }
            if (isLate) {
                take();
            }
        } catch (Throwable e) {
            failedHere(e);
        }
        try {
            settle();
            serveAll();
        } catch (Throwable e) {
            failedHere(e);
        }
    }

    /** The next look is in a second. */
    private static void failedHere(Throwable thrown) {
        try {
            System.getLogger("dev.rpcx.discovery")
                    .log(System.Logger.Level.WARNING, "instances are looked after again in a second", thrown);
        } catch (Throwable unspeakable) {
            // what has failed is worse than that nobody hears of it
        }
    }

    /** Takes what the registry has said last. */
    private void take() {
        if (client.isClosed()) {
            return;
        }
        synchronized (this) {
            isTimed = false;
            List<Endpoint> all = said;
            if (all == null) {
                return;
            }
            Map<String, ClientAddress> now = new LinkedHashMap<>();
            TreeMap<Long, ClientAddress> nowByFailure = new TreeMap<>();
            PriorityQueue<ClientAddress> nowOut = noneOut();
            Set<ClientAddress> nowEnded = new LinkedHashSet<>(ended);
            long nowUntried = untried;
            for (Endpoint endpoint : taken(all)) {
                if (now.containsKey(ClientAddress.keyOf(endpoint))) {
                    // named twice: the first one counts
                    continue;
                }
                ClientAddress held = members.get(ClientAddress.keyOf(endpoint));
                if (held == null) {
                    LeftConnections before =
                            left.computeIfAbsent(ClientAddress.keyOf(endpoint), first -> new LeftConnections());
                    held = new ClientAddress(client, endpoint, kept, most, this, before);
                    held.failedAs = --nowUntried;
                } else {
                    isWeighedAnew |= held.weigh(endpoint.weight());
                }
                now.put(ClientAddress.keyOf(endpoint), held);
                nowByFailure.put(held.failedAs, held);
                if (held.health().isOut()) {
                    nowOut.add(held);
                }
            }
            for (ClientAddress member : members.values()) {
                if (now.get(ClientAddress.keyOf(member.endpoint)) != member) {
                    nowEnded.add(member);
                }
            }
            if (nowUntried == untried && nowEnded.size() == ended.size() && !isWeighedAnew) {
                said = null;
                // what has changed nothing has been looked at all the same
                takenNanos = client.platform().ticker().nanoTime();
                return;
            }
            Chooser nowChooser = Chooser.of(choice, now.values().toArray(new ClientAddress[0]), client.platform());
            String nowName = named(now.keySet());
            takenNanos = client.platform().ticker().nanoTime();
            // those that end now are left in a moment
            left.entrySet()
                    .removeIf(of -> of.getValue().isEmpty()
                            && !now.containsKey(of.getKey())
                            && !members.containsKey(of.getKey()));
            // all that may fail has been done: the list is taken as a whole, or it is still there to be taken
            members = now;
            byFailure = nowByFailure;
            out = nowOut;
            ended = nowEnded;
            untried = nowUntried;
            chooser = nowChooser;
            name = nowName;
            isWeighedAnew = false;
            said = null;
        }
        settle();
    }

    /** Connects to members that are new, and ends those that are none any more. */
    private void settle() {
        ClientAddress[] all = chooser.all;
        // from a place of this client's own: attempts to connect take turns, and every client has the same list
        int first = all.length == 0 ? 0 : client.platform().random().nextInt(all.length);
        for (int i = 0; i < all.length; i++) {
            ClientAddress member = all[(first + i) % all.length];
            try {
                member.keepConnected();
            } catch (Throwable e) {
                // the others all the same
                failedHere(e);
            }
        }
        List<ClientAddress> told;
        synchronized (this) {
            told = List.copyOf(ended);
        }
        for (ClientAddress each : told) {
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

    private static PriorityQueue<ClientAddress> noneOut() {
        return new PriorityQueue<>((one, other) -> one.health().comesBackBefore(other.health()));
    }

    /** The first that are there already, then the first of the others: no more of them change than have to. */
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
        // not on the registry's thread, which has others to tell: what hangs on the calls is their callers' code
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
