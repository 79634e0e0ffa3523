package dev.rpcx.internal.client;

import dev.rpcx.Choice;
import dev.rpcx.internal.io.Platform;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Chooses an instance for each call, from a list that never changes. Every call to a service with several instances
 * uses a chooser, so choosing allocates nothing.
 */
public abstract class Chooser {
    public final ClientAddress[] all;

    public Chooser(ClientAddress[] all) {
        this.all = all;
    }

    static Chooser of(Choice choice, ClientAddress[] all, Platform platform) {
        return switch (choice) {
            case LEAST_LOADED -> new LeastLoaded(all, platform);
            case WEIGHTED_ROUND_ROBIN -> new RoundRobin(all, platform);
            case CONSISTENT_HASH -> new Ring(all, platform);
        };
    }

    /**
     * Number of instances that are tried after the first one, before all are searched. If half of the instances are
     * connected, one in 256 of the calls that the first instance could not take needs the search.
     */
    private static final int DRAWS = 8;

    /** Returns the index of the instance to look at first; -1 if there is no instance. */
    public abstract int first(int key);

    /**
     * Returns the index of the instance to try next, after the earlier ones could not take the call. It must not simply
     * be the next instance in the list: neighbours often fail together, and the one behind them would get all of their
     * calls, from every client.
     *
     * @param draw how often this method has been called for the same call before; 0 the first time
     */
    abstract int redraw(int key, int draw);

    /**
     * Returns a connection for a call; null if none is ready, or if all are full and one more is being established.
     * Looks for an instance that is connected, not full, and healthy or free for a trial: first at the chosen instance,
     * then at the others. If there is none, takes any connection that is ready. The caller has to send its call on the
     * connection: the call may be the only trial of its instance.
     */
    @Nullable
    ClientConnection pick(int key) {
        int first = first(key);
        if (first < 0) {
            return null;
        }
        ClientConnection chosen = serving(all[first]);
        return chosen == null ? pickAgain(key, List.of()) : chosen;
    }

    /**
     * Returns a connection that is not full, of an instance that is not in {@code asked} and is healthy or free for a
     * trial; null if there is none. Never returns one of an ejected instance: that instance might not answer at all,
     * and the call already has an answer from another instance.
     */
    @Nullable
    ClientConnection pickBeside(List<ClientAddress> asked) {
        return hasBeside(asked) ? pickAgain(0, asked) : null;
    }

