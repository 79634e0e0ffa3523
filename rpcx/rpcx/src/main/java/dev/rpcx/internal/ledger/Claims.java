package dev.rpcx.internal.ledger;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Holds all {@link Claim}s of one kind in one {@link Ledger}. If the pool is full, chooses connections to end. A claim
 * is a charge for bytes that wait for a peer, and that cannot be refused without ending a connection. What it holds
 * until the peer makes progress is a {@link Claim.Hold}. Thread-safe.
 *
 * <p><b>Who ends.</b> The cost of a connection is the number of its claimed bytes times the time for which they have
 * waited. The cost of an address is the sum of the costs of its connections. The address with the highest cost loses
 * its most costly connection. This is repeated until there is room.
 *
 * <p>Thus an address below the mean cost loses no connection, however many connections another address has, as long as
 * the addresses above the mean hold enough. Among addresses that hold the same amount, the one whose bytes have waited
 * longest loses a connection. To push out a frame that is some milliseconds old, attackers have to begin as many frames
 * as the pool holds within these milliseconds. The connection that asks for room is compared by what it already holds.
 *
 * <p><b>When they end.</b> Chosen connections of the event loop that asks for room end immediately. So the connections
 * of one loop never hold more than the pool. Chosen connections of other loops end a moment later, on their own loops,
 * and may grow until then. So all connections together may for a moment hold more than the pool. Once the chosen
 * connections of other loops hold as much as the pool, no more of them are chosen. So, when they are chosen, they hold
 * together less than the pool's size plus one connection.
 */
final class Claims {
    /**
     * Each search for connections to end makes room for at least the pool's size divided by this number. Searches have
     * to be rare, since each one looks at all claims.
     */
    private static final int MIN_PART = 32;

    private final long maxBytes;
    private final AtomicLong held;
    private final Set<Claim> all = ConcurrentHashMap.newKeySet();

    /**
     * Holds whose connections have been chosen to end and have not ended. Guarded by {@code this}. A concurrent set,
     * because it loses no entry if there is no memory to enlarge its table.
     */
    private final Set<Claim.Hold> chosen = ConcurrentHashMap.newKeySet();

    /**
     * Total number of bytes that the holds in {@link #chosen} had when they were chosen. Written only with the lock
     * {@code this} held.
     */
    private volatile long chosenBytes;

    /**
     * Creates the claims of one kind, of which there are none at first.
     *
     * @param maxBytes size of the pool in bytes
     * @param held number of bytes that all claims of this kind hold, including those whose connections have been chosen
     *     to end
     */
    Claims(long maxBytes, AtomicLong held) {
        this.maxBytes = maxBytes;
        this.held = held;
    }

    void add(Claim claim) {
        all.add(claim);
    }

    void remove(Claim claim) {
        all.remove(claim);
    }

    /** Returns the number of claims that have held something and are not closed. For tests. */
    public int size() {
        return all.size();
    }

    /**
     * Returns how many bytes will soon be released by connections that have been chosen to end. Other claims may take
     * these bytes already.
     */
    long releasingBytes() {
        return chosenBytes;
    }

    /**
     * Ends connections until the pool has room for this number of bytes. Another thread may take the room before the
     * claim {@code asks} does. Called on the event loop of {@code asks}.
     *
     * @return false if there is too little room even without the connections that cost more than the one that asks
     */
    boolean makeRoom(Claim asks, long bytes, long nowNanos) {
        if (bytes > maxBytes) {
            // no connection is ended for an amount that never fits
            return false;
        }
        // holds of this event loop that were chosen earlier end now
        for (Claim.Hold due : chosenOfLoop(asks)) {
            due.claim.endNow(due);
        }
        List<Claim.Hold> greediest = new ArrayList<>();
        int ended = 0;
        try {
            boolean hasRoom = choose(asks, bytes, nowNanos, greediest);
            for (; ended < greediest.size(); ended++) {
                Claim.Hold greedy = greediest.get(ended);
                if (greedy.claim.isOnLoopOf(asks)) {
                    greedy.claim.endNow(greedy);
                } else {
                    greedy.claim.endSoon(greedy);
                }
            }
            return hasRoom;
        } finally {
            // holds that could not be ended for want of memory may be chosen again
            for (; ended < greediest.size(); ended++) {
                onHoldEnded(greediest.get(ended));
            }
        }
    }

