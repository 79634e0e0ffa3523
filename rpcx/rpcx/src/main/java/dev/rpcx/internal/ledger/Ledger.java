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
 * connection. These counts are limited, so that a peer cannot make this side hold too much. They also let a test check
 * that nothing stays charged. Almost every amount is charged to the {@link Account} of a connection, and released from
 * the same account, mostly through a {@link Charge}. Thread-safe.
 *
 * <p><b>Fair share.</b> A connection may hold as much of a pool as remains free afterwards. All connections of one
 * address together may hold twice as much as remains free. So a single connection can hold at most half of a pool, and
 * a single address at most two thirds. Some part of the pool always remains for a peer that holds little. For some
 * kinds of resources, each connection also has a fixed limit. Source: Choudhury and Hahne, <i>Dynamic Queue Length
 * Thresholds for Shared-Memory Packet Switches</i>, 1998, with α = 1 for a connection and α = 2 for an address.
 *
 * <p>There are two exceptions. Resources that cannot be refused without ending a connection are shared in another way,
 * which {@link Claims} explains. The number of connections has fixed limits, which an administrator sets.
 *
 * <p>The ledger only refuses charges. If a peer fills a pool and makes no progress, the classes of the peer's
 * connection release what the connection holds.
 *
 * <p>All IPv6 addresses of one /64 count as one address, because a single host can use any of them (RFC 6177).
 */
public final class Ledger {
    /**
     * All connections of one address together may hold at most this multiple of what then remains free of a resource.
     * With 2, they may hold two thirds of a pool, because one third then remains free.
     */
    private static final int ADDRESS_SHARE = 2;

    /**
     * Each pool for messages has room for at least this many messages of the largest size, even if the heap is small.
     */
    private static final int MIN_MESSAGES = 4;

    /**
     * The maximum number of places is the size of the heap in bytes, divided by this number, but at least
     * {@link #MIN_CALLS}. The same maximum applies to streams.
     *
     * <p>A place is the memory that a server needs for one call. At most 2 KiB of this memory are not charged
     * elsewhere: the call's objects, its initial buffer, and what {@link UnchargedAllowance} allows a call whose
     * handler does not count as running. On a heap of at least 128 MiB, there is at most one place for each 64 KiB. So
     * all places together take at most a 32nd of such a heap.
     */
    private static final int HEAP_OF_CALL = 64 * 1024;

    /**
     * A connection's limit for the bytes of objects is its limit for the bytes of incoming items, multiplied by this
     * number. The limit for the bytes of objects is only twice the limit for the bytes of requests, because
     * {@link #ofServer} and {@link #ofClient} double the limit for the bytes of requests.
     */
    private static final int MAX_OBJECTS_PER_BYTE = 4;

    /**
     * The maximum number of places ({@link Resource#CALLS}) is at least this number, and so is the maximum number of
     * streams. This minimum applies if the heap has less than 128 MiB.
     */
    private static final int MIN_CALLS = 2 * 1024;

    /**
     * Factor by which a client's pools for replies, and for incomplete frames, are larger than a server's pools. With
     * this factor, replies can take half of the client's heap, the replies of one connection a quarter, and incomplete
     * frames an eighth.
     */
    private static final int CLIENT_REPLIES = 4;

    /**
     * The limit for the buffers that all connections together keep, divided by this number, is the limit for one
     * connection. On a heap of 3 GiB, one connection can keep 9 MiB, which is enough for 64 callers of 100 kB each.
     */
    private static final int KEPT_PART = 8;

    /**
     * Smallest limit, in bytes, for the buffers that one connection keeps. This minimum applies if the heap is small.
     */
    private static final long MIN_KEPT_BYTES = 4L * 1024 * 1024;

    private static final int IPV6_PREFIX_BYTES = 8;

    /**
     * Largest number of old {@link LingeringCharge}s that the ledger releases when a new one is added. The ledger
     * releases only charges for calls whose handlers' futures have become unreachable.
     */
    private static final int MAX_COLLECTED_AT_ONCE = 2;

    /**
     * Largest number of {@link LingeringCharge}s that the ledger releases to make room for another charge. The ledger
     * releases only charges for calls whose handlers' futures have become unreachable. Releasing this many takes an
     * event loop some 100 µs.
     */
    private static final int MAX_COLLECTED_WHEN_REFUSED = 256;

