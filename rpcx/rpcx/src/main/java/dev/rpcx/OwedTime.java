package dev.rpcx;

import io.netty.channel.Channel;
import io.netty.util.Attribute;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Time that counts against the peer of a connection. It stands still while this side does not read: what the peer owes
 * may have been sent long ago. All that has begun and has to come to its end in time, which is a message in parts, a
 * frame or a record of TLS, goes by this clock, and it alone begins and ends the reading, so that no pause can be
 * missed.
 *
 * <p>There is one for a channel, whoever reads from it. On the event loop.
 */
final class OwedTime {
    private static final AttributeKey<OwedTime> KEY = AttributeKey.valueOf(OwedTime.class, "of");

    /**
     * Nothing is due in a pause, and nobody who waits is told of its end: whoever looks then looks again so much later.
     */
    private static final long PAUSE_LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Channel channel;
    private final Ticker ticker;
    private boolean isPaused;
    private long pausedSinceNanos;

    /** How long all pauses that are over have been. */
    private long pausesNanos;

    private OwedTime(Channel channel) {
        this.channel = channel;
        this.ticker = channel.eventLoop().ticker();
    }

    static OwedTime of(Channel channel) {
        Attribute<OwedTime> kept = channel.attr(KEY);
        OwedTime time = kept.get();
        if (time == null) {
            time = new OwedTime(channel);
            kept.set(time);
        }
        return time;
    }

    /** Begins or ends a pause: whether what the peer sends is read from here on. */
    void setReading(boolean reads) {
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

    /** @param nowNanos the event loop's time, which is now */
    long at(long nowNanos) {
        return (isPaused ? pausedSinceNanos : nowNanos) - pausesNanos;
    }

    /**
     * Says how long it takes at least until something is due.
     *
     * @param dueNanos by this clock
     * @param nowNanos as above
     * @return nanoseconds, of the event loop's; none or less if it is due now, which it never is in a pause
     */
    long left(long dueNanos, long nowNanos) {
        long left = dueNanos - at(nowNanos);
        return isPaused ? Math.max(left, PAUSE_LOOK_NANOS) : left;
    }
}
