package dev.rpcx.internal.client;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * Two callers take the two slots of a connection while its slots are trimmed, and each gets a slot of its own. There
 * are only two threads, since JCStress leaves out a test with more threads than there are processors.
 */
@JCStressTest
@Outcome(
        id = {"0, 1", "1, 0"},
        expect = Expect.ACCEPTABLE,
        desc = "a slot each")
@Outcome(expect = Expect.FORBIDDEN, desc = "a slot had twice, or lost")
@State
public class SlotsRace {
    @SuppressWarnings("NullAway") // the slots have no connection
    private final CallSlots slots = new CallSlots(null);

    public SlotsRace() {
        slots.limit(2);
        slots.release(slots.acquire(0));
    }

    @Actor
    public void one(II_Result had) {
        had.r1 = slots.acquire(0).slot;
    }

    @Actor
    public void other(II_Result had) {
        slots.trim();
        had.r2 = slots.acquire(0).slot;
    }
}
