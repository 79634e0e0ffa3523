package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Which methods of a server learn a limit. */
class LongPollTest {
    private static final int MOST = 1000;

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
        assertThat(limitAfterLateCalls(new Mixed(), "next")).isEqualTo(MOST);
        assertThat(limitAfterLateCalls(new Polls(), "next")).isEqualTo(MOST);
        assertThat(limitAfterLateCalls(new Mixed(), "work")).isLessThan(MOST);
    }

    /** After ten seconds in which calls came faster than they ended, and none had a result in time. */
    private static int limitAfterLateCalls(Object service, String method) {
        AdmissionLimit limit =
                RegistryServer.registry(service).methods(List.of(), MOST, new AtomicInteger(), 0).stream()
                        .filter(m -> m.name().equals(method))
                        .map(m -> Objects.requireNonNull(m.admission()))
                        .findFirst()
                        .orElseThrow();
        long second = TimeUnit.SECONDS.toNanos(1);
        int least = MOST;
        for (int i = 1; i <= 10; i++) {
            for (int k = 0; k < 20; k++) {
                limit.enter();
            }
            for (int k = 0; k < 10 && limit.running() > 0; k++) {
                limit.leave((i - 1) * second, i * second, i * second, false);
            }
            least = Math.min(least, limit.limit());
        }
        return least;
    }
}
