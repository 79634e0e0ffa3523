package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import dev.rpcx.CallLogTest;
import dev.rpcx.Client;
import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import dev.rpcx.Metadata;
import dev.rpcx.Method;
import dev.rpcx.OneWay;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RawPeer;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests calls on the classic wire, and what their ends say about the server. The test acts as the server. */
class ClassicMethodTest {
    @RPCXClient(remoteServerName = "hand")
    interface Remote {
        CompletableFuture<String> echo(String text);

        @Method("echo")
        String blockingEcho(String text);

        @OneWay
        @Method("echo")
        void tell(String text);
    }

    private final HandPlatform hand = new HandPlatform();
    private final Client client = Inside.on(Client.builder().classic(), hand)
            .eventLoops(1)
            .circuitBreaker(0.5)
            .build();
    private final Remote remote = client.create(Remote.class, "peer", 1);
    private final List<CompletableFuture<?>> calls = new ArrayList<>();
    private @Nullable EmbeddedChannel channel;

    @AfterEach
    void nothingIsLeft() {
        if (channel != null) {
            hand.end(client, channel, calls);
        }
    }

    /** Makes a call, and returns the id of its request. */
    private long call() {
        calls.add(remote.echo("a"));
        channel = hand.opened.get(0);
        hand.settle(channel);
        ByteBuf request = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        return ClassicWire.readRequest(request.readSlice(request.readInt())).id();
    }

    private void answer(long id, @Nullable ByteBuf result, @Nullable RPCXException error) {
        byte[] reply = ClassicWire.reply(id, result, error);
        hand.read(Objects.requireNonNull(channel), reply, 0, reply.length);
    }

    private void answered() {
        answer(call(), RawPeer.text("b"), null);
    }

    private void failed() {
        long id = call();
        answer(
                id,
                null,
                new RPCXException(RPCXException.Code.OVERLOADED, "by the test", RPCXException.Executed.MAYBE, null));
    }

    private void cancelled() {
        call();
        calls.get(calls.size() - 1).cancel(true);
    }

    @Test
    void callsWhoseTimeGoesByWhileTheEventLoopIsHeldUpSayNothingOfTheServer() {
        for (int i = 0; i < 20; i++) {
            call();
        }
        hand.ticker.advance(1, TimeUnit.HOURS);
        hand.settle(Objects.requireNonNull(channel));
        assertThat(calls)
                .allSatisfy(call ->
                        assertThatThrownBy(call::join).hasMessageContaining("while the event loop was held up for"));
        calls.add(remote.echo("a"));
        hand.settle(hand.opened.get(hand.opened.size() - 1));
        assertThat(calls.get(20)).as("no circuit is open").isNotDone();
    }

    /** Makes calls as a handler that has a second left, and lets the second pass. */
    private void late(int count) {
        long deadline = hand.ticker.nanoTime() + TimeUnit.SECONDS.toNanos(1);
        for (int i = 0; i < count; i++) {
            CurrentCall.runIn(new TimedContext(deadline, Metadata.EMPTY, null, hand.ticker), this::call);
        }
        hand.pass(Objects.requireNonNull(channel), 1, TimeUnit.SECONDS);
        assertThat(calls.get(calls.size() - 1)).isCompletedExceptionally();
    }

    private boolean isCircuitOpen() {
        CompletableFuture<String> call = remote.echo("a");
        calls.add(call);
        hand.settle(Objects.requireNonNull(channel));
        HandPlatform.written(Objects.requireNonNull(channel));
        return call.handle((value, thrown) -> String.valueOf(thrown).contains("circuit"))
                .getNow(false);
    }

    /** The method takes five seconds, so that a call with one second says nothing of the server. */
    @Test
    void whatIsLateCountsNotWhereItHadLessTimeThanAnAnswerTakes() {
        long id = call();
        hand.pass(Objects.requireNonNull(channel), 5, TimeUnit.SECONDS);
        answer(id, RawPeer.text("b"), null);
        late(25);
        assertThat(isCircuitOpen()).isFalse();
    }

