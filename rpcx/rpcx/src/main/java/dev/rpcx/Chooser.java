package dev.rpcx;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/** Chooses among instances that do not change; when they do there is a new one. On the way of every call: allocates nothing. */
abstract class Chooser {
    final ClientAddress[] all;

    Chooser(ClientAddress[] all) {
        this.all = all;
    }

    static Chooser of(Choice choice, ClientAddress[] all, Platform platform) {
        return switch (choice) {
            case LEAST_LOADED -> new LeastLoaded(all, platform);
            case WEIGHTED_ROUND_ROBIN -> new RoundRobin(all);
            case CONSISTENT_HASH -> new Ring(all, platform);
        };
    }

    /** Where to look first; -1 if there is no instance. */
    abstract int first(int key);

    /**
     * The chosen one if it is connected, in health and takes another call, otherwise one that is so, otherwise one that
     * is at least connected.
     */
    @Nullable
    ClientConnection pick(int key) {
        return pickFrom(first(key), List.of());
    }

    /** One that is not among these, from anywhere: bad ones may stand side by side in what a registry says. */
    @Nullable
    ClientConnection pickBeside(List<ClientAddress> asked, RandomGenerator random) {
        return all.length <= asked.size() ? null : pickFrom(random.nextInt(all.length), asked);
    }

    private @Nullable ClientConnection pickFrom(int first, List<ClientAddress> asked) {
        ClientConnection last = null;
        for (int i = 0; i < all.length; i++) {
            int at = first + i;
            ClientAddress address = all[at < all.length ? at : at - all.length];
            ClientConnection connection = address.ready();
            if (connection == null || !asked.isEmpty() && asked.contains(address)) {
                continue;
            }
            if (!connection.isFull()) {
                if (!address.health().isOut()) {
                    return connection;
                }
                last = connection;
            } else if (last == null) {
                last = connection;
            }
        }
        return last;
    }

    private static final class LeastLoaded extends Chooser {
        private final Platform platform;

        LeastLoaded(ClientAddress[] all, Platform platform) {
            super(all);
            this.platform = platform;
        }

        @Override
        int first(int key) {
            int count = all.length;
            if (count < 2) {
                return count - 1;
            }
            RandomGenerator random = platform.random();
            int one = random.nextInt(count);
            int other = random.nextInt(count - 1);
            if (other >= one) {
                other++;
            }
            return cost(all[one]) <= cost(all[other]) ? one : other;
        }

        private static int cost(ClientAddress address) {
            return address.health().isOut() ? Integer.MAX_VALUE : address.load();
        }
    }

    private static final class RoundRobin extends Chooser {
        /** Longest order; weights beyond it lose precision, not fairness. */
        private static final int MOST = 4096;

        private final int[] order;
        private final AtomicInteger next = new AtomicInteger();

        RoundRobin(ClientAddress[] all) {
            super(all);
            int total = Arrays.stream(all).mapToInt(a -> a.weight()).sum();
            order = new int[Math.min(total, MOST)];
            int[] current = new int[all.length];
            for (int i = 0; i < order.length; i++) {
                int best = 0;
                for (int j = 0; j < all.length; j++) {
                    current[j] += all[j].weight();
                    best = current[j] > current[best] ? j : best;
                }
                current[best] -= total;
                order[i] = best;
            }
        }

        @Override
        int first(int key) {
            return order.length == 0 ? -1 : order[Integer.remainderUnsigned(next.getAndIncrement(), order.length)];
        }
    }

    private static final class Ring extends Chooser {
        /** Places of an instance of weight 1: with 100, shares differ by some 10 %. Source: Karger et al., "Consistent Hashing", 1997. */
        private static final int PLACES = 100;

        private static final int MOST = 1 << 16;

        /** Sorted: the place in the upper half, the instance in the lower. */
        private final long[] places;

        private final Chooser withoutKey;

        Ring(ClientAddress[] all, Platform platform) {
            super(all);
            withoutKey = new LeastLoaded(all, platform);
            int total = Arrays.stream(all).mapToInt(a -> a.weight()).sum();
            double each = Math.min(PLACES, (double) MOST / Math.max(1, total));
            places = new long[Arrays.stream(all).mapToInt(a -> count(a, each)).sum()];
            int at = 0;
            for (int i = 0; i < all.length; i++) {
                int start = all[i].endpoint.key().hashCode();
                for (int place = count(all[i], each); place > 0; place--) {
                    places[at++] = (long) mixed(start ^ mixed(place)) << 32 | i;
                }
            }
            Arrays.sort(places);
        }

        private static int count(ClientAddress address, double each) {
            return Math.max(1, (int) (address.weight() * each));
        }

        @Override
        int first(int key) {
            if (key == 0 || places.length == 0) {
                return withoutKey.first(key);
            }
            int found = Arrays.binarySearch(places, (long) mixed(key) << 32);
            int at = found >= 0 ? found : -found - 1;
            return (int) places[at == places.length ? 0 : at];
        }

        /** Source: the finaliser of MurmurHash3. */
        private static int mixed(int hash) {
            int h = hash ^ hash >>> 16;
            h *= 0x85EBCA6B;
            h ^= h >>> 13;
            h *= 0xC2B2AE35;
            return h ^ h >>> 16;
        }
    }
}