    private static final int NO_INDEX = -1;

    private static final int KINDS = Resource.values().length;

    /**
     * Ledgers of all servers and clients that are reachable, except those that {@link #forget} or {@link #forgetHeld}
     * has removed. Any thread may add and remove a ledger; the set itself is the lock. For tests.
     */
    private static final Set<Ledger> LIVE = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /**
     * Ledgers that have been created since the first call of {@link #keepAll}, without those that {@link #letGo} has
     * dropped. The set keeps these ledgers from being garbage-collected. For tests; null unless {@link #keepAll} has
     * been called. Each thread that creates a ledger reads this field.
     */
    private static volatile @Nullable Set<Ledger> made;

    private final String owner;

    /**
     * Amounts of memory that one call may hold without being charged for them. Written by {@link #ofServer} before any
     * other thread knows this ledger, and only read afterwards, by any thread.
     */
    private volatile UnchargedAllowance uncharged = UnchargedAllowance.MAX_ALLOWANCE;

    private final long[] max = new long[KINDS];
    private final long[] maxOfConnection = new long[KINDS];
    private final long[] maxOfAddress = new long[KINDS];
    private final int maxConnectionsOfAddress;

    // Any thread may use the fields from here to the constructor: event loops, the threads of a client's callers, the
    // threads of handlers, and threads that end the futures of handlers. Only the constructor fills the two EnumMaps.
    private final AtomicLong[] held = new AtomicLong[KINDS];
    private final Map<Object, Address> addresses = new ConcurrentHashMap<>();
    private final AddressGroups groups = new AddressGroups();

    /**
     * Number of connections that have been opened so far and belong to no address. All connections of a client belong
     * to no address.
     */
    private final AtomicInteger opened = new AtomicInteger();

    /**
     * Accounts that are open. An account can be closed twice, and only the close that removes it from this set counts
     * its connection as closed.
     */
    private final Set<Account> open = ConcurrentHashMap.newKeySet();

    private final Map<Resource, List<LongSupplier>> counters = new EnumMap<>(Resource.class);
    private final Map<Resource, Claims> claims = new EnumMap<>(Resource.class);

    /** Charges for calls that ended before the futures of their handlers completed. */
    private final Set<LingeringCharge> lingeringCharges = ConcurrentHashMap.newKeySet();

    /**
     * Queue of those {@link #lingeringCharges} whose handlers' futures have become unreachable. The garbage collector
     * adds the charges to this queue.
     */
    private final ReferenceQueue<Object> collected = new ReferenceQueue<>();

