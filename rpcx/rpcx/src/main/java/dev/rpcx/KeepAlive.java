package dev.rpcx;

import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Finds a peer that is gone without a word: a host that lost power, a firewall that forgot the connection. Looks three times in the
 * keepalive time; a look that finds silence sends a PING, the next one that still finds silence ends the connection. What the calls pay
 * is one flag set for each read.
 *
 * <p>A peer that does not read is gone when in a whole keepalive time not one byte of what waits for it has left,
 * whatever it says meanwhile. Where much waits for it, or reading from it has stopped, it is not pinged: the PING would
 * stand behind all that waits, and its answer could not arrive.
 *
 * <p>What a look finds against the peer is asked again behind a look at the sockets, and that ends the connection: a
 * loop that was held up runs its timers before it reads the signs of life that have come meanwhile.
 *
 * <p>A frame has the keepalive time to come to its end: a peer that sends a byte now and then would be alive for ever.
 */
final class KeepAlive implements Runnable {
    private static final int LOOKS = 3;

    /** Least time of a frame, however short the keepalive time is: that of the largest one, at 16 KiB a second. */
    private static final long MIN_FRAME_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final WireConnection connection;
    private final long lookNanos;
    private final long keepAliveNanos;
    private final Charge timers;
    private @Nullable ScheduledFuture<?> timer;
    private boolean pinged;
    private int stuckLooks;
    private final int frameLooks;

    KeepAlive(WireConnection connection, long keepAliveNanos) {
        this.connection = connection;
        this.keepAliveNanos = keepAliveNanos;
        this.timers = connection.account.charge(Resource.TIMERS);
        this.lookNanos = Math.max(1, keepAliveNanos / LOOKS);
        this.frameLooks = (int) Math.max(LOOKS, MIN_FRAME_NANOS / lookNanos);
    }

    /** A frame, or a record of TLS, that is more than a little has so long to come to its end. */
    static long frameNanos(long keepAliveNanos) {
        return Math.max(keepAliveNanos, MIN_FRAME_NANOS);
    }

    /** On the event loop. */
    void start() {
        timer = connection.loop().scheduleWithFixedDelay(this, lookNanos, lookNanos, TimeUnit.NANOSECONDS);
        timers.add(1);
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
        try {
            look();
        } catch (Throwable t) {
            // a timer whose task throws comes never again, and nobody would find a peer that is gone
            connection.broken(t);
        }
    }

    private void look() {
        if (connection.isClosed()) {
            stop();
            return;
        }
        connection.sendQueued();
        connection.endLost();
        stuckLooks = connection.isStandingStill() ? stuckLooks + 1 : 0;
        if (stuckLooks >= LOOKS) {
            askBehindSockets(this::endIfStuck);
            return;
        }
        if (!connection.channel.config().isAutoRead()) {
            return;
        }
        if (connection.isFrameOverdue(frameLooks)) {
            askBehindSockets(this::endIfFrameIsOverdue);
        } else if (!connection.channel.isWritable()) {
            // whether the peer takes what waits for it has been asked above
            pinged = false;
        } else if (connection.heard()) {
            pinged = false;
            connection.shed();
        } else if (pinged) {
            askBehindSockets(this::endIfSilent);
        } else {
            pinged = true;
            connection.rest();
            connection.ping();
        }
    }

    /** A timer that is due at once is not run before the sockets are looked at, while a task would be. */
    private void askBehindSockets(Runnable end) {
        connection
                .loop()
                .schedule(
                        () -> {
                            try {
                                if (!connection.isClosed()) {
                                    end.run();
                                }
                            } catch (Throwable t) {
                                connection.broken(t);
                            }
                        },
                        0,
                        TimeUnit.NANOSECONDS);
    }

    private void endIfStuck() {
        if (connection.isStandingStill()) {
            connection.abort("the peer has read nothing for " + millis(keepAliveNanos) + " ms");
        } else {
            stuckLooks = 0;
        }
    }

    private void endIfFrameIsOverdue() {
        if (connection.isFrameOverdue(frameLooks)) {
            connection.fail("a frame that does not come to its end");
        }
    }

    private void endIfSilent() {
        if (connection.heard()) {
            pinged = false;
        } else {
            connection.abort("the peer was silent, and has not answered a PING for " + millis(lookNanos) + " ms");
        }
    }

    private static long millis(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(nanos);
    }
}