    private synchronized List<Claim.Hold> chosenOfLoop(Claim asks) {
        return chosen.stream()
                .filter(hold -> hold.claim != asks && hold.claim.isOnLoopOf(asks))
                .toList();
    }

    private synchronized boolean choose(Claim asks, long wanted, long nowNanos, List<Claim.Hold> greediest) {
        if (room() >= wanted) {
            // another thread has made the room, or the end of the holds that were due has made it
            return true;
        }
        PriorityQueue<Peer> peers = peers(nowNanos);
        long goal = Math.max(wanted, maxBytes / MIN_PART);
        long endsNow = 0;
        while (room() < goal && !peers.isEmpty()) {
            Peer peer = peers.remove();
            Held greedy = peer.removeGreediest();
            if (!peer.all.isEmpty()) {
                peers.add(peer);
            }
            Claim.Hold hold = greedy.hold();
            if (hold.claim == asks) {
                if (room() < wanted) {
                    return false;
                }
                continue;
            }
            boolean isOwn = hold.claim.isOnLoopOf(asks);
            if (isOwn) {
                endsNow += greedy.bytes();
            } else if (chosenBytes - endsNow >= maxBytes) {
                continue;
            }
            // both additions may fail for lack of memory, so they come before the bytes of the hold are promised to
            // others
            greediest.add(hold);
            chosen.add(hold);
            hold.promisedBytes = greedy.bytes();
            chosenBytes += greedy.bytes();
        }
        return room() >= wanted;
    }

    private long room() {
        return maxBytes + chosenBytes - held.get();
    }

    private PriorityQueue<Peer> peers(long nowNanos) {
        Map<Object, Peer> byAddress = new HashMap<>();
        for (Claim claim : all) {
            Claim.Hold hold = claim.hold();
            if (hold != null && !hold.isChosen()) {
                long bytes = hold.bytes();
                double cost = (double) bytes * Math.max(1, nowNanos - hold.sinceNanos);
                byAddress.computeIfAbsent(claim.peer(), peer -> new Peer()).add(new Held(hold, bytes, cost));
            }
        }
        byAddress.values().forEach(Peer::sort);
        PriorityQueue<Peer> peers = new PriorityQueue<>(
                Comparator.comparingDouble((Peer peer) -> peer.cost).reversed());
        peers.addAll(byAddress.values());
        return peers;
    }

    /**
     * Called when the hold of a chosen connection has ended, or when the connection could not be ended. A second call
     * does nothing.
     */
    synchronized void onHoldEnded(Claim.Hold hold) {
        if (chosen.remove(hold)) {
            chosenBytes -= hold.promisedBytes;
            hold.promisedBytes = 0;
        }
    }

    /**
     * A hold with its size and its cost, as they were when the search for connections to end began.
     *
     * @param cost number of bytes times the nanoseconds for which they have waited
     */
    private record Held(Claim.Hold hold, long bytes, double cost) {}

    /** The holds of one address, or of one connection without an address, that have not been chosen to end. */
    private static final class Peer {
        final List<Held> all = new ArrayList<>();
        double cost;

        void add(Held one) {
            all.add(one);
            cost += one.cost();
        }

        void sort() {
            all.sort(Comparator.comparingDouble(Held::cost));
        }

        Held removeGreediest() {
            Held greediest = all.remove(all.size() - 1);
            cost -= greediest.cost();
            return greediest;
        }
    }
}
