package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests several calls that wait for a stage through one hook. Each of them learns of the end once, and not at all
 * if it has stopped waiting before.
 */
@Timeout(60)
class StagesTest {
    private final CompletableFuture<String> stage = new CompletableFuture<>();
    private final List<String> told = new ArrayList<>();

    private final class Waiting extends Stages.Waiter {
        private final String name;
        private Runnable then = () -> {};

        Waiting(String name) {
            this.name = name;
        }

        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            told.add(name + (thrown == null ? value : thrown.getMessage()));
            then.run();
        }
    }

    private Waiting waiting(String name) {
        Waiting waiter = new Waiting(name);
        waiter.await(stage);
        return waiter;
    }

    @Test
    void allWhoWaitAreToldInTheirOrderByOneHook() {
        waiting("a");
        waiting("b");
        waiting("c");
        assertThat(stage.getNumberOfDependents()).isEqualTo(1);
        assertThat(Stages.waiting(stage)).isEqualTo(3);
        assertThat(Stages.hung()).isPositive();
        stage.complete("1");
        assertThat(told).containsExactly("a1", "b1", "c1");
        assertThat(Stages.waiting(stage)).isZero();
    }

    @Test
    void theyHearOfAFailureToo() {
        waiting("a");
        stage.completeExceptionally(new IllegalStateException(" failed"));
        assertThat(told).containsExactly("a failed");
    }

    @Test
    void whoComesWhenTheStageHasEndedIsToldAtOnce() {
        stage.complete("1");
        waiting("a");
        assertThat(told).containsExactly("a1");
        // this stage cannot be asked whether it has ended
        new Waiting("b").await(CompletableFuture.completedStage("2"));
        assertThat(told).containsExactly("a1", "b2");
    }

    @Test
    void onlyAPlainFutureAndOnesOfThisLibraryAreAskedWhetherTheyHaveEnded() {
        assertThat(Stages.isDone(stage)).isFalse();
        stage.complete("1");
        assertThat(Stages.isDone(stage)).isTrue();
        assertThat(Stages.isDone(CompletableFuture.completedStage("2"))).isFalse();
        CallFuture<String> own = new CallFuture<>();
        assertThat(Stages.isDone(own)).isFalse();
        own.complete("3");
        assertThat(Stages.isDone(own)).isTrue();
        CompletableFuture<String> other = new CompletableFuture<>() {};
        other.complete("4");
        assertThat(Stages.isDone(other)).isFalse();
    }

    @Test
    void whoStopsWaitingIsNotToldWhicheverItIs() {
        for (int stopped = 0; stopped < 1 << 4; stopped++) {
            CompletableFuture<String> one = new CompletableFuture<>();
            List<Waiting> all =
                    IntStream.range(0, 4).mapToObj(i -> new Waiting(i + " ")).toList();
            all.forEach(each -> each.await(one));
            List<String> rest = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                if ((stopped & 1 << i) == 0) {
                    rest.add(i + " x");
                } else {
                    all.get(i).stopWaiting();
                }
            }
            assertThat(Stages.waiting(one)).isEqualTo(rest.size());
            told.clear();
            one.complete("x");
            assertThat(told).isEqualTo(rest);
        }
    }

    @Test
    void inWhateverOrderTheyBeginAndStopWaitingTheOthersAreTold() {
        SplittableRandom random = new SplittableRandom(11);
        List<Waiting> here = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            if (here.isEmpty() || random.nextInt(5) < 3) {
                here.add(waiting(i + " "));
            } else {
                Waiting stopping = here.remove(random.nextInt(here.size()));
                stopping.stopWaiting();
                // the second time has no effect
                stopping.stopWaiting();
            }
            assertThat(Stages.waiting(stage)).isEqualTo(here.size());
        }
        stage.complete("x");
        assertThat(told).isEqualTo(here.stream().map(each -> each.name + "x").toList());
    }

    @Test
    void whoHasStoppedWaitingBeforeItComesToTheHookIsNotTold() {
        Waiting waiter = new Waiting("a");
        waiter.stopWaiting();
        waiter.await(stage);
        assertThat(Stages.waiting(stage)).isZero();
        stage.complete("1");
        assertThat(told).isEmpty();
    }

    @Test
    void whoIsToldMayHaveOthersStopWaitingAndStopItself() {
        Waiting first = waiting("a");
        Waiting second = waiting("b");
        waiting("c");
        first.then = () -> {
            first.stopWaiting();
            second.stopWaiting();
        };
        stage.complete("1");
        assertThat(told).containsExactly("a1", "c1");
    }

    @Test
    void whoIsToldMayWaitForTheSameStageAgain() {
        Waiting first = waiting("a");
        waiting("b");
        first.then = () -> new Waiting("again").await(stage);
        stage.complete("1");
        assertThat(told).containsExactly("a1", "again1", "b1");
    }

    @Test
    void theOthersAreToldWhateverOneThrowsAndItIsReported() {
        RuntimeException injected = new IllegalStateException("by the test");
        waiting("a").then = () -> {
            throw injected;
        };
        waiting("b");
        List<Throwable> reported = new ArrayList<>();
        Thread thread = Thread.currentThread();
        Thread.UncaughtExceptionHandler before = thread.getUncaughtExceptionHandler();
        thread.setUncaughtExceptionHandler((where, thrown) -> reported.add(thrown));
        try {
            stage.complete("1");
        } finally {
            thread.setUncaughtExceptionHandler(before);
        }
        assertThat(told).containsExactly("a1", "b1");
        assertThat(reported).containsExactly(injected);
    }

    @Test
    void theHookBelongsToWhoeverHasHungIt() {
        Waiting first = waiting("a");
        Waiting second = waiting("b");
        assertThat(first.hook(stage)).isNotNull();
        assertThat(second.hook(stage)).isNull();
        first.stopWaiting();
        assertThat(first.hook(stage)).as("also when it waits no longer").isNotNull();
    }

    @Test
    void whoHasStoppedWaitingBeforeItCameHangsAHookWhereNoneIs() {
        Waiting waiter = new Waiting("a");
        waiter.stopWaiting();
        assertThat(waiter.hook(stage)).isNotNull();
        assertThat(stage.getNumberOfDependents()).isEqualTo(1);
        assertThat(waiter.hook(stage)).as("it is there").isNull();
        assertThat(stage.getNumberOfDependents()).isEqualTo(1);
    }

    /** An event loop asks for the hook as it gives a call up, and must not do work of the stage. */
    @Test
    void butNotOnAStageThatMayWorkThen() {
        AtomicInteger worked = new AtomicInteger();
        CompletableFuture<String> works = new CompletableFuture<>() {
            @Override
            public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> told) {
                worked.incrementAndGet();
                return super.whenComplete(told);
            }
        };
        Waiting waiter = new Waiting("a");
        waiter.stopWaiting();
        assertThat(waiter.hook(works)).isNull();
        assertThat(worked).hasValue(0);
        waiter.await(works);
        assertThat(worked).hasValue(1);
    }

    /** Two threads that look for the entry of a stage at the same time each make one. */
    @Test
    void allEntriesOfAStageAreOneAndThoseOfTwoStagesAreTwo() {
        Stages.Entry entry = new Stages.Entry(stage);
        Stages.Entry again = new Stages.Entry(stage);
        CompletableFuture<String> other = new CompletableFuture<>();
        assertThat(entry).isEqualTo(again).hasSameHashCodeAs(again);
        assertThat(entry).isNotEqualTo(new Stages.Entry(other)).isNotEqualTo(stage);
        entry.clear();
        assertThat(entry).as("nobody can reach its stage").isEqualTo(entry).isNotEqualTo(again);
        assertThat(again).isNotEqualTo(entry);
        again.clear();
        assertThat(entry).isNotEqualTo(again);
    }

    /** The entry was found before the stage ended. A waiter that is added later would never learn of the end. */
    @Test
    void nobodyIsAddedToAnEntryWhoseStageHasEnded() {
        Stages.Entry entry = new Stages.Entry(stage);
        Waiting first = new Waiting("a");
        assertThat(first.addAt(entry)).isTrue();
        assertThat(entry.next()).isSameAs(first);
        assertThat(entry.next()).isNull();
        assertThat(new Waiting("b").addAt(entry)).isFalse();
        Waiting gone = new Waiting("c");
        gone.stopWaiting();
        assertThat(gone.addAt(entry)).as("it has nothing to wait for").isTrue();
    }

    @Test
    void whatIsHandedOverStaysChargedUntilTheStageEndsAndNotAtAllWhereItHas() {
        Ledger ledger = new Ledger("stages", Map.of(), Map.of(), Integer.MAX_VALUE);
        Account account = Objects.requireNonNull(ledger.open(null));
        Stages.Hook hook = Objects.requireNonNull(waiting("a").hook(stage));
        account.tryCharge(Resource.OBJECT_BYTES, 100);
        hook.holdCharge(account.addLingeringCharge(hook, 100, 0));
        assertThat(ledger.held(Resource.OBJECT_BYTES)).isEqualTo(100);
        stage.complete("1");
        assertThat(ledger.held(Resource.OBJECT_BYTES)).isZero();
        account.tryCharge(Resource.OBJECT_BYTES, 200);
        hook.holdCharge(account.addLingeringCharge(hook, 200, 0));
        assertThat(ledger.held(Resource.OBJECT_BYTES)).isZero();
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    /** Each look for a stage takes out two stages that nobody can reach. */
    @Test
    void stagesThatNobodyCanReachAreForgottenByThoseThatComeLater() {
        int before = Stages.hung();
        for (int i = 0; i < 60; i++) {
            new Waiting("gone").await(new CompletableFuture<>());
        }
        List<byte[]> garbage = new ArrayList<>();
        await().until(() -> {
            System.gc();
            // this makes the collector run even where System.gc() does nothing
            for (int i = 0; i < 1_000; i++) {
                garbage.add(new byte[32 << 10]);
                if (garbage.size() == 50) {
                    garbage.clear();
                }
            }
            for (int i = 0; i < 30; i++) {
                new Waiting("next").await(stage);
            }
            return Stages.hung() <= before + 30;
        });
        stage.complete("1");
    }
}
