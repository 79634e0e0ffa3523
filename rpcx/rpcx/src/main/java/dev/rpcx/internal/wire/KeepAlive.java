package dev.rpcx.internal.wire;

import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Detects a peer that is gone without having closed the connection, for example because its host has lost power. A
 * timer checks three times in each keep-alive time whether anything has arrived. If nothing has, this side sends a
 * PING. If nothing has arrived by the next check either, the connection ends. All that this costs calls is one counter,
 * which goes up with each read.
 *
 * <p>A peer also counts as gone if output waits for it and it takes not one byte within a keep-alive time, whatever it
 * sends. While much output waits, no PING is sent, since the PING would wait behind that output. Nor is a PING sent
 * while this side has paused reading, since the answer could not arrive.
 *
 * <p>Before the connection ends, the event loop polls its sockets and the check is made again. The reason is that an
 * event loop that was held up runs its timers before it reads what has arrived in the meantime.
 *
 * <p>A frame has to arrive completely within about the keep-alive time, or about 1 s if that is longer. Otherwise a
 * peer that sends a byte now and then would count as alive forever.
 */
public final class KeepAlive implements Runnable {
    private static final int CHECKS = 3;

    /**
     * Each frame is given at least this time to arrive completely. At 16 KiB a second, the largest frame takes this
     * time.
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
     * Returns the time in nanoseconds within which a TLS record has to arrive completely. The limit applies once more
     * than {@code UnchargedAllowance.SMALL_BYTES} of the record have arrived.
     *
     * @param keepAliveNanos keep-alive time of the connection in nanoseconds
     */
    public static long frameNanos(long keepAliveNanos) {
        return Math.max(keepAliveNanos, MIN_FRAME_NANOS);
    }

    /** Starts the timer that checks the peer. Event loop only. */
    public void start() {
        timer = connection.loop().scheduleWithFixedDelay(this, checkNanos, checkNanos, TimeUnit.NANOSECONDS);
        timers.add(1);
    }

    /** Stops the timer that checks the peer, if it was started. Event loop only. */
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
     * Runs {@code end} after the event loop has polled its sockets, unless the connection is closed by then. A timer
     * without delay waits for the poll; a task of the loop would run before it.
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
