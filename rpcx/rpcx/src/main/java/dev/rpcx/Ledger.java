package dev.rpcx;

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
 * Counts what one server or client holds of each {@link Resource}: in all, by peer address and by connection. Whatever
 * is held is charged to an {@link Account} by way of a {@link Charge}, and given back by way of the same; so what a
 * peer can make this side hold has a bound, and a test can see that nothing is left. Thread-safe.
 *
 * <p><b>Fair share.</b> A fixed part for each peer would have to be tiny to be safe and would waste the rest. Instead
 * what is free decides: a connection may hold as much as is still free then, and all connections of one address
 * together twice as much. A single connection thus comes to a half of the whole, a single address to two thirds, and
 * each greedy one more to a part of what is left: there is always something left, and who holds little gets it while
 * who holds much is refused. Those who fill lose what they hold when they stand still, which is their connection's
 * business. What cannot be refused without ending a connection is shared otherwise: see {@link Claims}. Source: Choudhury and Hahne, <i>Dynamic Queue Length Thresholds for Shared-Memory Packet Switches</i>,
 * 1998, with α = 1 and 2. Connections have fixed limits, since an administrator sets them by number.
 *
 * <p>An IPv6 address counts with all of its /64: a single host has that many to choose from (RFC 6177).
 */
final class Ledger {
    /** The connections of one address may together hold so many times what is free. */
    private static final int ADDRESS_SHARE = 2;

    /** Room for some messages of the largest size, also where the heap is small. */
    private static final int MIN_MESSAGES = 4;

    /**
     * A place for a call takes 2 KiB at most that nothing else is charged for: its objects, its buffer of the first
     * size, and what {@link Uncharged} lets a call hold that is counted nowhere. All places have a 32nd of the heap.
     */
    private static final int HEAP_OF_CALL = 64 * 1024;

    /** A connection's limit of objects in its limit of requests. */
    private static final int MAX_OBJECTS_PER_BYTE = 4;

    /** So many calls have a place also where the heap is tiny. */
    private static final int MIN_CALLS = 2 * 1024;

    /** A client's share for replies, in those of a server: half of the heap, of which one connection gets a half. */
    private static final int CLIENT_REPLIES = 4;

    /**
     * One connection may keep such a part of what all may keep. On a heap of 3 GiB that is enough for 64 callers of
     * 100 kB.
     */
    private static final int KEPT_PART = 8;

    /** A connection may keep so much also where the heap is small. */
    private static final long MIN_KEPT_BYTES = 4L * 1024 * 1024;

    private static final int IPV6_PREFIX_BYTES = 8;

    /** Each call that leaves something gives back what so many others have left that nobody can reach any more. */
    private static final int COLLECTED_AT_ONCE = 2;

    /** Who would be refused gives back so many: some 100 µs of an event loop. */
    private static final int COLLECTED_WHEN_REFUSED = 256;

    private static final int NO_PLACE = -1;

    private static final int KINDS = Resource.values().length;

    /** Every server's and client's that is reachable, for tests. */
    private static final Set<Ledger> LIVE = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /** Those that were made since {@link #letGo}, for tests: none is collected with what it holds. Null elsewhere. */
    private static volatile @Nullable Set<Ledger> made;

    private final String owner;

    /** What calls may hold beside what is charged. */
    private volatile Uncharged uncharged = Uncharged.MOST;

    private final long[] most = new long[KINDS];
    private final long[] mostOfConnection = new long[KINDS];
    private final long[] mostOfAddress = new long[KINDS];
    private final int mostConnectionsOfAddress;
    private final AtomicLong[] held = new AtomicLong[KINDS];
    private final Map<Object, Address> addresses = new ConcurrentHashMap<>();
    private final AddressGroups groups = new AddressGroups();

    /** Connections without an address that there have been. */
    private final AtomicInteger opened = new AtomicInteger();

    private final Set<Account> open = ConcurrentHashMap.newKeySet();
    private final Map<Resource, List<LongSupplier>> watched = new EnumMap<>(Resource.class);
    private final Map<Resource, Claims> claims = new EnumMap<>(Resource.class);

    /** These are charged for futures that have not ended. */
    private final Set<Leftover> leftovers = ConcurrentHashMap.newKeySet();

    /** The collector puts those of {@link #leftovers} here whose futures nobody can reach any more. */
    private final ReferenceQueue<Object> collected = new ReferenceQueue<>();

