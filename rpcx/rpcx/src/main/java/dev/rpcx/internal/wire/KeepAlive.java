package dev.rpcx.internal.wire;

import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Detects a peer that is gone without having closed the connection: for example its host has lost power, or a firewall
 * has forgotten the connection and so cut the peer off. A timer checks three times in each keep-alive time whether
 * anything has arrived. The first check that finds silence sends a PING. If the next check finds silence again, the
 * connection ends. All that calls pay for this is one counter, which goes up with each read.
 *
 * <p>A peer that does not read counts as gone if output waits for it and not one byte of that output has been sent for
 * a keep-alive time, whatever the peer sends meanwhile. The peer gets no PING while much output waits for it, since the
 * PING would have to wait behind that output. Nor does it get a PING while this side has paused reading, since the
 * answer could not arrive.
 *
 * <p>A check that finds a reason to end the connection does not end it. Instead, a second check runs after the event
 * loop has polled its sockets, and only the second check can end the connection. The reason is that an event loop that
 * was held up runs its timers before it reads the signs of life that have arrived meanwhile.
 *
 * <p>All of a frame has to arrive within about the keep-alive time, or within about 1 s if that is longer. Otherwise a
 * peer that sends a byte now and then would count as alive forever.
 */
public final class KeepAlive implements Runnable {
    private static final int CHECKS = 3;

    /**
     * Time that each frame is given to arrive in full, even if the keep-alive time is shorter. The largest frame, which
     * has 16 KiB, takes this time at 16 KiB a second.
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
     * Returns the time in nanoseconds within which a TLS record has to arrive completely, counted from its first byte.
     * It is a limit only for a record of which more than {@code UnchargedAllowance.SMALL_BYTES} have arrived. A frame
     * of any size has about the same time.
     */
    public static long frameNanos(long keepAliveNanos) {
        return Math.max(keepAliveNanos, MIN_FRAME_NANOS);
    }

    /** Starts the timer. Event loop only. */
    public void start() {
        timer = connection.loop().scheduleWithFixedDelay(this, checkNanos, checkNanos, TimeUnit.NANOSECONDS);
        timers.add(1);
    }

    /** Stops the timer, if it was started. Event loop only. */
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
            // a timer whose task throws never runs again, and then nothing would find out that the peer is gone
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
            // no PING is sent while output waits: isStalled has checked above whether the peer takes that output
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
     * Runs {@code end} after the event loop has polled its sockets. A timer without a delay does this: the loop polls
     * its sockets before it runs the timer, whereas it would run a task before it polls them.
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
            stuckChecks = 0;
        }
    }

    private void endIfFrameIsOverdue() {
        if (connection.isFrameOverdue(frameChecks)) {
            connection.fail("a frame was begun and not ended in time");
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
