package dev.rpcx.internal.ledger;

import dev.rpcx.codec.HeapArray;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts how much of each {@link Resource} a server or client holds: in all, for each address of a peer, and for each
 * connection. This limits what a peer can make this side hold, and lets a test check that nothing stays charged.
 * Everything is charged to the {@link Account} of a connection through a {@link Charge}, and released through the same
 * charge. Thread-safe.
 *
 * <p><b>Fair share.</b> How much a connection may hold depends on what is free: it may hold as much as remains free
 * afterwards. All connections of one address together may hold twice as much. So a single connection can hold half of a
 * pool, and a single address two thirds. Something always remains for a peer that holds little. Source: Choudhury and
 * Hahne, <i>Dynamic Queue Length Thresholds for Shared-Memory Packet Switches</i>, 1998, with α = 1 for a connection
 * and α = 2 for an address.
 *
 * <p>There are two exceptions. Resources that cannot be refused without ending a connection are shared in another way,
 * see {@link Claims}. The number of connections has fixed limits, which an administrator sets.
 *
 * <p>The ledger only refuses charges. If a peer fills a pool and makes no progress, the classes of its connection
 * release what it holds.
 *
 * <p>All IPv6 addresses of one /64 count as one address, since a single host can use any of them (RFC 6177).
 */
public final class Ledger {
    /** All connections of one address together may hold this many times the amount that is free. */
    private static final int ADDRESS_SHARE = 2;

    /**
     * Each pool for messages has room for at least this many messages of the largest size, even if the heap is small.
     */
    private static final int MIN_MESSAGES = 4;

    /**
     * Number of bytes of heap for each place for a call, and for each stream. A connection uses a place for one call
     * after another. A place takes at most 2 KiB that are not charged elsewhere: its objects, its buffer at the initial
     * size, and what {@link UnchargedAllowance} allows a call that is not counted as running. So all places take at
     * most a 32nd of the heap.
     */
    private static final int HEAP_OF_CALL = 64 * 1024;

    /** A connection's limit for bytes of objects is this many times its limit for bytes of messages. */
    private static final int MAX_OBJECTS_PER_BYTE = 4;

    /** Smallest limit for the number of places for calls, and for the number of streams, even if the heap is tiny. */
    private static final int MIN_CALLS = 2 * 1024;

    /**
     * A client's pools for replies, and for frames that have arrived in part, are this many times those of a server. So
     * the replies of all connections may take half of the heap, those of one connection a quarter, and frames an
     * eighth.
     */
    private static final int CLIENT_REPLIES = 4;

    /**
     * One connection may keep buffers of at most the limit for all connections together, divided by this number. On a
     * heap of 3 GiB this is 9 MiB, enough for 64 callers of 100 kB each.
     */
    private static final int KEPT_PART = 8;

    /** Smallest limit, in bytes, for the buffers that one connection keeps. It applies if the heap is small. */
    private static final long MIN_KEPT_BYTES = 4L * 1024 * 1024;

    private static final int IPV6_PREFIX_BYTES = 8;

    /**
     * Largest number of {@link LingeringCharge}s that are released when a new one is added. Only those whose handlers'
     * futures have become unreachable are released.
     */
    private static final int COLLECTED_AT_ONCE = 2;

    /**
     * Largest number of {@link LingeringCharge}s that are released to make room for a charge. Only those whose
     * handlers' futures have become unreachable are released. This takes an event loop some 100 µs.
     */
    private static final int COLLECTED_WHEN_REFUSED = 256;

    private static final int NO_INDEX = -1;

    private static final int KINDS = Resource.values().length;

    /** Ledgers of all servers and clients that are still reachable. For tests. */
    private static final Set<Ledger> LIVE = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /**
     * Ledgers that this class keeps from being garbage-collected: those created since {@code keepAll} or since the
     * latest {@link #letGo}. For tests; null unless {@code keepAll} has been called.
     */
    private static volatile @Nullable Set<Ledger> made;

    private final String owner;

    /** What a call may hold without being charged for it. */
    private volatile UnchargedAllowance uncharged = UnchargedAllowance.MAX;