    /**
     * @param owner for messages
     * @param most of each kind, in all; what is not named has no limit
     * @param mostOfConnection of each kind, for one connection, however much is free
     */
    Ledger(String owner, Map<Resource, Long> most, Map<Resource, Long> mostOfConnection, int mostConnectionsOfAddress) {
        this.owner = owner;
        this.mostConnectionsOfAddress = mostConnectionsOfAddress;
        Arrays.fill(this.most, Long.MAX_VALUE);
        Arrays.fill(this.mostOfConnection, Long.MAX_VALUE);
        Arrays.fill(this.mostOfAddress, Long.MAX_VALUE);
        most.forEach((kind, limit) -> this.most[kind.ordinal()] = limit);
        mostOfConnection.forEach((kind, limit) -> this.mostOfConnection[kind.ordinal()] = limit);
        for (int i = 0; i < KINDS; i++) {
            held[i] = new AtomicLong();
        }
        for (Resource kind : Resource.values()) {
            watched.put(kind, new CopyOnWriteArrayList<>());
            if (kind.isClaimed()) {
                claims.put(kind, new Claims(this.most[kind.ordinal()], held[kind.ordinal()]));
            }
        }
    }

    /**
     * A server's: shares of the heap. All of them together, with what connections and calls hold that is not charged,
     * come to four fifths of it, and to more with TLS; docs/security.md has the sum.
     *
     * @param maxRunning handlers at once
     * @param maxCalls of one connection: those of an address have so many times their number together, also where some
     *     belong to connections that are gone
     * @param maxMessageBytes of one message; the whole has room for some of them, whatever the heap
     */
    static Ledger ofServer(
            String owner,
            int maxConnections,
            int maxConnectionsOfAddress,
            int maxCalls,
            int maxRunning,
            int maxMessageBytes) {
        Map<Resource, Long> most = ofHeap(maxMessageBytes);
        most.put(Resource.CONNECTIONS, (long) maxConnections);
        Map<Resource, Long> mostOfConnection = ofConnection(maxMessageBytes);
        // a buffer that has grown may be twice what has been written to it, and a server charges the whole of it
        mostOfConnection.computeIfPresent(Resource.REQUEST_BYTES, (kind, share) -> 2 * share);
        Ledger made = new Ledger(owner, most, mostOfConnection, maxConnectionsOfAddress);
        made.mostOfAddress[Resource.CALLS.ordinal()] = (long) maxConnectionsOfAddress * maxCalls;
        // each handler has a place, whatever the number says
        long running = Math.min(maxRunning, made.most(Resource.CALLS));
        made.uncharged = Uncharged.of(Runtime.getRuntime().maxMemory(), running);
        return live(made);
    }

