package dev.rpcx.internal;

import java.time.InstantSource;
import org.jspecify.annotations.Nullable;

/**
 * Logs at most one warning a minute. Each warning says how many others were suppressed since the previous one, if any.
 * Thread-safe.
 */
public final class RateLimitedLog {
    private static final long MIN_PAUSE_MILLIS = 60_000;

    private final System.Logger logger;
    private final InstantSource clock;

    // The fields below are guarded by the monitor of this object.
    private long loggedMillis;
    private boolean wasLogged;
    private long suppressed;

    public RateLimitedLog(System.Logger logger, InstantSource clock) {
        this.logger = logger;
        this.clock = clock;
    }

    /**
     * Forgets all earlier warnings and the number of suppressed ones, so that the next warning is logged. Used by tests
     * that share this object with earlier tests.
     */
    public synchronized void forget() {
        wasLogged = false;
        suppressed = 0;
    }

    public void log(String text, @Nullable Throwable why) {
        long before;
        synchronized (this) {
            long now = clock.millis();
            // After the clock was set back, now may be before loggedMillis. Because the difference is absolute,
            // warnings are then suppressed only from one minute before loggedMillis to one minute after it, so for at
            // most two minutes.
            if (wasLogged && Math.abs(now - loggedMillis) < MIN_PAUSE_MILLIS) {
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

    /** Logs a warning immediately, without any limit. Throws nothing, even if the logger throws an exception. */
    public static void warn(System.Logger logger, String text, @Nullable Throwable why) {
        try {
            logger.log(System.Logger.Level.WARNING, text, why);
        } catch (Throwable e) {
            ThreadTools.report(e);
        }
    }
}
