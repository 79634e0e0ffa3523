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
 * Holds all {@link Claim}s of one kind in one {@link Ledger}, and chooses connections to end if the pool of these
 * claims is full. A claim is a charge for bytes that wait for a peer. Such a charge cannot be refused without ending a
 * connection. What a claim holds during one wait for the peer is a {@link Claim.Hold}. Thread-safe.
 *
 * <p><b>Who ends.</b> The cost of a connection is the number of its claimed bytes times the time since its hold began.
 * The cost of an address is the sum of the costs of its connections. The address with the highest cost loses its most
 * costly connection. This step is repeated until there is room.
 *
 * <p>Thus an address whose cost is below the mean loses no connection, as long as the addresses above the mean hold
 * enough bytes for the room that is needed. The number of connections of the other addresses makes no difference. Among
 * addresses that hold the same amount, the address whose bytes have waited longest loses a connection. To push out a
 * frame that is some milliseconds old, attackers have to begin, within these milliseconds, as many frames as the pool
 * holds. The connection that asks for room is compared by the bytes that it already holds.
 *
 * <p><b>When they end.</b> A chosen connection ends immediately if it is on the event loop that asks for room. Thus,
 * with a single event loop, the connections never hold more than the pool. A chosen connection of another event loop
 * ends a little later, on its own event loop, and can grow until it ends. Thus all connections together can hold more
 * than the pool for a moment.
 *
 * <p>This class adds up the bytes that chosen connections of other event loops held when they were chosen. When this
 * sum has reached the pool's size, no more connections of other event loops are chosen. So the sum is always less than
 * the pool's size plus the bytes of one connection.
 */
final class Claims {
    /**
     * Each search for connections to end makes room for at least the pool's size divided by this number, even if less
     * is needed. A search makes less room only if it finds too few connections to end. Because of this minimum,
     * searches are rare. They have to be rare, because each search looks at all claims.
     */
    private static final int MIN_PART = 32;

    private final long maxBytes;
    private final AtomicLong held;

    /**
     * Claims that hold bytes or have held some, and that are not closed. Each event loop adds and removes the claims of
     * its own connections, and looks at the claims of all connections.
     */
    private final Set<Claim> all = ConcurrentHashMap.newKeySet();

    /**
     * Each {@link Claim.Hold} that has been chosen to end and has not ended yet. Guarded by {@code this}. The set is a
     * concurrent one, because such a set loses no entry if there is no memory to enlarge its table.
     */
    private final Set<Claim.Hold> chosen = ConcurrentHashMap.newKeySet();

    /**
     * Sum of the bytes of all holds in {@link #chosen}. A hold counts with the bytes that it had when it was chosen.
     * Written only with the lock of {@code this} held, and read by any thread.
     */
    private volatile long chosenBytes;

    /**
     * Creates the collection of all claims of one kind, which is empty at first.
     *
     * @param maxBytes size of the pool in bytes
     * @param held number of bytes that all claims of this kind hold, including the claims of connections that have been
     *     chosen to end
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

    /** Returns the number of claims that have held bytes and have not been closed. For tests. */
    public int size() {
        return all.size();
    }

    /**
     * Returns how many bytes will soon be released by connections that have been chosen to end. Other claims can take
     * these bytes before they are released.
     */
    long releasingBytes() {
        return chosenBytes;
    }

    /**
     * Ends connections, in the order that the comment on this class describes, until the pool has room for this number
     * of bytes. This method does not choose {@code asks} itself. Another thread can take this room before {@code asks}
     * takes it. Called on the event loop of {@code asks}.
     *
     * @return false if there is too little room, for one of three reasons: {@code bytes} is larger than the pool, the
     *     connection of {@code asks} would be the next to end, or no other connection can be chosen to end
     */
    boolean makeRoom(Claim asks, long bytes, long nowNanos) {
        if (bytes > maxBytes) {
            // no connection is ended for an amount that is larger than the pool
            return false;
        }
        // Connections of this event loop that were chosen earlier end now. The room that they had promised is counted
        // already, but connections that have grown since they were chosen make more room.
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
            // If memory was short, some chosen connections have not been instructed to end. These connections are no
            // longer counted as chosen, so that a later search can choose them again.
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
            // no connection has to be chosen, because another thread has made enough room, or connections that were
            // chosen earlier have ended
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
            // Both additions can fail for lack of memory. Therefore they come before the statements that promise the
            // bytes of this hold to other claims.
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
     * Removes a hold, that is, the charged bytes of one wait, from {@link #chosen}. Called when the hold has ended, or
     * when the hold's connection could not be ended. A second call does nothing.
     */
    synchronized void onHoldEnded(Claim.Hold hold) {
        if (chosen.remove(hold)) {
            chosenBytes -= hold.promisedBytes;
            hold.promisedBytes = 0;
        }
    }

    /**
     * The size and the cost of a {@link Claim.Hold} at the beginning of a search for connections to end.
     *
     * @param cost number of bytes times the number of nanoseconds since the hold began
     */
    private record Held(Claim.Hold hold, long bytes, double cost) {}

    /**
     * The {@link Claim.Hold}s of all connections of one address, without those holds that have been chosen to end. The
     * holds of a connection without an address have a {@code Peer} of their own.
     */
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
