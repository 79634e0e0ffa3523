package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Ledger;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.core.ConditionTimeoutException;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Checks after every test and after every test class that no server and no client of this process holds anything for a
 * call or a connection that is over. JUnit finds this class by itself. Handlers of a test may still be about to end, so
 * the check waits for them, and keeps each ledger until it was checked. If something is held, only the test or class
 * that has left it fails, since these ledgers are ignored from then on.
 */
public final class LedgerCheck implements AfterEachCallback, AfterAllCallback {
    /** The wait is shorter where the code is changed on purpose and thousands of tests fail: see build/mutation.sh. */
    private static final Duration MAX_WAIT = Duration.ofMillis(Integer.getInteger("rpcx.held.millis", 10_000));

    private final Duration patience;

    /** JUnit calls this constructor. */
    public LedgerCheck() {
        this(MAX_WAIT);
    }

    public LedgerCheck(Duration patience) {
        this.patience = patience;
        Ledger.keepAll();
    }

    @Override
    public void afterEach(ExtensionContext context) {
        look();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        look();
    }

    public void look() {
        AtomicInteger looks = new AtomicInteger();
        try {
            // this thread looks itself, so that a slow collection does not end the wait before the first look has ended
            await().pollInSameThread().atMost(patience).pollDelay(Duration.ZERO).untilAsserted(() -> {
                if (!Ledger.auditAll().isEmpty()) {
                    // what a future that never ends has stays charged until nobody can reach the future
                    System.gc();
                }
                assertThat(Ledger.auditAll()).as("held").isEmpty();
            });
        } catch (ConditionTimeoutException e) {
            Ledger.forgetHeld();
            throw e;
        } finally {
            Ledger.letGo();
        }
    }
}
