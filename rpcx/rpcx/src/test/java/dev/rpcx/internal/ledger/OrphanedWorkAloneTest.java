package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** What counts for whom of that which connections leave behind; {@link OrphanedWorkTest} has it with a server. */
class OrphanedWorkAloneTest {
    private final OrphanedWork left = new OrphanedWork();

    @Test
    void whoeverComesHasWhatHadBeenLeftBeforeUntilItHasEnded() {
        assertThat(left.mark()).isZero();
        assertThat(left.runningOf(left.mark())).isZero();
        left.leave(2, 3);
        long mark = left.mark();
        assertThat(mark).isEqualTo(5);
        assertThat(left.runningOf(mark)).isEqualTo(2);
        assertThat(left.runningOf(0)).isZero();
        left.leave(4, 0);
        assertThat(left.mark()).isEqualTo(9);
        assertThat(left.runningOf(mark)).as("no more than had been left").isEqualTo(5);
        assertThat(left.runningOf(left.mark())).isEqualTo(6);
        left.end();
        left.end();
        assertThat(left.ended()).isEqualTo(2);
        assertThat(left.runningOf(mark)).isEqualTo(3);
        left.drop(3);
        assertThat(left.ended()).isEqualTo(5);
        assertThat(left.runningOf(mark)).isZero();
        assertThat(left.runningOf(left.mark())).isEqualTo(4);
        left.end();
        assertThat(left.runningOf(mark)).as("never below").isZero();
    }

    @Test
    void whatWaitedCountsAsItBegins() {
        left.leave(0, 3);
        assertThat(left.runningOf(left.mark())).isZero();
        left.begin();
        left.begin();
        assertThat(left.runningOf(left.mark())).isEqualTo(2);
        left.end();
        assertThat(left.runningOf(left.mark())).isEqualTo(1);
        assertThat(left.ended()).isEqualTo(1);
    }

    @Test
    void aMarkFromSomewhereOnHasAll() {
        left.leave(2, 2);
        assertThat(left.allFrom()).isEqualTo(2);
        left.begin();
        assertThat(left.allFrom()).isEqualTo(3);
        left.end();
        assertThat(left.allFrom()).as("it never grows less").isEqualTo(3);
        left.drop(1);
        assertThat(left.allFrom()).isEqualTo(4);
        assertThat(left.runningOf(left.allFrom())).isEqualTo(2);
        assertThat(left.runningOf(OrphanedWork.ALL)).isEqualTo(2);
    }
}
