package dev.rpcx;

import java.time.InstantSource;
import org.jspecify.annotations.Nullable;

/** A warning in the log once a minute, with a count: what strangers send must neither fill the log nor hide what fails later. Thread-safe. */
final class Complaint {
    private static final long PAUSE_MILLIS = 60_000;

    private final System.Logger logger;
    private final InstantSource clock;

    // guarded by this
    private long loggedMillis;
    private boolean wasLogged;
    private long silent;

    Complaint(System.Logger logger, InstantSource clock) {
        this.logger = logger;
        this.clock = clock;
    }

    /** The next one is logged: for tests, which share what is one for the process. */
    synchronized void forget() {
        wasLogged = false;
        silent = 0;
    }

    void log(String text, @Nullable Throwable why) {
        long before;
        synchronized (this) {
            long now = clock.millis();
            // a clock that was set back must not silence this for longer
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

    /** Logs one warning, whatever was logged before. What the application's logging throws goes no further. */
    static void warn(System.Logger logger, String text, @Nullable Throwable why) {
        try {
            logger.log(System.Logger.Level.WARNING, text, why);
        } catch (Throwable e) {
            ThreadTools.report(e);
        }
    }
}
