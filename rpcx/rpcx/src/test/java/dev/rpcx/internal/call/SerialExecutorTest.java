package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.io.LoopThread;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that the signals of one stream run one after the other, each of them once, whatever the signals and the
 * executor below do.
 */
@Timeout(60)
class SerialExecutorTest {
    private final List<String> ran = new ArrayList<>();
    private final List<Throwable> reported = new ArrayList<>();
    private Thread.UncaughtExceptionHandler before;

    @BeforeEach
    void listen() {
        before = Thread.currentThread().getUncaughtExceptionHandler();
        Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> reported.add(thrown));
    }

    @AfterEach
    void stopListening() {
        Thread.currentThread().setUncaughtExceptionHandler(before);
    }

    @Test
    void whatASignalHandsOverRunsBehindIt() {
        SerialExecutor serial = new SerialExecutor(null, Runnable::run);
        serial.execute(() -> {
            serial.execute(() -> ran.add("inner"));
            ran.add("outer");
        });
        serial.execute(() -> ran.add("next"));
        assertThat(ran).containsExactly("outer", "inner", "next");
    }

    @Test
    void aPlaceIsAskedOnceForAllThatWaits() {
        Queue<Runnable> handed = new ArrayDeque<>();
        SerialExecutor serial = new SerialExecutor(handed::add);
        serial.execute(() -> ran.add("one"));
        serial.execute(() -> ran.add("two"));
        assertThat(handed).hasSize(1);
        assertThat(ran).isEmpty();
        handed.remove().run();
        assertThat(ran).containsExactly("one", "two");
        serial.execute(() -> ran.add("three"));
        assertThat(handed).hasSize(1);
        handed.remove().run();
        assertThat(ran).containsExactly("one", "two", "three");
    }

    @Test
    void aPlaceIsGivenBackBeforeAllHasRunThatComesAgainAndAgain() {
        Queue<Runnable> handed = new ArrayDeque<>();
        SerialExecutor serial = new SerialExecutor(handed::add);
        boolean[] isOver = {false};
        serial.execute(new Runnable() {
            private int times;

            @Override
            public void run() {
                if (!isOver[0] && ++times < 1_000_000) {
                    serial.execute(this);
                }
            }
        });
        handed.add(() -> isOver[0] = true);
        handed.remove().run();
        assertThat(isOver[0]).isFalse();
        assertThat(handed).hasSize(2);
        handed.remove().run();
        assertThat(handed).hasSize(1);
        handed.remove().run();
        assertThat(handed).isEmpty();
    }

    @Test
    void whoeverGivesASignalRunsNoMoreThanSomeOfThoseThatComeAgainAndAgain() {
        Queue<Runnable> handed = new ArrayDeque<>();
        SerialExecutor serial = new SerialExecutor(null, handed::add);
        int[] times = {0};
        serial.execute(new Runnable() {
            @Override
            public void run() {
                if (++times[0] < 1_000) {
                    serial.execute(this);
                }
            }
        });
        assertThat(times[0]).isLessThan(200);
        assertThat(handed).hasSize(1);
        while (!handed.isEmpty()) {
            handed.remove().run();
        }
        assertThat(times[0]).isEqualTo(1_000);
        serial.execute(() -> ran.add("here"));
        assertThat(ran).containsExactly("here");
    }

    @Test
    void whatAPlaceTakesOnlyOnceRunsToItsEnd() {
        Queue<Runnable> handed = new ArrayDeque<>();
        SerialExecutor serial = new SerialExecutor(signal -> {
            if (!handed.isEmpty()) {
                throw new IllegalStateException("once");
            }
            handed.add(signal);
        });
        for (int i = 0; i < 1_000; i++) {
            serial.execute(() -> ran.add("x"));
        }
        handed.element().run();
        assertThat(ran).hasSize(1_000);
    }

    @Test
    void whatComesAtTheEndWaitsForWhatRuns() {
        Queue<Runnable> handed = new ArrayDeque<>();
        SerialExecutor serial = new SerialExecutor(handed::add);
        serial.atEnd(() -> ran.add("idle"));
        assertThat(ran).containsExactly("idle");
        serial.execute(() -> ran.add("signal"));
        serial.atEnd(() -> ran.add("end"));
        assertThat(ran).containsExactly("idle");
        handed.remove().run();
        assertThat(ran).containsExactly("idle", "signal", "end");
    }

    @Test
    void whatComesAtTheEndComesWhereNoThreadIsToBeHad() {
        SerialExecutor serial = new SerialExecutor(signal -> {
            throw new IllegalStateException("none");
        });
        assertThatThrownBy(() -> serial.execute(() -> ran.add("signal"))).isInstanceOf(IllegalStateException.class);
        serial.atEnd(() -> ran.add("end"));
        assertThat(ran).containsExactly("end");
    }

    @Test
    void aPlaceThatRunsWhatItTookOnceMoreChangesNothing() {
        Queue<Runnable> handed = new ArrayDeque<>();
        SerialExecutor serial = new SerialExecutor(handed::add);
        serial.execute(() -> {
            serial.execute(() -> ran.add("inner"));
            handed.element().run();
            ran.add("outer");
        });
        Runnable first = handed.element();
        first.run();
        first.run();
        assertThat(ran).containsExactly("outer", "inner");
    }

    /** The exception is logged, but at most once a minute, because a peer may cause it as often as it likes. */
    @Test
    void behindASignalThatThrowsTheNextRuns() {
        SerialExecutor serial = new SerialExecutor(null, Runnable::run);
        serial.execute(() -> {
            throw new AssertionError("first");
        });
        serial.execute(() -> ran.add("next"));
        assertThat(ran).containsExactly("next");
        assertThat(reported).isEmpty();
    }

    @Test
    void wherePlacesHaveEndedSignalsRunAtOnce() {
        SerialExecutor serial = new SerialExecutor(signal -> {
            throw new RejectedExecutionException("stopped");
        });
        serial.execute(() -> ran.add("one"));
        serial.execute(() -> ran.add("two"));
        assertThat(ran).containsExactly("one", "two");
    }

    @Test
    void whatAPlaceCouldNotTakeComesBeforeTheNextSignal() {
        AtomicInteger asked = new AtomicInteger();
        SerialExecutor serial = new SerialExecutor(signal -> {
            if (asked.incrementAndGet() == 1) {
                throw new OutOfMemoryError("of this test");
            }
            signal.run();
        });
        assertThatThrownBy(() -> serial.execute(() -> ran.add("one"))).isInstanceOf(OutOfMemoryError.class);
        assertThat(ran).isEmpty();
        serial.execute(() -> ran.add("two"));
        assertThat(ran).containsExactly("one", "two");
        assertThat(asked).hasValue(2);
    }

    @Test
    void whatEndsTheRunItselfDoesNotEndTheSerial() {
        Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> {
            throw new IllegalStateException(thrown);
        });
        SerialExecutor serial = new SerialExecutor(null, Runnable::run);
        serial.execute(() -> {
            throw new IllegalArgumentException();
        });
        serial.execute(() -> ran.add("next"));
        assertThat(ran).containsExactly("next");
    }

    @Test
    void signalsOfManyThreadsNeverMeetAndNoneIsLost() throws Exception {
        int threads = 4;
        int each = 1_000;
        Executor pool = java.util.concurrent.ForkJoinPool.commonPool();
        SerialExecutor serial = new SerialExecutor(pool);
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger met = new AtomicInteger();
        int[] last = new int[threads];
        int[] count = new int[1];
        CompletableFuture<Void> all = new CompletableFuture<>();
        for (int t = 0; t < threads; t++) {
            int thread = t;
            new Thread(() -> {
                        for (int i = 1; i <= each; i++) {
                            int number = i;
                            serial.execute(() -> {
                                if (inside.incrementAndGet() != 1 || last[thread] != number - 1) {
                                    met.incrementAndGet();
                                }
                                last[thread] = number;
                                inside.decrementAndGet();
                                if (++count[0] == threads * each) {
                                    all.complete(null);
                                }
                            });
                        }
                    })
                    .start();
        }
        all.get(30, TimeUnit.SECONDS);
        assertThat(met).hasValue(0);
    }

    /** A signal may come after a run's last check for one and before its end. No other run hands it over then. */
    @Test
    void aSignalThatComesAsARunEndsIsNotLost() {
        ExecutorService place = Executors.newSingleThreadExecutor();
        try {
            SerialExecutor serial = new SerialExecutor(place);
            AtomicInteger done = new AtomicInteger();
            long begin = System.nanoTime();
            for (int i = 1; i <= 20_000; i++) {
                serial.execute(done::incrementAndGet);
                while (done.get() < i && System.nanoTime() - begin < TimeUnit.SECONDS.toNanos(20)) {
                    Thread.onSpinWait();
                }
                assertThat(done).hasValue(i);
            }
        } finally {
            place.shutdownNow();
        }
    }

    @Test
    void anInterruptThatASignalLeavesOnAnEventLoopMeetsNobodyElse() throws InterruptedException {
        SerialExecutor serial = new SerialExecutor(null, Runnable::run);
        Thread loop = new LoopThread(
                () -> {
                    serial.execute(Thread.currentThread()::interrupt);
                    ran.add("interrupted: " + Thread.currentThread().isInterrupted());
                },
                "loop");
        loop.start();
        loop.join();
        assertThat(ran).containsExactly("interrupted: false");
    }
}
