package dev.rpcx;

import io.netty.channel.Channel;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Finds a peer that is gone without a word: a host that lost power, a firewall that forgot the connection. Looks three times in the
 * keepalive time; a look that finds silence sends a PING, the next one that still finds silence ends the connection. What the calls pay
 * is one flag set for each read.
 *
 * <p>A peer that does not read is not pinged, as its answer could not arrive: reading from it has stopped. It is gone when in a whole
 * keepalive time not one byte of what waits for it has left.
 */
final class KeepAlive implements Runnable {
    private static final int LOOKS = 3;

    private final WireConnection connection;
    private final long lookNanos;
    private final long keepAliveNanos;
    private final Charge timers;
    private @Nullable ScheduledFuture<?> timer;
    private boolean pinged;
    private int stuckLooks;
    private long lastBacklog;

    KeepAlive(WireConnection connection, long keepAliveNanos) {
        this.connection = connection;
        this.keepAliveNanos = keepAliveNanos;
        this.timers = connection.account.charge(Resource.TIMERS);
        this.lookNanos = Math.max(1, keepAliveNanos / LOOKS);
    }

    /** On the event loop. */
    void start() {
        timers.add(1);
        timer = connection.loop().scheduleWithFixedDelay(this, lookNanos, lookNanos, TimeUnit.NANOSECONDS);
    }

    /** On the event loop. */
    void stop() {
        if (timer != null) {
            timer.cancel(false);
            timers.release();
        }
    }

    @Override
    public void run() {
        if (connection.isClosed()) {
            stop();
            return;
        }
        connection.sendQueued();
        Channel channel = connection.channel;
        if (!channel.config().isAutoRead()) {
            long backlog = channel.bytesBeforeWritable();
            stuckLooks = backlog == lastBacklog ? stuckLooks + 1 : 0;
            lastBacklog = backlog;
            if (stuckLooks >= LOOKS) {
                connection.abort("the peer has read nothing for " + millis() + " ms");
            }
            return;
        }
        stuckLooks = 0;
        if (connection.heard()) {
            pinged = false;
        } else if (pinged) {
            connection.abort("the peer has not been heard for " + millis() + " ms");
        } else {
            pinged = true;
            connection.rest();
            connection.sendNow(Wire.PING, 0);
        }
    }

    private long millis() {
        return TimeUnit.NANOSECONDS.toMillis(keepAliveNanos);
    }
}
