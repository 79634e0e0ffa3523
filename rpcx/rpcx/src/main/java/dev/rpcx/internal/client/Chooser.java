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
 * {@link Choice}. The instances of a chooser never change; if the registry names others, the cluster creates a new
 * chooser. Every call to such a service uses a chooser, so choosing allocates nothing.
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
     * Number of further instances that are tried if the first one cannot take the call. After that, all instances are
     * searched. If half of the instances are connected, 1 in 256 calls that their first instance could not take needs
     * that search.
     */
    private static final int DRAWS = 8;

    /** Returns the index in {@link #all} of the instance that should take the call; -1 if there are no instances. */
    public abstract int first(int key);

    /**
     * Returns the index in {@link #all} of another instance, after the ones before could not take the call. Do not
     * simply return the next one in the list. Neighbours often fail together, and the first one behind them would get
     * all of their calls.
     *
     * @param draw how many times this was called for the call before; 0 the first time
     */
    abstract int redraw(int key, int draw);

    /**
     * Returns a connection for a call, or null if the call has to wait for one. It prefers a connection that is not
     * full, of an instance that {@link Health} lets take calls. Otherwise it takes any connection that is ready, unless
     * all are full and one more is being established. The caller has to send its call on that connection, since the
     * call may be the trial of an instance that was ejected.
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
     * Returns a connection to an instance that the call has not tried yet. The connection is not full, and
     * {@link Health} lets the instance take calls. Returns null if there is none, even if an ejected instance is
     * connected: it might not answer, and the call already has an answer from another instance.
     *
     * @param asked instances that the call has tried
     */
    @Nullable
    ClientConnection pickBeside(List<ClientAddress> asked) {
        return hasBeside(asked) ? pickAgain(0, asked) : null;
    }

    /**
     * Whether there is an instance that the call has not tried yet.
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
     * Whether a call could go to another connected instance that {@link Health} lets take calls. Only looks: it does
     * not make the call the trial of an instance.
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
     * Returns the instance's connection if it can take a call now, or null if it cannot. It can if the connection is
     * not full and {@link Health} lets the instance take calls. If the instance is on trial after an ejection, the call
     * becomes its trial.
     */
    private static @Nullable ClientConnection serving(ClientAddress address) {
        ClientConnection connection = address.ready();
        return connection == null || connection.isFull() || !address.health().choose() ? null : connection;
    }

    /**
     * Searches all instances for a connection, beginning at a different one for different calls. Prefers a connection
     * that is not full, of an instance that {@link Health} lets take calls. If there is none, and {@code asked} is
     * empty, returns another connection that is ready, if possible one that is not full. But if it would be a full one,
     * and an instance that {@code Health} lets take calls is about to have one more, returns null, so that the call
     * waits.
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
     * Returns the number from which the order of a search through all instances is computed. It is random, or depends
     * on the key of the call.
     */
    abstract int order(int key);

    /**
     * Returns a step that visits each of {@code count} indexes exactly once. This is the first number from {@code from}
     * upwards that has no common divisor with {@code count}.
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

    /** Returns a hash in which all bits depend on all bits of the given hash. Source: the finaliser of MurmurHash3. */
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
        /** Maximum number of calls in a precomputed round. Beyond it, the instance is computed for each call. */
        private static final int MAX_ORDER = 4096;

        /** Maximum number of steps to compute a round, since it may be computed on an event loop. */
        private static final int MAX_STEPS = 1 << 20;

        /**
         * 2⁶⁴ divided by the golden ratio. Its consecutive multiples, modulo 2⁶⁴, are spread evenly, however many there
         * are.
         */
        private static final long GOLDEN = 0x9E3779B97F4A7C15L;

        /**
         * Running totals of the weights: for each instance, its own weight plus those of all instances before it. The
         * weights are first divided by their greatest common divisor.
         */
        private final int[] sums;

        /**
         * Indexes of the instances in the order in which they get calls, for one round. Each index occurs as often as
         * the instance's weight says, spread over the round. Empty if a round would be too long or take too many steps
         * to compute.
         */
        private final int[] order;

        /**
         * Number of the next call. It begins at a random value, so that not all clients begin with the same instance.
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
         * Returns the index of the instance to which a number from 0 to the total weight belongs. Each instance has a
         * range as long as its weight, in the order of the list.
         *
         * @param part number from 0, and less than the sum of all weights
         */
        private int of(int part) {
            int found = Arrays.binarySearch(sums, part);
            return found >= 0 ? found + 1 : -found - 1;
        }

        /**
         * Returns a random instance, in proportion to the weights. It does not return the next one in the round: with
         * equal weights that is the neighbour in the list, and neighbours often fail together.
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
         * Number of points on the hash ring for each unit of weight. There are fewer if the ring would have more than
         * {@code MAX_POINTS}. With 100 points, the shares of the instances differ by about 10 %. Source: Karger et al.,
         * "Consistent Hashing", 1997.
         */
        private static final int POINTS_PER_WEIGHT = 100;

        private static final int MAX_POINTS = 1 << 16;

        /**
         * Points on the hash ring, sorted by position. The upper 32 bits of each are the position, and the lower 32
         * bits the index of the instance.
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

        /** Returns the FNV-1a hash of a text: 32 bits, over its characters. Source: Fowler, Noll and Vo. */
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
         * Returns the index of the instance of the next point on the ring, or of one further on for a later draw. So if
         * an instance is gone, its keys go to different instances, and not all to one.
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
