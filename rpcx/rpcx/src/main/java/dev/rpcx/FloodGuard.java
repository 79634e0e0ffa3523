package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Counts what a client may send at no cost to itself: cancels, pings, settings. More in a second than any honest client has reason for
 * ends the connection. On the event loop, and only for these frames.
 */
final class FloodGuard {
    /**
     * Beyond those of the calls that were made. A cancel gains nothing, as a call has its place until its handler has
     * ended. Source: "HTTP/2 rapid reset", CVE-2023-44487; twice all slots, every second.
     */
    static final int CANCELS_PER_SECOND = 2 * Wire.MAX_SLOTS;

    /** A client looks for signs of life 30 times a second at most, and as often asks whether its CANCELs were read. */
    static final int PINGS_PER_SECOND = 100;

    /** Said once by those who keep to the wire. */
    static final int SETTINGS = 1;

    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Ticker ticker;
    private long secondBegan;
    private int cancels;
    private int pings;
    private int settings;

    FloodGuard(Ticker ticker) {
        this.ticker = ticker;
        this.secondBegan = ticker.nanoTime();
    }

    /** Each call may be cancelled once, whether it is still there or not; those of long ago have ended. */
    void requested() {
        cancels = Math.max(cancels - 1, -CANCELS_PER_SECOND);
    }

    void cancelled() {
        count(++cancels, CANCELS_PER_SECOND, "cancels");
    }

    void pinged() {
        count(++pings, PINGS_PER_SECOND, "pings");
    }

    void settled() {
        if (++settings > SETTINGS) {
            throw new WireFault("settings twice (expected: once)");
        }
    }

    private void count(int so, int most, String what) {
        if (so <= most) {
            return;
        }
        long now = ticker.nanoTime();
        if (now - secondBegan < SECOND_NANOS) {
            throw new WireFault("more than " + most + " " + what + " in a second");
        }
        secondBegan = now;
        // calls that were made and not cancelled yet still may be
        cancels = Math.min(cancels, 0);
        pings = 0;
    }
}
