package dev.parley.load;

import dev.parley.model.Load;
import dev.parley.model.Load.Arrivals;
import dev.parley.model.Load.ClientUse;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The stretches of a load, one after the other; what comes next may hang on how the last one went. The one place that
 * knows what each load consists of, and which driver carries it out. One thread.
 */
final class Script {
    /**
     * A search ends when the highest rate that met the latency and the lowest that did not are this close. Source:
     * {@link Load.HighestRate}.
     */
    private static final double CLOSE = 1.05;

    /**
     * A rate is too high when so many tries of it in a row miss the latency: one stall of the machine does not end a
     * search.
     */
    private static final int MISSES = 2;

    private final Load load;
    private final long windowNs;
    private final long limitNs;
    private final long patienceNs;
    private int number;
    private double met;
    private int misses;
    private double notMet = Double.POSITIVE_INFINITY;

    /**
     * @param windowNs the length of a load that does not say its own
     * @param limitNs within which a reply is a success
     * @param patienceNs after which a stretch that is over when its work is done is cut
     */
    Script(Load load, long windowNs, long limitNs, long patienceNs) {
        this.load = load;
        this.windowNs = windowNs;
        this.limitNs = limitNs;
        this.patienceNs = patienceNs;
    }

    /**
     * Who carries out a load, or a warm-up. The caller closes it.
     *
     * @param first where requests go before a stretch has begun
     */
    static Driver driver(
            Load load, Engine.Trial trial, Target target, Occupancy occupancy, Clock clock, Outcomes first) {
        return switch (load) {
            case Load.Closed _, Load.Staircase _ ->
                new ClosedDriver(new Caller(target, ClientUse.SHARED, occupancy, clock), 1, occupancy, clock, first);
            case Load.Held h ->
                new ClosedDriver(
                        new Caller(target, h.use(), occupancy, clock), h.iterations(), occupancy, clock, first);
            case Load.Open o -> open(trial, o.arrivals(), 1, ClientUse.SHARED, target, clock);
            case Load.RateRamp r -> open(trial, r.arrivals(), 1, ClientUse.SHARED, target, clock);
            case Load.Rates r -> open(trial, r.arrivals(), 1, ClientUse.SHARED, target, clock);
            case Load.Users u -> open(trial, u.arrivals(), u.iterations(), u.use(), target, clock);
            case Load.HighestRate _ -> open(trial, Arrivals.POISSON, 1, ClientUse.SHARED, target, clock);
            case Load.Burst _ -> new BurstDriver(target, clock);
            case Load.Rounds r -> new RoundsDriver(r, target, clock);
        };
    }

    private static Driver open(
            Engine.Trial trial, Arrivals arrivals, int iterations, ClientUse use, Target target, Clock clock) {
        return new OpenDriver(
                new OpenDriver.Settings(arrivals, iterations, use, trial.seed(), trial.inFlightMost()), target, clock);
    }

    /**
     * The next stretch; null when the load is over. {@code last} is the one before, with all of its outcomes if the
     * load is a counted one.
     */
    @Nullable
    Stretch next(@Nullable Stretch last) {
        number++;
        return switch (load) {
            case Load.Closed c -> once(Stretch.held(label(c.clients(), "clients"), c.clients(), windowNs, fresh()));
            case Load.Open o ->
                once(Stretch.held(label(o.perSecond(), "per second"), o.perSecond(), windowNs, fresh()));
            case Load.Staircase s -> step(s.steps(), "clients", s.stepLength());
            case Load.Rates r -> step(r.steps(), "per second", r.stepLength());
            case Load.RateRamp r -> {
                long lengthNs = r.length().toNanos();
                yield once(new Stretch("ramp", r.from(), r.to(), lengthNs, lengthNs, fresh()));
            }
            case Load.Held h -> {
                long lengthNs = h.length().toNanos();
                yield once(new Stretch("held", h.from(), h.to(), lengthNs, lengthNs, fresh()));
            }
            case Load.Users u -> {
                // users who have come go through with their scenario after the last arrival
                Stretch users =
                        new Stretch("users", u.from(), u.to(), 0, u.length().toNanos(), fresh());
                users.patienceNs = patienceNs;
                yield once(users);
            }
            case Load.Burst b ->
                number > b.iterations()
                        ? null
                        : Stretch.counted("iteration " + number, b.atOnce(), patienceNs, fresh());
            case Load.Rounds r -> {
                if (number > r.rounds() || last != null && last.isCut) {
                    yield null;
                }
                Stretch round = Stretch.counted(
                        "round " + (number - 1), r.threads(), r.roundLimit().toNanos(), fresh());
                // zhang drops the first of each pair's rounds, order 0 in table 2
                round.isCounted = number > 1;
                yield round;
            }
            case Load.HighestRate h -> search(h, last);
        };
    }

    private Outcomes fresh() {
        return new Outcomes(limitNs);
    }

    private @Nullable Stretch once(Stretch stretch) {
        return number == 1 ? stretch : null;
    }

    private @Nullable Stretch step(List<? extends Number> amounts, String of, Duration each) {
        if (number > amounts.size()) {
            return null;
        }
        double amount = amounts.get(number - 1).doubleValue();
        return Stretch.held(label(amount, of), amount, each.toNanos(), fresh());
    }

    private static String label(double amount, String of) {
        return BigDecimal.valueOf(amount).stripTrailingZeros().toPlainString() + " " + of;
    }

    /** Doubles until the latency is not met, then halves what is between. */
    private @Nullable Stretch search(Load.HighestRate h, @Nullable Stretch last) {
        double rate;
        if (last == null) {
            rate = h.from();
        } else {
            last.isCounted = isMet(h, last);
            misses = last.isCounted ? 0 : misses + 1;
            if (misses > 0 && misses < MISSES) {
                return attempt(h, last.from);
            }
            misses = 0;
            if (last.isCounted) {
                met = last.from;
            } else {
                notMet = last.from;
            }
            if (met >= h.to() || notMet <= h.from() || notMet / met <= CLOSE) {
                return null;
            }
            rate = Double.isInfinite(notMet) ? Math.min(h.to(), met * 2) : Math.sqrt(met * notMet);
        }
        rate = Math.rint(rate * 10) / 10;
        if (rate <= met || rate >= notMet) {
            return null;
        }
        return attempt(h, rate);
    }

    private Stretch attempt(Load.HighestRate h, double rate) {
        return new Stretch(
                String.format(Locale.ROOT, "try %d: %s", number, label(rate, "per second")),
                rate,
                rate,
                h.tryLength().toNanos(),
                h.tryLength().toNanos(),
                fresh());
    }

    /** Of the whole window; of one that is over when its work is done, longer than any. */
    long lengthNs() {
        return load.isCounted() || load instanceof Load.Users
                ? Long.MAX_VALUE
                : load.ownLength().map(Duration::toNanos).orElse(windowNs);
    }

    /** The highest rate of a search that met the latency; 0 if none did. */
    double highestMet() {
        return met;
    }

    private static boolean isMet(Load.HighestRate h, Stretch last) {
        Histogram right = last.responses;
        long due = last.outcomes.due();
        if (due == 0 || right.getTotalCount() == 0) {
            return false;
        }
        long inTime = right.getCountBetweenValues(0, h.latency().toNanos());
        return inTime >= h.percentile() / 100 * due;
    }
}
