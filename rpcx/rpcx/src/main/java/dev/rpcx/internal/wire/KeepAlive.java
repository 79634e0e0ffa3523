package dev.rpcx.internal.wire;

import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Finds a peer that is gone without a word, such as a host that lost power, or one that a firewall has cut off because
 * it forgot the connection. A timer looks three times in the keep-alive time: a look that finds silence sends a PING,
 * and the next look that still finds silence ends the connection. All that calls pay for this is one counter, which
 * goes up with each read.
 *
 * <p>A peer that does not read is taken for gone if not one byte of the output that waits for it has left in a whole
 * keep-alive time, whatever it sends meanwhile. A peer gets no PING while much output waits for it, or while this side
 * has stopped reading from it: the PING would stand behind the output, and its answer could not arrive.
 *
 * <p>What a look finds against the peer is checked again after the event loop has looked at its sockets, and only that
 * check ends the connection: an event loop that was held up runs its timers before it reads the signs of life that have
 * come meanwhile.
 *
 * <p>A frame has to be whole within the keep-alive time: otherwise a peer that sends a byte now and then would be alive
 * for ever.
 */
public final class KeepAlive implements Runnable {
    private static final int LOOKS = 3;

    /**
     * Shortest time that a frame is given, however short the keep-alive time is: the time of the largest frame at 16
     * KiB a second.
     */
    private static final long MIN_FRAME_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final WireConnection connection;
    private final long lookNanos;
    private final long keepAliveNanos;
    private final Charge timers;
    private @Nullable ScheduledFuture<?> timer;
    private boolean pinged;
    private int stuckLooks;
    private final int frameLooks;

    public KeepAlive(WireConnection connection, long keepAliveNanos) {
        this.connection = connection;
        this.keepAliveNanos = keepAliveNanos;
        this.timers = connection.account.charge(Resource.TIMERS);
        this.lookNanos = Math.max(1, keepAliveNanos / LOOKS);
        this.frameLooks = (int) Math.max(LOOKS, MIN_FRAME_NANOS / lookNanos);
    }

    /**
     * Time in nanoseconds within which a TLS record has to be whole once more than
     * {@code UnchargedAllowance.SMALL_BYTES} of it have come. A frame of any size has about the same time.
     */
    public static long frameNanos(long keepAliveNanos) {
        return Math.max(keepAliveNanos, MIN_FRAME_NANOS);
    }

    /** On the event loop. */
    public void start() {
        timer = connection.loop().scheduleWithFixedDelay(this, lookNanos, lookNanos, TimeUnit.NANOSECONDS);
        timers.add(1);
    }

    /** On the event loop. */
    public void stop() {
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
            // a timer whose task throws never runs again, and nobody would find a peer that is gone
            connection.failInternally(t);
        }
    }

    private void look() {
        if (connection.isClosed()) {
            stop();
            return;
        }
        connection.sendQueued();
        connection.endLost();
        stuckLooks = connection.isStalled() ? stuckLooks + 1 : 0;
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
            // isStalled above has checked whether the peer takes what waits for it
            pinged = false;
        } else if (connection.hadActivity()) {
            pinged = false;
            connection.trimActive();
        } else if (pinged) {
            askBehindSockets(this::endIfSilent);
        } else {
            pinged = true;
            connection.trimIdle();
            connection.ping();
        }
    }

    /**
     * Runs {@code end} after the event loop has looked at its sockets. A timer that is due at once is not run before
     * that look, while a task would be.
     */
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
                                connection.failInternally(t);
                            }
                        },
                        0,
                        TimeUnit.NANOSECONDS);
    }

    private void endIfStuck() {
        if (connection.isStalled()) {
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
        if (connection.hadActivity()) {
            pinged = false;
        } else {
            connection.abort("the peer was silent, and has not answered a PING for " + millis(lookNanos) + " ms");
        }
    }

    private static long millis(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(nanos);
    }
}
