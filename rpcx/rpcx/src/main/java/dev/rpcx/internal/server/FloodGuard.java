package dev.rpcx.internal.server;

import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.wire.Wire;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Ends the connection of a client that sends more CANCELs or PINGs in a second than any honest client would, or sends
 * SETTINGS twice. Event loop only.
 */
public final class FloodGuard {
    /**
     * Maximum number of CANCELs in a second, in addition to one for each call. It is twice the number of all slots.
     * Source: "HTTP/2 rapid reset", CVE-2023-44487.
     */
    public static final int CANCELS_PER_SECOND = 2 * Wire.MAX_SLOTS;

    /**
     * Maximum number of PINGs in a second. A client sends at most 60: 30 to find out whether the server is still there,
     * and 30 to find out whether its CANCELs have been read.
     */
    public static final int PINGS_PER_SECOND = 100;

    /** Maximum number of SETTINGS on a connection. A client sends them once. */
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
     * Counts a call, which allows the client one more CANCEL. At most {@code CANCELS_PER_SECOND} such CANCELs can be
     * saved up.
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
        // a negative count is kept: it is the number of CANCELs that the client has saved up
        cancels = Math.min(cancels, 0);
        pings = 0;
    }
}
