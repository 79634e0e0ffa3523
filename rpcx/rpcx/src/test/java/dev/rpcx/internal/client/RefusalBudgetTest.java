package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests how many calls that one instance has refused may be tried at another instance. */
class RefusalBudgetTest {
    private final MockTicker ticker = Ticker.newMockTicker();
    private final RefusalBudget budget = new RefusalBudget(ticker);

    private int spent() {
        int spent = 0;
        while (budget.spend()) {
            spent++;
        }
        return spent;
    }

    @Test
    void aHundredToBeginWithAndTenASecondFromThenOn() {
        assertThat(spent()).isEqualTo(RefusalBudget.MAX_RETRIES);
        ticker.advance(99, TimeUnit.MILLISECONDS);
        assertThat(spent()).isZero();
        ticker.advance(1, TimeUnit.MILLISECONDS);
        assertThat(spent()).isEqualTo(1);
        ticker.advance(250, TimeUnit.MILLISECONDS);
        assertThat(spent()).isEqualTo(2);
        // the 50 ms that were left over before count too
        ticker.advance(50, TimeUnit.MILLISECONDS);
        assertThat(spent()).isEqualTo(1);
        ticker.advance(1, TimeUnit.SECONDS);
        assertThat(spent()).isEqualTo(10);
    }

    @Test
    void aTryThatFindsAnInstanceCostsNothing() {
        for (int i = 0; i < 10 * RefusalBudget.MAX_RETRIES; i++) {
            assertThat(budget.spend()).isTrue();
            budget.giveBack();
        }
        assertThat(spent()).isEqualTo(RefusalBudget.MAX_RETRIES);
        budget.giveBack();
        assertThat(spent()).isEqualTo(1);
    }

    @Test
    void noMoreAreKeptThanThereAreToBeginWith() {
        budget.giveBack();
        ticker.advance(1, TimeUnit.DAYS);
        assertThat(spent()).isEqualTo(RefusalBudget.MAX_RETRIES);
    }
}
