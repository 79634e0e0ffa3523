package dev.parley.work.lecturers;

import dev.parley.spi.Location;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.exceptions.JedisException;

/**
 * Redis as a cache beside MySQL. A key that Redis lacks is a miss, and so is every key while Redis is away. After a
 * failure Redis is left alone for a moment, so that its absence does not cost every call a time-out. More calls than
 * there are connections wait for their turn, and that is no failure. Blocks.
 */
final class Cache implements AutoCloseable {
    private static final int CONNECTIONS = 16;
    private static final int WAIT_MS = 2_000;
    private static final long LEFT_ALONE_NS = Duration.ofMillis(500).toNanos();

    private final RedisClient redis;
    /**
     * A permit is taken before a connection, since the pool's own wait ends in the same exception as a lost connection.
     */
    private final Semaphore turns = new Semaphore(CONNECTIONS, true);

    private final LongAdder hits = new LongAdder();
    private final LongAdder misses = new LongAdder();
    /** {@link System#nanoTime} of the last failure; 0 for none. */
    private final AtomicLong failedNs = new AtomicLong();

    Cache(Location at) {
        GenericObjectPoolConfig<Connection> pool = new GenericObjectPoolConfig<>();
        pool.setMaxTotal(CONNECTIONS);
        pool.setMaxIdle(CONNECTIONS);
        pool.setMaxWait(Duration.ofMillis(WAIT_MS));
        redis = RedisClient.builder()
                .hostAndPort(new HostAndPort(at.host(), at.port()))
                .clientConfig(DefaultJedisClientConfig.builder()
                        .connectionTimeoutMillis(WAIT_MS)
                        .socketTimeoutMillis(WAIT_MS)
                        .build())
                .poolConfig(pool)
                .build();
    }

    /** The values in the order of the keys; null for each that is missing. */
    List<byte @Nullable []> get(List<String> keys) {
        List<byte @Nullable []> found = isLeftAlone() ? null : ask(keys);
        if (found == null) {
            misses.add(keys.size());
            return new ArrayList<>(Collections.nCopies(keys.size(), null));
        }
        for (byte[] value : found) {
            (value == null ? misses : hits).increment();
        }
        return found;
    }

    byte @Nullable [] get(String key) {
        return get(List.of(key)).getFirst();
    }

    private @Nullable List<byte @Nullable []> ask(List<String> keys) {
        turns.acquireUninterruptibly();
        try {
            // another call may have found Redis gone while this one waited
            return isLeftAlone()
                    ? null
                    : redis.mget(keys.stream().map(Cache::bytes).toArray(byte[][]::new));
        } catch (JedisException e) {
            failedNs.set(System.nanoTime() | 1);
            return null;
        } finally {
            turns.release();
        }
    }

    /** Puts values into the cache. A value that cannot be put is a miss the next time. */
    void put(Map<String, byte[]> values) {
        if (values.isEmpty() || isLeftAlone()) {
            return;
        }
        List<byte[]> flat = new ArrayList<>(2 * values.size());
        values.forEach((key, value) -> {
            flat.add(bytes(key));
            flat.add(value);
        });
        turns.acquireUninterruptibly();
        try {
            if (!isLeftAlone()) {
                redis.mset(flat.toArray(byte[][]::new));
            }
        } catch (JedisException e) {
            failedNs.set(System.nanoTime() | 1);
        } finally {
            turns.release();
        }
    }

    private boolean isLeftAlone() {
        long failed = failedNs.get();
        return failed != 0 && System.nanoTime() - failed < LEFT_ALONE_NS;
    }

    private static byte[] bytes(String key) {
        return key.getBytes(StandardCharsets.UTF_8);
    }

    /** Takes out what an earlier run put in. All else stays, since the Redis may be somebody's own. */
    void forget(List<String> keys) {
        redis.del(keys.toArray(String[]::new));
    }

    long hits() {
        return hits.sum();
    }

    long misses() {
        return misses.sum();
    }

    @Override
    public void close() {
        redis.close();
    }
}