    private final long[] max = new long[KINDS];
    private final long[] maxOfConnection = new long[KINDS];
    private final long[] maxOfAddress = new long[KINDS];
    private final int maxConnectionsOfAddress;
    private final AtomicLong[] held = new AtomicLong[KINDS];
    private final Map<Object, Address> addresses = new ConcurrentHashMap<>();
    private final AddressGroups groups = new AddressGroups();

    /**
     * Number of connections that have been opened so far and belong to no address, such as all connections of a client.
     */
    private final AtomicInteger opened = new AtomicInteger();

    private final Set<Account> open = ConcurrentHashMap.newKeySet();
    private final Map<Resource, List<LongSupplier>> watched = new EnumMap<>(Resource.class);
    private final Map<Resource, Claims> claims = new EnumMap<>(Resource.class);

    /** Charges for calls that were given up before the futures of their handlers had ended. */
    private final Set<LingeringCharge> lingeringCharges = ConcurrentHashMap.newKeySet();

    /**
     * Queue to which the garbage collector adds each of the {@link #lingeringCharges} whose handler's future is
     * unreachable.
     */
    private final ReferenceQueue<Object> collected = new ReferenceQueue<>();

    /**
     * Creates a ledger with the given limits.
     *
     * @param owner name of the server or client, for the texts of {@code audit} and {@code toString}
     * @param limits limit of each kind for all connections together; a kind that is missing has no limit
     * @param limitsOfConnection limit of each kind for one connection, however much is free
     */
    public Ledger(
            String owner,
            Map<Resource, Long> limits,
            Map<Resource, Long> limitsOfConnection,
            int maxConnectionsOfAddress) {
        this.owner = owner;
        this.maxConnectionsOfAddress = maxConnectionsOfAddress;
        Arrays.fill(this.max, Long.MAX_VALUE);
        Arrays.fill(this.maxOfConnection, Long.MAX_VALUE);
        Arrays.fill(this.maxOfAddress, Long.MAX_VALUE);
        limits.forEach((kind, limit) -> this.max[kind.ordinal()] = limit);
        limitsOfConnection.forEach((kind, limit) -> this.maxOfConnection[kind.ordinal()] = limit);
        for (int i = 0; i < KINDS; i++) {
            held[i] = new AtomicLong();
        }
        for (Resource kind : Resource.values()) {
            watched.put(kind, new CopyOnWriteArrayList<>());
            if (kind.isClaimed()) {
                claims.put(kind, new Claims(this.max[kind.ordinal()], held[kind.ordinal()]));
            }
        }
    }

    /**
     * Creates the ledger of a server, with limits that are shares of the heap. Together with what is not charged, these
     * shares make up four fifths of the heap, and more with TLS; see docs/security.md.
     *
     * @param maxCalls largest number of calls of one connection, which the connection checks itself. The ledger limits
     *     all connections of an address, including closed ones, to {@code maxConnectionsOfAddress} times as many calls
     * @param maxRunning largest number of handlers that run at once
     * @param maxMessageBytes largest size of a message in bytes; each pool for messages has room for some of them, even
     *     on a small heap
     */
    public static Ledger ofServer(
            String owner,
            int maxConnections,
            int maxConnectionsOfAddress,
            int maxCalls,
            int maxRunning,
            int maxMessageBytes) {
        Map<Resource, Long> limits = ofHeap(maxMessageBytes);
        limits.put(Resource.CONNECTIONS, (long) maxConnections);
        Map<Resource, Long> limitsOfConnection = ofConnection(maxMessageBytes);
        // buffers are charged at their full size, which may be twice the size of their content
        limitsOfConnection.computeIfPresent(Resource.REQUEST_BYTES, (kind, share) -> 2 * share);
        Ledger made = new Ledger(owner, limits, limitsOfConnection, maxConnectionsOfAddress);
        made.maxOfAddress[Resource.CALLS.ordinal()] = (long) maxConnectionsOfAddress * maxCalls;
        // each running handler has a place, so the number of places is another limit
        long running = Math.min(maxRunning, made.max(Resource.CALLS));
        made.uncharged = UnchargedAllowance.of(Runtime.getRuntime().maxMemory(), running);
        return live(made);
    }

