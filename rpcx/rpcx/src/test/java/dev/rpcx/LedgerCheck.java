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
 * Looks after every test and after every class: no server and no client of the process holds anything that belongs to a
 * call or to a connection that is over. Found by JUnit itself. A test's handlers may still be about to end, so quiet is
 * waited for, and no ledger is collected before it has been looked at. What is found fails the test or class that has
 * left it, and no other: the ledgers are then passed over.
 */
public final class LedgerCheck implements AfterEachCallback, AfterAllCallback {
    /** Less where the code is changed on purpose and thousands of tests fail: see build/mutation.sh. */
    private static final Duration MAX_WAIT = Duration.ofMillis(Integer.getInteger("rpcx.held.millis", 10_000));

    private final Duration patience;

    /** Made by JUnit. */
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
            // in this thread, so that a slow collection does not end the wait before the first look has ended
            await().pollInSameThread().atMost(patience).pollDelay(Duration.ZERO).untilAsserted(() -> {
                if (!Ledger.auditAll().isEmpty()) {
                    // what a future has that never ends stays charged until nobody can reach the future
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