    /** A client's: it chooses its peers, so their number has no limit. @param maxMessageBytes that a peer may send */
    static Ledger ofClient(String owner, int maxMessageBytes) {
        Map<Resource, Long> most = ofHeap(maxMessageBytes);
        Map<Resource, Long> mostOfConnection = ofConnection(maxMessageBytes);
        // replies come because they were asked for, and are lost when they are refused: more than what a server gives
        // to strangers
        most.computeIfPresent(Resource.REPLY_BYTES, (kind, share) -> share * CLIENT_REPLIES);
        mostOfConnection.remove(Resource.REPLY_BYTES);
        // begun frames of replies likewise: where there is no room a connection ends, and its calls as OVERLOADED
        most.computeIfPresent(Resource.FRAME_BYTES, (kind, share) -> share * CLIENT_REPLIES);
        // as at a server, a buffer that has grown is charged whole; and nobody but its own callers fills it
        most.computeIfPresent(Resource.REQUEST_BYTES, (kind, share) -> 2 * share);
        mostOfConnection.computeIfPresent(Resource.REQUEST_BYTES, (kind, share) -> 2 * share);
        return live(new Ledger(owner, most, mostOfConnection, Integer.MAX_VALUE));
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

    /** From here on every ledger is held until {@link #letGo}. For tests, whose servers nobody holds at their end. */
    static synchronized void keepAll() {
        if (made == null) {
            made = ConcurrentHashMap.newKeySet();
        }
    }

    /** What was made until now has been looked at. For tests. */
    static void letGo() {
        Set<Ledger> kept = made;
        if (kept != null) {
            kept.clear();
        }
    }

    private static Map<Resource, Long> ofHeap(int maxMessageBytes) {
        long heap = Runtime.getRuntime().maxMemory();
        long some = (long) MIN_MESSAGES * maxMessageBytes;
        Map<Resource, Long> most = new EnumMap<>(Resource.class);
        most.put(Resource.REQUEST_BYTES, Math.max(some, heap / 8));
        most.put(Resource.OBJECT_BYTES, Math.max(some, heap / 8));
        most.put(Resource.REPLY_BYTES, Math.max(some, heap / 8));
        most.put(Resource.UNREAD_REPLY_BYTES, most.get(Resource.REPLY_BYTES) / 4 * 3);
        most.put(Resource.QUEUE_BYTES, heap / 8);
        most.put(Resource.ITEM_BYTES_IN, Math.max(some, heap / 16));
        most.put(Resource.ITEM_BYTES_OUT, Math.max(some, heap / 16));
        most.put(Resource.KEPT_BYTES, keptOf(heap));
        most.put(Resource.TABLE_BYTES, heap / 128);
        most.put(Resource.FRAME_BYTES, heap / 32);
        most.put(Resource.CALLS, Math.max(MIN_CALLS, heap / HEAP_OF_CALL));
        most.put(Resource.STREAMS, Math.max(MIN_CALLS, heap / HEAP_OF_CALL));
        return most;
    }

    private static Map<Resource, Long> ofConnection(int maxMessageBytes) {
        long bytes = Math.max(64L * 1024 * 1024, 2L * maxMessageBytes);
        Map<Resource, Long> most = new EnumMap<>(Resource.class);
        most.put(Resource.REQUEST_BYTES, bytes);
        most.put(Resource.OBJECT_BYTES, MAX_OBJECTS_PER_BYTE * bytes);
        most.put(Resource.REPLY_BYTES, bytes);
        most.put(Resource.ITEM_BYTES_IN, bytes);
        most.put(Resource.ITEM_BYTES_OUT, bytes);
        long kept = keptOf(Runtime.getRuntime().maxMemory());
        most.put(Resource.KEPT_BYTES, Math.max(MIN_KEPT_BYTES, kept / KEPT_PART));
        return most;
    }

    private static long keptOf(long heap) {
        return heap / 128 * 3;
    }

    /**
     * An account for a connection that has come; {@link Account#close} gives the place back.
     *
     * @param remote the peer's address; null, or of another family than the Internet's, belongs to no address
     * @return null if there is a connection too many
     */
    @Nullable
    Account open(@Nullable SocketAddress remote) {
        Object key = key(remote);
        Address address = key == null
                ? null
                : addresses.compute(key, (k, found) -> {
                    Address is = found == null ? new Address(k) : found;
                    is.connections.incrementAndGet();
                    return is;
                });
        boolean fits = address == null || address.connections.get() <= mostConnectionsOfAddress;
        AtomicLong all = held[Resource.CONNECTIONS.ordinal()];
        if (fits && all.incrementAndGet() > most[Resource.CONNECTIONS.ordinal()]) {
            all.decrementAndGet();
            fits = false;
        }
        if (!fits) {
            if (address != null) {
                left(address);
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
                    left(address);
                }
            }
        }
    }

    /** A connection of an address, which has a place from the first one on. */
    private int numberIn(Address address) {
        synchronized (groups) {
            if (address.place == NO_PLACE) {
                address.place = groups.take();
            }
            return address.opened++;
        }
    }

