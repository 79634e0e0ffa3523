package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests the queue that is linked through the messages themselves, with one thread. */
class OutboxTest {
    private final Outbox outbox = new Outbox();

    private static Outbound message(int id) {
        return Outbound.Control.empty(0, id);
    }

    private List<Integer> all() {
        List<Integer> ids = new ArrayList<>();
        for (Outbound message = outbox.poll(); message != null; message = outbox.poll()) {
            ids.add(message.id);
        }
        return ids;
    }

    @Test
    void messagesComeInTheirOrder() {
        assertThat(outbox.poll()).isNull();
        for (int size = 1; size < 5; size++) {
            for (int i = 1; i <= size; i++) {
                outbox.add(message(i));
            }
            List<Integer> ids = all();
            assertThat(ids).hasSize(size).isSorted();
            assertThat(outbox.poll()).isNull();
        }
    }

    @Test
    void whatHasComeMayBeAddedAgain() {
        Outbound one = message(1);
        Outbound two = message(2);
        for (int round = 0; round < 3; round++) {
            outbox.add(one);
            assertThat(outbox.poll()).isSameAs(one);
            outbox.add(two);
            outbox.add(one);
            assertThat(outbox.poll()).isSameAs(two);
            outbox.add(two);
            assertThat(outbox.poll()).isSameAs(one);
            outbox.add(one);
            assertThat(all()).containsExactly(2, 1);
        }
    }

    /** A call's message exists for as long as its slot, and may not be sent again for long. */
    @Test
    void whatHasComeRefersToNothingThatCameBehindIt() {
        Outbound first = message(1);
        Outbound last = message(2);
        outbox.add(first);
        outbox.add(last);
        assertThat(all()).containsExactly(1, 2);
        assertThat(first.next).isNull();
        outbox.add(message(3));
        assertThat(all()).containsExactly(3);
        assertThat(last.next).isNull();
    }

    @Test
    void aQueueIsEmptyOnceAllHasBeenTaken() {
        assertThat(outbox.isEmpty()).isTrue();
        outbox.add(message(1));
        assertThat(outbox.isEmpty()).isFalse();
        outbox.add(message(2));
        assertThat(all()).containsExactly(1, 2);
        assertThat(outbox.isEmpty()).isTrue();
    }

    /** A producer that has not linked its message yet has already added it. */
    @Test
    void aQueueIsNotEmptyWhereItsFirstMessageIsNotLinkedYet() {
        outbox.add(message(1));
        assertThat(outbox.poll()).isNotNull();
        Outbound stub = outbox.last();
        outbox.add(message(2));
        Outbound link = stub.next;
        stub.next = null;
        assertThat(outbox.poll()).isNull();
        assertThat(outbox.isEmpty()).isFalse();
        stub.next = link;
        assertThat(all()).containsExactly(2);
    }

    @Test
    void theLastIsWhatWasAddedLastUntilItIsTaken() {
        Outbound one = message(1);
        Outbound two = message(2);
        outbox.add(one);
        assertThat(outbox.last()).isSameAs(one);
        outbox.add(two);
        assertThat(outbox.last()).isSameAs(two);
        assertThat(outbox.poll()).isSameAs(one);
        assertThat(outbox.last()).isSameAs(two);
        assertThat(outbox.poll()).isSameAs(two);
        assertThat(outbox.last()).isNotNull().isNotSameAs(two);
    }

    /**
     * A producer has exchanged the tail and has not linked its message yet. The messages behind it wait for the link.
     */
    @Test
    void whatIsNotLinkedYetIsWaitedFor() {
        Outbound one = message(1);
        Outbound two = message(2);
        Outbound three = message(3);
        outbox.add(one);
        outbox.add(two);
        outbox.add(three);
        // this removes the link of the last message, as if it had not been stored yet
        Outbound link = two.next;
        two.next = null;
        assertThat(outbox.poll()).isSameAs(one);
        assertThat(outbox.poll()).isNull();
        two.next = link;
        assertThat(all()).containsExactly(2, 3);
    }
}
