package dev.rpcx.internal.server;

import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.wire.Wire;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Ends the connection of a client that sends too many CANCEL, PING, SETTINGS or SCHEMA frames. These frames make work
 * for the server, and cost the client almost nothing. Used only on the event loop.
 *
 * <p>CANCELs and PINGs are counted. The time is checked only when one of the two counts exceeds its limit. If the
 * counts began less than a second ago, the connection is ended. Otherwise both counts begin anew. So a client can send
 * about twice as many frames in one second. For example, a new client waits for a second, and then sends 201 PINGs at
 * once. The first 100 PINGs reach the limit. The next PING exceeds the limit, but the counts began a second ago, so
 * they begin anew. The last 100 PINGs reach the limit again.
 */
public final class FloodGuard {
    /**
     * Maximum number of CANCEL frames in a second. In addition, each request allows the client one more CANCEL. The
     * limit protects against "HTTP/2 rapid reset" (CVE-2023-44487), and is twice the largest number of calls that a
     * connection can have at a time.
     */
    public static final int MAX_CANCELS_PER_SECOND = 2 * Wire.MAX_SLOTS;

    /**
     * Maximum number of PING frames in a second. A client of RPCX sends at most 60: 30 to check that the server is
     * still there, and 30 to check that the server has read the client's CANCELs.
     */
    public static final int MAX_PINGS_PER_SECOND = 100;

    /** Maximum number of SETTINGS frames on a connection. A client of RPCX sends one. */
    public static final int MAX_SETTINGS = 1;

    /**
     * Maximum number of SCHEMA frames on a connection. A client of RPCX sends one at most, in which it asks for all
     * that it needs.
     */
    public static final int MAX_SCHEMAS = 1;

    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Ticker ticker;
    private long secondBegan;
    private int cancels;
    private int pings;
    private int settings;
    private int schemas;

    public FloodGuard(Ticker ticker) {
        this.ticker = ticker;
        this.secondBegan = ticker.nanoTime();
    }

    /**
     * Counts a request, which allows the client one more CANCEL. The client can save up at most
     * {@code MAX_CANCELS_PER_SECOND} of these CANCELs.
     */
    void requested() {
        cancels = Math.max(cancels - 1, -MAX_CANCELS_PER_SECOND);
    }

    void cancelled() {
        count(++cancels, MAX_CANCELS_PER_SECOND, "cancels");
    }

    void pinged() {
        count(++pings, MAX_PINGS_PER_SECOND, "pings");
    }

    void settingsReceived() {
        if (++settings > MAX_SETTINGS) {
            throw new WireFault("settings twice (expected: once)");
        }
    }

    void schemasAsked() {
        if (++schemas > MAX_SCHEMAS) {
            throw new WireFault("a question for schemas twice (expected: once)");
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
        // a negative count of cancels is kept, since it is the number of CANCELs that the client has saved up
        cancels = Math.min(cancels, 0);
        pings = 0;
    }
}