    @Test
    void whatIsLateBehindQuickAnswersCountsAsFailed() {
        answered();
        late(25);
        assertThat(isCircuitOpen()).isTrue();
    }

    @Test
    void aOneWayCallThatFailsAtOnceIsToldToItsCaller() {
        call();
        assertThatThrownBy(() -> remote.tell("x".repeat(Wire.MAX_MESSAGE_BYTES)))
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.TOO_LARGE));
    }

    private ClassicClientConnection connection() {
        return Objects.requireNonNull(Objects.requireNonNull(channel).pipeline().get(ClassicClientConnection.class));
    }

    @Test
    void aCallThatItsCallerHasCancelledIsForgottenByItsConnection() {
        call();
        assertThat(connection().callsInFlight()).isOne();
        calls.get(0).cancel(true);
        assertThat(connection().callsInFlight()).isZero();
    }

    /** There is no connection until the test settles the channel. */
    @Test
    void whatWaitsForAConnectionIsChargedUntilItIsSentOrItsCallerHasCancelled() {
        CompletableFuture<String> cancelled = remote.echo("x".repeat(1_000));
        CompletableFuture<String> sent = remote.echo("x".repeat(500));
        calls.add(cancelled);
        calls.add(sent);
        assertThat(Inside.core(client).waiting.held(Resource.REQUEST_BYTES)).isBetween(1_500L, 1_600L);
        cancelled.cancel(true);
        assertThat(Inside.core(client).waiting.held(Resource.REQUEST_BYTES)).isBetween(500L, 600L);
        channel = hand.opened.get(0);
        hand.settle(channel);
        assertThat(Inside.core(client).waiting.held(Resource.REQUEST_BYTES)).isZero();
        assertThat(connection().callsInFlight()).isOne();
        ByteBuf request = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        answer(ClassicWire.readRequest(request.readSlice(request.readInt())).id(), RawPeer.text("b"), null);
        assertThat(sent).isCompletedWithValue("b");
    }

    @Test
    void aTrialThatIsCancelledBeforeItIsSentIsTheNextCallsTrial() {
        for (int i = 0; i < 20; i++) {
            failed();
        }
        Objects.requireNonNull(channel).close();
        hand.pass(channel, 2, TimeUnit.SECONDS);
        CompletableFuture<String> trial = remote.echo("a");
        assertThat(trial).isNotDone();
        assertThatThrownBy(() -> remote.echo("a").join()).hasMessageContaining("circuit");
        trial.cancel(true);
        CompletableFuture<String> next = remote.echo("a");
        assertThat(next).as("the next trial").isNotDone();
        calls.add(trial);
        calls.add(next);
        channel = hand.opened.get(hand.opened.size() - 1);
        hand.settle(channel);
    }

    @Test
    void aOneWayCallThatFailsIsToldInTheLog() {
        CallLogTest.Lines told = new CallLogTest.Lines();
        Logger logger = Logger.getLogger(Client.class.getName());
        logger.addHandler(told);
        logger.setUseParentHandlers(false);
        try {
            call();
            remote.tell("a");
            hand.settle(Objects.requireNonNull(channel));
            ByteBuf request = Unpooled.wrappedBuffer(HandPlatform.written(channel));
            long id = ClassicWire.readRequest(request.readSlice(request.readInt()))
                    .id();
            assertThat(told.lines).isEmpty();
            answer(id, null, RPCXException.refused(RPCXException.Code.NOT_FOUND, "gone"));
            assertThat(told.lines).singleElement(STRING).contains("one-way call of hand/echo", "NOT_FOUND");
        } finally {
            logger.removeHandler(told);
            logger.setUseParentHandlers(true);
        }
    }

    @Test
    void aServerMostOfWhoseLatestCallsHaveFailedIsNotCalled() {
        for (int i = 0; i < 20; i++) {
            failed();
        }
        assertThatThrownBy(() -> remote.echo("a").join()).hasMessageContaining("circuit");
    }

    @Test
    void aServerThatHasAnsweredMostCallsIsCalled() {
        for (int i = 0; i < 30; i++) {
            answered();
        }
        for (int i = 0; i < 21; i++) {
            failed();
        }
        answered();
        assertThat(calls.get(51)).isNotCompletedExceptionally();
    }

    @Test
    void callsThatTheirCallersHaveCancelledSayNothing() {
        for (int i = 0; i < 10; i++) {
            failed();
        }
        for (int i = 0; i < 25; i++) {
            cancelled();
        }
        for (int i = 0; i < 10; i++) {
            failed();
        }
        assertThatThrownBy(() -> remote.echo("a").join()).hasMessageContaining("circuit");
    }

    @Test
    void aCallerThatIsInterruptedIsToldSoAndStaysInterrupted() {
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> remote.blockingEcho("a")).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED);
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
        assertThat(Thread.interrupted()).isTrue();
        assertThat(hand.opened).isEmpty();
        Inside.core(client).end();
    }

    @Test
    void aBlockingCallOnAnEventLoopIsNotMade() throws InterruptedException, ExecutionException {
        CompletableFuture<String> refused = new CompletableFuture<>();
        Thread loop = new LoopThread(
                () -> {
                    try {
                        remote.blockingEcho("a");
                    } catch (Throwable e) {
                        refused.complete(e.getMessage());
                    }
                    refused.complete("nothing");
                },
                "of the test");
        loop.start();
        // a call that is made waits for ever: nobody answers it
        loop.join(20_000);
        loop.interrupt();
        assertThat(refused.get()).contains("on the event loop of the test");
        assertThat(hand.opened).isEmpty();
        Inside.core(client).end();
    }

    @Test
    void aRequestThatIsTooLargeSaysSoAsOnTheOtherWire() {
        CompletableFuture<String> call = remote.echo("x".repeat(Wire.MAX_MESSAGE_BYTES + 1));
        channel = hand.opened.isEmpty() ? null : hand.opened.get(0);
        calls.add(call);
        assertThat(call)
                .failsWithin(0, TimeUnit.SECONDS)
                .withThrowableOfType(ExecutionException.class)
                .satisfies(e -> assertThat(e.getCause()).isInstanceOfSatisfying(RPCXException.class, refused -> {
                    assertThat(refused.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
                    assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                }));
    }

    /** Makes a call that its connection refuses, and returns the error. */
    private RPCXException refusedHere(String text) {
        CompletableFuture<String> call = remote.echo(text);
        calls.add(call);
        assertThat(call).isCompletedExceptionally();
        return (RPCXException) RPCXException.cause(
                Objects.requireNonNull(call.handle((value, thrown) -> thrown).join()));
    }

    /** A server that is not asked has not failed. */
    @Test
    void callsForWhichThisSideHasNoRoomSayNothing() {
        call();
        for (int i = 1; i < Wire.MAX_SLOTS; i++) {
            calls.add(remote.echo("a"));
            hand.settle(Objects.requireNonNull(channel));
        }
        for (int i = 0; i < 30; i++) {
            RPCXException refused = refusedHere("a");
            assertThat(refused.code()).isEqualTo(RPCXException.Code.OVERLOADED);
            assertThat(refused).hasMessageContaining("calls in flight");
        }
    }

    /** A server that is not asked has not answered. */
    @Test
    void aCallThatThisSideRefusesDoesNotCloseTheCircuit() {
        for (int i = 0; i < 20; i++) {
            failed();
        }
        assertThatThrownBy(() -> remote.echo("a").join()).hasMessageContaining("circuit");
        hand.pass(Objects.requireNonNull(channel), 2, TimeUnit.SECONDS);
        assertThat(refusedHere("x".repeat(Wire.MAX_MESSAGE_BYTES - 20)).code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        failed();
        // a call that is made waits for its answer
        assertThatThrownBy(() -> remote.echo("a").getNow("made")).hasMessageContaining("circuit");
    }
}
