package dev.rpcx.internal.io;

import io.netty.channel.Channel;
import io.netty.util.Attribute;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Clock for the deadlines of a peer: for the end of a message in parts, of a frame and of a TLS record. It stands still
 * while this side does not read, since the missing bytes may have arrived already. Only this class may start and stop
 * reading from the channel.
 *
 * <p>All handlers of a channel share one clock. Event loop only.
 */
public final class ReadingClock {
    private static final AttributeKey<ReadingClock> KEY = AttributeKey.valueOf(ReadingClock.class, "of");

    /** Shortest time until a deadline is checked again during a pause: 1 s. Nobody is notified when the pause ends. */
    private static final long PAUSE_LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Channel channel;
    private final Ticker ticker;
    private boolean isPaused;
    private long pausedSinceNanos;

    /** Total length of all pauses that are over. */
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
     * Begins or ends a pause.
     *
     * @param reads true if the channel is read from now on; false if a pause begins
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
     * Converts the present time to this clock.
     *
     * @param nowNanos the present time, by the event loop's ticker
     */
    public long at(long nowNanos) {
        return (isPaused ? pausedSinceNanos : nowNanos) - pausesNanos;
    }

    /**
     * Computes the shortest time until a deadline can be reached.
     *
     * @param dueNanos the deadline, by this clock
     * @param nowNanos the present time, by the event loop's ticker
     * @return nanoseconds of the event loop's ticker; 0 or less if the deadline has passed; during a pause at least 1 s
     */
    public long remaining(long dueNanos, long nowNanos) {
        long left = dueNanos - at(nowNanos);
        return isPaused ? Math.max(left, PAUSE_LOOK_NANOS) : left;
    }
}
