package dev.rpcx.internal.wire;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.L_Result;

/**
 * Two threads add messages to an outbox, and one of them polls it. Each message comes once, in the order of the thread
 * that added it.
 */
@JCStressTest
@Outcome(
        id = {"10 11 20", "10 20 11", "20 10 11"},
        expect = Expect.ACCEPTABLE,
        desc = "all of them, in their order")
@Outcome(expect = Expect.FORBIDDEN, desc = "one lost, doubled or out of its order")
@State
public class OutboxRace {
    private final Outbox outbox = new Outbox();
    private final StringBuilder polled = new StringBuilder();

    @Actor
    public void two() {
        outbox.add(Outbound.Control.empty(0, 10));
        outbox.add(Outbound.Control.empty(0, 11));
    }

    @Actor
    public void oneAndPolls() {
        outbox.add(Outbound.Control.empty(0, 20));
        poll();
        poll();
    }

    @Arbiter
    public void rest(L_Result all) {
        while (poll()) {
            // polls until nothing is left
        }
        all.r1 = polled.toString();
    }

    private boolean poll() {
        Outbound message = outbox.poll();
        if (message == null) {
            return false;
        }
        polled.append(polled.isEmpty() ? "" : " ").append(message.id);
        return true;
    }
}
