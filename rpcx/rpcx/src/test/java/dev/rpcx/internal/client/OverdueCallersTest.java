package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Again;
import dev.rpcx.Client;
import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RawPeer;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.reflect.Field;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.AbstractOwnableSynchronizer;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests callers that block while the event loop does nothing. The test decides what time it is, and when the event loop
 * runs.
 */
@Timeout(30)
class OverdueCallersTest {
    @RPCXClient(remoteServerName = "echo")
    interface Calls {
        CompletableFuture<String> echo(String text);
    }

    /** A thread that has sent a call and waits for its end. */
    private final class Caller extends Thread {
        final ClientCall call = connection().slots.acquire(connection().nanoTime() + TimeUnit.SECONDS.toNanos(1));
        volatile @Nullable RPCXException end;
        volatile boolean isInterruptedAfterwards;

        @Override
        public void run() {
            call.sendBlocking();
            end = call.await();
            isInterruptedAfterwards = isInterrupted();
            call.callerDone();
        }

        Caller parked() {
            setDaemon(true);
            start();
            // the thread waits without a time-out of its own
            await().until(() -> getState() == State.WAITING);
            platform.settle(channel());
            return this;
        }

        RPCXException ended() throws InterruptedException {
            join(10_000);
            assertThat(isAlive()).isFalse();
            return Objects.requireNonNull(end);
        }
    }

    private final HandPlatform platform = new HandPlatform();
    private final Client client = Inside.on(Client.builder(), platform)
            .connections(1, 1)
            .keepAlive(Duration.ofMinutes(10))
            .build();
    private final List<CompletableFuture<?>> calls = new ArrayList<>();
    private @Nullable EmbeddedChannel channel;

    @BeforeEach
    void open() {
        calls.add(client.create(Calls.class, "peer", 1).echo("x"));
        channel = platform.opened.get(0);
        platform.settle(channel);
        send(RawPeer.preface());
        send(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
        send(RawPeer.frame(Wire.REPLY, Objects.requireNonNull(connection().slots.at(0)).id, RawPeer.text("y")));
        assertThat(calls.get(0)).isCompletedWithValueMatching("y"::equals);
    }

    @AfterEach
    void nothingIsLeft() {
        platform.end(client, channel(), calls);
    }

    private EmbeddedChannel channel() {
        return Objects.requireNonNull(channel);
    }

    private ClientConnection connection() {
        return channel().pipeline().get(ClientConnection.class);
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel(), all, 0, all.length);
    }

    /** Lets time pass without running the timers of the event loop. */
    private void passUnheard(long nanos) {
        platform.ticker.advance(nanos, TimeUnit.NANOSECONDS);
    }

    private void assertWaits(Caller caller) {
        connection().overdueCallers.run();
        await().during(Duration.ofMillis(100)).until(() -> caller.getState() == Thread.State.WAITING);
    }

