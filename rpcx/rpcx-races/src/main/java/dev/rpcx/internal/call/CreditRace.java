package dev.rpcx.internal.call;

import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicLong;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.J_Result;

/** A subscriber requests items on two threads while its stream is opened, and the peer gets all of the credit. */
@JCStressTest
@Outcome(id = "7", expect = Expect.ACCEPTABLE, desc = "one from the beginning, and what was asked for")
@Outcome(expect = Expect.FORBIDDEN, desc = "credit lost, or given twice")
@State
public class CreditRace {
    private final AtomicLong credit = new AtomicLong();

    @SuppressWarnings("NullAway") // the receiver has no codec
    private final StreamReceiver receiver = new StreamReceiver(null, new StreamReceiver.Peer() {
        @Override
        public void credit(long items) {
            credit.addAndGet(items);
        }

        @Override
        public void cancel() {}
    });

    public CreditRace() {
        receiver.begin(new Flow.Subscriber<>() {
            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                subscription.request(1);
            }

            @Override
            public void onNext(Object item) {}

            @Override
            public void onError(Throwable thrown) {}

            @Override
            public void onComplete() {}
        });
    }

    @Actor
    public void opensAndAsks() {
        receiver.open();
        receiver.request(2);
    }

    @Actor
    public void asks() {
        receiver.request(4);
    }

    @Arbiter
    public void all(J_Result result) {
        result.r1 = credit.get();
    }
}
