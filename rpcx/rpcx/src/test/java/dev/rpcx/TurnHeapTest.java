package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** What {@link PoolSharesTest} does not come to. */
class TurnHeapTest {
    private static final class One extends TurnHeap.Entry {
        One(long turn) {
            this.turn = turn;
        }
    }

    /** Nobody else leaves in its place, and the queue can be used as before. */
    @Test
    void whatDoesNotStandInAQueueIsNotTakenOutOfIt() {
        TurnHeap<One> queue = new TurnHeap<>();
        One first = new One(1);
        One second = new One(2);
        queue.remove(first);
        assertThat(queue.isEmpty()).isTrue();
        queue.add(second);
        queue.remove(first);
        assertThat(queue.first()).isSameAs(second);
        queue.add(first);
        queue.remove(first);
        queue.remove(first);
        assertThat(queue.first()).isSameAs(second);
        queue.remove(second);
        assertThat(queue.isEmpty()).isTrue();
        assertThat(queue.first()).isNull();
    }
}
