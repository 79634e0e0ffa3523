package dev.rpcx;

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
 * <p><b>Who ends.</b> What a peer costs the others is memory for a time, so that is what is compared: bytes times the
 * time for which they have waited, summed over all connections of an address. The address with the largest sum loses
 * the connection with the largest part of it, and so on until there is room. So an address that has less than the mean
 * of all never loses a connection, however many connections another has; and of many addresses that hold the same, the
 * one that has kept the others waiting for longest ends, not the one that has just come. To push out a frame that is
 * some milliseconds old, attackers have to begin as many as the whole pool holds within these milliseconds.
 *
 * <p>The chosen ones end on their own event loops, a moment later. Until then the pool may exceed its size by what they
 * hold, and by no more than once its size. Thread-safe.
 */
final class Claims {
    /** Each look for the greediest frees this part of the pool at least, since it costs a look at all claims. */
    private static final int LEAST_PART = 32;

    private final long most;
    private final AtomicLong held;
    private final Set<Claim> all = ConcurrentHashMap.newKeySet();

    /** What those hold that have been chosen and have not ended. */
    private volatile long chosenBytes;

    private final Map<Claim, Long> chosen = new HashMap<>();

    /**
     * @param most bytes of the pool
     * @param held bytes that are held of it, those of the chosen ones among them
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

    /** So much is about to be given back, and may be taken already. */
    long leaving() {
        return chosenBytes;
    }

    /**
     * Sees to it that so much can be taken, as long as nobody else is first.
     *
     * @return false if there is nobody to be ended for it
     */
    boolean makeRoom(long bytes, long nowNanos) {
        List<Claim> greediest = new ArrayList<>();
        boolean hasRoom = choose(bytes, nowNanos, greediest);
        greediest.forEach(Claim::endSoon);
        return hasRoom;
    }

    private synchronized boolean choose(long wanted, long nowNanos, List<Claim> greediest) {
        if (room() >= wanted) {
            // another thread has looked for it
            return true;
        }
        if (chosenBytes >= most) {
            return false;
        }
        PriorityQueue<Peer> peers = peers(nowNanos);
        long goal = Math.max(wanted, most / LEAST_PART);
        while (room() < goal && !peers.isEmpty() && chosenBytes < most) {
            Peer peer = peers.remove();
            Held greedy = peer.removeGreediest();
            chosen.put(greedy.claim(), greedy.bytes());
            chosenBytes += greedy.bytes();
            greediest.add(greedy.claim());
            if (!peer.all.isEmpty()) {
                peers.add(peer);
            }
        }
        return room() >= wanted;
    }

    private long room() {
        return most + chosenBytes - held.get();
    }

    private PriorityQueue<Peer> peers(long nowNanos) {
        Map<Object, Peer> byAddress = new HashMap<>();
        for (Claim claim : all) {
            long bytes = claim.bytes();
            if (bytes > 0 && !chosen.containsKey(claim)) {
                double cost = (double) bytes * Math.max(1, nowNanos - claim.sinceNanos());
                byAddress.computeIfAbsent(claim.peer(), peer -> new Peer()).add(new Held(claim, bytes, cost));
            }
        }
        byAddress.values().forEach(Peer::sort);
        PriorityQueue<Peer> peers = new PriorityQueue<>(
                Comparator.comparingDouble((Peer peer) -> peer.cost).reversed());
        peers.addAll(byAddress.values());
        return peers;
    }

    /** A chosen one has ended, or holds nothing any more. */
    synchronized void isOver(Claim claim) {
        Long bytes = chosen.remove(claim);
        if (bytes != null) {
            chosenBytes -= bytes;
        }
    }

    /** What a claim held at the moment of the choice. @param cost bytes times nanoseconds */
    private record Held(Claim claim, long bytes, double cost) {}

    /** All that one address holds. */
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