    private static void assertUnheard(Caller caller) throws InterruptedException {
        RPCXException end = caller.ended();
        assertThat(end.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(end.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(end).hasMessage("no reply in time, and the event loop is held up");
    }

    @Test
    void aCallerWaitsNoLongerThanFiveSecondsForALoopThatIsHeldUp() throws Exception {
        Caller caller = new Caller().parked();
        passUnheard(TimeUnit.SECONDS.toNanos(6));
        assertWaits(caller);
        LockSupport.unpark(caller);
        assertWaits(caller);
        passUnheard(1);
        assertUnheard(caller);
        platform.settle(channel());
        // its slot is taken until the server has ended the call
        assertThat(connection().slots.taken()).isEqualTo(1);
        send(RawPeer.frame(Wire.REPLY, caller.call.id, RawPeer.text("late")));
        assertThat(connection().slots.taken()).isZero();
    }

    @Test
    void whoeverComesWhenNobodyIsLookedAfterIsLookedAfterAgain() throws Exception {
        for (int i = 0; i < 2; i++) {
            // nobody waits, so this run ends the looks; one that is due already ends by itself
            connection().overdueCallers.run();
            Caller caller = new Caller().parked();
            Caller beside = new Caller().parked();
            passUnheard(TimeUnit.SECONDS.toNanos(6) + 1);
            assertUnheard(caller);
            assertUnheard(beside);
            platform.settle(channel());
            for (Caller each : List.of(caller, beside)) {
                send(RawPeer.frame(Wire.REPLY, each.call.id, RawPeer.text("late")));
            }
            assertThat(connection().slots.taken()).isZero();
        }
    }

    @Test
    void aReplyEndsTheWait() throws Exception {
        Caller caller = new Caller().parked();
        send(RawPeer.frame(Wire.REPLY, caller.call.id, RawPeer.text("y")));
        caller.join(10_000);
        assertThat(caller.isAlive()).isFalse();
        assertThat(caller.end).isNull();
        assertThat(connection().slots.taken()).isZero();
    }

    /** A thread that waits for a lock uses up every wake-up that it gets meanwhile. */
    @Test
    void aReplyEndsTheWaitOfACallerThatWaitedForTheLockOfTheLooks() throws Exception {
        ScheduledThreadPoolExecutor timer = timer();
        ScheduledFuture<?> first = timer.schedule(() -> {}, 1, TimeUnit.HOURS);
        CountDownLatch isHeld = new CountDownLatch(1);
        CountDownLatch isFree = new CountDownLatch(1);
        Thread holder = new Thread(
                () -> {
                    // the queue compares under its lock
                    boolean isFound = timer.getQueue().contains(new HoldsUp(isHeld, isFree));
                    assertThat(isFound).isFalse();
                },
                "holds the lock");
        holder.setDaemon(true);
        try {
            // nobody waits, so this run ends the looks, and the next caller asks for one
            connection().overdueCallers.run();
            holder.start();
            isHeld.await();
            Caller caller = new Caller();
            caller.setDaemon(true);
            caller.start();
            await().until(() -> LockSupport.getBlocker(caller) instanceof AbstractOwnableSynchronizer);
            platform.settle(channel());
            send(RawPeer.frame(Wire.REPLY, caller.call.id, RawPeer.text("y")));
            // woken by the reply, the caller waits for the lock again
            await().during(Duration.ofMillis(100)).until(() -> caller.getState() == Thread.State.WAITING);
            isFree.countDown();
            caller.join(10_000);
            assertThat(caller.isAlive()).isFalse();
            assertThat(caller.end).isNull();
            assertThat(connection().slots.taken()).isZero();
        } finally {
            isFree.countDown();
            holder.join(10_000);
            first.cancel(false);
            timer.purge();
        }
    }

    /** Whatever looks for this object in a collection is held up. */
    private record HoldsUp(CountDownLatch isHeld, CountDownLatch isFree) {
        @Override
        public boolean equals(@Nullable Object other) {
            isHeld.countDown();
            try {
                isFree.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            return false;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(this);
        }
    }

    @Test
    void aReplyInPartsEndsTheWaitWithItsLast() throws Exception {
        Caller caller = new Caller().parked();
        send(RawPeer.frame(Wire.REPLY | Wire.MORE, caller.call.id, RawPeer.text("y")));
        send(RawPeer.frame(Wire.PART | Wire.MORE, caller.call.id, RawPeer.text("y")));
        assertThat(caller.getState()).isEqualTo(Thread.State.WAITING);
        send(RawPeer.frame(Wire.PART, caller.call.id, RawPeer.text("y")));
        caller.join(10_000);
        assertThat(caller.isAlive()).isFalse();
        assertThat(caller.end).isNull();
        assertThat(connection().slots.taken()).isZero();
    }

    @Test
    void anInterruptEndsTheWaitAndStaysTheCallers() throws Exception {
        Caller caller = new Caller().parked();
        HandPlatform.written(channel());
        caller.interrupt();
        RPCXException end = caller.ended();
        assertThat(end.code()).isEqualTo(RPCXException.Code.CANCELLED);
        assertThat(end).hasMessage("the caller was interrupted");
        assertThat(end.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(caller.isInterruptedAfterwards).isTrue();
        platform.settle(channel());
        assertThat(HandPlatform.written(channel()))
                .startsWith(ByteBufUtil.getBytes(RawPeer.frame(Wire.CANCEL, caller.call.id, Unpooled.EMPTY_BUFFER)));
        send(RawPeer.frame(Wire.REPLY, caller.call.id, RawPeer.text("late")));
        assertThat(connection().slots.taken()).isZero();
    }

    private static ScheduledThreadPoolExecutor timer() throws ReflectiveOperationException {
        Field field = OverdueCallers.class.getDeclaredField("TIMER");
        field.setAccessible(true);
        return (ScheduledThreadPoolExecutor) field.get(null);
    }

    /** Sets the thread that is woken for a call. */
    private static void setWaiter(ClientCall call, Thread waiter) throws ReflectiveOperationException {
        Field field = ClientCall.class.getDeclaredField("waiter");
        field.setAccessible(true);
        field.set(call, waiter);
    }

    /** Returns whether a thread that waits for the call is woken within a second. */
    private static boolean isWokenBy(ClientCall call, Runnable action) throws Exception {
        // another thread waits, since a lock that this thread meets in the action would take the wake-up
        Thread waiter = new Thread(() -> LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(20)), "a waiter");
        waiter.setDaemon(true);
        waiter.start();
        await().pollDelay(Duration.ZERO).until(() -> waiter.getState() == Thread.State.TIMED_WAITING);
        setWaiter(call, waiter);
        action.run();
        // no later look must do what this one has not done
        timer().getQueue().clear();
        waiter.join(1_000);
        boolean isWoken = !waiter.isAlive();
        LockSupport.unpark(waiter);
        return isWoken;
    }

    /** Tries several times, since on a machine that stands still it seems as if nobody had been woken. */
    private static void assertIsWokenBy(ClientCall call, Runnable action) throws Exception {
        Again.upToFiveTimes(200, () -> assertThat(isWokenBy(call, action)).isTrue());
    }

    @Test
    void oneLookIsDueForAllCallersOfAConnectionAndNoneOnceNobodyWaits() throws Exception {
        BlockingQueue<Runnable> looks = timer().getQueue();
        // the timer looks after a second, so that steps that take longer would find fewer looks
        Again.upToFiveTimes(200, () -> {
            // the looks of other tests end first
            await().until(looks::isEmpty);
            List<Integer> due = new ArrayList<>();
            takeSteps(connection().overdueCallers, () -> due.add(looks.size()));
            assertThat(due.subList(0, 3)).as("one for all").containsOnly(1);
            assertThat(due.subList(3, 5)).as("beside that which is due").containsOnly(2);
            assertThat(due.get(5)).as("nobody waits").isEqualTo(2);
            assertThat(due.get(6)).as("whoever comes then").isEqualTo(3);
        });
        await().until(looks::isEmpty);
    }

    private void takeSteps(OverdueCallers callers, Runnable look) {
        ClientCall call = connection().slots.acquire(connection().nanoTime());
        for (int i = 0; i < 3; i++) {
            assertThat(callers.lookAfterCallers()).isTrue();
            look.run();
        }
        callers.run();
        look.run();
        assertThat(callers.lookAfterCallers()).isTrue();
        look.run();
        call.dropUnsent();
        callers.run();
        look.run();
        assertThat(callers.lookAfterCallers()).isTrue();
        look.run();
    }

    @Test
    void aCallerIsWokenWhenItsTimeHasBeenOverForFiveSecondsAndNotBefore() throws Exception {
        OverdueCallers callers = connection().overdueCallers;
        ClientCall call = connection().slots.acquire(connection().nanoTime());
        passUnheard(TimeUnit.SECONDS.toNanos(5));
        assertThat(isWokenBy(call, callers)).isFalse();
        passUnheard(1);
        assertIsWokenBy(call, callers);
        call.dropUnsent();
    }

    /** No thread can be had for the looks. A caller that waits already is woken, as it has no time-out of its own. */
    @Test
    void whoCannotBeLookedAfterIsToldSo() throws Exception {
        ScheduledThreadPoolExecutor timer = timer();
        ThreadFactory before = timer.getThreadFactory();
        timer.setKeepAliveTime(1, TimeUnit.MILLISECONDS);
        try {
            await().until(() -> timer.getQueue().isEmpty() && timer.getPoolSize() == 0);
            timer.setThreadFactory(task -> {
                throw new OutOfMemoryError("no thread, in this test");
            });
            OverdueCallers callers = connection().overdueCallers;
            ClientCall call = connection().slots.acquire(connection().nanoTime());
            for (int i = 0; i < 2; i++) {
                assertIsWokenBy(
                        call, () -> assertThat(callers.lookAfterCallers()).isFalse());
                assertIsWokenBy(call, callers);
            }
            call.dropUnsent();
        } finally {
            timer.getQueue().clear();
            timer.setThreadFactory(before);
            timer.setKeepAliveTime(10, TimeUnit.SECONDS);
        }
    }
}
