package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.ThreadMXBean;
import dev.rpcx.JvmProcess;
import dev.rpcx.LongForm;
import io.netty.util.concurrent.Ticker;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Constructor;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests the logic of the virtual workers with platform threads instead of virtual ones. Which task waits for which
 * other does not depend on the kind of thread.
 */
@Timeout(60)
class VirtualWorkersTest {
    private static final int BURST = 300;

    private final Queue<Thread> started = new ConcurrentLinkedQueue<>();
    private final VirtualWorkers workers = new VirtualWorkers(this::start, Ticker.systemTicker());

    private final ThreadMXBean memory = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** The number of bytes that the thread of the last worker had allocated when the worker began. */
    private volatile long allocated;

    private volatile boolean startsFail;

    /** Whether the start of a worker fails after its thread has been started. */
    private volatile boolean startsFailLate;

    private volatile CountDownLatch untilStartFails = new CountDownLatch(0);
    private volatile CountDownLatch mayBegin = new CountDownLatch(0);

    Thread start(Runnable worker) {
        if (startsFail) {
            throw new RejectedExecutionException("no thread can be started");
        }
        CountDownLatch gate = mayBegin;
        Thread thread = new Thread(() -> {
            await(gate);
            allocated = memory.getCurrentThreadAllocatedBytes();
            worker.run();
        });
        thread.setDaemon(true);
        started.add(thread);
        thread.start();
        if (startsFailLate) {
            await(untilStartFails);
            throw new RejectedExecutionException("no other thread can be started");
        }
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
                    // some tasks still run when the next ones come
                    Thread.yield();
                }
            });
            if (i % 64 == 0) {
                // all workers are idle now and then
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

    @Test
    void whatATaskLeavesOnItsThreadDoesNotMeetTheNext() throws InterruptedException {
        for (int i = 0; i < 100; i++) {
            CountDownLatch left = new CountDownLatch(1);
            workers.run(() -> {
                Thread worker = Thread.currentThread();
                worker.interrupt();
                worker.setContextClassLoader(null);
                worker.setName("left behind");
                left.countDown();
            });
            await(left);
            Queue<String> met = new ConcurrentLinkedQueue<>();
            CountDownLatch looked = new CountDownLatch(1);
            workers.run(() -> {
                Thread worker = Thread.currentThread();
                if (worker.isInterrupted()) {
                    met.add("an interrupt");
                }
                if (worker.getContextClassLoader() == null) {
                    met.add("a class loader");
                }
                if (worker.getName().equals("left behind")) {
                    met.add("a name");
                }
                looked.countDown();
            });
            await(looked);
            assertThat(met).isEmpty();
        }
    }

    @Test
    void anIdleWorkerRestsAlsoWhenItHasBeenInterrupted() throws InterruptedException {
        CountDownLatch left = new CountDownLatch(1);
        workers.run(() -> {
            Thread.currentThread().interrupt();
            left.countDown();
        });
        await(left);
        awaitRestOfAll();
        started.forEach(Thread::interrupt);
        awaitRestOfAll();
    }

    /** A thread whose interrupt flag is set cannot rest: each attempt to park ends at once. */
    private void awaitRestOfAll() {
        Awaitility.await()
                .untilAsserted(() -> assertThat(started)
                        .allSatisfy(worker -> assertThat(worker.isInterrupted()).isFalse())
                        .allSatisfy(worker -> assertThat(worker.getState()).isEqualTo(Thread.State.WAITING)));
    }

    @Test
    void aWorkerWhoseTaskThrewAnErrorGoesOn() throws InterruptedException {
        Queue<Throwable> told = new ConcurrentLinkedQueue<>();
        for (int i = 0; i < 1_000; i++) {
            CountDownLatch thrown = new CountDownLatch(1);
            AssertionError error = new AssertionError("thrown by a task, number " + i);
            workers.run(() -> {
                Thread.currentThread().setUncaughtExceptionHandler((thread, t) -> told.add(t));
                thrown.countDown();
                throw error;
            });
            await(thrown);
        }
        CountDownLatch done = new CountDownLatch(1);
        workers.run(done::countDown);
        await(done);
        assertThat(started.size()).as("workers for tasks one at a time").isLessThan(10);
        Awaitility.await().until(() -> told.size() == 1_000);
    }

    @Test
    void whereNoWorkerCanBeStartedTheOneThatIsThereRunsWhatIsQueued() throws InterruptedException {
        CountDownLatch done = new CountDownLatch(100);
        mayBegin = new CountDownLatch(1);
        workers.run(() -> {
            // the task takes longer than a worker's time slice, so that the worker would hand the rest to another
            for (long end = System.nanoTime() + 1_000_000; System.nanoTime() - end < 0; ) {
                Thread.onSpinWait();
            }
        });
        for (int i = 0; i < 100; i++) {
            workers.run(done::countDown);
        }
        startsFail = true;
        mayBegin.countDown();
        await(done);
        startsFail = false;
        awaitRestOfAll();
        assertThat(started).hasSize(1);
    }

    @Test
    void aTaskThatCouldNotBeGivenToAWorkerIsRefusedAndNeverRuns() throws InterruptedException {
        startsFail = true;
        CountDownLatch refused = new CountDownLatch(1);
        assertThatThrownBy(() -> workers.run(refused::countDown)).isInstanceOf(RejectedExecutionException.class);
        startsFail = false;
        CountDownLatch done = new CountDownLatch(1);
        workers.run(done::countDown);
        await(done);
        awaitRestOfAll();
        assertThat(refused.getCount()).isOne();
    }

    /** A thread may be queued for a processor although its start throws, since no further thread can be had. */
    @Test
    void aWorkerWhoseStartHasFailedRunsNothingWhenItComesAllTheSame() throws InterruptedException {
        mayBegin = new CountDownLatch(1);
        startsFailLate = true;
        AtomicInteger runs = new AtomicInteger();
        Runnable task = runs::incrementAndGet;
        assertThatThrownBy(() -> workers.run(task)).isInstanceOf(RejectedExecutionException.class);
        startsFailLate = false;
        CountDownLatch comesLate = mayBegin;
        mayBegin = new CountDownLatch(0);
        workers.run(task);
        Awaitility.await().until(() -> runs.get() == 1);
        comesLate.countDown();
        started.element().join(10_000);
        assertThat(started.element().isAlive())
                .as("a worker that has nothing to run is alive")
                .isFalse();
        assertThat(runs).hasValue(1);
        CountDownLatch done = new CountDownLatch(1);
        workers.run(done::countDown);
        await(done);
    }

    @Test
    void aTaskThatAWorkerHasBegunIsNotRefusedWhereItsStartFails() throws InterruptedException {
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        startsFailLate = true;
        untilStartFails = begun;
        workers.run(() -> {
            begun.countDown();
            await(mayEnd);
        });
        startsFailLate = false;
        // this task does not wait for the one that blocks, since the worker has handed the mark on
        CountDownLatch done = new CountDownLatch(1);
        workers.run(done::countDown);
        await(done);
        mayEnd.countDown();
    }

    @Test
    void aWorkerThatCouldNotBeWokenRunsNothingWhenItComesAllTheSame() throws Exception {
        assertThat(askWoken("queued")).isEqualTo("refused, run once");
    }

    @Test
    void aTaskThatAWorkerHasBegunIsNotRefusedWhereItsWakeFails() throws Exception {
        assertThat(askWoken("begun")).isEqualTo("taken, run once");
    }

    private static String askWoken(String line) throws Exception {
        int jdk = Runtime.version().feature();
        assumeTrue(jdk >= 21 && jdk <= 25, "virtual threads with a scheduler of their own");
        try (JvmProcess process =
                JvmProcess.start(List.of("--add-opens", "java.base/java.lang=ALL-UNNAMED"), OwnScheduler.class)) {
            return process.ask(line);
        }
    }

    /**
     * Workers on virtual threads whose carriers the test provides. To wake a worker may throw although the worker is
     * queued, as it does in JDK 21 to 23 where no carrier can be started.
     */
    static final class OwnScheduler {
        private static final AtomicReference<Executor> SCHEDULER = new AtomicReference<>(OwnScheduler::onCarrier);
        private static final Queue<Thread> WORKERS = new ConcurrentLinkedQueue<>();

        public static void main(String[] args) throws IOException {
            JvmProcess.answer(OwnScheduler::fail);
        }

        private static void onCarrier(Runnable continuation) {
            Thread carrier = new Thread(continuation);
            carrier.setDaemon(true);
            carrier.start();
        }

        private static void start(Runnable worker) {
            try {
                Constructor<?> constructor = Class.forName("java.lang.VirtualThread")
                        .getDeclaredConstructor(Executor.class, String.class, int.class, Runnable.class);
                constructor.setAccessible(true);
                Executor scheduler = task -> SCHEDULER.get().execute(task);
                Thread made = (Thread) constructor.newInstance(scheduler, "worker", 0, worker);
                WORKERS.add(made);
                made.start();
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        }

        private static String fail(String when) {
            VirtualWorkers workers = new VirtualWorkers(OwnScheduler::start, Ticker.systemTicker());
            CountDownLatch first = new CountDownLatch(1);
            workers.run(first::countDown);
            VirtualWorkersTest.await(first);
            Awaitility.await().until(() -> WORKERS.element().getState() == Thread.State.WAITING);
            Queue<Runnable> queued = new ConcurrentLinkedQueue<>();
            AtomicInteger runs = new AtomicInteger();
            SCHEDULER.set(continuation -> {
                if (when.equals("begun")) {
                    onCarrier(continuation);
                    Awaitility.await().until(() -> runs.get() == 1);
                } else {
                    queued.add(continuation);
                }
                throw new RejectedExecutionException("no carrier can be started");
            });
            Runnable task = runs::incrementAndGet;
            String told;
            try {
                workers.run(task);
                told = "taken";
            } catch (RejectedExecutionException e) {
                told = "refused";
            }
            SCHEDULER.set(OwnScheduler::onCarrier);
            if (told.equals("refused")) {
                // a client may make a refused call again, and its task may be the same object again
                workers.run(task);
                Awaitility.await().until(() -> runs.get() == 1);
            }
            queued.forEach(OwnScheduler::onCarrier);
            CountDownLatch last = new CountDownLatch(1);
            workers.run(last::countDown);
            VirtualWorkersTest.await(last);
            workers.close();
            Awaitility.await().until(() -> WORKERS.stream().noneMatch(Thread::isAlive));
            return told + ", run " + (runs.get() == 1 ? "once" : runs + " times");
        }
    }

    /** The worker has the mark, and a task that nobody else has. An OutOfMemoryError there would lose both. */
    @Test
    void aWorkerTakesNoMemoryBetweenItsStartAndItsFirstTask() throws InterruptedException {
        AtomicLong least = new AtomicLong(Long.MAX_VALUE);
        CountDownLatch mayEnd = new CountDownLatch(1);
        // classes are loaded only as the first task runs
        for (int i = 0; i < 10; i++) {
            CountDownLatch begun = new CountDownLatch(1);
            workers.run(() -> {
                long bytes = memory.getCurrentThreadAllocatedBytes() - allocated;
                least.accumulateAndGet(bytes, Math::min);
                begun.countDown();
                await(mayEnd);
            });
            await(begun);
        }
        mayEnd.countDown();
        assertThat(started).hasSize(10);
        assertThat(least).hasValue(0);
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
