package dev.rpcx.internal.ledger;

import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * Two connections ask at the same time for a place that only one of them may have at a time. A connection that gets the
 * place is counted, and in the end nothing is held any more.
 */
@JCStressTest
@Outcome(
        id = {"1, 0, 0", "0, 1, 0", "1, 1, 0"},
        expect = Expect.ACCEPTABLE,
        desc = "one of the two, or one after the other")
@Outcome(expect = Expect.FORBIDDEN, desc = "both at once, none, or something left")
@State
public class LedgerRace {
    /**
     * Ledger with places for two calls. A connection may have at most as many as are free once it has them: one of the
     * two if the other connection has none, and otherwise none.
     */
    private final Ledger ledger = new Ledger("races", Map.of(Resource.CALLS, 2L), Map.of(), 2);

    private final Account one = open();
    private final Account other = open();
    private final AtomicInteger inside = new AtomicInteger();
    private int wrong;

    private Account open() {
        return Objects.requireNonNull(ledger.open(new InetSocketAddress("127.0.0.1", 1)));
    }

    @Actor
    public void one(III_Result result) {
        result.r1 = use(one);
    }

    @Actor
    public void other(III_Result result) {
        result.r2 = use(other);
    }

    private int use(Account account) {
        Charge calls = account.charge(Resource.CALLS);
        if (!calls.add(1)) {
            return 0;
        }
        if (inside.incrementAndGet() > 1) {
            wrong++;
        }
        inside.decrementAndGet();
        calls.release();
        return 1;
    }

    @Arbiter
    public void leftOver(III_Result result) {
        one.close();
        other.close();
        result.r3 = (int) (ledger.held(Resource.CALLS) + ledger.held(Resource.CONNECTIONS)) + wrong;
    }
}
