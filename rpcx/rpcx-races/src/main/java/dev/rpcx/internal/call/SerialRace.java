package dev.rpcx.internal.call;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/**
 * Two threads hand over signals of a stream. The signals run one after the other, and each sees what the signals before
 * it have written.
 */
@JCStressTest
@Outcome(id = "4", expect = Expect.ACCEPTABLE, desc = "all of them")
@Outcome(expect = Expect.FORBIDDEN, desc = "one lost, or two at once")
@State
public class SerialRace {
    private final SerialExecutor signals = new SerialExecutor(Runnable::run);

    /** Number of signals that have run, without any fence of its own. */
    private int ran;

    @Actor
    public void one() {
        signal();
        signal();
    }

    @Actor
    public void other() {
        signal();
        signal();
    }

    private void signal() {
        signals.execute(() -> ran++);
    }

    @Arbiter
    public void all(I_Result result) {
        result.r1 = ran;
    }
}
