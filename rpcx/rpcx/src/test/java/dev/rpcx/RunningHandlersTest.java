package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What a connection pays for counting its handlers by method. */
class RunningHandlersTest {
    private static final long ALL = 40_000;

    @RPCXServer("counted")
    static final class Service {
        @Method
        String hello(String name) {
            return name;
        }
    }

    private final Ledger ledger =
            new Ledger("ledger under test", Map.of(Resource.TABLE_BYTES, ALL), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final RunningHandlers running = new RunningHandlers(account);
    private final AdmissionLimit limit = new AdmissionLimit(100, new AtomicInteger(), 0);

    private static ServerMethod method(int number) {
        Server server = Server.builder(RegistryServer.registry(new Service()))
                .inProcess()
                .build();
        ServerMethod of = Objects.requireNonNull(server.method(1));
        return new ServerMethod(
                number,
                of.service(),
                of.name(),
                of.schemaHash(),
                of.shape(),
                of.place(),
                of.parameters(),
                of.arguments(),
                of.result(),
                of.brings(),
                of.items(),
                of.handle(),
                of.chain(),
                of.admission());
    }

    private long held() {
        return ledger.held(Resource.TABLE_BYTES);
    }

    @Test
    void aMethodOfAHighNumberIsPaidForAndAnotherBelowItIsPaidForWithIt() {
        assertThat(running.enter(method(32), limit)).isTrue();
        assertThat(held()).as("of a few methods").isZero();
        assertThat(running.enter(method(1_000), limit)).isTrue();
        long paid = held();
        assertThat(paid).isBetween(4_000L - 4 * 64, 8_000L);
        assertThat(running.enter(method(500), limit)).isTrue();
        assertThat(held()).isEqualTo(paid);
        assertThat(running.all()).isEqualTo(3);
    }

    @Test
    void aHandlerThatCannotBeCountedDoesNotRunAndKeepsNoPlace() {
        assertThat(running.enter(method(10_000), limit)).isFalse();
        assertThat(held()).isZero();
        assertThat(running.all()).isZero();
        assertThat(limit.running()).isZero();
        assertThat(running.enter(method(1_000), limit)).isTrue();
    }

    @Test
    void nothingIsLeftWhenTheLastHandlerOfAConnectionThatIsGoneHasEnded() {
        ServerMethod first = method(1_000);
        ServerMethod second = method(1_001);
        assertThat(running.enter(first, limit)).isTrue();
        assertThat(running.enter(second, limit)).isTrue();
        running.connectionGone();
        account.close();
        running.left(first);
        assertThat(held()).isPositive();
        assertThat(ledger.held(Resource.ORPHANS)).isEqualTo(1);
        assertThat(running.enter(first, limit))
                .as("begun after its connection's end")
                .isTrue();
        running.left(first);
        running.left(second);
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void aConnectionThatEndsAtRestPaysForNothingMore() {
        ServerMethod called = method(1_000);
        assertThat(running.enter(called, limit)).isTrue();
        running.left(called);
        assertThat(held()).as("for the next call").isPositive();
        account.close();
        running.connectionGone();
        assertThat(ledger.audit()).isEmpty();
    }
}
