package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Heap;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which message may be sent next, and which messages wait for it. */
class FrameSchedulerTest {
    private static final int FRAME = Wire.MAX_PAYLOAD_BYTES;

    private final FrameScheduler scheduler = new FrameScheduler();
    private int lastId;

    private Outbound message(int bytes) {
        return message(++lastId, bytes);
    }

    private static Outbound message(int id, int bytes) {
        return new Outbound.Control(Wire.REPLY, id, Unpooled.wrappedBuffer(new byte[bytes]));
    }

    private Outbound added(int bytes) {
        Outbound message = message(bytes);
        scheduler.add(message, false);
        return message;
    }

    /** Takes one frame of each message that has begun, and no second one. */
    private List<Outbound> round() {
        List<Outbound> round = new ArrayList<>();
        for (Outbound next = scheduler.next(); next != null; next = scheduler.next()) {
            round.add(next);
        }
        round.forEach(scheduler::goesOn);
        return round;
    }

    private void end(Outbound message) {
        assertThat(scheduler.next()).isSameAs(message);
        scheduler.ended(message);
    }

    @Test
    void aMessageThatIsTakenBackCountsAsItDidWhateverHasBecomeOfItsBody() {
        Outbound large = added(100_000);
        Outbound other = added(200_000);
        added(10);
        large.body.clear();
        other.body.clear();
        scheduler.remove(other);
        scheduler.remove(large);
        assertThat(scheduler.bytes()).isEqualTo(10);
    }

    @Test
    void messagesOfOneFrameLeaveAsTheyCome() {
        assertThat(scheduler.isEmpty()).isTrue();
        assertThat(scheduler.next()).isNull();
        Outbound empty = added(0);
        Outbound small = added(1);
        Outbound frame = added(FRAME);
        assertThat(scheduler.isEmpty()).isFalse();
        assertThat(round()).containsExactly(empty, small, frame);
        end(empty);
        end(small);
        assertThat(scheduler.isLast()).isFalse();
        end(frame);
        assertThat(scheduler.isEmpty()).isTrue();
        assertThat(scheduler.isLast()).isTrue();
    }

    @Test
    void aMessageOfOneWholeFrameWaitsForNobodysEnd() {
        Outbound large = added(FRAME + 1);
        Outbound frame = added(FRAME);
        assertThat(scheduler.hasWhole()).isTrue();
        assertThat(round()).containsExactly(large, frame);
    }

    /** So the scheduler need not search all waiting messages for each small message. */
    @Test
    void onlyWhatIsAheadOfAnotherFollowsIt() {
        added(FRAME + 1);
        Outbound waits = added(FRAME + 1);
        Outbound same = message(waits.id, 10);
        scheduler.add(same, false);
        scheduler.next();
        assertThat(scheduler.next()).isSameAs(same);
    }

    @Test
    void itIsKnownWhetherAMessageOfOneFrameWaits() {
        assertThat(scheduler.hasWhole()).isFalse();
        Outbound large = added(FRAME + 1);
        assertThat(scheduler.hasWhole()).isFalse();
        Outbound first = added(10);
        Outbound second = added(FRAME);
        Outbound follows = message(message(++lastId, FRAME + 1).id, 10);
        scheduler.add(message(follows.id, FRAME + 1), false);
        scheduler.add(follows, true);
        assertThat(scheduler.hasWhole()).isTrue();
        scheduler.remove(second);
        scheduler.remove(second);
        end(large);
        assertThat(scheduler.next()).isSameAs(first);
        // this is how the scheduler treats a message that has grown
        scheduler.goesOn(first);
        assertThat(scheduler.hasWhole()).isTrue();
        scheduler.remove(follows);
        scheduler.next();
        end(first);
        assertThat(scheduler.hasWhole()).isFalse();
        added(10);
        scheduler.clear();
        assertThat(scheduler.hasWhole()).isFalse();
    }

    @Test
    void whatFollowsAnotherAndIsTakenBackWaitsAsNoWholeMessageAnyMore() {
        Outbound large = added(FRAME + 1);
        Outbound waits = added(FRAME + 1);
        Outbound follows = message(waits.id, 10);
        scheduler.add(follows, true);
        scheduler.remove(follows);
        assertThat(scheduler.hasWhole()).isFalse();
        end(large);
        end(waits);
        assertThat(scheduler.isEmpty()).isTrue();
    }

