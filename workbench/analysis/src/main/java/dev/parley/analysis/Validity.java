package dev.parley.analysis;

import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Why a trial's figures are not to be believed, as far as its own rows tell: wrong replies, requests not sent, Little's law. What only the
 * machine can tell (a busy generator, stolen processor time) is stored with the trial by whoever ran it.
 */
public final class Validity {
    /** More due requests than this share not sent, and the load was not the one asked for. */
    private static final double UNSENT_SHARE = 0.001;

    private static final double LITTLE_TOLERANCE = 0.05;

    static final String LITTLES_LAW = "Little's law";

    private static final String NOT_SENT = "of requests could not be sent";

    /** Under this many restarts a figure is printed as indicative. */
    public static final int ENOUGH_RESTARTS = 5;

    /** Under this many restarts no verdict is given: they cannot tell a technology from the mood of a restart. */
    public static final int MIN_VERDICT_RESTARTS = 3;

    private Validity() {}

    /** Empty if the rows give no reason. */
    public static List<String> reasons(TrialSpec spec, List<SecondRow> seconds, List<HistogramRow> histograms) {
        List<SecondRow> window = seconds.stream().filter(s -> s.second() >= 0).toList();
        List<String> reasons = new ArrayList<>();
        long wrong = window.stream().mapToLong(SecondRow::wrong).sum();
        if (wrong > 0) {
            reasons.add(wrong + " wrong replies");
        }
        long notSent = window.stream().mapToLong(SecondRow::notSent).sum();
        long due = notSent
                + window.stream()
                        .mapToLong(s -> s.replied() + s.late() + s.wrong() + s.failed())
                        .sum();
        if (notSent > due * UNSENT_SHARE) {
            reasons.add(String.format(Locale.ROOT, "%.2f %% " + NOT_SENT + " (at most 0.1 %%)", 100.0 * notSent / due));
        }
        if (due == 0) {
            reasons.add("no request was due");
        }
        if (spec.load() instanceof Load.Closed closed) {
            littlesLaw(closed, spec, window, histograms).ifPresent(reasons::add);
        }
        return List.copyOf(reasons);
    }

    /**
     * In a closed loop clients = rate × mean time in the system, or requests were lost or times are wrong. Requests that the window's edges
     * cut are allowed for: at most one a client at each end.
     */
    private static java.util.Optional<String> littlesLaw(
            Load.Closed load, TrialSpec spec, List<SecondRow> window, List<HistogramRow> histograms) {
        double windowNs = spec.window().length().toNanos();
        long ended = window.stream()
                .mapToLong(s -> s.replied() + s.late() + s.wrong() + s.failed())
                .sum();
        Distribution good = Distribution.merged(
                window.stream().map(SecondRow::responseTimes).toList());
        Distribution bad = Distribution.merged(histograms.stream()
                .filter(h -> h.kind() == HistogramRow.Kind.ERROR)
                .map(HistogramRow::histogram)
                .toList());
        if (ended == 0 || good.total() + bad.total() < ended) {
            return java.util.Optional.empty();
        }
        double inSystem = (good.sumNs() + bad.sumNs()) / windowNs;
        double edges = (good.sumNs() + bad.sumNs()) / (good.total() + bad.total()) / windowNs;
        double off = inSystem / load.clients() - 1;
        return Math.abs(off) <= LITTLE_TOLERANCE + 2 * edges
                ? java.util.Optional.empty()
                : java.util.Optional.of(String.format(
                        Locale.ROOT,
                        LITTLES_LAW + " off by %.0f %%: %.2f requests in the system, %d clients",
                        100 * off,
                        inSystem,
                        load.clients()));
    }

    /**
     * True for a reason that services bring about themselves when they fall behind: under an open load a request is not
     * sent where too many wait for their replies, and without replies nothing tells whether latency is level.
     */
    static boolean isOfFallingBehind(String reason) {
        return reason.contains(NOT_SENT) || reason.contains(Warmth.FEW_IN_HALVES);
    }
}