    /**
     * Creates the ledger of a client, with limits that are shares of the heap. A client chooses its peers, so the
     * number of its connections has no limit.
     *
     * @param maxMessageBytes largest size in bytes of a message that a peer may send
     */
    public static Ledger ofClient(String owner, int maxMessageBytes) {
        Map<Resource, Long> limits = ofHeap(maxMessageBytes);
        Map<Resource, Long> limitsOfConnection = ofConnection(maxMessageBytes);
        // A client has more room for replies than a server, since it has asked for them and a refused reply is lost.
        limits.computeIfPresent(Resource.REPLY_BYTES, (kind, share) -> share * CLIENT_REPLIES);
        limitsOfConnection.remove(Resource.REPLY_BYTES);
        // frames of replies have more room too: if there is no room for such a frame, a connection ends, and its calls
        // end as OVERLOADED
        limits.computeIfPresent(Resource.FRAME_BYTES, (kind, share) -> share * CLIENT_REPLIES);
        // Buffers are charged at their full size, as at a server. The limit of the pool is doubled too, since only the
        // client's own callers fill it.
        limits.computeIfPresent(Resource.REQUEST_BYTES, (kind, share) -> 2 * share);
        limitsOfConnection.computeIfPresent(Resource.REQUEST_BYTES, (kind, share) -> 2 * share);
        return live(new Ledger(owner, limits, limitsOfConnection, Integer.MAX_VALUE));
    }

    private static Ledger live(Ledger ledger) {
        HeapArray.prepare();
        LIVE.add(ledger);
        Set<Ledger> kept = made;
        if (kept != null) {
            kept.add(ledger);
        }
        return ledger;
    }

    /**
     * Makes this class keep each new ledger from being garbage-collected, until {@link #letGo} is called. For tests:
     * after a test, nothing else refers to the servers that it started.
     */
    public static synchronized void keepAll() {
        if (made == null) {
            made = ConcurrentHashMap.newKeySet();
        }
    }

    /**
     * Drops the ledgers that {@link #keepAll} has made this class keep. Ledgers that are created later are kept again.
     */
    public static void letGo() {
        Set<Ledger> kept = made;
        if (kept != null) {
            kept.clear();
        }
    }

    private static Map<Resource, Long> ofHeap(int maxMessageBytes) {
        long heap = Runtime.getRuntime().maxMemory();
        long some = (long) MIN_MESSAGES * maxMessageBytes;
        Map<Resource, Long> limits = new EnumMap<>(Resource.class);
        limits.put(Resource.REQUEST_BYTES, Math.max(some, heap / 8));
        limits.put(Resource.OBJECT_BYTES, Math.max(some, heap / 8));
        limits.put(Resource.REPLY_BYTES, Math.max(some, heap / 8));
        limits.put(Resource.UNREAD_REPLY_BYTES, limits.get(Resource.REPLY_BYTES) / 4 * 3);
        limits.put(Resource.QUEUE_BYTES, heap / 8);
        limits.put(Resource.ITEM_BYTES_IN, Math.max(some, heap / 16));
        limits.put(Resource.ITEM_BYTES_OUT, Math.max(some, heap / 16));
        limits.put(Resource.KEPT_BYTES, keptOf(heap));
        limits.put(Resource.TABLE_BYTES, heap / 128);
        limits.put(Resource.FRAME_BYTES, heap / 32);
        limits.put(Resource.CALLS, Math.max(MIN_CALLS, heap / HEAP_OF_CALL));
        limits.put(Resource.STREAMS, Math.max(MIN_CALLS, heap / HEAP_OF_CALL));
        return limits;
    }

