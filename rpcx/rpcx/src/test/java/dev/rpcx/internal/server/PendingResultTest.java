package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.Metadata;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXFuture;
import dev.rpcx.internal.call.BoundFuture;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.LingeringCharge;
import dev.rpcx.internal.ledger.Resource;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests a result that a handler brings later, and what stays charged if nobody waits for the result. */
@Timeout(60)
class PendingResultTest {
    private static final long POOL_BYTES = 1024 * 1024;

    private final CompletableFuture<String> stage = new CompletableFuture<>();
    private final List<String> told = new ArrayList<>();
    private int looks;
    private final LostCalls lost = new LostCalls(() -> looks++);
    private final Ledger ledger =
            new Ledger("awaited", Map.of(Resource.OBJECT_BYTES, POOL_BYTES), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));

    @AfterEach
    void nothingIsLeft() {
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    private PendingResult pending(CompletionStage<?> of) {
        return new PendingResult(
                (value, thrown) ->
                        told.add(thrown == null ? String.valueOf(value) : String.valueOf(thrown.getMessage())),
                of,
                lost);
    }

    private long held() {
        return ledger.held(Resource.OBJECT_BYTES);
    }

    @Test
    void theFirstResultIsTakenAndNoOther() {
        PendingResult pending = pending(stage);
        assertThat(pending.isOpen()).isTrue();
        pending.begin();
        assertThat(pending.isOpen()).isTrue();
        stage.complete("1");
        assertThat(told).containsExactly("1");
        assertThat(pending.isOpen()).isFalse();
        pending.accept("2", null);
        assertThat(told).containsExactly("1");
        assertThat(pending.giveUp()).as("it has come").isFalse();
        assertThat(pending.isLost()).isFalse();
        assertThat(lost.isAny).isFalse();
    }

    @Test
    void aFailureIsAResultToo() {
        pending(stage).begin();
        stage.completeExceptionally(new IllegalStateException("failed"));
        assertThat(told).containsExactly("failed");
    }

    @Test
    void noResultIsTakenOfACallThatHasBeenGivenUpAndNothingOfItIsAtTheStage() {
        PendingResult pending = pending(stage);
        pending.begin();
        assertThat(Stages.waiting(stage)).isEqualTo(1);
        assertThat(pending.giveUp()).isTrue();
        assertThat(Stages.waiting(stage)).isZero();
        assertThat(pending.isOpen()).isFalse();
        assertThat(pending.giveUp()).as("a second time").isFalse();
        stage.complete("1");
        assertThat(told).isEmpty();
    }

    /** A future of a handler's own making, on which nothing can be hung. */
    private static final class Unwaitable extends CompletableFuture<String> {
        @Override
        public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> action) {
            throw new IllegalStateException("nobody waits for this");
        }
    }

    @Test
    void aStageThatCannotBeWaitedForFailsItsCall() {
        Unwaitable unwaitable = new Unwaitable();
        pending(unwaitable).begin();
        assertThat(told).containsExactly("nobody waits for this");
        assertThat(Stages.waiting(unwaitable)).isZero();
    }

    @Test
    void aCallIsFoundThoughWhoeverFailsOverItCannotTell() {
        RuntimeException injected = new IllegalStateException("by the test");
        LostCalls untold = new LostCalls(() -> {
            throw new StackOverflowError("injected");
        });
        PendingResult pending = new PendingResult(
                (value, thrown) -> {
                    throw injected;
                },
                stage,
                untold);
        assertThatThrownBy(() -> pending.accept("1", null)).isSameAs(injected);
        assertThat(pending.isLost()).isTrue();
        assertThat(untold.isAny).isTrue();
    }

    @Test
    void theLoopIsToldOfACallThatIsLost() {
        PendingResult pending = new PendingResult(
                (value, thrown) -> {
                    throw new IllegalStateException("by the test");
                },
                stage,
                lost);
        assertThatThrownBy(() -> pending.accept("1", null)).hasMessage("by the test");
        assertThat(looks).isEqualTo(1);
        assertThat(lost.isAny).isTrue();
    }

    private static int down(int frames) {
        return frames == 0 ? 0 : down(frames - 1) + 1;
    }

    /** Brings one result at the end of the stack, and others at each frame on the way back. */
    private static void bringUp(Queue<PendingResult> calls) {
        try {
            bringUp(calls);
        } catch (StackOverflowError end) {
            // the frame above has a little more room
        }
        PendingResult next = calls.poll();
        if (next != null) {
            next.accept("x", null);
        }
    }

    @Test
    void whoseStackIsNearlyAtItsEndFailsBeforeItHasTakenTheCall() throws Exception {
        List<PendingResult> all = new ArrayList<>();
        for (int i = 0; i < 1_000; i++) {
            all.add(new PendingResult((value, thrown) -> down(5), stage, lost));
        }
        // this runs once where there is room, so that no class is loaded at the end of the stack
        all.get(0).accept("x", null);
        Queue<PendingResult> calls = new ArrayDeque<>(all);
        Runnable bring = () -> {
            try {
                bringUp(calls);
            } catch (StackOverflowError end) {
                // the test wants this error to occur
            }
        };
        Thread thread = new Thread(null, bring, "deep", 240_000);
        thread.start();
        thread.join();
        assertThat(all).noneMatch(PendingResult::isLost);
        assertThat(all).as("of some the stack was at its end").anyMatch(PendingResult::isOpen);
        assertThat(all.get(all.size() - 1).isOpen()).as("the last had room").isFalse();
    }

    @Test
    void aCancelReachesACallThatWasMadeForTheOneCancelledAndNoOtherStage() {
        HandledContext call = context();
        CallFuture<String> own = call.call(CallFuture::new);
        PendingResult pending = pending(own);
        pending.begin();
        pending.cancel(context());
        assertThat(own).isNotDone();
        pending.cancel(call);
        assertThat(own).isCancelled();
        pending(stage).cancel(call);
        assertThat(stage).isNotDone();
        CallFuture<String> seen = call.call(CallFuture::new);
        pending(new DetachableStage(seen)).cancel(call);
        assertThat(seen).isCancelled();
        pending(new DetachableStage(stage)).cancel(call);
        assertThat(stage).isNotDone();
        CallFuture<String> nobodys = new CallFuture<>();
        pending(nobodys).cancel(call);
        assertThat(nobodys).isNotDone();
    }

    static HandledContext context() {
        return new HandledContext(0, Metadata.EMPTY, null, Ticker.systemTicker());
    }

    @Test
    void norOneForWhichOthersWait() throws Exception {
        HandledContext call = context();
        CallFuture<String> own = call.call(CallFuture::new);
        PendingResult pending = pending(own);
        pending.begin();
        PendingResult other = pending(own);
        other.begin();
        pending.cancel(call);
        assertThat(own).as("another call").isNotDone();
        other.giveUp();
        CompletableFuture<Void> hung = CompletableFuture.allOf(own);
        pending.cancel(call);
        assertThat(own).as("a dependent").isNotDone();
        assertThat(hung).isNotDone();
        pending.giveUp();
        own.complete("1");
        CallFuture<String> waitedFor = call.call(CallFuture::new);
        Thread waiting = new Thread(waitedFor::join);
        waiting.start();
        org.awaitility.Awaitility.await().until(() -> waitedFor.getNumberOfDependents() == 1);
        pending(waitedFor).cancel(call);
        assertThat(waitedFor).as("a thread").isNotDone();
        waitedFor.complete("2");
        waiting.join();
    }

    @RPCXClient(remoteServerName = "shared")
    interface Loads {
        RPCXFuture<String> load(String key);
    }

    /** An interceptor that makes one call of several returns such a future. */
    @Test
    void norOneThatAProxyHandsOutAgainWhileItsFirstReceiverWaits() {
        HandledContext call = context();
        CallFuture<String> shared = call.call(CallFuture::new);
        CompletableFuture<Void> ofInterceptor = shared.thenRun(() -> {});
        try (Client client = Client.builder()
                .eventLoops(1)
                .interceptor((made, next) -> shared)
                .build()) {
            Loads loads = client.create(Loads.class, "127.0.0.1", 1);
            RPCXFuture<String> received = call.call(() -> loads.load("a"));
            assertThat(received).isSameAs(shared);
            assertThat(shared.isOnlyFor(call))
                    .as("what hangs on it is the client's")
                    .isTrue();
            CompletableFuture<Void> ofReceiver = received.thenRun(() -> {});
            assertThat(call.call(() -> loads.load("a"))).isSameAs(received);
            pending(received).cancel(call);
            assertThat(shared).as("a dependent of its first receiver").isNotDone();
            assertThat(ofInterceptor).isNotDone();
            assertThat(ofReceiver).isNotDone();
        }
    }

    @Test
    void norOneThatAProxyHasHandedToAnotherCall() {
        HandledContext call = context();
        CallFuture<String> shared = call.call(CallFuture::new);
        try (Client client = Client.builder()
                .eventLoops(1)
                .interceptor((made, next) -> shared)
                .build()) {
            Loads loads = client.create(Loads.class, "127.0.0.1", 1);
            RPCXFuture<String> received = call.call(() -> loads.load("a"));
            assertThat(context().call(() -> loads.load("a"))).isSameAs(received);
            pending(received).cancel(call);
            assertThat(shared).isNotDone();
        }
    }

    /** A future that somebody keeps when it has ended holds nothing of the call for which it was made. */
    @Test
    void aFutureThatHasEndedIsNobodysAnyMore() {
        HandledContext call = context();
        CallFuture<String> brought = call.call(CallFuture::new);
        CallFuture<String> failed = call.call(CallFuture::new);
        assertThat(brought.isOnlyFor(call)).isTrue();
        brought.succeed("1");
        failed.fail(new IllegalStateException());
        assertThat(brought.isOnlyFor(call)).isFalse();
        assertThat(failed.isOnlyFor(call)).isFalse();
    }

    // ---- charges that stay

    /** Returns a result that has waited for the stage and has been given up. */
    private PendingResult givenUp(CompletionStage<?> of) {
        PendingResult pending = pending(of);
        pending.begin();
        pending.giveUp();
        return pending;
    }

    @Test
    void whatAGivenUpCallHoldsIsChargedUntilItsStageEnds() {
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 5_000)).isTrue();
        assertThat(givenUp(stage).handOverCharge(account, List.of(), 5_000, 100, 7))
                .isFalse();
        assertThat(held()).isEqualTo(5_000 + PendingResult.MAX_LINGERING_BYTES + 7 + 100);
        stage.complete("1");
        assertThat(held()).isZero();
    }

    @Test
    void aPlaceIsHandedOverWhereNothingElseCanBeCharged() {
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 5_000)).isTrue();
        assertThat(account.tryCharge(Resource.CALLS, 1)).isTrue();
        long free = 0;
        while (account.tryCharge(Resource.OBJECT_BYTES, 100)) {
            free += 100;
        }
        assertThat(givenUp(stage).handOverCharge(account, List.of(), 5_000, 100, 0))
                .isTrue();
        assertThat(ledger.held(Resource.CALLS)).isEqualTo(1);
        account.release(Resource.OBJECT_BYTES, free);
        assertThat(held()).isEqualTo(5_000);
        stage.complete("1");
        assertThat(held()).isZero();
        assertThat(ledger.held(Resource.CALLS)).isZero();
    }

    private static void endUp(Queue<LingeringCharge> left) {
        try {
            endUp(left);
        } catch (StackOverflowError end) {
            // the frame above has a little more room
        }
        LingeringCharge next = left.poll();
        if (next != null) {
            next.end();
        }
    }

    /** A future may be completed at the end of a stack. What cannot be given back there is given back later. */
    @Test
    void whatIsGivenBackAtTheEndOfAStackIsGivenBackWholeOrNotAtAll() throws Exception {
        List<LingeringCharge> all = new ArrayList<>();
        for (int i = 0; i < 1_000; i++) {
            assertThat(account.tryCharge(Resource.OBJECT_BYTES, 8)).isTrue();
            all.add(account.addLingeringCharge(new Object(), 8, 0));
        }
        // this runs once where there is room, so that no class is loaded at the end of the stack
        all.get(0).end();
        Queue<LingeringCharge> left = new ArrayDeque<>(all);
        Thread thread = new Thread(
                null,
                () -> {
                    try {
                        endUp(left);
                    } catch (StackOverflowError end) {
                        // the test wants this error to occur
                    }
                },
                "deep",
                240_000);
        thread.start();
        thread.join();
        assertThat(held()).isEqualTo(8L * ledger.lingeringCharges());
        all.forEach(LingeringCharge::end);
        assertThat(held()).isZero();
    }

    @Test
    void ofAStageThatHasEndedNothingStays() {
        long free = 0;
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 5_000)).isTrue();
        while (account.tryCharge(Resource.OBJECT_BYTES, 100)) {
            free += 100;
        }
        PendingResult pending = givenUp(stage);
        stage.complete("1");
        assertThat(pending.handOverCharge(account, List.of(), 5_000, 100, 0)).isFalse();
        assertThat(held()).isEqualTo(free);
        account.release(Resource.OBJECT_BYTES, free);
    }

    @Test
    void whereAnotherCallsHookIsOnTheStageNothingStays() {
        givenUp(stage);
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 5_000)).isTrue();
        assertThat(givenUp(stage).handOverCharge(account, List.of(), 5_000, 100, 0))
                .isFalse();
        assertThat(held()).isZero();
    }

    /** A stage on which nothing can be hung, since the memory has ended. */
    private static final class Full extends BoundFuture<String> {
        @Override
        public void onEnd(BiConsumer<? super String, ? super Throwable> action) {
            throw new OutOfMemoryError("of this test");
        }
    }

    private void expectNothingStays(BooleanSupplier handOver) {
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 5_000)).isTrue();
        assertThatNoException()
                .isThrownBy(() -> assertThat(handOver.getAsBoolean()).isFalse());
        assertThat(held()).isZero();
    }

    /** Nobody would give the charge back. */
    @Test
    void whereNothingCanSayWhenAStageEndsNothingStays() {
        Thread.UncaughtExceptionHandler before = Thread.currentThread().getUncaughtExceptionHandler();
        List<Throwable> reported = new ArrayList<>();
        Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> reported.add(thrown));
        try {
            PendingResult pending = pending(new Full());
            pending.giveUp();
            expectNothingStays(() -> pending.handOverCharge(account, List.of(), 5_000, 100, 0));
            DetachableStage seen = new DetachableStage(new Full());
            seen.giveUp();
            expectNothingStays(() -> PendingResult.handOverChargeToOwn(account, List.of(seen), 5_000, 100, 0));
        } finally {
            Thread.currentThread().setUncaughtExceptionHandler(before);
        }
        assertThat(reported).hasSize(2).hasOnlyElementsOfType(OutOfMemoryError.class);
    }

    /** Interceptors may make a stage that never ends of one that does. */
    @Test
    void whatStaysGoesByTheHandlersOwnStageAndNotByThatOfAnInterceptor() {
        DetachableStage seen = new DetachableStage(stage);
        seen.begin();
        DetachableStage unused = new DetachableStage(new CompletableFuture<>());
        CompletableFuture<@Nullable Object> made = new CompletableFuture<>();
        PendingResult pending = givenUp(made);
        seen.giveUp();
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 5_000)).isTrue();
        assertThat(pending.handOverCharge(account, List.of(seen, unused), 5_000, 100, 0))
                .isFalse();
        assertThat(held()).isPositive();
        stage.complete("1");
        assertThat(held()).isZero();
        assertThat(made).isNotDone();
    }

    @Test
    void whatStaysGoesByAnInterceptorsStageWhereTheHandlersHasAnothersHook() {
        givenUp(stage);
        DetachableStage seen = new DetachableStage(stage);
        seen.begin();
        CompletableFuture<@Nullable Object> made = new CompletableFuture<>();
        PendingResult pending = givenUp(made);
        seen.giveUp();
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 5_000)).isTrue();
        assertThat(pending.handOverCharge(account, List.of(seen), 5_000, 100, 0))
                .isFalse();
        stage.complete("1");
        assertThat(held()).isPositive();
        made.complete("2");
        assertThat(held()).isZero();
    }
}
