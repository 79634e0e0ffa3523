package dev.rpcx.micrometer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.CallContext;
import io.micrometer.context.ContextSnapshot;
import io.micrometer.context.ContextSnapshotFactory;
import java.security.Principal;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that the library finds the accessor by itself, and carries a context to another thread and no further. */
@Timeout(60)
class CallContextAccessorTest {
    private final ExecutorService pool = Executors.newSingleThreadExecutor();
    private final ContextSnapshotFactory snapshots =
            ContextSnapshotFactory.builder().clearMissing(true).build();

    @AfterEach
    void end() {
        pool.shutdown();
    }

    private static String current() {
        return CallContext.current()
                .map(context -> context.principal().map(Principal::getName).orElse("nobody"))
                .orElse("no call");
    }

    private static ContextSnapshot capturedBy(String who, ContextSnapshotFactory snapshots) {
        return CallContext.within(Duration.ofMinutes(1), () -> {
            CallContext.current().orElseThrow().authenticate(() -> who);
            return snapshots.captureAll();
        });
    }

    @Test
    void aSnapshotCarriesTheContextToAnotherThread() throws Exception {
        ContextSnapshot alices = capturedBy("alice", snapshots);
        ContextSnapshot bobs = capturedBy("bob", snapshots);
        assertThat(pool.submit(alices.wrap(CallContextAccessorTest::current)).get(30, TimeUnit.SECONDS))
                .isEqualTo("alice");
        assertThat(pool.submit(bobs.wrap(CallContextAccessorTest::current)).get(30, TimeUnit.SECONDS))
                .isEqualTo("bob");
        assertThat(pool.submit(CallContextAccessorTest::current).get(30, TimeUnit.SECONDS))
                .isEqualTo("no call");
    }

    @Test
    void aSnapshotOutsideOfCallsHasNoContext() {
        ContextSnapshot nobodys = snapshots.captureAll();
        ContextSnapshot alices = capturedBy("alice", snapshots);
        try (ContextSnapshot.Scope within = alices.setThreadLocals()) {
            assertThat(within).isNotNull();
            assertThat(current()).isEqualTo("alice");
            try (ContextSnapshot.Scope none = nobodys.setThreadLocals()) {
                assertThat(none).isNotNull();
                assertThat(current()).isEqualTo("no call");
            }
            assertThat(current()).isEqualTo("alice");
        }
        assertThat(current()).isEqualTo("no call");
    }
}