    private static Map<Resource, Long> ofConnection(int maxMessageBytes) {
        long bytes = Math.max(64L * 1024 * 1024, 2L * maxMessageBytes);
        Map<Resource, Long> limits = new EnumMap<>(Resource.class);
        limits.put(Resource.REQUEST_BYTES, bytes);
        limits.put(Resource.OBJECT_BYTES, MAX_OBJECTS_PER_BYTE * bytes);
        limits.put(Resource.REPLY_BYTES, bytes);
        limits.put(Resource.ITEM_BYTES_IN, bytes);
        limits.put(Resource.ITEM_BYTES_OUT, bytes);
        long kept = keptOf(Runtime.getRuntime().maxMemory());
        limits.put(Resource.KEPT_BYTES, Math.max(MIN_KEPT_BYTES, kept / KEPT_PART));
        return limits;
    }

    private static long keptOf(long heap) {
        return heap / 128 * 3;
    }

    /**
     * Opens an account for a new connection. The connection counts in the limits until {@link Account#close}.
     *
     * @param remote the peer's address; if this is null or not an Internet address, the connection belongs to no
     *     address
     * @return the account; null if there would then be too many connections, in all or of this address
     */
    public @Nullable Account open(@Nullable SocketAddress remote) {
        Object key = key(remote);
        Address address = key == null
                ? null
                : addresses.compute(key, (k, found) -> {
                    Address is = found == null ? new Address(k) : found;
                    is.connections.incrementAndGet();
                    return is;
                });
        boolean fits = address == null || address.connections.get() <= maxConnectionsOfAddress;
        AtomicLong all = held[Resource.CONNECTIONS.ordinal()];
        if (fits && all.incrementAndGet() > max[Resource.CONNECTIONS.ordinal()]) {
            all.decrementAndGet();
            fits = false;
        }
        if (!fits) {
            if (address != null) {
                removeConnection(address);
            }
            return null;
        }
        boolean isOpen = false;
        try {
            Account account = address == null
                    ? new Account(this, null, opened.getAndIncrement())
                    : new Account(this, address, numberIn(address));
            open.add(account);
            isOpen = true;
            return account;
        } finally {
            if (!isOpen) {
                all.decrementAndGet();
                if (address != null) {
                    removeConnection(address);
                }
            }
        }
    }

    /**
     * Returns the number of a new connection among all that its address has opened so far; the first gets 0. With its
     * first connection, the address gets its index in {@link AddressGroups}.
     */
    private int numberIn(Address address) {
        synchronized (groups) {
            if (address.groupIndex == NO_INDEX) {
                address.groupIndex = groups.take();
            }
            return address.opened++;
        }
    }

    public AddressGroups groups() {
        return groups;
    }

    private static @Nullable Object key(@Nullable SocketAddress remote) {
        if (!(remote instanceof InetSocketAddress peer)) {
            return null;
        }
        InetAddress address = peer.getAddress();
        if (address instanceof Inet6Address) {
            return java.nio.ByteBuffer.wrap(Arrays.copyOf(address.getAddress(), IPV6_PREFIX_BYTES));
        }
        return address;
    }

    void closed(Account account) {
        if (open.remove(account)) {
            held[Resource.CONNECTIONS.ordinal()].decrementAndGet();
            Address address = account.address;
            if (address != null) {
                removeConnection(address);
            }
        }
    }

    private void removeConnection(Address address) {
        addresses.computeIfPresent(address.key, (key, found) -> {
            found.connections.decrementAndGet();
            return forgettable(found);
        });
    }

    private @Nullable Address forgettable(Address address) {
        if (address.connections.get() != 0 || !address.holdsNothing()) {
            return address;
        }
        if (address.groupIndex != NO_INDEX) {
            groups.give(address.groupIndex);
            address.groupIndex = NO_INDEX;
        }
        return null;
    }

    /**
     * Charges an account for an amount, if there is room for it.
     *
     * @return false if there is no room; then nothing has changed
     */
    boolean tryCharge(Account account, Resource kind, long amount) {
        return tryChargeNow(account, kind, amount)
                || endCollected(COLLECTED_WHEN_REFUSED) && tryChargeNow(account, kind, amount);
    }

