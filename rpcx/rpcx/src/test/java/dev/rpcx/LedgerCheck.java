package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * After every test: no server and no client of the process holds anything that belongs to a call or to a connection
 * that is over. Found by JUnit itself. A test's handlers may still be about to end, so quiet is waited for.
 */
public final class LedgerCheck implements AfterEachCallback {
    /** Less where the code is changed on purpose and thousands of tests fail: see build/mutation.sh. */
    private static final Duration MAX_WAIT = Duration.ofMillis(Integer.getInteger("rpcx.held.millis", 10_000));

    @Override
    public void afterEach(ExtensionContext context) {
        try {
            await().atMost(MAX_WAIT)
                    .pollDelay(Duration.ZERO)
                    .untilAsserted(
                            () -> assertThat(Ledger.auditAll()).as("held").isEmpty());
        } catch (Throwable held) {
            // of this test, and not of those behind it
            Ledger.forgetAll();
            throw held;
        }
    }
}
