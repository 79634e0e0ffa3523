package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.CallFuture;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

/** Tests what interceptors see of the stage that a handler returns. */
class DetachableStageTest {
    private final CompletableFuture<String> source = new CompletableFuture<>();
    private final DetachableStage seen = new DetachableStage(source);

    @Test
    void itEndsWithTheHandlersStageAndAsThatDoes() {
        seen.begin();
        assertThat(seen).isNotDone();
        source.complete("1");
        assertThat(seen).isCompletedWithValue("1");
        DetachableStage other =
                new DetachableStage(CompletableFuture.failedFuture(new IllegalStateException("failed")));
        other.begin();
        assertThatThrownBy(other::join).hasRootCauseMessage("failed");
    }

    @Test
    void beforeItsBeginItWaitsForNothing() {
        source.complete("1");
        assertThat(seen).isNotDone();
    }

    @Test
    void whereItIsGivenUpNothingOfItIsAtTheHandlersStage() {
        seen.begin();
        assertThat(Stages.waiting(source)).isEqualTo(1);
        seen.giveUp();
        assertThat(Stages.waiting(source)).isZero();
        source.complete("1");
        assertThat(seen).isNotDone();
        seen.run();
        assertThatThrownBy(seen::join).hasRootCauseInstanceOf(RPCXException.class);
        assertThat(seen).isCompletedExceptionally();
    }

    @Test
    void itsHookIsThatOfTheHandlersStage() {
        seen.begin();
        assertThat(seen.hook()).isNotNull();
        DetachableStage second = new DetachableStage(source);
        second.begin();
        assertThat(second.hook()).isNull();
    }

    /** Otherwise a call would hand its charge to a hook that hangs on no stage. */
    @Test
    void aStageThatTakesNobodyIsNotWaitedFor() {
        CompletableFuture<String> refusing = new CompletableFuture<>() {
            @Override
            public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> told) {
                throw new IllegalStateException("on purpose");
            }
        };
        HandledContext call = PendingResultTest.context();
        assertThatThrownBy(() -> call.own(refusing)).hasMessage("on purpose");
        assertThat(Stages.waiting(refusing)).isZero();
        assertThat(call.giveUp()).isEmpty();
    }

    @Test
    void aCancelOfTheCallReachesOnlyACallThatWasMadeForIt() {
        HandledContext call = PendingResultTest.context();
        seen.cancelSource(call);
        assertThat(source).isNotDone();
        CallFuture<String> own = call.call(CallFuture::new);
        DetachableStage stage = new DetachableStage(own);
        stage.begin();
        stage.cancelSource(PendingResultTest.context());
        assertThat(own).isNotDone();
        DetachableStage others = new DetachableStage(own);
        others.begin();
        stage.cancelSource(call);
        assertThat(own).isNotDone();
        others.giveUp();
        stage.cancelSource(call);
        assertThat(own).isCancelled();
    }

    /** A handler makes the call, and returns its future, after its own call has been cancelled. */
    @Test
    void aCallThatAHandlerBringsAfterTheCancelOfItsOwnIsCancelledToo() {
        HandledContext call = PendingResultTest.context();
        CallFuture<String> before = call.call(CallFuture::new);
        call.own(before);
        assertThat(call.cancel()).hasSize(1);
        assertThat(before)
                .as("whoever has cancelled the call is about to tell it")
                .isNotDone();
        CallFuture<String> behind = call.call(CallFuture::new);
        CallFuture<String> ofOthers = PendingResultTest.context().call(CallFuture::new);
        CompletionStage<?> seen = call.own(behind);
        call.own(ofOthers);
        assertThat(behind).isCancelled();
        assertThat(seen.toCompletableFuture()).isCompletedExceptionally();
        assertThat(ofOthers).isNotDone();
        call.giveUp();
        CallFuture<String> late = call.call(CallFuture::new);
        call.own(late);
        assertThat(late).isCancelled();
    }

    @Test
    void aCallThatAHandlerBringsForACallThatEndsInGoodTimeIsLeftAlone() {
        HandledContext call = PendingResultTest.context();
        CallFuture<String> own = call.call(CallFuture::new);
        call.own(own);
        call.giveUp();
        CallFuture<String> behind = call.call(CallFuture::new);
        call.own(behind);
        assertThat(own).isNotDone();
        assertThat(behind).isNotDone();
    }

    @Test
    void anInterceptorMayCancelBoth() {
        assertThat(seen.cancel(true)).isTrue();
        assertThat(seen).isCancelled();
        assertThat(source).isCancelled();
        assertThat(new DetachableStage(new CompletableFuture<>()).cancel(false)).isTrue();
        CompletionStage<String> unasked = source.minimalCompletionStage();
        assertThat(new DetachableStage(unasked).cancel(true)).isTrue();
        DetachableStage ended = new DetachableStage(CompletableFuture.completedFuture("1"));
        ended.begin();
        assertThat(ended.cancel(true)).as("it has ended").isFalse();
    }
}