    /**
     * Whether there is an instance that is not among {@code asked}. {@code asked} may contain instances of an earlier
     * list.
     */
    boolean hasBeside(List<ClientAddress> asked) {
        for (ClientAddress address : all) {
            if (!asked.contains(address)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Whether an instance other than {@code asked} is connected, and is healthy or free for a trial. Does not take the
     * trial.
     */
    boolean hasFreeBeside(ClientAddress asked) {
        for (ClientAddress address : all) {
            if (address != asked && address.health().isFree() && address.isConnected()) {
                return true;
            }
        }
        return false;
    }

    private @Nullable ClientConnection pickAgain(int key, List<ClientAddress> asked) {
        for (int draw = 0; draw < DRAWS; draw++) {
            ClientAddress address = all[redraw(key, draw)];
            ClientConnection connection = asked.contains(address) ? null : serving(address);
            if (connection != null) {
                return connection;
            }
        }
        return pickOfAll(key, asked);
    }

    /**
     * Returns the connection of the instance if it is not full and the instance is healthy or free for a trial;
     * otherwise null. Takes the trial of an instance that is free for one.
     */
    private static @Nullable ClientConnection serving(ClientAddress address) {
        ClientConnection connection = address.ready();
        return connection == null || connection.isFull() || !address.health().choose() ? null : connection;
    }

    /**
     * Looks at each instance once, in an order that depends on the call or its key. Returns the first connection that
     * is not full, of an instance that is healthy or free for a trial. If there is none and {@code asked} is empty,
     * returns any connection that is ready, preferably one that is not full. Returns null instead if all are full and
     * another connected instance, healthy or free for a trial, is about to have one more connection.
     */
    private @Nullable ClientConnection pickOfAll(int key, List<ClientAddress> asked) {
        int count = all.length;
        int seed = order(key);
        int at = Integer.remainderUnsigned(seed, count);
        int step = step(Integer.remainderUnsigned(mixed(seed), count), count);
        ClientConnection last = null;
        boolean isMoreComing = false;
        for (int i = 0; i < count; i++, at = (at + step) % count) {
            ClientAddress address = all[at];
            ClientConnection connection = address.ready();
            if (connection == null) {
                isMoreComing = isMoreComing || address.health().isFree() && address.isConnected();
                continue;
            }
            if (!asked.isEmpty() && asked.contains(address)) {
                continue;
            }
            if (!connection.isFull()) {
                if (address.health().choose()) {
                    return connection;
                }
                last = connection;
            } else if (last == null) {
                last = connection;
            }
        }
        if (!asked.isEmpty() || isMoreComing && last != null && last.isFull()) {
            return null;
        }
        return last;
    }

    /** Returns any number. The order in which all instances are looked at is computed from it. */
    abstract int order(int key);

    /**
     * Returns the first number from {@code from} upwards that has no divisor in common with {@code count}. Steps of
     * this size visit each instance exactly once.
     */
    private static int step(int from, int count) {
        int step = Math.max(1, from);
        while (commonDivisor(step, count) > 1) {
            step++;
        }
        return step;
    }

    private static int commonDivisor(int one, int other) {
        int a = one;
        int b = other;
        while (b != 0) {
            int rest = a % b;
            a = b;
            b = rest;
        }
        return a;
    }

    /** Mixes the bits of a hash. Source: the finaliser of MurmurHash3. */
    private static int mixed(int hash) {
        int h = hash ^ hash >>> 16;
        h *= 0x85EBCA6B;
        h ^= h >>> 13;
        h *= 0xC2B2AE35;
        return h ^ h >>> 16;
    }

    private static final class LeastLoaded extends Chooser {
        private final Platform platform;

        LeastLoaded(ClientAddress[] all, Platform platform) {
            super(all);
            this.platform = platform;
        }

        @Override
        public int first(int key) {
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

        @Override
        int redraw(int key, int draw) {
            return first(key);
        }

        @Override
        int order(int key) {
            return platform.random().nextInt();
        }

        private static int cost(ClientAddress address) {
            return address.health().isFree() ? address.load() : Integer.MAX_VALUE;
        }
    }

    private static final class RoundRobin extends Chooser {
        /** Maximum length of {@code order}. */
        private static final int MAX_ORDER = 4096;

        /** Max number of steps to compute an order, since an event loop may have to do it. */
        private static final int MAX_STEPS = 1 << 20;

        /**
         * 2⁶⁴ divided by the golden ratio. Its consecutive multiples, modulo 2⁶⁴, are spread evenly, however many there
         * are.
         */
        private static final long GOLDEN = 0x9E3779B97F4A7C15L;

        /**
         * For each instance, the sum of the weights of all instances up to and including it. The weights are first
         * divided by their greatest common divisor.
         */
        private final int[] sums;

        /**
         * Indexes of the instances in one round: each as often as its weight says, and as far apart as possible. Empty
         * if the round would be too long or would take too many steps to compute.
         */
        private final int[] order;

        /** Number of the next call. Starts at a random number, so that not all clients start with the same instance. */
        private final AtomicInteger next;

        private final Platform platform;

        RoundRobin(ClientAddress[] all, Platform platform) {
            super(all);
            this.platform = platform;
            next = new AtomicInteger(platform.random().nextInt());
            int divisor = 0;
            for (ClientAddress address : all) {
                divisor = commonDivisor(address.weight(), divisor);
            }
            sums = new int[all.length];
            int total = 0;
            for (int i = 0; i < all.length; i++) {
                total += all[i].weight() / divisor;
                sums[i] = total;
            }
            order = total > MAX_ORDER || total > all.length && (long) total * all.length > MAX_STEPS
                    ? new int[0]
                    : round(total);
        }

        private int weight(int at) {
            return at == 0 ? sums[0] : sums[at] - sums[at - 1];
        }

        private int[] round(int total) {
            if (total == all.length) {
                // all weights are equal
                return IntStream.range(0, total).toArray();
            }
            int[] round = new int[total];
            int[] current = new int[all.length];
            for (int i = 0; i < total; i++) {
                int best = 0;
                for (int j = 0; j < all.length; j++) {
                    current[j] += weight(j);
                    best = current[j] > current[best] ? j : best;
                }
                current[best] -= total;
                round[i] = best;
            }
            return round;
        }

        @Override
        public int first(int key) {
            if (all.length == 0) {
                return -1;
            }
            int call = next.getAndIncrement();
            return order.length > 0
                    ? order[Integer.remainderUnsigned(call, order.length)]
                    : of((int) Math.multiplyHigh(GOLDEN * call >>> 1, 2L * sums[sums.length - 1]));
        }

        /**
         * Returns the index of the instance whose range contains {@code part}. The ranges are as long as the weights,
         * and follow each other from 0.
         */
        private int of(int part) {
            int found = Arrays.binarySearch(sums, part);
            return found >= 0 ? found + 1 : -found - 1;
        }

        /**
         * Returns a random instance, in proportion to the weights. The next one in {@code order} may be the neighbour
         * of the previous one in the list, and neighbours often fail together.
         */
        @Override
        int redraw(int key, int draw) {
            return of(platform.random().nextInt(sums[sums.length - 1]));
        }

        @Override
        int order(int key) {
            return platform.random().nextInt();
        }
    }

    private static final class Ring extends Chooser {
        /**
         * Number of points on the ring for each unit of an instance's weight, unless there would be more than
         * {@code MAX_POINTS} in all. With 100 points, the shares of the instances differ by some 10 %. Source: Karger
         * et al., "Consistent Hashing", 1997.
         */
        private static final int POINTS_PER_WEIGHT = 100;

        private static final int MAX_POINTS = 1 << 16;

        /**
         * Points of the ring, sorted: the upper 32 bits are the position, the lower 32 bits the index of the instance.
         */
        private final long[] points;

        private final Chooser withoutKey;

        Ring(ClientAddress[] all, Platform platform) {
            super(all);
            withoutKey = new LeastLoaded(all, platform);
            int total = Arrays.stream(all).mapToInt(a -> a.weight()).sum();
            double each = Math.min(POINTS_PER_WEIGHT, (double) MAX_POINTS / Math.max(1, total));
            points = new long[Arrays.stream(all).mapToInt(a -> count(a, each)).sum()];
            int at = 0;
            for (int i = 0; i < all.length; i++) {
                String name = ClientAddress.keyOf(all[i].endpoint);
                // With only one hash, two names of the same hash would have all points in common.
                int one = fnv(name);
                int other = name.hashCode();
                for (int point = count(all[i], each); point > 0; point--) {
                    points[at++] = (long) mixed(one ^ mixed(other + point)) << 32 | i;
                }
            }
            Arrays.sort(points);
        }

        /** Returns the hash of a text, over its characters. Source: Fowler, Noll and Vo, FNV-1a of 32 bits. */
        private static int fnv(String text) {
            int hash = 0x811C9DC5;
            for (int i = 0; i < text.length(); i++) {
                hash = (hash ^ text.charAt(i)) * 0x01000193;
            }
            return hash;
        }

        private static int count(ClientAddress address, double each) {
            return Math.max(1, (int) (address.weight() * each));
        }

        @Override
        public int first(int key) {
            if (key == 0 || points.length == 0) {
                return withoutKey.first(key);
            }
            return (int) points[pointIndex(key)];
        }

        /**
         * Returns the index of the instance of the next point on the ring. If an instance is gone, different instances
         * replace it for different keys.
         */
        @Override
        int redraw(int key, int draw) {
            if (key == 0) {
                return withoutKey.redraw(key, draw);
            }
            int at = pointIndex(key) + 1 + draw;
            return (int) points[at < points.length ? at : at % points.length];
        }

        @Override
        int order(int key) {
            return key == 0 ? withoutKey.order(key) : mixed(key);
        }

        private int pointIndex(int key) {
            int found = Arrays.binarySearch(points, (long) mixed(key) << 32);
            int at = found >= 0 ? found : -found - 1;
            return at == points.length ? 0 : at;
        }
    }
}
