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
 * All charges of one server or client. A ledger counts how much of each {@link Resource} is held in all, by each
 * address of a peer and by each connection. Whatever is held is charged to an {@link Account} through a {@link Charge},
 * and released through the same charge. So there is a bound to what a peer can make this side hold, and a test can see
 * that nothing stays charged. Thread-safe.
 *
 * <p><b>Fair share.</b> A fixed part for each peer would have to be tiny to be safe, and would waste the rest of the
 * pool. Instead the free amount decides. A connection may hold as much as is still free afterwards, and all connections
 * of one address together may hold twice as much. So a single connection can hold half of a pool, and a single address
 * two thirds. Each further greedy connection or address can hold a part of what remains. So something always remains: a
 * peer that holds little gets it, while a peer that holds much is refused. A peer that fills a pool and makes no
 * progress loses what it holds; the classes of its connection take care of that, and not the ledger. What cannot be
 * refused without ending a connection is shared in another way: see {@link Claims}. Source: Choudhury and Hahne,
 * <i>Dynamic Queue Length Thresholds for Shared-Memory Packet Switches</i>, 1998, with α = 1 for a connection and α = 2
 * for an address. The number of connections has fixed limits instead, since an administrator sets these limits as
 * numbers.
 *
 * <p>All IPv6 addresses of one /64 count as one address, since a single host can use any of them (RFC 6177).
 */
public final class Ledger {
    /** All connections of one address together may hold this many times the amount that is free. */
    private static final int ADDRESS_SHARE = 2;

    /**
     * Each pool of messages has room for at least this many messages of the largest size, even if the heap is small.
     */
    private static final int MIN_MESSAGES = 4;

    /**
     * The size of the heap in bytes, divided by this number, is the largest number of places for calls. It is also the
     * largest number of streams. A place takes at most 2 KiB that are not charged elsewhere: its objects, its buffer at
     * its first size, and what {@link UnchargedAllowance} lets a call hold while the call is not counted as running. 2
     * KiB are a 32nd of this number, so all places together take at most a 32nd of the heap.
     */
    private static final int HEAP_OF_CALL = 64 * 1024;

    /** A connection's limit for bytes of objects is this many times its limit for bytes of messages. */
    private static final int MAX_OBJECTS_PER_BYTE = 4;

    /** Smallest limit for the number of places for calls, and for the number of streams, even if the heap is tiny. */
    private static final int MIN_CALLS = 2 * 1024;

    /**
     * A client's limits for bytes of replies, and for bytes of frames that have begun to arrive, are this many times
     * those of a server. So the replies of all connections of a client may take half of the heap, and those of one
     * connection a quarter. Frames that have begun to arrive may take an eighth of the heap.
     */
    private static final int CLIENT_REPLIES = 4;

    /**
     * The limit for the buffers that one connection keeps is the limit for the kept buffers of all connections, divided
     * by this number. On a heap of 3 GiB, one connection may keep 9 MiB, enough for 64 callers of 100 kB each.
     */
    private static final int KEPT_PART = 8;

    /** Smallest limit in bytes for the buffers that one connection keeps, even if the heap is small. */
    private static final long MIN_KEPT_BYTES = 4L * 1024 * 1024;

    private static final int IPV6_PREFIX_BYTES = 8;

    /**
     * Each time a call that has been given up leaves a charge behind, at most this many older charges of this kind are
     * released. These are the {@link LingeringCharge}s of handlers whose futures nobody can reach any more.
     */
    private static final int COLLECTED_AT_ONCE = 2;

    /**
     * Before the ledger refuses a charge, it releases at most this many {@link LingeringCharge}s of handlers whose
     * futures nobody can reach any more. To release that many takes an event loop some 100 µs.
     */
    private static final int COLLECTED_WHEN_REFUSED = 256;

    private static final int NO_INDEX = -1;

    private static final int KINDS = Resource.values().length;

    /** Ledgers of all servers and clients that are still reachable. For tests. */
    private static final Set<Ledger> LIVE = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /**
     * Ledgers that were made since {@code keepAll} or the latest {@link #letGo}. They are held here, so that none of
     * them is garbage-collected together with what it holds. For tests; null unless {@code keepAll} has been called.
     */
    private static volatile @Nullable Set<Ledger> made;

    private final String owner;

    /** What each call may hold without being charged for it. */
    private volatile UnchargedAllowance uncharged = UnchargedAllowance.MAX;

