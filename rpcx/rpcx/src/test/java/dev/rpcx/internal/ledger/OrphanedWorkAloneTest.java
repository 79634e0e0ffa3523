package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/**
 * Tests in whose share the orphaned tasks of connections count. {@link OrphanedWorkTest} tests this with a server.
 */
class OrphanedWorkAloneTest {
    private final OrphanedWork work = new OrphanedWork();

    @Test
    void whoeverComesHasWhatHadBeenOrphanedBeforeUntilItHasEnded() {
        assertThat(work.mark()).isZero();
        assertThat(work.runningOf(work.mark())).isZero();
        work.add(2, 3);
        long mark = work.mark();
        assertThat(mark).isEqualTo(5);
        assertThat(work.runningOf(mark)).isEqualTo(2);
        assertThat(work.runningOf(0)).isZero();
        work.add(4, 0);
        assertThat(work.mark()).isEqualTo(9);
        assertThat(work.runningOf(mark)).as("no more than had been orphaned").isEqualTo(5);
        assertThat(work.runningOf(work.mark())).isEqualTo(6);
        work.end();
        work.end();
        assertThat(work.ended()).isEqualTo(2);
        assertThat(work.runningOf(mark)).isEqualTo(3);
        work.drop(3);
        assertThat(work.ended()).isEqualTo(5);
        assertThat(work.runningOf(mark)).isZero();
        assertThat(work.runningOf(work.mark())).isEqualTo(4);
        work.end();
        assertThat(work.runningOf(mark)).as("never below").isZero();
    }

    @Test
    void whatWaitedCountsAsItBegins() {
        work.add(0, 3);
        assertThat(work.runningOf(work.mark())).isZero();
        work.begin();
        work.begin();
        assertThat(work.runningOf(work.mark())).isEqualTo(2);
        work.end();
        assertThat(work.runningOf(work.mark())).isEqualTo(1);
        assertThat(work.ended()).isEqualTo(1);
    }

    @Test
    void aMarkFromSomewhereOnHasAll() {
        work.add(2, 2);
        assertThat(work.allFrom()).isEqualTo(2);
        work.begin();
        assertThat(work.allFrom()).isEqualTo(3);
        work.end();
        assertThat(work.allFrom()).as("it never grows less").isEqualTo(3);
        work.drop(1);
        assertThat(work.allFrom()).isEqualTo(4);
        assertThat(work.runningOf(work.allFrom())).isEqualTo(2);
        assertThat(work.runningOf(OrphanedWork.ALL)).isEqualTo(2);
    }
}
