package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.wire.Wire;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests the slots of a connection without the connection: which slot a call gets, how many slots there are, and what a
 * trim leaves.
 */
@Timeout(60)
class CallSlotsAloneTest {
    @Test
    void slotsFillFromTheBottomAndTheOneThatCameBackLastGoesFirst() {
        CallSlots slots = new CallSlots(null);
        ClientCall first = slots.acquire(7);
        ClientCall second = slots.acquire(0);
        ClientCall third = slots.acquire(0);
        assertThat(List.of(first.slot, second.slot, third.slot)).containsExactly(0, 1, 2);
        assertThat(first.deadlineNanos).isEqualTo(7);
        assertThat(slots.createdCount()).isEqualTo(3);
        assertThat(slots.taken()).isEqualTo(3);
        slots.release(third);
        slots.release(first);
        assertThat(slots.taken()).isEqualTo(1);
        assertThat(slots.acquire(0)).isSameAs(first);
        assertThat(slots.acquire(0)).isSameAs(third);
        assertThat(slots.taken()).isEqualTo(3);
        assertThat(slots.createdCount()).isEqualTo(3);
    }

    @Test
    void noMoreSlotsAreHadThanTheServerTakes() {
        CallSlots slots = new CallSlots(null);
        slots.limit(2);
        assertThat(slots.limit()).isEqualTo(2);
        ClientCall first = slots.acquire(0);
        assertThat(slots.isFull()).isFalse();
        slots.acquire(0);
        assertThat(slots.isFull()).isTrue();
        assertThatThrownBy(() -> slots.acquire(0)).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED);
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
        assertThat(slots.createdCount()).isEqualTo(2);
        slots.release(first);
        assertThat(slots.isFull()).isFalse();
        assertThat(slots.acquire(0)).isSameAs(first);
        assertThat(slots.isFull()).isTrue();
        slots.limit(3);
        assertThat(slots.isFull()).isFalse();
        assertThat(slots.acquire(0).slot).isEqualTo(2);
        assertThat(slots.isFull()).isTrue();
    }

    @Test
    void aSlotAtTheLimitIsNotUsedAgainAndIsNoCalls() {
        CallSlots slots = new CallSlots(null);
        List<ClientCall> calls = List.of(slots.acquire(0), slots.acquire(0), slots.acquire(0));
        slots.limit(2);
        calls.forEach(slots::release);
        assertThat(slots.acquire(0)).isSameAs(calls.get(1));
        assertThat(slots.taken()).isEqualTo(1);
        assertThat(slots.acquire(0)).isSameAs(calls.get(0));
        assertThat(slots.taken()).isEqualTo(2);
        assertThatThrownBy(() -> slots.acquire(0)).isInstanceOf(RPCXException.class);
        assertThat(slots.trim()).isFalse();
        calls.subList(0, 2).forEach(slots::release);
        assertThat(slots.trim()).as("no call has a slot").isTrue();
    }

    @Test
    void aServerThatTakesNoneIsSentOneAndOneThatTakesMoreThanThereAreIsSentThose() {
        CallSlots slots = new CallSlots(null);
        slots.limit(0);
        assertThat(slots.acquire(0).slot).isZero();
        assertThatThrownBy(() -> slots.acquire(0)).isInstanceOf(RPCXException.class);
        slots.limit(Integer.MAX_VALUE);
        for (int i = 1; i < Wire.MAX_SLOTS; i++) {
            assertThat(slots.acquire(0).slot).isEqualTo(i);
        }
        assertThatThrownBy(() -> slots.acquire(0)).hasMessageContaining("all " + Wire.MAX_SLOTS + " slots");
    }

    @Test
    void aSlotIsFoundByItsNumberOnceItHasBeenUsed() {
        CallSlots slots = new CallSlots(null);
        ClientCall first = slots.acquire(0);
        assertThat(slots.at(0)).isSameAs(first);
        assertThat(slots.at(1)).isNull();
        assertThat(slots.at(Wire.MAX_SLOTS - 1)).isNull();
        assertThat(slots.at(Wire.MAX_SLOTS)).isNull();
        assertThat(slots.at(Wire.SLOT_MASK)).isNull();
        slots.release(first);
        assertThat(slots.at(0)).isSameAs(first);
    }

    @Test
    void slotsThatAreTrimmedComeBackAllOfThemOnce() {
        CallSlots slots = new CallSlots(null);
        List<ClientCall> calls = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            calls.add(slots.acquire(0));
        }
        assertThat(slots.trim()).isFalse();
        assertThat(slots.taken()).isEqualTo(5);
        calls.subList(1, 4).forEach(slots::release);
        assertThat(slots.trim()).isFalse();
        slots.limit(5);
        assertThat(slots.taken()).isEqualTo(2);
        List<ClientCall> again = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            again.add(slots.acquire(0));
        }
        assertThat(again)
                .containsExactlyInAnyOrderElementsOf(calls.subList(1, 4))
                .allMatch(c -> c.nextTrimmed == null);
        assertThatThrownBy(() -> slots.acquire(0)).isInstanceOf(RPCXException.class);
        calls.forEach(slots::release);
        assertThat(slots.trim()).isTrue();
        assertThat(slots.isFull()).isFalse();
    }

    @Test
    void eachSlotThatIsTakenAgainOrGivenBackIsAChange() {
        CallSlots slots = new CallSlots(null);
        ClientCall call = slots.acquire(0);
        long taken = slots.changes();
        slots.release(call);
        long released = slots.changes();
        assertThat(released).isNotEqualTo(taken);
        slots.acquire(0);
        assertThat(slots.changes()).isNotIn(taken, released);
    }

    /** Counts how often it is woken. */
    private static final class Waiter extends Thread {
        final AtomicInteger woken = new AtomicInteger();
        volatile boolean isOver;

        @Override
        public void run() {
            while (!isOver) {
                LockSupport.park(this);
                woken.incrementAndGet();
            }
        }

        void waitFor(ClientCall call) throws ReflectiveOperationException {
            Field field = ClientCall.class.getDeclaredField("waiter");
            field.setAccessible(true);
            field.set(call, this);
            setDaemon(true);
            start();
            await().until(() -> getState() == State.WAITING);
        }

        void end() {
            isOver = true;
            LockSupport.unpark(this);
        }
    }

    @Test
    void callersWhoseTimeIsOverAreWokenAndNoOthers() throws ReflectiveOperationException {
        CallSlots slots = new CallSlots(null);
        assertThat(slots.wakeOverdue(0)).isFalse();
        ClientCall late = slots.acquire(99);
        ClientCall inTime = slots.acquire(100);
        Waiter first = new Waiter();
        Waiter second = new Waiter();
        first.waitFor(late);
        second.waitFor(inTime);
        try {
            assertThat(slots.wakeOverdue(100)).isTrue();
            await().until(() -> first.woken.get() == 1 && first.getState() == Thread.State.WAITING);
            assertThat(second.woken).hasValue(0);
            slots.wakeCallers();
            await().until(() -> first.woken.get() == 2 && second.woken.get() == 1);
            // a caller that has its answer is not woken
            await().until(() -> second.getState() == Thread.State.WAITING);
            late.callerDone();
            slots.wakeCallers();
            await().until(() -> second.woken.get() == 2);
            assertThat(first.woken).hasValue(2);
            assertThat(slots.wakeOverdue(100)).isTrue();
            inTime.callerDone();
            assertThat(slots.wakeOverdue(101)).isFalse();
            slots.wakeCallers();
        } finally {
            first.end();
            second.end();
        }
    }

    @Test
    void aLookForCallersThatHaveGoneIsOverWhereNoneHas() {
        CallSlots slots = new CallSlots(null);
        slots.acquire(0);
        slots.hasOrphans = true;
        assertThat(slots.freeOrphans()).isTrue();
        assertThat(slots.hasOrphans).isFalse();
    }

    @Test
    void whileSlotsAreTrimmedNobodyIsToldThatThereAreNone() throws Exception {
        CallSlots slots = new CallSlots(null);
        slots.limit(1);
        slots.release(slots.acquire(0));
        AtomicBoolean isOver = new AtomicBoolean();
        Thread trimmer = new Thread(() -> {
            while (!isOver.get()) {
                slots.trim();
            }
        });
        trimmer.start();
        try {
            for (int i = 0; i < 100_000; i++) {
                slots.release(slots.acquire(0));
            }
        } finally {
            isOver.set(true);
            trimmer.join();
        }
        assertThat(slots.taken()).isZero();
    }

    /**
     * A thread may stand still after it has read the top of the free slots, and before it exchanges the top. It must
     * then notice that the slot was taken and given back meanwhile.
     */
    @Test
    void aSlotThatCameBackIsToldFromOneThatWasNeverGone() throws ReflectiveOperationException {
        Field field = CallSlots.class.getDeclaredField("free");
        field.setAccessible(true);
        CallSlots slots = new CallSlots(null);
        slots.release(slots.acquire(0));
        AtomicLong free = (AtomicLong) field.get(slots);
        Set<Long> seen = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            assertThat((int) free.get()).as("slot 0 is on top").isEqualTo(1);
            assertThat(seen.add(free.get()))
                    .as("another value than ever before")
                    .isTrue();
            slots.release(slots.acquire(0));
        }
    }
}
