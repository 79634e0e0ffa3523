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
 * All {@link Claim}s of one kind in one {@link Ledger}, and the choice of those that end where the pool is full.
 *
 * <p><b>Who ends.</b> What a peer costs the others is memory for a time, so addresses are compared by bytes times the
 * time for which the bytes have waited, summed over all connections of an address. The address with the largest sum
 * loses the connection with the largest part of it, and so on until there is room. So an address that has less than the
 * mean of all never loses a connection, however many connections another has; and of many addresses that hold the same,
 * the one that has kept the others waiting for longest loses a connection, not the one that has just come. To push out
 * a frame that is some milliseconds old, attackers have to begin as many frames as the whole pool holds within these
 * milliseconds. A connection that asks for room is compared by what it holds already, like all others.
 *
 * <p><b>When they end.</b> Chosen connections of the event loop that asks end at once, and so never hold more than the
 * pool: however many begun frames a loop finds in one round, each one too many pushes out another. Chosen connections
 * of other loops end a moment later on those loops. Until then the pool may exceed its size by what they hold, and by
 * no more than once its size: beyond that only connections of the loop that asks are chosen. Thread-safe.
 */
final class Claims {
    /**
     * Each search for the greediest frees at least the size of the pool, divided by this, since it costs a look at all
     * claims.
     */
    private static final int MIN_PART = 32;

    private final long most;
    private final AtomicLong held;
    private final Set<Claim> all = ConcurrentHashMap.newKeySet();

    /**
     * Holds that have been chosen to end and have not ended. Guarded by {@code this}. The set is of a class that loses
     * no entry where there is no memory for its table.
     */
    private final Set<Claim.Hold> chosen = ConcurrentHashMap.newKeySet();

    /** Bytes that the chosen holds held when they were chosen. Written under the lock of {@code this}. */
    private volatile long chosenBytes;

    /**
     * @param most bytes of the pool
     * @param held bytes of the pool that are held, including those of the chosen holds
     */
    Claims(long most, AtomicLong held) {
        this.most = most;
        this.held = held;
    }

    void add(Claim claim) {
        all.add(claim);
    }

    void remove(Claim claim) {
        all.remove(claim);
    }

    /** Number of claims that have held something and whose connections are not over. For tests. */
    public int size() {
        return all.size();
    }

    /** Bytes that are about to be given back, and that others may take already. */
    long releasingBytes() {
        return chosenBytes;
    }

    /**
     * Makes room for {@code bytes}, which can be taken unless another thread takes them first. On the event loop of the
     * claim.
     *
     * @return false if no connection can be ended for that, or none that is greedier
     */
    boolean makeRoom(Claim asks, long bytes, long nowNanos) {
        if (bytes > most) {
            // nobody ends for an amount that never fits
            return false;
        }
        // the ends of these holds are due already
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
            // the holds for whose end there was no memory may be chosen again
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
            // another thread has made the room, or the ends that were due have
            return true;
        }
        PriorityQueue<Peer> peers = peers(nowNanos);
        long goal = Math.max(wanted, most / MIN_PART);
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
            } else if (chosenBytes - endsNow >= most) {
                continue;
            }
            // the additions that may find no memory come first: a hold with promised bytes stands in both
            greediest.add(hold);
            chosen.add(hold);
            hold.promisedBytes = greedy.bytes();
            chosenBytes += greedy.bytes();
        }
        return room() >= wanted;
    }

    private long room() {
        return most + chosenBytes - held.get();
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

    /** A chosen hold has ended, or is held no more. A second call does nothing. */
    synchronized void onHoldEnded(Claim.Hold hold) {
        if (chosen.remove(hold)) {
            chosenBytes -= hold.promisedBytes;
            hold.promisedBytes = 0;
        }
    }

    /** What was held at the moment of the choice. @param cost bytes times nanoseconds */
    private record Held(Claim.Hold hold, long bytes, double cost) {}

    /** All that one address holds, or one connection without an address. */
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
