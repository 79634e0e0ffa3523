package dev.parley.model;

import java.util.Locale;

/**
 * One whole distribution of a trial's window.
 *
 * @param subject {@code client}, or for a hop {@code m1>m2}
 * @param histogram HdrHistogram, nanoseconds, compressed V2 encoding
 */
public record HistogramRow(int trialId, Kind kind, String subject, byte[] histogram) {
    /** What was timed. */
    public enum Kind {
        /** From the intended send time to a right reply within the limit. */
        RESPONSE,
        /** From the actual send time to a right reply within the limit. */
        SERVICE,
        /** Actual minus intended send time, of every request sent. */
        SEND_DELAY,
        /** From the intended send time to an outcome that was no success. */
        ERROR,
        /** A service's own calls to one neighbour. */
        HOP,
        /**
         * The part of {@link #RESPONSE} that was answered in the first half of the window; only of a load that asks for
         * the same throughout.
         */
        FIRST_HALF,
        /** The rest of {@link #RESPONSE} beside {@link #FIRST_HALF}. */
        SECOND_HALF;

        public String key() {
            return name().toLowerCase(Locale.ROOT);
        }
    }
}
