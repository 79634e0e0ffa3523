package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.LongForm;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class WorkerPoolTest {
    private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    private static void pass(CountDownLatch latch) {
        try {
            assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void noTaskWaitsForAnotherAndIdleThreadsEnd() throws InterruptedException {
        WorkerPool pool = new WorkerPool("worker-", null, IDLE_NANOS);
        Set<Thread> seen = ConcurrentHashMap.newKeySet();
        for (int round = 0; round < 3; round++) {
            CountDownLatch met = new CountDownLatch(50);
            for (int i = 0; i < 50; i++) {
                pool.run(() -> {
                    seen.add(Thread.currentThread());
                    met.countDown();
                    pass(met);
                });
            }
            pass(met);
        }
        await().until(() -> seen.stream().noneMatch(Thread::isAlive));
        pool.close();
        pool.awaitEnd(TimeUnit.SECONDS.toNanos(10));
    }

    @Test
    void oneTaskAfterTheOtherHasFewThreads() {
        WorkerPool pool = new WorkerPool("worker-", null, IDLE_NANOS);
        Set<Thread> seen = ConcurrentHashMap.newKeySet();
        for (int i = 0; i < 5_000; i++) {
            CountDownLatch over = new CountDownLatch(1);
            pool.run(() -> {
                seen.add(Thread.currentThread());
                over.countDown();
            });
            pass(over);
        }
        // A second thread is started if the first one has not counted its task as ended yet.
        assertThat(seen).hasSizeLessThan(50);
        pool.close();
    }

    /** Many threads give tasks that give further tasks, while threads of the pool end all the time. */
    @Test
    void eachTaskRunsOnce() throws InterruptedException {
        WorkerPool pool = new WorkerPool("worker-", null, TimeUnit.MICROSECONDS.toNanos(50));
        int given = LongForm.of(16_000, 1_000_000);
        AtomicInteger ran = new AtomicInteger();
        CountDownLatch over = new CountDownLatch(given);
        for (int g = 0; g < 4; g++) {
            Thread giver = new Thread(() -> {
                for (int i = 0; i < given / 8; i++) {
                    pool.run(() -> {
                        ran.incrementAndGet();
                        pool.run(() -> {
                            ran.incrementAndGet();
                            over.countDown();
                        });
                        over.countDown();
                    });
                    if (ThreadLocalRandom.current().nextInt(100) == 0) {
                        Thread.yield();
                    }
                }
            });
            giver.start();
            giver.join(ThreadLocalRandom.current().nextInt(3));
        }
        pass(over);
        assertThat(ran).hasValue(given);
        pool.close();
        pool.awaitEnd(TimeUnit.SECONDS.toNanos(10));
    }

    @Test
    void aTaskThatThrowsTakesItsThreadAlongAndNothingElse() {
        WorkerPool pool = new WorkerPool("worker-", null, IDLE_NANOS);
        AtomicInteger told = new AtomicInteger();
        for (int i = 0; i < 20; i++) {
            pool.run(() -> {
                Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> told.incrementAndGet());
                throw new IllegalStateException("on purpose");
            });
        }
        await().until(() -> told.get() == 20);
        CountDownLatch met = new CountDownLatch(3);
        for (int i = 0; i < 3; i++) {
            pool.run(() -> {
                met.countDown();
                pass(met);
            });
        }
        pass(met);
        pool.close();
    }

    @Test
    void aPoolThatIsClosedInterruptsWhatRunsAndTakesNoMore() throws InterruptedException {
        WorkerPool pool = new WorkerPool("worker-", null, TimeUnit.MINUTES.toNanos(1));
        CountDownLatch runs = new CountDownLatch(1);
        CountDownLatch interrupted = new CountDownLatch(1);
        Set<Thread> seen = ConcurrentHashMap.newKeySet();
        pool.run(() -> seen.add(Thread.currentThread()));
        pool.run(() -> {
            seen.add(Thread.currentThread());
            runs.countDown();
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException e) {
                interrupted.countDown();
            }
        });
        pass(runs);
        pool.close();
        pass(interrupted);
        pool.awaitEnd(TimeUnit.SECONDS.toNanos(10));
        await().until(() -> seen.stream().noneMatch(Thread::isAlive));
        assertThatThrownBy(() -> pool.run(() -> {})).isInstanceOf(RejectedExecutionException.class);
    }
}
