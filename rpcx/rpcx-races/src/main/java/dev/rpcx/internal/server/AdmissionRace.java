package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.IIII_Result;

/**
 * Two methods compete for the only place of a running handler that is left. Each call that is admitted is counted, and
 * no call is admitted beyond that place.
 */
@JCStressTest
@Outcome(
        id = {"1, 0, 0, 0", "0, 1, 0, 0", "1, 1, 0, 0"},
        expect = Expect.ACCEPTABLE,
        desc = "one of the two, or one after the other")
@Outcome(expect = Expect.FORBIDDEN, desc = "two at once, none, or a place lost")
@State
public class AdmissionRace {
    private final AtomicInteger all = new AtomicInteger();
    private final AdmissionLimit.Group limit = new AdmissionLimit(AdmissionLimit.MIN_LIMIT, all, 0).group(0);
    private final AdmissionLimit.Group otherLimit = new AdmissionLimit(AdmissionLimit.MIN_LIMIT, all, 0).group(0);
    private final AtomicInteger inside = new AtomicInteger();
    private int wrong;

    public AdmissionRace() {
        for (int i = 0; i < AdmissionLimit.MIN_LIMIT - 1; i++) {
            limit.admit();
        }
    }

    @Actor
    public void one(IIII_Result result) {
        result.r1 = pass(limit);
    }

    @Actor
    public void other(IIII_Result result) {
        result.r2 = pass(otherLimit);
    }

    private int pass(AdmissionLimit.Group limit) {
        if (!limit.admit()) {
            return 0;
        }
        if (inside.incrementAndGet() > 1) {
            wrong++;
        }
        inside.decrementAndGet();
        limit.release(0, 100, 50, true);
        return 1;
    }

    @Arbiter
    public void leftOver(IIII_Result result) {
        for (int i = 0; i < AdmissionLimit.MIN_LIMIT - 1; i++) {
            limit.release(0, 100, 50, true);
        }
        result.r3 = all.get() + limit.running() + otherLimit.running();
        result.r4 = wrong;
    }
}
