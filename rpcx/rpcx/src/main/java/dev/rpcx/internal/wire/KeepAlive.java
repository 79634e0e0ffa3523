package dev.rpcx.internal.wire;

import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Detects a peer that is gone without having closed the connection, for example because its host has lost power. A
 * timer checks three times in each keep-alive time whether anything has arrived. If nothing has arrived since the
 * previous check, this side sends a PING. If nothing has arrived by the next check either, the connection ends.
 *
 * <p>A peer also counts as gone if output waits for the peer, but the peer takes no byte of that output within a
 * keep-alive time. This holds even if the peer sends something. While much output waits, no PING is sent, since the
 * PING would wait behind that output. While this side has paused reading, no PING is sent either, since the answer
 * could not arrive.
 *
 * <p>Before the connection ends, the event loop polls its sockets, and the check is made again. The reason is that an
 * event loop that was held up runs its timers before it reads the bytes that have arrived.
 *
 * <p>A frame has to arrive completely within about the keep-alive time, or within about 1 s if the keep-alive time is
 * shorter. Otherwise a peer that sends a byte now and then would count as alive forever.
 */
public final class KeepAlive implements Runnable {
    private static final int CHECKS = 3;

    /**
     * Time in nanoseconds that is always allowed for a frame to arrive completely, even if the keep-alive time is
     * shorter. At 16 KiB a second, the largest frame takes this time.
     */
    private static final long MIN_FRAME_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final WireConnection connection;
    private final long checkNanos;
    private final long keepAliveNanos;
    private final Charge timers;
    private @Nullable ScheduledFuture<?> timer;
    private boolean pinged;
    private int stuckChecks;
    private final int frameChecks;

    public KeepAlive(WireConnection connection, long keepAliveNanos) {
        this.connection = connection;
        this.keepAliveNanos = keepAliveNanos;
        this.timers = connection.account.charge(Resource.TIMERS);
        this.checkNanos = Math.max(1, keepAliveNanos / CHECKS);
        this.frameChecks = (int) Math.max(CHECKS, MIN_FRAME_NANOS / checkNanos);
    }

    /**
     * Returns the time in nanoseconds within which a TLS record has to arrive completely at a client. The limit applies
     * to a record of which more than {@code UnchargedAllowance.MAX_SMALL_BYTES} have arrived. A server has another
     * limit.
     *
     * @param keepAliveNanos keep-alive time of the connection in nanoseconds
     */
    public static long frameNanos(long keepAliveNanos) {
        return Math.max(keepAliveNanos, MIN_FRAME_NANOS);
    }

    /** Starts the timer that checks the peer. Must be called on the event loop. */
    public void start() {
        timer = connection.loop().scheduleWithFixedDelay(this, checkNanos, checkNanos, TimeUnit.NANOSECONDS);
        timers.add(1);
    }

    /**
     * Stops the timer that checks the peer. Does nothing if the timer was not started. Must be called on the event
     * loop.
     */
    public void stop() {
        if (timer != null) {
            timer.cancel(false);
            timers.release();
        }
    }

    @Override
    public void run() {
        try {
            check();
        } catch (Throwable t) {
            // the exception must not leave this method, because the timer would stop and nothing would check the peer
            connection.failInternally(t);
        }
    }

    private void check() {
        if (connection.isClosed()) {
            stop();
            return;
        }
        connection.sendQueued();
        connection.endLost();
        stuckChecks = connection.isStalled() ? stuckChecks + 1 : 0;
        if (stuckChecks >= CHECKS) {
            askBehindSockets(this::endIfStuck);
            return;
        }
        if (!connection.channel.config().isAutoRead()) {
            return;
        }
        if (connection.isFrameOverdue(frameChecks)) {
            askBehindSockets(this::endIfFrameIsOverdue);
        } else if (!connection.channel.isWritable()) {
            // No PING is sent while much output waits. Instead, the call of isStalled() above checks whether the peer
            // takes that output.
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
     * Runs {@code end} after the event loop has next polled its sockets. Does nothing if the connection is closed by
     * then. A timer with a delay of 0 is used, because the event loop polls its sockets before it runs such a timer,
     * but not before it runs an ordinary task.
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
            connection.abort(ConnectionErrors.stuck(keepAliveNanos));
        } else {
            stuckChecks = 0;
        }
    }

    private void endIfFrameIsOverdue() {
        if (connection.isFrameOverdue(frameChecks)) {
            connection.fail(ConnectionErrors.LATE_FRAME);
        }
    }

    private void endIfSilent() {
        if (connection.hadActivity()) {
            pinged = false;
        } else {
            connection.abort("the peer was silent, and has not answered a PING for " + millis(checkNanos) + " ms");
        }
    }

    private static long millis(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(nanos);
    }
}
