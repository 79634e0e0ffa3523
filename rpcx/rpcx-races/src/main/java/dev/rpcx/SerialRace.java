package dev.rpcx;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/** Signals of a stream from two threads run one after the other, each sees what those before it have written. */
@JCStressTest
@Outcome(id = "4", expect = Expect.ACCEPTABLE, desc = "all of them")
@Outcome(expect = Expect.FORBIDDEN, desc = "one lost, or two at once")
@State
public class SerialRace {
    private final Serial signals = new Serial(Runnable::run);

    /** Without any fence of its own. */
    private int told;

    @Actor
    public void one() {
        tell();
        tell();
    }

    @Actor
    public void other() {
        tell();
        tell();
    }

    private void tell() {
        signals.execute(() -> told++);
    }

    @Arbiter
    public void all(I_Result result) {
        result.r1 = told;
    }
}
