package dev.rpcx.internal.server;

import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.wire.Wire;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Counts the frames that a client can send at no cost to itself: CANCEL, PING and SETTINGS. The connection is ended if
 * more CANCELs or PINGs come in a second than any honest client has reason to send, or if SETTINGS come twice. Event
 * loop only.
 */
public final class FloodGuard {
    /**
     * Maximum number of CANCELs in a second, in addition to one for each call that was made. It is twice the number of
     * all slots. A client gains nothing by a CANCEL, since a call keeps its place until its handler has ended. Source:
     * "HTTP/2 rapid reset", CVE-2023-44487.
     */
    public static final int CANCELS_PER_SECOND = 2 * Wire.MAX_SLOTS;

    /**
     * Maximum number of PINGs in a second. A client sends at most 30 in a second to find out whether the server is
     * still there, and at most 30 in a second to find out whether its CANCELs have been read.
     */
    public static final int PINGS_PER_SECOND = 100;

    /** Maximum number of SETTINGS on a connection: a client that does what the wire prescribes sends them once. */
    public static final int SETTINGS = 1;

    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Ticker ticker;
    private long secondBegan;
    private int cancels;
    private int pings;
    private int settings;

    public FloodGuard(Ticker ticker) {
        this.ticker = ticker;
        this.secondBegan = ticker.nanoTime();
    }

    /**
     * Counts a call that was made. The call allows the client one more CANCEL, whether or not the call has ended by the
     * time of the CANCEL. The client can save up at most {@code CANCELS_PER_SECOND} of these CANCELs, since calls that
     * were made long ago have ended.
     */
    void requested() {
        cancels = Math.max(cancels - 1, -CANCELS_PER_SECOND);
    }

    void cancelled() {
        count(++cancels, CANCELS_PER_SECOND, "cancels");
    }

    void pinged() {
        count(++pings, PINGS_PER_SECOND, "pings");
    }

    void settingsReceived() {
        if (++settings > SETTINGS) {
            throw new WireFault("settings twice (expected: once)");
        }
    }

    private void count(int number, int max, String what) {
        if (number <= max) {
            return;
        }
        long now = ticker.nanoTime();
        if (now - secondBegan < SECOND_NANOS) {
            throw new WireFault("more than " + max + " " + what + " in a second");
        }
        secondBegan = now;
        // A negative count is kept: it is the number of calls that were made and may still be cancelled.
        cancels = Math.min(cancels, 0);
        pings = 0;
    }
}