    private boolean tryChargeNow(Account account, Resource kind, long amount) {
        int i = kind.ordinal();
        long all = held[i].addAndGet(amount);
        long own = account.held.addAndGet(i, amount);
        Address address = account.address;
        long ofAddress = address == null ? 0 : address.held.addAndGet(i, amount);
        long free = max[i] - all;
        boolean fits = max[i] == Long.MAX_VALUE
                || (kind.isClaimed()
                        ? free + claims(kind).releasingBytes() >= 0
                        : own <= free && ofAddress / ADDRESS_SHARE <= free);
        if (fits && own <= maxOfConnection[i] && ofAddress <= maxOfAddress[i]) {
            return true;
        }
        release(account, kind, amount);
        return false;
    }

    void release(Account account, Resource kind, long amount) {
        int i = kind.ordinal();
        held[i].addAndGet(-amount);
        account.held.addAndGet(i, -amount);
        Address address = account.address;
        if (address != null && address.held.addAndGet(i, -amount) == 0 && address.connections.get() == 0) {
            addresses.computeIfPresent(address.key, (key, found) -> forgettable(found));
        }
    }

    /**
     * Creates a charge for what a call still holds after it has been given up. The account has been charged for this
     * already. From now on, the new charge is responsible for releasing it.
     *
     * @param holder object that only the future of the call's handler refers to. The charge stays until the future
     *     ends, or until {@code holder} is unreachable
     * @param objectBytes number of bytes that the account has been charged for objects of the call
     * @param places number of places for calls that the account has been charged for the call
     */
    LingeringCharge leaveCharge(Account account, Object holder, long objectBytes, int places) {
        // otherwise charges with unreachable futures would stay until a charge is refused
        endCollected(COLLECTED_AT_ONCE);
        LingeringCharge lingering = new LingeringCharge(this, account, holder, collected, objectBytes, places);
        lingeringCharges.add(lingering);
        return lingering;
    }

    void over(LingeringCharge lingering) {
        lingeringCharges.remove(lingering);
    }

    /**
     * Returns the number of charges for calls that were given up and whose handlers' futures have not ended. For tests.
     */
    public int lingeringCharges() {
        return lingeringCharges.size();
    }

    /**
     * Releases {@link LingeringCharge}s whose handlers' futures have become unreachable.
     *
     * @param max largest number of charges to release; should be small on an event loop
     * @return whether any charge was released
     */
    private boolean endCollected(int max) {
        for (int i = 0; i < max; i++) {
            Reference<?> found = collected.poll();
            if (found == null) {
                return i > 0;
            }
            ((LingeringCharge) found).end();
        }
        return true;
    }

    Claims claims(Resource kind) {
        return Objects.requireNonNull(claims.get(kind), "no claims are made on this");
    }

    /**
     * Returns how much of {@code kind} is held in all. This includes the values of the counters that {@link #watch} has
     * added.
     */
    public long held(Resource kind) {
        long sum = held[kind.ordinal()].get();
        for (LongSupplier count : watched(kind)) {
            sum += count.getAsLong();
        }
        return sum;
    }

    boolean isHalfTaken(Resource kind) {
        int i = kind.ordinal();
        return held[i].get() > max[i] / 2;
    }

    /** Returns the number of addresses that have an open connection or still hold something. For tests. */
    int addresses() {
        return addresses.size();
    }

    public UnchargedAllowance uncharged() {
        return uncharged;
    }

    public long max(Resource kind) {
        return max[kind.ordinal()];
    }

    /**
     * Returns the largest amount of {@code kind} that one connection can hold while no other connection holds any. For
     * a kind that is claimed, see {@link Claims}, the result is too small: one connection can fill the entire pool.
     */
    public long maxOfConnection(Resource kind) {
        int i = kind.ordinal();
        // a connection may hold no more than it leaves free, and so no more than half of the pool
        return Math.min(max[i] / 2, maxOfConnection[i]);
    }

    /**
     * Adds a counter whose value this ledger reports, in addition to what has been charged, as held. The counter need
     * not be synchronized, since its value matters only while no call is under way.
     */
    public void watch(Resource kind, LongSupplier count) {
        watched(kind).add(count);
    }

