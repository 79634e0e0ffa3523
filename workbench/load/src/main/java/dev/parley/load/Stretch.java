package dev.parley.load;

import java.util.Locale;
import org.HdrHistogram.Histogram;

/**
 * A stretch of a trial that is told on its own: the whole window of most loads, a step of a staircase, a burst, a
 * round, a try of a search. A request belongs to the stretch in which it fell due. Read and written by the engine's
 * thread, but for its outcomes.
 */
final class Stretch {
    final String label;
    /** Clients, or arrivals a second, at its beginning and at its end. */
    final double from;

    final double to;
    /** 0 where it is over when its work is done. */
    final long lengthNs;
    /** For how long arrivals are laid out. */
    final long scheduleNs;
    /** However its work goes, a stretch that is over when its work is done is cut after this. */
    long patienceNs;

    final Outcomes outcomes;
    final Histogram responses = new Histogram(Outcomes.DIGITS);
    long beganNs;
    long endedNs;
    boolean isCounted = true;
    boolean isCut;

    Stretch(String label, double from, double to, long lengthNs, long scheduleNs, Outcomes outcomes) {
        this.label = label;
        this.from = from;
        this.to = to;
        this.lengthNs = lengthNs;
        this.scheduleNs = scheduleNs;
        this.outcomes = outcomes;
    }

    /** A stretch in which {@code amount} clients or arrivals a second are held for a while. */
    static Stretch held(String label, double amount, long lengthNs, Outcomes outcomes) {
        return new Stretch(label, amount, amount, lengthNs, lengthNs, outcomes);
    }

    /** A stretch that is over when its work is done. */
    static Stretch counted(String label, double amount, long patienceNs, Outcomes outcomes) {
        Stretch stretch = new Stretch(label, amount, amount, 0, 0, outcomes);
        stretch.patienceNs = patienceNs;
        return stretch;
    }

    boolean isUntilDone() {
        return lengthNs == 0;
    }

    /** True once every request that fell due in it has its outcome, as far as these figures have been taken. */
    boolean isSettled() {
        return outcomes.due() == ended();
    }

    long ended() {
        return responses.getTotalCount() + outcomes.counts().sum();
    }

    double seconds() {
        return (endedNs - beganNs) / 1e9;
    }

    @Override
    public String toString() {
        return String.format(Locale.ROOT, "%s (%.3f s)", label, seconds());
    }
}
