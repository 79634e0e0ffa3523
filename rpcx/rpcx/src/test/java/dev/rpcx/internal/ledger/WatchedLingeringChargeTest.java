package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.CallLog;
import dev.rpcx.Inside;
import dev.rpcx.Interceptor;
import dev.rpcx.Server;
import dev.rpcx.internal.server.PendingResult;
import dev.rpcx.internal.server.Stages;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/**
 * Runs the tests of {@link LingeringChargeTest} with a server whose interceptors attach callbacks of their own to what
 * the handlers return.
 */
class WatchedLingeringChargeTest extends LingeringChargeTest {
    private static final class Watching implements Interceptor {
        final List<String> seen = new ArrayList<>();
        boolean answers;

        @Override
        public Object intercept(Invocation call, Next next) throws Throwable {
            CompletableFuture<?> future = (CompletableFuture<?>) next.proceed(call);
            future.whenComplete((value, thrown) -> seen.add(call.method() + " " + value + " " + thrown));
            return answers ? CompletableFuture.completedFuture(0) : future;
        }
    }

    /** It is made with the server, and so before the fields of this class would be initialized. */
    @SuppressWarnings("NullAway.Init")
    private Watching watching;

    @Override
    Server.Builder built(Server.Builder server) {
        watching = new Watching();
        return server.interceptor(watching).interceptor(CallLog.ofServer());
    }

    @Test
    void interceptorsHearOfTheEndOfACallThatWasGivenUp() {
        startAndCancel(ID, "shared", 1);
        platform.handleAll(channel);
        assertThat(watching.seen)
                .singleElement()
                .asString()
                .startsWith("shared null")
                .contains("the call is over");
        service.next.complete(1);
        assertThat(watching.seen).hasSize(1);
    }

    @Test
    void interceptorsHearOfAResult() {
        start(ID, "shared", 1);
        service.next.complete(1);
        assertThat(watching.seen).containsExactly("shared 1 null");
    }

    @Test
    void aCallThatAnInterceptorAnswersLeavesNothingAtAStageThatManyShare() {
        watching.answers = true;
        start(ID, "shared", LARGE);
        start(2 * ID, "shared", LARGE);
        platform.handleAll(channel);
        assertThat(Stages.waiting(service.next)).isZero();
        assertThat(watching.seen).hasSize(2).allSatisfy(end -> assertThat(end).contains("the call is over"));
        // the hook of the first call is at the stage, and the stage may hold the request of that call
        assertThat(held(Resource.OBJECT_BYTES)).isBetween((long) LARGE, 2L * LARGE);
        service.next.complete(1);
        assertThat(watching.seen).hasSize(2);
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
    }

    @Test
    void whatTheStageOfAnAnsweredCallMayHoldStaysChargedUntilNobodyCanReachIt() {
        watching.answers = true;
        int calls = 20;
        for (int i = 1; i <= calls; i++) {
            start(i * ID, "loses", 1);
        }
        platform.handleAll(channel);
        assertThat(Inside.core(server).running()).isZero();
        assertThat(held(Resource.OBJECT_BYTES)).isGreaterThanOrEqualTo(calls * PendingResult.MAX_LINGERING_BYTES);
        await().until(() -> {
            System.gc();
            return Inside.core(server).ledger().audit().isEmpty();
        });
    }

    @Test
    void aPlaceStaysForAnAnsweredCallWhereNothingElseCanBeCharged() {
        watching.answers = true;
        List<Charge> all = takeAll(Resource.OBJECT_BYTES);
        start(ID, "keeps", 1);
        platform.handleAll(channel);
        assertThat(held(Resource.CALLS)).isEqualTo(1);
        service.kept.remove().complete(1);
        assertThat(Inside.core(server).ledger().audit()).doesNotContain("CALLS");
        all.forEach(Charge::release);
    }
}
