package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests that what handlers hold without a charge is at most a fixed part of the heap, however many handlers may run.
 */
class UnchargedAllowanceTest {
    @ParameterizedTest
    @CsvSource({"64, 2048", "256, 4096", "256, 4", "1024, 10000", "3840, 10000", "32768, 10000", "4096, 1000000"})
    void allHandlersTogetherHaveASixteenthOfTheHeapAndEachNoMoreThan24Kibibytes(long megabytes, long running) {
        long heap = megabytes << 20;
        UnchargedAllowance each = UnchargedAllowance.of(heap, running);
        long bytes = each.bodyBytes() + each.metadataBytes() + each.objectBytes();
        assertThat(bytes * running).isLessThanOrEqualTo(heap / 16);
        // some bytes are lost, because each of the three amounts is rounded down
        assertThat(bytes).isBetween(Math.min(24 * 1024, heap / 16 / running) - 3, 24L * 1024);
        assertThat(each.metadataBytes()).isEqualTo(each.bodyBytes());
        assertThat(each.objectBytes()).isBetween(4 * each.bodyBytes(), 4 * each.bodyBytes() + 3);
    }
}
