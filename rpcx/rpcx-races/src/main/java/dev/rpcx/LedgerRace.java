package dev.rpcx;

import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Objects;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/** Two connections of one address take from a pool for three: one is refused at most, and all of it comes back. */
@JCStressTest
@Outcome(
        id = {"1, 0, 0", "0, 1, 0", "0, 0, 0"},
        expect = Expect.ACCEPTABLE,
        desc = "one has its two, or both found too much taken")
@Outcome(id = "1, 1, 0", expect = Expect.ACCEPTABLE, desc = "one after the other")
@Outcome(expect = Expect.FORBIDDEN, desc = "more taken than there is, or something left")
@State
public class LedgerRace {
    private final Ledger ledger =
            new Ledger("races", Map.of(Resource.CALLS, 3L, Resource.CONNECTIONS, 2L), Map.of(Resource.CALLS, 3L), 2);
    private final Account one = open();
    private final Account other = open();
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
        boolean isTaken = calls.add(2);
        if (isTaken && ledger.held(Resource.CALLS) < 2) {
            wrong++;
        }
        calls.release();
        return isTaken ? 1 : 0;
    }

    @Arbiter
    public void left(III_Result result) {
        one.close();
        other.close();
        result.r3 = (int) (ledger.held(Resource.CALLS) + ledger.held(Resource.CONNECTIONS)) + wrong;
    }
}
