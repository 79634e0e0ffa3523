package dev.rpcx.internal;

import java.time.InstantSource;
import org.jspecify.annotations.Nullable;

/**
 * Logs a warning at most once a minute, with a count of those left out: what strangers send must neither fill the log
 * nor hide what fails later. Thread-safe.
 */
public final class RateLimitedLog {
    private static final long PAUSE_MILLIS = 60_000;

    private final System.Logger logger;
    private final InstantSource clock;

    // the fields below are guarded by this
    private long loggedMillis;
    private boolean wasLogged;
    private long silent;

    public RateLimitedLog(System.Logger logger, InstantSource clock) {
        this.logger = logger;
        this.clock = clock;
    }

    /** Has the next warning logged in any case. For tests, which share an instance that is one for the process. */
    public synchronized void forget() {
        wasLogged = false;
        silent = 0;
    }

    public void log(String text, @Nullable Throwable why) {
        long before;
        synchronized (this) {
            long now = clock.millis();
            // a clock that was set back must not suppress warnings for longer than the pause
            if (wasLogged && Math.abs(now - loggedMillis) < PAUSE_MILLIS) {
                silent++;
                return;
            }
            wasLogged = true;
            loggedMillis = now;
            before = silent;
            silent = 0;
        }
        warn(logger, text + (before == 0 ? "" : " (" + before + " more since this was logged last)"), why);
    }

    /**
     * Logs one warning, whatever was logged before. An exception of the application's logging does not reach the
     * caller.
     */
    public static void warn(System.Logger logger, String text, @Nullable Throwable why) {
        try {
            logger.log(System.Logger.Level.WARNING, text, why);
        } catch (Throwable e) {
            ThreadTools.report(e);
        }
    }
}
