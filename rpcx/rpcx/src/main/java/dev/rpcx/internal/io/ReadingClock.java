package dev.rpcx.internal.io;

import io.netty.channel.Channel;
import io.netty.util.Attribute;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Clock that measures how long a peer takes to complete a message, a frame or a TLS record. The clock stands still
 * while this side does not read from the channel. The peer may send the missing bytes during this time, but this side
 * does not see them. Only this class may switch the channel's auto-read on and off.
 *
 * <p>The clock goes on while the socket is lent to callers. {@link ReadTurn} then stops the event loop's reading
 * without switching auto-read.
 *
 * <p>All handlers of a channel share one clock. Used on the event loop only.
 */
public final class ReadingClock {
    private static final AttributeKey<ReadingClock> KEY = AttributeKey.valueOf(ReadingClock.class, "of");

    /**
     * Shortest time until a deadline is checked again while this side does not read: 1 s. The checks are repeated,
     * since nobody is notified when reading starts again.
     */
    private static final long MIN_CHECK_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Channel channel;
    private final Ticker ticker;
    private boolean isPaused;
    private long pausedSinceNanos;

    /** Total time, in nanoseconds, of the past pauses, in which this side did not read. */
    private long pausesNanos;

    private ReadingClock(Channel channel) {
        this.channel = channel;
        this.ticker = channel.eventLoop().ticker();
    }

    public static ReadingClock of(Channel channel) {
        Attribute<ReadingClock> kept = channel.attr(KEY);
        ReadingClock time = kept.get();
        if (time == null) {
            time = new ReadingClock(channel);
            kept.set(time);
        }
        return time;
    }

    /**
     * Starts or stops reading from the channel. The clock stands still while reading is stopped.
     *
     * @param reads true to start reading; false to stop
     */
    public void setReading(boolean reads) {
        if (reads == isPaused) {
            long now = ticker.nanoTime();
            isPaused = !reads;
            if (reads) {
                pausesNanos += now - pausedSinceNanos;
            } else {
                pausedSinceNanos = now;
            }
        }
        channel.config().setAutoRead(reads);
    }

    /**
     * Returns the time on this clock.
     *
     * @param nowNanos the present time of the event loop's ticker
     */
    public long at(long nowNanos) {
        return (isPaused ? pausedSinceNanos : nowNanos) - pausesNanos;
    }

    /**
     * Returns the time, in nanoseconds, after which a deadline has to be checked. While this side reads, it is the time
     * that is left until the deadline, and 0 or less if the deadline has passed. While this side does not read, it is
     * the same time, but at least 1 s.
     *
     * @param dueNanos the deadline, as a time on this clock
     * @param nowNanos the present time of the event loop's ticker
     */
    public long remaining(long dueNanos, long nowNanos) {
        long left = dueNanos - at(nowNanos);
        return isPaused ? Math.max(left, MIN_CHECK_INTERVAL_NANOS) : left;
    }
}