    private final long[] max = new long[KINDS];
    private final long[] maxOfConnection = new long[KINDS];
    private final long[] maxOfAddress = new long[KINDS];
    private final int maxConnectionsOfAddress;
    private final AtomicLong[] held = new AtomicLong[KINDS];
    private final Map<Object, Address> addresses = new ConcurrentHashMap<>();
    private final AddressGroups groups = new AddressGroups();

    /** Number of connections without an address that have been opened so far. */
    private final AtomicInteger opened = new AtomicInteger();

    private final Set<Account> open = ConcurrentHashMap.newKeySet();
    private final Map<Resource, List<LongSupplier>> watched = new EnumMap<>(Resource.class);
    private final Map<Resource, Claims> claims = new EnumMap<>(Resource.class);

    /** Charges that remain after calls have been given up, because the futures of their handlers have not ended. */
    private final Set<LingeringCharge> lingeringCharges = ConcurrentHashMap.newKeySet();

    /**
     * Queue of those {@link #lingeringCharges} that can be released. The garbage collector adds a charge to this queue
     * when nobody can reach the future of the charge any more.
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
     * Creates the ledger of a server. Its limits are shares of the heap. The sum of all limits and of what connections
     * and calls hold without being charged is four fifths of the heap, and more with TLS. It is computed in
     * docs/security.md.
     *
     * @param maxRunning largest number of handlers that run at once
     * @param maxCalls largest number of calls of one connection. The connection checks this limit itself, and the
     *     ledger checks the limit of each address: all connections of the address together may have
     *     {@code maxConnectionsOfAddress} times as many calls, including calls of connections that are gone
     * @param maxMessageBytes largest size of a message in bytes; each pool of messages has room for some messages of
     *     this size, however small the heap is
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
        // a buffer that has grown may be twice as large as what has been written to it. A server charges the full size
        // of the buffer, so the limit of a connection is doubled
        limitsOfConnection.computeIfPresent(Resource.REQUEST_BYTES, (kind, share) -> 2 * share);
        Ledger made = new Ledger(owner, limits, limitsOfConnection, maxConnectionsOfAddress);
        made.maxOfAddress[Resource.CALLS.ordinal()] = (long) maxConnectionsOfAddress * maxCalls;
        // each running handler has a place, so no more handlers run than there are places, whatever maxRunning says
        long running = Math.min(maxRunning, made.max(Resource.CALLS));
        made.uncharged = UnchargedAllowance.of(Runtime.getRuntime().maxMemory(), running);
        return live(made);
    }

    /**
     * Creates the ledger of a client. A client chooses its peers, so the number of its connections has no limit.
     *
     * @param maxMessageBytes largest size in bytes of a message that a peer may send
     */
    public static Ledger ofClient(String owner, int maxMessageBytes) {
        Map<Resource, Long> limits = ofHeap(maxMessageBytes);
        Map<Resource, Long> limitsOfConnection = ofConnection(maxMessageBytes);
        // a client has asked for the replies that it gets, and a reply that it refuses is lost. A server has asked for
        // nothing, and its peers are strangers. So a client has more room for replies than a server
        limits.computeIfPresent(Resource.REPLY_BYTES, (kind, share) -> share * CLIENT_REPLIES);
        limitsOfConnection.remove(Resource.REPLY_BYTES);
        // frames of replies that have begun to arrive have more room too: if there is no room for such a frame, a
        // connection ends, and its calls end as OVERLOADED
        limits.computeIfPresent(Resource.FRAME_BYTES, (kind, share) -> share * CLIENT_REPLIES);
        // as at a server, a buffer that has grown is charged at its full size, so the limit of a connection is doubled.
        // The limit of the pool is doubled too: only the client's own callers fill it, not strangers
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
     * Makes this class, from now on, hold each ledger that is made, until {@link #letGo} drops it. For tests: at the
     * end of a test, nobody else holds the test's servers any more.
     */
    public static synchronized void keepAll() {
        if (made == null) {
            made = ConcurrentHashMap.newKeySet();
        }
    }

    /**
     * Drops the ledgers that are held because of {@code keepAll}, when tests have checked them. Ledgers that are made
     * later are held again.
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
     * Opens an account for a new connection. The connection is counted until {@link Account#close}.
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
     * Returns the number of a new connection of an address. With its first connection, the address gets its index in
     * {@link AddressGroups}.
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
     * Charges an amount if there is room for it.
     *
     * @return false if there is no room for that much; then nothing has changed
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
     * Leaves a charge behind for a call that has been given up. The new charge takes over what the account has been
     * charged for the objects and the places that the call still holds.
     *
     * @param holder object that only the future of the call's handler refers to. The new charge stays until the future
     *     ends, or until nobody can reach {@code holder} any more
     */
    LingeringCharge leaveCharge(Account account, Object holder, long objectBytes, int places) {
        // each time that a charge is added, up to two charges whose futures nobody can reach are released. Otherwise
        // all of these would stay until the ledger has to refuse a charge
        endCollected(COLLECTED_AT_ONCE);
        LingeringCharge lingering = new LingeringCharge(this, account, holder, collected, objectBytes, places);
        lingeringCharges.add(lingering);
        return lingering;
    }

    void over(LingeringCharge lingering) {
        lingeringCharges.remove(lingering);
    }

    /**
     * Returns the number of charges that remain for calls that have been given up: those whose futures, as far as this
     * ledger knows, have not ended. For tests.
     */
    public int lingeringCharges() {
        return lingeringCharges.size();
    }

    /**
     * Releases {@link LingeringCharge}s of which the garbage collector has found that nobody can reach their futures
     * any more.
     *
     * @param max largest number of charges to release now; it is small if the caller may be an event loop
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
     * Returns how much of {@code kind} is held in all: the sum of what is charged here, and of what other classes count
     * and this ledger only watches.
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
     * a kind whose pool {@link Claims} shares out, the result is too small: one connection can fill the entire pool.
     */
    public long maxOfConnection(Resource kind) {
        int i = kind.ordinal();
        // a connection may hold no more than it leaves free, and so no more than half of the pool
        return Math.min(max[i] / 2, maxOfConnection[i]);
    }

    /**
     * From now on, adds the value of a counter, which another class keeps, to what this ledger reports as held. The
     * counter need not be synchronized, since its value matters only while no call is under way.
     */
    public void watch(Resource kind, LongSupplier count) {
        watched(kind).add(count);
    }

    private List<LongSupplier> watched(Resource kind) {
        return Objects.requireNonNull(watched.get(kind));
    }

    /**
     * Returns a text with all amounts that are not zero, one per line. The text is empty if all amounts are zero. It
     * also names connections that have calls under way, and addresses that are still known though they have no
     * connection. It leaves out what an open connection may hold while no call is under way, such as kept buffers. For
     * tests, and for whoever looks for what has not been released. The result is exact only while nothing is going on.
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

    /**
     * Returns the texts that {@link #audit} returns for the ledgers of this process, except for those that were
     * forgotten.
     */
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
     * Makes {@link #auditAll} leave out, from now on, the ledgers that hold something now. For tests, so that a fault
     * is reported only once.
     */
    public static void forgetHeld() {
        synchronized (LIVE) {
            LIVE.removeIf(ledger -> !ledger.audit().isEmpty());
        }
    }

    /**
     * Makes {@link #auditAll} leave out this ledger from now on. For tests, and for a simulation that kills this
     * server.
     */
    public void forget() {
        LIVE.remove(this);
    }

    @Override
    public String toString() {
        return owner;
    }

    /**
     * What the connections of one address hold together. Connections that are gone and still hold something are
     * included.
     */
    public static final class Address {
        private final Object key;
        private final AtomicLongArray held = new AtomicLongArray(KINDS);

        /**
         * Handlers that still run after their connections are gone, and that count in the admission limits of their
         * methods.
         */
        public final OrphanedWork handlers = new OrphanedWork();

        /**
         * Threads of the pool that still run handlers of connections that are gone, and the tasks of such connections
         * that wait for a thread.
         */
        public final OrphanedWork handlerThreads = new OrphanedWork();

        /**
         * Threads that run signals for streams and calls of connections that are gone, and the signals that wait for
         * such a thread.
         */
        public final OrphanedWork signalThreads = new OrphanedWork();

        /**
         * Number of connections that are open. Changed only while the entry of this address in the map
         * {@code addresses} is locked.
         */
        private final AtomicInteger connections = new AtomicInteger();

        /**
         * Index of the address in {@link AddressGroups}. The address gets this index before its first account is
         * created, and keeps it until the address is forgotten.
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