    /**
     * Creates a ledger with the given limits.
     *
     * @param owner name of the server or client, for the texts of {@code audit} and {@code toString}
     * @param limits limit of each kind of resource for all connections together; a missing kind has no limit
     * @param limitsOfConnection limit of each kind of resource for one connection, which applies even if more is free
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
            counters.put(kind, new CopyOnWriteArrayList<>());
            if (kind.isClaimed()) {
                claims.put(kind, new Claims(this.max[kind.ordinal()], held[kind.ordinal()]));
            }
        }
    }

    /**
     * Creates the ledger of a server, whose limits are shares of the heap. Together with memory that is not charged,
     * these shares make up four fifths of the heap with the default settings, and more with TLS; see docs/security.md.
     *
     * @param maxCalls largest number of calls of one connection. The connection itself checks this number. The ledger
     *     limits the calls of one address, including those of its closed connections, to {@code maxCalls} times
     *     {@code maxConnectionsOfAddress}
     * @param maxRunning largest number of handlers that run at once
     * @param maxMessageBytes largest size of a message in bytes; each pool for messages has room for some messages of
     *     this size, even on a small heap
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
        // the limit is doubled, because buffers are charged at their full size, which can be twice the size of their
        // content
        limitsOfConnection.computeIfPresent(Resource.REQUEST_BYTES, (kind, share) -> 2 * share);
        Ledger made = new Ledger(owner, limits, limitsOfConnection, maxConnectionsOfAddress);
        made.maxOfAddress[Resource.CALLS.ordinal()] = (long) maxConnectionsOfAddress * maxCalls;
        // a running handler holds one place, that is, one unit of Resource.CALLS, so no more handlers can run than
        // there are places
        long running = Math.min(maxRunning, made.max(Resource.CALLS));
        made.uncharged = UnchargedAllowance.of(Runtime.getRuntime().maxMemory(), running);
        return live(made);
    }

    /**
     * Creates the ledger of a client, whose limits are shares of the heap. The number of connections has no limit,
     * because a client chooses its peers.
     *
     * @param maxMessageBytes largest size in bytes of a message that a peer may send
     */
    public static Ledger ofClient(String owner, int maxMessageBytes) {
        Map<Resource, Long> limits = ofHeap(maxMessageBytes);
        Map<Resource, Long> limitsOfConnection = ofConnection(maxMessageBytes);
        // A client has more room for replies than a server, because the client has asked for the replies, and a refused
        // reply is lost.
        limits.computeIfPresent(Resource.REPLY_BYTES, (kind, share) -> share * CLIENT_REPLIES);
        limitsOfConnection.remove(Resource.REPLY_BYTES);
        // The pool for incomplete frames is larger than a server's, like the pool for replies. If this pool has no room
        // for a frame, a connection ends, and its calls end as OVERLOADED.
        limits.computeIfPresent(Resource.FRAME_BYTES, (kind, share) -> share * CLIENT_REPLIES);
        // The two limits for requests are doubled, because buffers are charged at their full size, which can be twice
        // the size of their content. The limit of the whole pool is doubled only at a client, because only the client's
        // own callers fill that pool.
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
     * Makes this class keep each new ledger from being garbage-collected, until {@link #letGo} is called. Tests need
     * this, because nothing else refers to a server after the test that started the server.
     */
    public static synchronized void keepAll() {
        if (made == null) {
            made = ConcurrentHashMap.newKeySet();
        }
    }

    /**
     * Drops the ledgers that this class has kept because of {@link #keepAll}. Ledgers that are created later are kept
     * again.
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
     * Opens an account for a new connection. The connection counts towards the limits until {@link Account#close}.
     *
     * @param remote the peer's address. If this is null or not an Internet address, the connection belongs to no
     *     address
     * @return the account; null if the maximum number of all connections, or of connections of this address, is reached
     *     already
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
     * Returns how many connections the address has opened before the new connection. At its first connection, the
     * address also gets its index in {@link AddressGroups}.
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
     * Charges an account for an amount, if the ledger has room for the amount.
     *
     * @return false if there is no room; nothing has changed in this case
     */
    boolean tryCharge(Account account, Resource kind, long amount) {
        return tryChargeNow(account, kind, amount)
                || endCollected(MAX_COLLECTED_WHEN_REFUSED) && tryChargeNow(account, kind, amount);
    }

    private boolean tryChargeNow(Account account, Resource kind, long amount) {
        int i = kind.ordinal();
        // Each thread adds first, and then compares the sums that its own additions have returned. If two threads
        // compared before they added, both could take the last room. If they read the sums again, both could be
        // refused. Tested by {@code LedgerRace}.
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
     * Creates a charge for what a call still holds after it has ended, while the future of its handler has not ended.
     * The account has already been charged for {@code objectBytes} and {@code places}. The new charge releases both
     * when the future ends, or some time after the future has become unreachable.
     *
     * @param holder object to which only the future of the call's handler refers. So {@code holder} becomes unreachable
     *     if the future does
     * @param objectBytes number of bytes that the account has been charged for objects of the call
     * @param places number of places ({@link Resource#CALLS}) that the new charge releases; 0 if the call's connection
     *     releases the call's place
     */
    LingeringCharge addLingeringCharge(Account account, Object holder, long objectBytes, int places) {
        // Some charges with unreachable futures are released here. Otherwise such charges would stay until the ledger
        // has no room for another charge.
        endCollected(MAX_COLLECTED_AT_ONCE);
        LingeringCharge lingering = new LingeringCharge(this, account, holder, collected, objectBytes, places);
        lingeringCharges.add(lingering);
        return lingering;
    }

    void over(LingeringCharge lingering) {
        lingeringCharges.remove(lingering);
    }

    /**
     * Returns the number of charges for calls that have ended and whose handlers' futures have not ended. Charges that
     * the ledger has released because these futures are unreachable do not count. For tests.
     */
    public int lingeringCharges() {
        return lingeringCharges.size();
    }

    /**
     * Releases {@link LingeringCharge}s whose handlers' futures have become unreachable.
     *
     * @param max largest number of charges to release; should be small on an event loop
     * @return whether at least one charge was released
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
     * Returns how much of {@code kind} all connections together hold. The result includes the values of the counters
     * that {@link #addCounter} has added.
     */
    public long held(Resource kind) {
        long sum = held[kind.ordinal()].get();
        for (LongSupplier count : counters(kind)) {
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
     * Returns the largest amount of {@code kind} that one connection can hold while no other connection holds any. The
     * result is too small for kinds that {@link Claims} manages, since one connection can fill the entire pool of such
     * a kind.
     */
    public long maxOfConnection(Resource kind) {
        int i = kind.ordinal();
        // a connection may hold at most as much of the pool as remains free afterwards, and so at most half of the pool
        return Math.min(max[i] / 2, maxOfConnection[i]);
    }

    /**
     * Adds a counter whose value this ledger reports as held, in addition to what has been charged. The counter need
     * not be synchronized, because its value matters only while no call is under way.
     */
    public void addCounter(Resource kind, LongSupplier count) {
        counters(kind).add(count);
    }

    private List<LongSupplier> counters(Resource kind) {
        return Objects.requireNonNull(counters.get(kind));
    }

    /**
     * Returns a report of all that is held and should have been released; empty if there is nothing. Tests use this
     * method. The report is exact only while no calls or connections begin or end. It has a line for:
     *
     * <ul>
     *   <li>each kind of resource that is still held, except what open connections may hold without calls, for example
     *       kept buffers;
     *   <li>each open connection with calls under way;
     *   <li>each address without a connection.
     * </ul>
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
     * Returns the reports of {@link #audit} of all ledgers that are reachable. Ledgers that {@link #forget} or
     * {@link #forgetHeld} has removed are left out.
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
     * Makes {@link #auditAll} ignore all ledgers that have something to report now. Tests use this method to report
     * each fault only once.
     */
    public static void forgetHeld() {
        synchronized (LIVE) {
            LIVE.removeIf(ledger -> !ledger.audit().isEmpty());
        }
    }

    /** Makes {@link #auditAll} ignore this ledger. For tests, and for a simulation that kills this ledger's server. */
    public void forget() {
        LIVE.remove(this);
    }

    @Override
    public String toString() {
        return owner;
    }

    /** Counts what all connections of one address hold together, including what closed connections still hold. */
    public static final class Address {
        private final Object key;
        private final AtomicLongArray held = new AtomicLongArray(KINDS);

        /**
         * Counts the handlers that still run for closed connections of this address. These handlers count towards the
         * admission limits of their methods.
         */
        public final OrphanedWork handlers = new OrphanedWork();

        /**
         * Counts the threads of the handler pool that still run handlers of closed connections of this address. A task
         * of such a connection that still waits for a thread is also counted.
         */
        public final OrphanedWork handlerThreads = new OrphanedWork();

        /**
         * Counts the threads that still run signals of closed connections of this {@code Address}. A signal is a task
         * that notifies a stream or a call. A signal that still waits for a thread is also counted.
         */
        public final OrphanedWork signalThreads = new OrphanedWork();

        /**
         * Number of open connections of this {@code Address}. Changed only while the entry of this {@code Address} in
         * {@code addresses} is locked. So no thread forgets the address while another one opens a connection of it.
         */
        private final AtomicInteger connections = new AtomicInteger();

        /**
         * Index of this address in {@link AddressGroups}; -1 before the first account of this address is opened. The
         * address keeps the index until the ledger forgets the address.
         *
         * <ul>
         *   <li>Written under the lock of {@code groups}, when the first account is opened.
         *   <li>Cleared under the lock of this address's entry in {@code addresses}, when no connection is open.
         *   <li>Read by the event loop of each connection without a lock. The event loop sees the index, because it has
         *       held the lock of {@code groups} earlier, when it opened the connection's account.
         * </ul>
         */
        int groupIndex = NO_INDEX;

        /** Number of connections that this address has opened so far. Guarded by {@code groups}. */
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