    @Test
    void whatFollowsAnotherLeavesOnce() {
        Outbound large = added(FRAME + 1);
        Outbound waits = added(FRAME + 1);
        Outbound follows = message(waits.id, 10);
        scheduler.add(follows, true);
        end(large);
        assertThat(round()).containsExactly(waits, follows);
        end(waits);
        end(follows);
        assertThat(scheduler.isEmpty()).isTrue();
        assertThat(scheduler.isLast()).as("nothing waits any more").isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24})
    void ofMessagesOfOneSizeOneHasBegunAndTheOthersFollowInOrder(int most) {
        Outbound first = added(most);
        Outbound second = added(Math.max(FRAME, most / 4) + 1);
        Outbound third = added(most);
        Outbound larger = added(most + 1);
        assertThat(round()).containsExactly(first, larger);
        assertThat(round()).containsExactly(first, larger);
        end(first);
        assertThat(round()).containsExactly(larger, second);
        end(larger);
        assertThat(scheduler.next()).isSameAs(second);
        assertThat(scheduler.isEmpty())
                .as("but for the one that has been brought")
                .isTrue();
        assertThat(scheduler.isLast()).isFalse();
        scheduler.ended(second);
        end(third);
        assertThat(scheduler.isEmpty()).isTrue();
        Outbound next = added(most);
        assertThat(round()).as("nobody is before it any more").containsExactly(next);
    }

    @Test
    void asManyHaveBegunAsThereAreSizes() {
        int[] sizes = {FRAME + 1, (1 << 16) + 1, (1 << 18) + 1, (1 << 20) + 1};
        List<Outbound> first = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            for (int size : sizes) {
                Outbound message = added(size);
                if (i == 0) {
                    first.add(message);
                }
            }
        }
        assertThat(round()).isEqualTo(first);
    }

    @Test
    void whatIsTakenBackIsNeitherSentNorWaits() {
        Outbound first = added(100_000);
        Outbound second = added(100_000);
        Outbound third = added(100_000);
        Outbound fourth = added(100_000);
        scheduler.remove(second);
        scheduler.remove(message(100_000));
        assertThat(round()).containsExactly(first);
        scheduler.remove(first);
        assertThat(round()).containsExactly(third);
        scheduler.remove(first);
        assertThat(round()).as("once").containsExactly(third);
        end(third);
        scheduler.remove(fourth);
        assertThat(scheduler.isEmpty()).isTrue();
        Outbound small = added(1);
        Outbound fifth = added(100_000);
        scheduler.remove(small);
        assertThat(round()).containsExactly(fifth);
    }

    @Test
    void aMessageOfOneFrameFollowsThatOfItsCallWhichWaits() {
        Outbound first = added(100_000);
        Outbound other = added(100_000);
        Outbound request = added(100_000);
        Outbound last = added(100_000);
        Outbound credit = message(request.id, 1);
        scheduler.add(credit, true);
        Outbound more = message(request.id, 2);
        scheduler.add(more, true);
        Outbound ofFirst = message(first.id, 1);
        scheduler.add(ofFirst, true);
        Outbound ofLast = message(last.id, 1);
        scheduler.add(ofLast, true);
        assertThat(round()).containsExactly(first, ofFirst);
        end(first);
        end(ofFirst);
        end(other);
        assertThat(round()).containsExactly(request, credit, more);
        end(request);
        end(credit);
        end(more);
        assertThat(round()).containsExactly(last, ofLast);
    }

    @Test
    void whatFollowsAMessageThatIsTakenBackWaitsNoLonger() {
        Outbound first = added(100_000);
        Outbound request = added(100_000);
        Outbound credit = message(request.id, 1);
        Outbound more = message(request.id, 1);
        scheduler.add(credit, true);
        scheduler.add(more, true);
        scheduler.remove(credit);
        assertThat(round()).containsExactly(first);
        assertThat(scheduler.bytes()).isEqualTo(200_001);
        scheduler.remove(request);
        assertThat(scheduler.bytes()).isEqualTo(100_001);
        assertThat(round()).containsExactly(first, more);
    }

    @Test
    void itKnowsWhatHasNotBeenSentOfAllThatWaits() {
        assertThat(scheduler.bytes()).isZero();
        Outbound first = added(100_000);
        Outbound waiting = added(90_000);
        Outbound small = added(10);
        assertThat(scheduler.bytes()).isEqualTo(190_010);
        assertThat(scheduler.next()).isSameAs(first);
        assertThat(scheduler.bytes())
                .as("but for the one that has been brought")
                .isEqualTo(90_010);
        first.body.skipBytes(FRAME);
        scheduler.goesOn(first);
        assertThat(scheduler.bytes()).isEqualTo(190_010 - FRAME);
        scheduler.remove(small);
        scheduler.remove(small);
        assertThat(scheduler.bytes()).isEqualTo(190_000 - FRAME);
        scheduler.remove(first);
        assertThat(scheduler.bytes()).isEqualTo(90_000);
        end(waiting);
        assertThat(scheduler.bytes()).isZero();
    }

    @Test
    void atTheEndNothingIsLeft() {
        added(100_000);
        added(100_000);
        added(1);
        scheduler.clear();
        assertThat(scheduler.bytes()).isZero();
        assertThat(scheduler.isEmpty()).isTrue();
        assertThat(scheduler.isLast()).isTrue();
        Outbound next = added(100_000);
        assertThat(round()).containsExactly(next);
    }

    /** A burst makes large tables, and some messages may wait on a connection all the time. */
    @Test
    void tablesThatHaveGrownAreNotKeptForFew() {
        int many = 500;
        List<Outbound> messages = new ArrayList<>();
        for (int i = 0; i < 4_000; i++) {
            messages.add(message(10));
        }
        Outbound stays = message(10);
        List<FrameScheduler> all = new ArrayList<>();
        long before = Heap.usedBytes();
        for (int i = 0; i < many; i++) {
            FrameScheduler each = new FrameScheduler();
            each.add(stays, false);
            messages.forEach(message -> each.add(message, false));
            messages.forEach(each::remove);
            each.shrink();
            all.add(each);
        }
        assertThat((Heap.usedBytes() - before) / many).as("bytes of each").isLessThan(4_000);
        for (FrameScheduler each : all) {
            assertThat(each.next()).isSameAs(stays);
            assertThat(each.isLast()).isTrue();
        }
    }
}
