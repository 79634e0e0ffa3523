package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The workers' own logic, with platform threads in the place of virtual ones: who waits for whom does not depend on the kind. */
@Timeout(60)
class VirtualWorkersTest {
    private static final int BURST = 300;

    private final Queue<Thread> started = new ConcurrentLinkedQueue<>();
    private final VirtualWorkers workers = new VirtualWorkers(starter());

    private MethodHandle starter() {
        try {
            return MethodHandles.lookup().bind(this, "start", MethodType.methodType(Thread.class, Runnable.class));
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    Thread start(Runnable worker) {
        Thread thread = new Thread(worker);
        thread.setDaemon(true);
        started.add(thread);
        thread.start();
        return thread;
    }

    @AfterEach
    void allWorkersEnd() throws InterruptedException {
        workers.close();
        for (Thread worker : started) {
            worker.join(10_000);
            assertThat(worker.isAlive()).as("a worker is alive after closing").isFalse();
        }
    }

    @Test
    void noTaskWaitsForAnotherThatBlocks() throws InterruptedException {
        for (int round = 0; round < 20; round++) {
            CountDownLatch allHaveBegun = new CountDownLatch(BURST);
            CountDownLatch allHaveEnded = new CountDownLatch(BURST);
            for (int i = 0; i < BURST; i++) {
                workers.run(() -> {
                    allHaveBegun.countDown();
                    await(allHaveBegun);
                    allHaveEnded.countDown();
                });
            }
            await(allHaveEnded);
        }
    }

    @Test
    void whatComesOneByOneIsRunByWorkersThatAreThere() throws InterruptedException {
        for (int i = 0; i < 10_000; i++) {
            CountDownLatch done = new CountDownLatch(1);
            workers.run(done::countDown);
            await(done);
        }
        assertThat(started.size()).as("workers for calls one at a time").isLessThan(10);
    }

    @Test
    void eachTaskRunsOnce() throws InterruptedException {
        int tasks = LongForm.of(400_000, 20_000_000);
        AtomicIntegerArray runs = new AtomicIntegerArray(tasks);
        CountDownLatch done = new CountDownLatch(tasks);
        for (int i = 0; i < tasks; i++) {
            int task = i;
            workers.run(() -> {
                runs.incrementAndGet(task);
                done.countDown();
                if (task % 1000 == 0) {
                    // some are still at work when the next ones come
                    Thread.yield();
                }
            });
            if (i % 64 == 0) {
                // now and then all are idle
                Thread.onSpinWait();
                if (i % 4096 == 0) {
                    awaitCount(done, tasks - i - 1);
                }
            }
        }
        await(done);
        for (int i = 0; i < tasks; i++) {
            if (runs.get(i) != 1) {
                throw new AssertionError("task " + i + " ran " + runs.get(i) + " times");
            }
        }
    }

    private static void awaitCount(CountDownLatch latch, long count) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (latch.getCount() > count && System.nanoTime() - end < 0) {
            Thread.onSpinWait();
        }
        assertThat(latch.getCount()).isEqualTo(count);
    }

    private static void await(CountDownLatch latch) {
        try {
            if (!latch.await(30, TimeUnit.SECONDS)) {
                throw new AssertionError(latch.getCount() + " have not come");
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