    private List<LongSupplier> watched(Resource kind) {
        return Objects.requireNonNull(watched.get(kind));
    }

    /**
     * Returns a report of what is held and should not be; empty if there is nothing. It has one line for each kind of
     * which something is held. Also lists connections with calls under way, and addresses without connections. What
     * open connections may hold without calls, such as kept buffers, is left out. Exact only while nothing is going on.
     * For tests, and to find what has not been released.
     */
    public String audit() {
        endCollected(Integer.MAX_VALUE);
        long[] atRest = new long[KINDS];
        StringBuilder text = new StringBuilder();
        for (Account account : open) {
            for (Resource kind : Resource.values()) {
                if (kind.isHeldAtRest()) {
                    atRest[kind.ordinal()] += account.held(kind);
                }
            }
            long underWay = account.callCount();
            if (underWay != 0) {
                text.append(owner)
                        .append(": a connection has ")
                        .append(underWay)
                        .append(" calls under way\n");
            }
        }
        atRest[Resource.CONNECTIONS.ordinal()] = open.size();
        for (Resource kind : Resource.values()) {
            long over = held(kind) - atRest[kind.ordinal()];
            if (over != 0) {
                text.append(owner)
                        .append(": ")
                        .append(over)
                        .append(' ')
                        .append(kind)
                        .append('\n');
            }
        }
        for (Address address : addresses.values()) {
            if (address.connections.get() == 0) {
                text.append(owner).append(": ").append(address).append(" without a connection\n");
            }
        }
        return text.toString();
    }

    /** Returns the results of {@link #audit} of all ledgers in this process that are reachable and not forgotten. */
    public static String auditAll() {
        Ledger[] all;
        synchronized (LIVE) {
            all = LIVE.toArray(new Ledger[0]);
        }
        StringBuilder text = new StringBuilder();
        for (Ledger ledger : all) {
            text.append(ledger.audit());
        }
        return text.toString();
    }

    /**
     * Makes {@link #auditAll} ignore the ledgers that have something to report now. For tests, so that a fault is
     * reported only once.
     */
    public static void forgetHeld() {
        synchronized (LIVE) {
            LIVE.removeIf(ledger -> !ledger.audit().isEmpty());
        }
    }

    /** Makes {@link #auditAll} ignore this ledger. For tests, and for a simulation that kills this server. */
    public void forget() {
        LIVE.remove(this);
    }

    @Override
    public String toString() {
        return owner;
    }

    /**
     * Counts what the connections of one address hold together. Closed connections that still hold something are
     * included.
     */
    public static final class Address {
        private final Object key;
        private final AtomicLongArray held = new AtomicLongArray(KINDS);

        /**
         * Handlers that still run for closed connections of this address. They count in the admission limits of their
         * methods.
         */
        public final OrphanedWork handlers = new OrphanedWork();

        /**
         * Threads of the handler pool that still run handlers of closed connections of this address. Tasks of such
         * connections that wait for a thread count too.
         */
        public final OrphanedWork handlerThreads = new OrphanedWork();

        /**
         * Threads that still notify streams and calls of closed connections of this address. Notifications that wait
         * for a thread count too.
         */
        public final OrphanedWork signalThreads = new OrphanedWork();

        /** Number of open connections. Changed only while the entry of this address in {@code addresses} is locked. */
        private final AtomicInteger connections = new AtomicInteger();

        /**
         * Index of the address in {@link AddressGroups}, or -1 before its first account is opened. The address keeps
         * its index until it is forgotten.
         */
        int groupIndex = NO_INDEX;

        /** Number of connections of this address that have been opened so far. Guarded by {@code groups}. */
        private int opened;

        public Address(Object key) {
            this.key = key;
        }

        private boolean holdsNothing() {
            for (int i = 0; i < KINDS; i++) {
                if (held.get(i) != 0) {
                    return false;
                }
            }
            return true;
        }

        @Override
        public String toString() {
            return key + " " + held;
        }
    }
}
