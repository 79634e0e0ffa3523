package dev.rpcx.internal;

import java.time.InstantSource;
import org.jspecify.annotations.Nullable;

/**
 * Logs at most one warning a minute, or another number of them. The first warning of a minute says how many others were
 * suppressed in the minute before, if any. Thread-safe.
 */
public final class RateLimitedLog {
    private static final long PERIOD_MILLIS = 60_000;

    private final System.Logger logger;
    private final InstantSource clock;
    private final int maxInPeriod;

    // The fields below are guarded by the monitor of this object.
    /** Time of the first warning of the latest period; without a meaning while {@link #logged} is 0. */
    private long sinceMillis;

    /** Number of warnings that were logged in the latest period; 0 if none was ever logged. */
    private int logged;

    private long suppressed;

    public RateLimitedLog(System.Logger logger, InstantSource clock) {
        this(logger, clock, 1);
    }

    /**
     * Creates a log with another limit than one warning a minute.
     *
     * @param maxInPeriod maximum number of warnings a minute
     */
    public RateLimitedLog(System.Logger logger, InstantSource clock, int maxInPeriod) {
        this.logger = logger;
        this.clock = clock;
        this.maxInPeriod = maxInPeriod;
    }

    /**
     * Forgets all earlier warnings and the number of suppressed ones, so that the next warning is logged. Used by tests
     * that share this object with earlier tests.
     */
    public synchronized void forget() {
        logged = 0;
        suppressed = 0;
    }

    public void log(String text, @Nullable Throwable why) {
        long before = 0;
        synchronized (this) {
            long now = clock.millis();
            // After the clock was set back, now may be before sinceMillis. Because the difference is absolute, the
            // period then lasts from one minute before sinceMillis to one minute after it, so for at most two minutes.
            boolean isWithin = logged > 0 && Math.abs(now - sinceMillis) < PERIOD_MILLIS;
            if (isWithin && logged >= maxInPeriod) {
                suppressed++;
                return;
            }
            if (isWithin) {
                logged++;
            } else {
                sinceMillis = now;
                logged = 1;
                before = suppressed;
                suppressed = 0;
            }
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
