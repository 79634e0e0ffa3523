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
 * Chooses the instance for each call to a service with several instances. There is one subclass for each
 * {@link Choice}. The instances and weights of a chooser never change: if the registry changes its list, the
 * {@link ClientCluster} creates a new chooser. Choosing allocates nothing, since it is done for every call.
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
     * Maximum number of further draws for a call if the instance that was drawn first cannot take the call. If no draw
     * finds an instance that can, all instances are searched. For example, suppose that half of the instances are
     * connected, with {@code WEIGHTED_ROUND_ROBIN} and equal weights. Then all eight further draws fail for 1 in 256 of
     * the calls whose first instance is not connected.
     */
    private static final int MAX_FURTHER_DRAWS = 8;

    /**
     * Returns the index in {@link #all} of the instance that should take the call; -1 if there are no instances.
     *
     * @param key number computed from the argument that decides which instance gets the call; 0 if no argument decides
     *     this
     */
    public abstract int first(int key);

    /**
     * Returns the index in {@link #all} of an instance to try, if the instances that were tried earlier in the same
     * search cannot take the call. By chance, the result can be one of the instances that were tried. The result must
     * not simply be the next instance in the list. Neighbours in the list often fail together, and the first healthy
     * instance behind them would get all of their calls. There must be at least one instance.
     *
     * @param draw number of earlier calls of this method in the same search
     */
    abstract int redraw(int key, int draw);

    /**
     * Returns a connection for a call, or null if the call has to wait for one. The best choice is a connection with
     * free slots to an instance that {@link Health} lets take calls. If there is none, usually any other ready
     * connection is used, see {@link #pickOfAll}. The caller has to send its call on the returned connection, or to
     * call {@link Health#unsent}, since {@code Health} may have reserved the instance for this call as a trial.
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
     * Returns a connection with free slots to an instance that the call has not tried yet, and that {@link Health} lets
     * take calls. Returns null if there is no such connection. Unlike {@link #pick}, this method never chooses an
     * instance that is ejected, since the instance might not answer at all. If the result is null, the caller either
     * chooses by {@link #pick}, or ends the attempt with the error of the first connection that was tried.
     *
     * @param asked instances that the call has tried; at least one
     */
    @Nullable
    ClientConnection pickBeside(List<ClientAddress> asked) {
        return hasBeside(asked) ? pickAgain(0, asked) : null;
    }

    /**
     * Returns whether {@link #all} contains an instance that the call has not tried yet.
     *
     * @param asked instances that the call has tried; some may no longer be in {@link #all}
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
     * Returns whether a call could go to another connected instance that {@link Health} lets take calls. This method
     * reserves nothing for the call.
     *
     * @param asked the instance that the call has tried
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
        for (int draw = 0; draw < MAX_FURTHER_DRAWS; draw++) {
            ClientAddress address = all[redraw(key, draw)];
            ClientConnection connection = asked.contains(address) ? null : serving(address);
            if (connection != null) {
                return connection;
            }
        }
        return pickOfAll(key, asked);
    }

    /**
     * Returns a connection that leads to the instance and has free slots, or null if the instance cannot take a call
     * now. A healthy instance that has such a connection can take a call. An ejected instance takes none. After the end
     * of the ejection, the instance takes one call at a time: {@link Health#choose} then reserves it for this call.
     */
    private static @Nullable ClientConnection serving(ClientAddress address) {
        ClientConnection connection = address.ready();
        return connection == null || connection.isFull() || !address.health().choose() ? null : connection;
    }

    /**
     * Searches all instances for a connection, in the order that {@link #order} decides. The first of these cases that
     * applies decides the result:
     *
     * <ol>
     *   <li>An instance that {@link Health} lets take calls has a connection with free slots: returns this connection.
     *   <li>The list {@code asked} is not empty: returns null.
     *   <li>Another instance has a ready connection with free slots: returns this connection.
     *   <li>An instance that {@code Health} lets take calls is about to have one more connection: returns null, so that
     *       the call waits.
     *   <li>Otherwise, returns a ready connection that is full, or null if there is none.
     * </ol>
     *
     * @param asked instances that are left out, since the call has tried them
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

    /**
     * Returns the number that decides in which order the instances are searched for one call. The number is random, or
     * is computed from the key of the call.
     */
    abstract int order(int key);

    /**
     * Returns a step with which a walk around a circle of {@code count} indexes visits each index exactly once. This is
     * the first number, from {@code from} upwards, that has no common divisor with {@code count} except 1.
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

    /**
     * Mixes the bits of a hash, so that each bit of the result depends on all bits of the hash. Source: the finaliser
     * of MurmurHash3.
     */
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
        /**
         * The order of a round is computed in advance only if the round has at most this number of calls. In one round,
         * each instance gets calls in proportion to its weight. If the weights need a longer round, the instance is
         * computed separately for each call.
         */
        private static final int MAX_ORDER = 4096;

        /**
         * The order of a round is computed in advance only if the computation takes at most this many steps. If the
         * instances have different weights, the number of steps is the number of calls in the round, multiplied by the
         * number of instances. The steps are limited because an event loop may compute the order.
         */
        private static final int MAX_STEPS = 1 << 20;

        /**
         * 2⁶⁴ divided by the golden ratio. Consecutive multiples of this number, modulo 2⁶⁴, are spread evenly, and so
         * calls are spread evenly over the instances.
         */
        private static final long GOLDEN = 0x9E3779B97F4A7C15L;

        /**
         * Sums of the weights: for each instance, its own weight plus the weights of all instances before it. The
         * weights are divided by their greatest common divisor first. For example, the weights 10, 20 and 10 give the
         * sums 1, 3 and 4.
         */
        private final int[] sums;

        /**
         * Indexes of the instances in the order in which they get calls, for one round. Each index occurs as often as
         * the instance's weight says, spread over the round. The array is empty if a round would be too long, or would
         * take too many steps to compute.
         */
        private final int[] order;

        /**
         * Number of the next call. The first number is random, so that not all clients begin with the same instance.
         * Each thread that chooses an instance increases the number.
         */
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
                // If the sum of the weights is the number of instances, each weight is 1.
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
         * Returns the index of the instance to which a part of the total weight belongs. For example, with the weights
         * 1, 2 and 1, part 0 belongs to index 0, parts 1 and 2 to index 1, and part 3 to index 2.
         *
         * @param part number from 0, and less than the sum of all weights
         */
        private int of(int part) {
            int found = Arrays.binarySearch(sums, part);
            return found >= 0 ? found + 1 : -found - 1;
        }

        /**
         * Returns a random instance, in proportion to the weights. The next instance of the round would be a bad
         * choice. If the weights are equal, it stands in the list right after the instance that was tried, and
         * neighbours in the list often fail together.
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
         * Maximum number of points on the hash ring for each unit of an instance's weight. There are fewer if the ring
         * would have more than {@code MAX_POINTS}. With 100 points, the shares of the instances differ by about 10 %.
         * Source: Karger et al., "Consistent Hashing", 1997.
         */
        private static final int MAX_POINTS_PER_WEIGHT = 100;

        private static final int MAX_POINTS = 1 << 16;

        /**
         * Points on the hash ring, sorted by position. The upper 32 bits of a point are the position, and the lower 32
         * bits are the index of the instance.
         */
        private final long[] points;

        private final Chooser withoutKey;

        Ring(ClientAddress[] all, Platform platform) {
            super(all);
            withoutKey = new LeastLoaded(all, platform);
            int total = Arrays.stream(all).mapToInt(a -> a.weight()).sum();
            double each = Math.min(MAX_POINTS_PER_WEIGHT, (double) MAX_POINTS / Math.max(1, total));
            points = new long[Arrays.stream(all).mapToInt(a -> count(a, each)).sum()];
            int at = 0;
            for (int i = 0; i < all.length; i++) {
                String name = ClientAddress.keyOf(all[i].endpoint);
                // Two hashes of the name are combined. With one hash alone, two instances whose names have the same
                // hash would have the same points on the ring.
                int one = fnv(name);
                int other = name.hashCode();
                for (int point = count(all[i], each); point > 0; point--) {
                    points[at++] = (long) mixed(one ^ mixed(other + point)) << 32 | i;
                }
            }
            Arrays.sort(points);
        }

        /** Returns the 32-bit FNV-1a hash of the characters of a text. Source: Fowler, Noll and Vo. */
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
         * Returns the index of the instance to which another point on the ring belongs, for a call with a key. Draw 0
         * takes the next point after the point of {@link #first}, draw 1 takes the point after that, and so on. Each
         * instance usually has many points, and the next points after them belong to different instances. So if an
         * instance takes no calls, its keys go to different instances, and not all to one.
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
