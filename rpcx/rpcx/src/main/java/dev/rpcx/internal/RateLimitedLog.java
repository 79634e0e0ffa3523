package dev.rpcx.internal;

import java.time.InstantSource;
import org.jspecify.annotations.Nullable;

/**
 * Logs at most one warning a minute. A warning includes the number of warnings that were suppressed since the last one
 * that was logged. So what strangers send can neither fill the log, nor hide a failure that comes later. Thread-safe:
 * any thread may call this.
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
     * Makes sure that the next warning is logged, and resets the count of suppressed warnings. This is for tests: an
     * object of this class may exist once in the process, and earlier tests may have used it.
     */
    public synchronized void forget() {
        wasLogged = false;
        suppressed = 0;
    }

    public void log(String text, @Nullable Throwable why) {
        long before;
        synchronized (this) {
            long now = clock.millis();
            // the difference is taken without its sign, so that a clock that was set back does not suppress warnings
            // for longer than the pause
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
     * Logs one warning, however recently another one was logged. If the logging of the application throws an exception,
     * the exception does not reach the caller.
     */
    public static void warn(System.Logger logger, String text, @Nullable Throwable why) {
        try {
            logger.log(System.Logger.Level.WARNING, text, why);
        } catch (Throwable e) {
            ThreadTools.report(e);
        }
    }
}
