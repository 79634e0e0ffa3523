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
 * Chooses an instance for each call, from a list that never changes: another list gets another chooser. Every call to a
 * service with several instances uses a chooser, so choosing allocates nothing.
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
     * Number of further instances that are tried for a call after the first one, before all instances are searched. If
     * half of the instances are connected, one in 256 of the calls that try further instances needs the search.
     */
    private static final int DRAWS = 8;

    /** Returns the index of the instance to look at first; -1 if there is no instance. */
    public abstract int first(int key);

    /**
     * Returns the index of the instance to look at next, after the instances looked at so far could not take the call.
     * The calls of instances that are gone are divided among all others in the same way as all calls. Taking the next
     * instance in the list would not do that. Neighbours in a list fail together, so the instance behind them would get
     * all of these calls, and it would be the same instance in every client.
     *
     * @param draw how often this method has been called for the same call before; 0 the first time
     */
    abstract int redraw(int key, int draw);

    /**
     * Returns a connection for a call. The chosen instance gets the call if it is connected, not full, and healthy or
     * free for a trial. Otherwise another instance of which all of that is true gets the call. If there is none, any
     * connected instance gets it. Returns null if no instance has a connection that is ready. Also returns null if all
     * of these connections are full, and the call has to wait for one more connection, which is being established. The
     * caller has to send its call on the connection: if the instance is on trial, this may be the only call that the
     * instance gets.
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
     * Returns a connection that is not full, of an instance that is not among {@code asked} and is healthy or free for
     * a trial; null if there is none. Never returns a connection of an ejected instance. Such an instance may answer
     * nothing until the call's time is over, which is worse for the call than the answer that it already has from
     * another instance.
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
     * Returns the connection of the instance, if it is not full and the instance is healthy or free for a trial;
     * otherwise null. Takes the trial of an instance that is free for one.
     */
    private static @Nullable ClientConnection serving(ClientAddress address) {
        ClientConnection connection = address.ready();
        return connection == null || connection.isFull() || !address.health().choose() ? null : connection;
    }

    /**
     * Looks at each instance once, in an order that differs from call to call, or from key to key. Returns the first
     * connection that is not full, of an instance that is healthy or free for a trial. If there is none and
     * {@code asked} is empty, returns any connection that is ready, preferably one that is not full. There is one
     * exception: if all of them are full, and another connected instance is about to have one more connection, returns
     * null. That instance has to be healthy or free for a trial.
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

        /**
         * Maximum number of steps to compute an order. It is limited because an event loop may have to compute the
         * order.
         */
        private static final int MAX_STEPS = 1 << 20;

        /**
         * 2⁶⁴ divided by the golden ratio. Consecutive multiples of this number, modulo 2⁶⁴, are spread evenly, however
         * many there are.
         */
        private static final long GOLDEN = 0x9E3779B97F4A7C15L;

        /**
         * Sums of weights: the entry of an instance is the sum of the weights of all instances up to and including
         * itself. The weights are divided by their common divisor first.
         */
        private final int[] sums;

        /**
         * Indexes of the instances in one round. Each instance appears as often as its weight says, and its entries are
         * as far apart as possible. The array is empty if the round would be too long, or would take too many steps to
         * compute.
         */
        private final int[] order;

        /**
         * Counts the calls. The count begins at a random number: every client has the same list, and the clients should
         * not all begin at the same instance.
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
         * Returns the index of the instance to whose range {@code part} belongs. The ranges follow each other from 0 to
         * the sum of the weights, and the range of each instance is as long as its weight.
         */
        private int of(int part) {
            int found = Arrays.binarySearch(sums, part);
            return found >= 0 ? found + 1 : -found - 1;
        }

        /**
         * Returns a random instance. The larger the weight of an instance is, the more often it is returned. The next
         * instance in {@code order} would be a bad choice: if all weights are equal, it is also the next one in the
         * list, and neighbours in a list fail together.
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
         * Number of points that an instance has on the ring for each unit of its weight. The number is smaller if all
         * instances would have more than {@code MAX_POINTS} points together. With 100 points, the shares of the
         * instances differ by some 10 %. Source: Karger et al., "Consistent Hashing", 1997.
         */
        private static final int POINTS_PER_WEIGHT = 100;

        private static final int MAX_POINTS = 1 << 16;

        /**
         * Points of the ring, sorted. The upper 32 bits are the position, and the lower 32 bits are the index of the
         * instance.
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
                // Two hashes are used. With only one of them, two names with the same hash would have all points in
                // common.
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
         * Returns the index of the instance that has the next point on the ring. So if an instance is gone, different
         * instances replace it for different keys.
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
