package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.ledger.AddressGroups;
import dev.rpcx.internal.server.AdmissionLimit;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Tests for which methods a server learns an admission limit. */
class LongPollTest {
    private static final int MAX = 1000;

    @RPCXServer("mixed")
    static final class Mixed {
        @LongPoll
        @Method
        String next() {
            return "";
        }

        @Method
        String work() {
            return "";
        }

        /** Lasts as long as its caller sends. */
        @Method
        String take(Flow.Publisher<String> items) {
            return "";
        }
    }

    @LongPoll
    @RPCXServer("polls")
    static final class Polls {
        @Method
        String next() {
            return "";
        }
    }

    @Test
    void aLimitIsLearntOfEachMethodThatIsNoLongPoll() {
        assertThat(limitAfterLateCalls(new Mixed(), "next")).isEqualTo(MAX);
        assertThat(limitAfterLateCalls(new Polls(), "next")).isEqualTo(MAX);
        assertThat(limitAfterLateCalls(new Mixed(), "take")).isEqualTo(MAX);
        assertThat(limitAfterLateCalls(new Mixed(), "work")).isLessThan(MAX);
    }

    /**
     * Returns the limit of a method as soon as it sinks. After a second of quick calls, there are up to ten seconds in
     * which calls come faster than they end, and no call has a result in time.
     */
    private static int limitAfterLateCalls(Object service, String method) {
        AdmissionLimit.Group limit =
                RegistryServer.registry(service)
                        .methods(List.of(), MAX, new AtomicInteger(), new AddressGroups(), 0)
                        .stream()
                        .filter(m -> m.name().equals(method))
                        .map(m -> Objects.requireNonNull(m.admission()))
                        .findFirst()
                        .orElseThrow()
                        .group(0);
        long second = TimeUnit.SECONDS.toNanos(1);
        enter(limit, 101);
        for (int k = 0; k < 100; k++) {
            limit.release(second * 99 / 100, 2 * second, second, true);
        }
        for (int i = 1; i <= 10 && limit.limit() == MAX; i++) {
            enter(limit, 20);
            for (int k = 0; k < 10; k++) {
                limit.release(i * second, (i + 1) * second, (i + 1) * second, false);
            }
        }
        return limit.limit();
    }

    private static void enter(AdmissionLimit.Group limit, int calls) {
        for (int k = 0; k < calls; k++) {
            assertThat(limit.admit()).isTrue();
        }
    }
}
