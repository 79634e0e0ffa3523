package dev.rpcx.internal.wire;

import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Detects a peer that is gone without having closed the connection, for example because its host has lost power. A
 * timer checks three times in each keep-alive time whether anything has arrived. The first check that finds silence
 * sends a PING; if the next finds silence again, the connection ends. All that this costs calls is one counter, which
 * goes up with each read.
 *
 * <p>A peer also counts as gone if output waits for it and the peer takes not one byte within a keep-alive time,
 * whatever the peer sends. While much output waits, no PING is sent, since the PING would wait behind that output. Nor
 * is a PING sent while this side has paused reading, since the answer could not arrive.
 *
 * <p>A check that finds a reason to end the connection does not end it: a second check does, after the event loop has
 * polled its sockets. An event loop that was held up runs its timers before it reads what has arrived in the meantime.
 *
 * <p>A frame has to arrive completely within about the keep-alive time, or about 1 s if that is longer. Otherwise a
 * peer that sends a byte now and then would count as alive forever.
 */
public final class KeepAlive implements Runnable {
    private static final int CHECKS = 3;

    /**
     * Minimum time that a frame is given to arrive completely. At 16 KiB a second, the largest frame takes this time.
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
     * Returns the time in nanoseconds within which a TLS record has to arrive completely. It applies once more than
     * {@code UnchargedAllowance.SMALL_BYTES} of the record have arrived.
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
            // a timer whose task throws never runs again, and the peer would no longer be checked
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
     * Runs {@code end} after the event loop has polled its sockets. A timer without delay does this; a task would run
     * before the poll.
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
