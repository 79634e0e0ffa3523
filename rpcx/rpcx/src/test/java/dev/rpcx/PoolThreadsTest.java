package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.server.PoolShares;
import dev.rpcx.internal.server.Threads;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests how many threads the pool of a server has. */
@Timeout(60)
class PoolThreadsTest {
    private static final int POOL_SIZE = 2;
    private static final int BURST = 40;
    private static final long IDLE_MILLIS = 500;

    private final Threads threads = new Threads(POOL_SIZE, IDLE_MILLIS);
    private final EventLoop loop = new EmbeddedChannel().eventLoop();
    private final Ledger ledger = new Ledger("ledger under test", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final PoolShares.Share signals = threads.signals(loop, Objects.requireNonNull(ledger.open(null)));
    private final Set<Thread> seen = ConcurrentHashMap.newKeySet();

    @AfterEach
    void end() {
        threads.close();
        threads.awaitEnd(TimeUnit.SECONDS.toNanos(10));
    }

    private record Task(Runnable task) implements PoolShares.Task {
        @Override
        public void run() {
            task.run();
        }

        @Override
        public void refused(Throwable noThread) {
            throw new AssertionError(noThread);
        }
    }

    private static void pass(CountDownLatch latch) {
        try {
            assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private long alive() {
        return seen.stream().filter(Thread::isAlive).count();
    }

    /** A pool that goes on starting a thread for each task after a burst keeps as many as the burst had. */
    @Test
    void aBurstThatIsOverLeavesNoMoreThreadsThanThePoolHasByItself() {
        CountDownLatch begun = new CountDownLatch(BURST);
        CountDownLatch ends = new CountDownLatch(1);
        for (int i = 0; i < BURST; i++) {
            signals.run(new Task(() -> {
                seen.add(Thread.currentThread());
                begun.countDown();
                pass(ends);
            }));
        }
        pass(begun);
        assertThat(alive()).as("none waits for another").isEqualTo(BURST);
        ends.countDown();
        await().until(() -> alive() == 0);
        seen.clear();
        for (int i = 0; i < BURST; i++) {
            CountDownLatch over = new CountDownLatch(1);
            signals.run(new Task(() -> {
                seen.add(Thread.currentThread());
                over.countDown();
            }));
            pass(over);
        }
        assertThat(alive()).as("with some that are about to end").isLessThan(BURST / 4);
    }

    /** A thread that ends since it was idle does not see what is given just then. */
    @Test
    void noTaskWaitsForAThreadThatWasEnding() throws Exception {
        Threads hasty = new Threads(1, 1);
        CountDownLatch ends = new CountDownLatch(1);
        try {
            hasty.run(loop, RunOn.Place.POOL, () -> pass(ends));
            for (int i = 0; i < LongForm.of(2_000, 100_000); i++) {
                CountDownLatch over = new CountDownLatch(1);
                hasty.run(loop, RunOn.Place.POOL, over::countDown);
                assertThat(over.await(20, TimeUnit.SECONDS)).as("task %s", i).isTrue();
                // this is a little less or a little more than the time for which a thread may be idle
                long from = System.nanoTime();
                long idle = 970_000 + i % 120 * 1_000L;
                while (System.nanoTime() - from < idle) {
                    Thread.onSpinWait();
                }
            }
        } finally {
            ends.countDown();
            hasty.close();
            hasty.awaitEnd(TimeUnit.SECONDS.toNanos(10));
        }
    }

    /** The thread lives on, with the task that it was started with. */
    @Test
    void anIdleThreadHoldsNothingOfWhatItHasRun() {
        Threads patient = new Threads(1, 60_000);
        try {
            WeakReference<Object> held = ran(patient);
            await().until(() -> {
                System.gc();
                return held.refersTo(null);
            });
            assertThat(alive()).isOne();
        } finally {
            patient.close();
        }
    }

    private WeakReference<Object> ran(Threads on) {
        Object payload = new Object();
        on.signals(loop, Objects.requireNonNull(ledger.open(null))).run(new Task(() -> {
            seen.add(Thread.currentThread());
            assertThat(payload).isNotNull();
        }));
        await().until(() -> alive() == 1);
        return new WeakReference<>(payload);
    }
}
