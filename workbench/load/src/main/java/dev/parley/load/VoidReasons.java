package dev.parley.load;

import dev.parley.model.Load;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Why the generator itself would not believe its figures. Source of the limits: the project's rules of measuring, docs/measuring.md. */
record VoidReasons(
        Load load,
        Outcomes.Counts counts,
        long replied,
        long wrongAnywhere,
        long toldTwice,
        double cpuShare,
        long latenessP99Ns,
        double littlesLaw) {
    private static final double MAX_CPU = 0.8;
    private static final long MAX_LATENESS_NS = 1_000_000;
    private static final double MAX_LITTLE_OFF = 0.05;
    private static final double MAX_NOT_SENT = 0.001;

    List<String> all() {
        List<String> reasons = new ArrayList<>();
        // rounds time the client's own threads and what they do: it is measured, not measured with
        if (cpuShare > MAX_CPU && !(load instanceof Load.Rounds)) {
            reasons.add(text("the load generator used %.0f %% of a core (at most 80 %%)", cpuShare * 100));
        }
        long latenessMostNs = latenessMostNs();
        if (latenessP99Ns > latenessMostNs) {
            reasons.add(text(
                    "requests were sent late, p99 %.2f ms (at most %.2f ms)",
                    latenessP99Ns / 1e6, latenessMostNs / 1e6));
        }
        if (Math.abs(littlesLaw - 1) > MAX_LITTLE_OFF) {
            reasons.add(text(
                    "Little's law is off: rate × mean time is %.2f of the %s (0.95 to 1.05)",
                    littlesLaw, load.keepsClients() ? "clients" : "requests in the system"));
        }
        long due = replied + counts.sum();
        if (due == 0) {
            reasons.add("no request was due");
        } else if (counts.notSent() > MAX_NOT_SENT * due) {
            reasons.add(text("%.2f %% of requests could not be sent (at most 0.1 %%)", 100.0 * counts.notSent() / due));
        }
        if (wrongAnywhere > 0) {
            reasons.add(wrongAnywhere + " wrong replies");
        }
        if (toldTwice > 0) {
            reasons.add(toldTwice + " requests ended twice");
        }
        return reasons;
    }

    /** 1 ms, or a tenth of the interval between two arrivals. Requests of a burst are due together: sending them takes the time it takes. */
    private long latenessMostNs() {
        if (load instanceof Load.Burst) {
            return Long.MAX_VALUE;
        }
        // which rate a search comes to is not known before
        return load.isOpen() && !load.isSearch()
                ? Math.min(MAX_LATENESS_NS, (long) (1e8 / load.amount()))
                : MAX_LATENESS_NS;
    }

    private static String text(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
