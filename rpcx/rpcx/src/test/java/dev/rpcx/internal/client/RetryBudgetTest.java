package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Tests how many calls may be made again. */
class RetryBudgetTest {
    private final RetryBudget budget = new RetryBudget();

    private int spent() {
        int spent = 0;
        while (budget.spend()) {
            spent++;
        }
        return spent;
    }

    private void call(int times) {
        for (int i = 0; i < times; i++) {
            budget.called();
        }
    }

    @Test
    void aClientBeginsWithTen() {
        assertThat(spent()).isEqualTo(10);
        assertThat(budget.spend()).isFalse();
    }

    @Test
    void tenCallsEarnOneMore() {
        spent();
        call(9);
        assertThat(budget.spend()).isFalse();
        call(1);
        assertThat(spent()).isEqualTo(1);
        call(1000);
        assertThat(spent()).isEqualTo(100);
    }

    @Test
    void noMoreThanAHundredAreKept() {
        call(10_000);
        assertThat(spent()).isEqualTo(100);
    }

    @Test
    void whatIsGivenBackMayBeSpentAgainAndIsNoMoreThanAHundred() {
        spent();
        budget.giveBack();
        assertThat(spent()).isEqualTo(1);
        call(1_000);
        budget.giveBack();
        assertThat(spent()).isEqualTo(100);
    }
}