    AddressGroups groups() {
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
                left(address);
            }
        }
    }

    private void left(Address address) {
        addresses.computeIfPresent(address.key, (key, found) -> {
            found.connections.decrementAndGet();
            return forgettable(found);
        });
    }

    private @Nullable Address forgettable(Address address) {
        if (address.connections.get() != 0 || !address.holdsNothing()) {
            return address;
        }
        if (address.place != NO_PLACE) {
            groups.give(address.place);
            address.place = NO_PLACE;
        }
        return null;
    }

    /** @return false if that would be too much; nothing is changed then */
    boolean take(Account account, Resource kind, long amount) {
        return takeNow(account, kind, amount) || endCollected(COLLECTED_WHEN_REFUSED) && takeNow(account, kind, amount);
    }

    private boolean takeNow(Account account, Resource kind, long amount) {
        int i = kind.ordinal();
        long all = held[i].addAndGet(amount);
        long own = account.held.addAndGet(i, amount);
        Address address = account.address;
        long ofAddress = address == null ? 0 : address.held.addAndGet(i, amount);
        long free = most[i] - all;
        boolean fits = most[i] == Long.MAX_VALUE
                || (kind.isClaimed()
                        ? free + claims(kind).leaving() >= 0
                        : own <= free && ofAddress / ADDRESS_SHARE <= free);
        if (fits && own <= mostOfConnection[i] && ofAddress <= mostOfAddress[i]) {
            return true;
        }
        give(account, kind, amount);
        return false;
    }

    void give(Account account, Resource kind, long amount) {
        int i = kind.ordinal();
        held[i].addAndGet(-amount);
        account.held.addAndGet(i, -amount);
        Address address = account.address;
        if (address != null && address.held.addAndGet(i, -amount) == 0 && address.connections.get() == 0) {
            addresses.computeIfPresent(address.key, (key, found) -> forgettable(found));
        }
    }

    /**
     * Takes over what an account has been charged for objects that stay when a call has been given up, until
     * {@code holder} ends it or can be reached no more.
     */
    Leftover leave(Account account, Object holder, long objectBytes, int places) {
        // as many again as can be left by this: what nobody can reach does not wait for somebody who is refused
        endCollected(COLLECTED_AT_ONCE);
        Leftover left = new Leftover(this, account, holder, collected, objectBytes, places);
        leftovers.add(left);
        return left;
    }

    void over(Leftover left) {
        leftovers.remove(left);
    }

    /** Charges for futures that have not ended, as far as is known. For tests. */
    int leftovers() {
        return leftovers.size();
    }

    /**
     * Gives back what the collector has found.
     *
     * @param most so many at once: whoever asks may be an event loop
     * @return whether there was any
     */
    private boolean endCollected(int most) {
        for (int i = 0; i < most; i++) {
            Reference<?> found = collected.poll();
            if (found == null) {
                return i > 0;
            }
            ((Leftover) found).end();
        }
        return true;
    }

    Claims claims(Resource kind) {
        return Objects.requireNonNull(claims.get(kind), "no claims are made on this");
    }

    /** How much of this is held, in all: what is charged, and what is only watched. */
    long held(Resource kind) {
        long sum = held[kind.ordinal()].get();
        for (LongSupplier count : watched(kind)) {
            sum += count.getAsLong();
        }
        return sum;
    }

    boolean isHalfTaken(Resource kind) {
        int i = kind.ordinal();
        return held[i].get() > most[i] / 2;
    }

    /** Addresses that have a connection, or from which something is still held. For tests. */
    int addresses() {
        return addresses.size();
    }

    Uncharged uncharged() {
        return uncharged;
    }

    long most(Resource kind) {
        return most[kind.ordinal()];
    }

    /** The same for one connection, where nobody else holds any. */
    long mostOfConnection(Resource kind) {
        int i = kind.ordinal();
        // it may hold no more than it leaves
        return Math.min(most[i] / 2, mostOfConnection[i]);
    }

    /**
     * A count that somebody else keeps, and that belongs to this ledger. Racy reads are fine: it is looked at when all
     * is quiet.
     */
    void watch(Resource kind, LongSupplier count) {
        watched(kind).add(count);
    }

    private List<LongSupplier> watched(Resource kind) {
        return Objects.requireNonNull(watched.get(kind));
    }

    /**
     * All that does not stand at zero, a line each; empty where all does. What a connection in good order holds at rest
     * is left out while it is open. For tests, and for whoever looks for what is lost; a moment of quiet gives a true
     * picture.
     */
    String audit() {
        endCollected(Integer.MAX_VALUE);
        long[] atRest = new long[KINDS];
        StringBuilder text = new StringBuilder();
        for (Account account : open) {
            for (Resource kind : Resource.values()) {
                if (kind.isHeldAtRest()) {
                    atRest[kind.ordinal()] += account.held(kind);
                }
            }
            long underWay = account.watched();
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

    /** What {@link #audit} says of every ledger of the process. */
    static String auditAll() {
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
     * {@link #auditAll} passes over the ledgers of which it has something to say now. For tests: a fault is told once.
     */
    static void forgetHeld() {
        synchronized (LIVE) {
            LIVE.removeIf(ledger -> !ledger.audit().isEmpty());
        }
    }

    /** For a simulation whose server has lost its power: {@link #auditAll} passes over what it held. */
    void forget() {
        LIVE.remove(this);
    }

    @Override
    public String toString() {
        return owner;
    }

    /** What the connections of one address hold together, those that are gone and still hold something among them. */
    static final class Address {
        private final Object key;
        private final AtomicLongArray held = new AtomicLongArray(KINDS);

        /** Handlers that are counted, and go on when their connections are gone. */
        final LeftBehind handlers = new LeftBehind();

        /** The same of the threads that handlers have of the pool, and of what waits for one. */
        final LeftBehind handlerThreads = new LeftBehind();

        /** The same of the threads that tell streams and calls what they wait for. */
        final LeftBehind signalThreads = new LeftBehind();

        /** Changed while the map's entry is locked. */
        private final AtomicInteger connections = new AtomicInteger();

        /** In {@link AddressGroups}, from before its first account is there until it is forgotten. */
        int place = NO_PLACE;

        /** Connections that there have been. */
        private int opened;

        Address(Object key) {
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
