package dev.rpcx.internal;

import java.time.InstantSource;
import org.jspecify.annotations.Nullable;

/**
 * Logs at most one warning a minute, with the number of warnings that were suppressed since the last one. Thread-safe.
 */
public final class RateLimitedLog {
    private static final long PAUSE_MILLIS = 60_000;

    private final System.Logger logger;
    private final InstantSource clock;

    // the fields below are guarded by the monitor of this object
    private long loggedMillis;
    private boolean wasLogged;
    private long suppressed;

    public RateLimitedLog(System.Logger logger, InstantSource clock) {
        this.logger = logger;
        this.clock = clock;
    }

    /**
     * Makes sure that the next warning is logged, and resets the count of suppressed warnings. For tests, which may
     * share an object with earlier tests.
     */
    public synchronized void forget() {
        wasLogged = false;
        suppressed = 0;
    }

    public void log(String text, @Nullable Throwable why) {
        long before;
        synchronized (this) {
            long now = clock.millis();
            // the absolute difference: a clock that was set back must not suppress warnings for longer than the pause
            if (wasLogged && Math.abs(now - loggedMillis) < PAUSE_MILLIS) {
                suppressed++;
                return;
            }
            wasLogged = true;
            loggedMillis = now;
            before = suppressed;
            suppressed = 0;
        }
        warn(logger, text + (before == 0 ? "" : " (" + before + " more since this was logged last)"), why);
    }

    /**
     * Logs a warning, however recently another one was logged. Throws nothing, even if the application's logging does.
     */
    public static void warn(System.Logger logger, String text, @Nullable Throwable why) {
        try {
            logger.log(System.Logger.Level.WARNING, text, why);
        } catch (Throwable e) {
            ThreadTools.report(e);
        }
    }
}
