package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.ClassicServerConnection;
import dev.rpcx.internal.server.PendingResult;
import dev.rpcx.internal.server.ServerPlatform;
import dev.rpcx.internal.server.Threads;
import dev.rpcx.internal.wire.ClassicFrames;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import java.nio.channels.ClosedChannelException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests calls of the classic wire at a server without sockets and threads. The test decides when a handler runs. */
class ClassicServingTest {
    private static final int MAX_MESSAGE_BYTES = 64 * 1024;
    private static final int MAX_CALLS = 6;

    /** The server does not charge the bytes of a request or a reply up to this size. */
    private static final int COUNTED_BYTES = 4 * 1024;

    record Fragile(String text) {
        Fragile {
            if (text.equals("read")) {
                throw new AssertionError("not to be read");
            }
            if (text.equals("speechless")) {
                throw new AssertionError("not to be read") {
                    @Override
                    public String getMessage() {
                        throw new IllegalStateException("not even that");
                    }
                };
            }
        }

        @Override
        public String text() {
            if (text.equals("write")) {
                throw new AssertionError("not to be written");
            }
            return text;
        }
    }

    /** A future that gives each result twice to the action that depends on it. */
    private static final class Twice extends CompletableFuture<String> {
        private @Nullable BiConsumer<? super String, ? super Throwable> action;

        @Override
        public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> told) {
            action = told;
            return this;
        }

        void tell(@Nullable String value, @Nullable Throwable failure) {
            Objects.requireNonNull(action).accept(value, failure);
            action.accept(value, failure);
        }
    }

    @RPCXServer("hand")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();
        final List<String> told = new ArrayList<>();
        int begun;
        Runnable within = () -> {};

        @Method
        String echo(String text) {
            begun++;
            within.run();
            return text;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here(String text) {
            begun++;
            within.run();
            return text;
        }

        @Method
        CompletionStage<String> later() {
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            CallContext.current().orElseThrow().onCancel(() -> told.add("cancelled"));
            return result;
        }

        /** Returns a future that holds the argument. */
        @Method
        CompletionStage<String> laterWith(String text) {
            begun++;
            within.run();
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            return result.thenApply(more -> text + more);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> laterHere() {
            return later();
        }

        @Method
        CompletionStage<String> laterOfThree(List<Integer> a, List<Integer> b, List<Integer> c) {
            return later();
        }

        @Method
        CompletionStage<String> twice() {
            Twice result = new Twice();
            waiting.add(result);
            return result;
        }

        @Method
        CompletionStage<String> never() {
            return new CompletableFuture<>() {
                @Override
                public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> told) {
                    throw new IllegalStateException("a stage that takes nobody");
                }
            };
        }

        @Method
        String fails() {
            throw new IllegalStateException("on purpose");
        }

        @Method
        String reads(Fragile fragile) {
            begun++;
            return fragile.toString();
        }

        @Method
        Fragile writes() {
            return new Fragile("write");
        }

        @Method
        String much(int bytes) {
            return "x".repeat(bytes);
        }

        @Method
        Flow.Publisher<String> brings() {
            throw new AssertionError("not on this wire");
        }

        @Method
        String takes(Flow.Publisher<String> items) {
            throw new AssertionError("not on this wire: " + items);
        }
    }

    private final Service service = new Service();
    private final HandPlatform hand = new HandPlatform();
    private boolean isStopped;
    private boolean isExhausted;

    /** Does the same as {@code hand}, but its threads may have ended, or there may be no memory for one. */
    private final ServerPlatform platform = new ServerPlatform() {
        @Override
        public Loops loops(int count, String name, boolean inProcess) {
            return hand.loops(count, name, inProcess);
        }

        @Override
        public Threads threads(int poolSize) {
            Threads threads = hand.threads(poolSize);
            return new Threads(poolSize) {
                @Override
                public void run(io.netty.channel.EventLoop loop, RunOn.Place place, Runnable handler) {
                    if (isStopped) {
                        throw new RejectedExecutionException("stopped");
                    }
                    if (isExhausted) {
                        throw new OutOfMemoryError("no thread, in this test");
                    }
                    threads.run(loop, place, handler);
                }
            };
        }

        @Override
        public io.netty.util.concurrent.Ticker ticker() {
            return hand.ticker();
        }

        @Override
        public java.util.random.RandomGenerator random() {
            return hand.random();
        }
    };

    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(platform)
            .classic(true)
            .maxCalls(MAX_CALLS)
            .maxRunning(AdmissionLimit.MIN_LIMIT)
            .maxMessageBytes(MAX_MESSAGE_BYTES)
            .keepAlive(Duration.ofMinutes(1))
            .build()
            .start();
    private final EmbeddedChannel channel =
            EmbeddedChannel.builder().ticker(hand.ticker).build();
    private final Account account =
            Objects.requireNonNull(server.core().ledger().open(null));
    private final ClassicServerConnection connection = new ClassicServerConnection(channel, server.core(), account);
    private final ByteBuf said = Unpooled.buffer();

    @BeforeEach
    void connect() {
        // a test that has failed on this thread must not affect this one
        CurrentCall.set(null);
        Thread.interrupted();
        channel.pipeline().addLast(connection);
    }

    @AfterEach
    void nothingIsLeft() {
        isStopped = false;
        channel.finishAndReleaseAll();
        service.waiting.forEach(result -> result.complete("over"));
        hand.handleAll(channel);
        channel.runPendingTasks();
        account.close();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(channel.runScheduledPendingTasks()).as("no timer is left").isEqualTo(-1);
        assertThat(CurrentCall.get()).isNull();
        assertThat(Thread.interrupted()).isFalse();
    }

    private static byte[] text(String text) {
        return ByteBufUtil.getBytes(RawPeer.text(text));
    }

    /** Returns a text with which a request has this number of bytes. */
    private static String exactly(int bytes) {
        String text = "x".repeat(bytes - 100);
        int around = ClassicRequests.of(1, "hand", "here", List.of("any"), List.of(text(text)))
                        .readableBytes()
                - ClassicFrames.LENGTH_BYTES
                - text.length();
        return "x".repeat(bytes - around);
    }

    private void call(long id, String method, byte[]... values) {
        List<String> types = new ArrayList<>();
        for (int i = 0; i < values.length; i++) {
            types.add("any");
        }
        channel.writeInbound(ClassicRequests.of(id, "hand", method, types, List.of(values)));
    }

    /** Runs one handler that waits. */
    private void handle() {
        assertThat(hand.handle(0)).as("a handler waits").isTrue();
        channel.runPendingTasks();
    }

    private boolean hasReply() {
        for (ByteBuf chunk = channel.readOutbound(); chunk != null; chunk = channel.readOutbound()) {
            said.writeBytes(chunk);
            chunk.release();
        }
        return said.isReadable();
    }

    private ClassicWire.Reply reply() {
        assertThat(hasReply()).as("a reply").isTrue();
        return ClassicWire.readReply(said.readSlice(said.readInt()));
    }

    private void expectValue(long id, String value) {
        ClassicWire.Reply reply = reply();
        assertThat(reply.error()).isNull();
        assertThat(reply.id()).isEqualTo(id);
        assertThat(reply.result()).isEqualTo(text(value));
    }

    private void expectError(long id, RPCXException.Code code, RPCXException.Executed executed, String text) {
        ClassicWire.Reply reply = reply();
        RPCXException error = Objects.requireNonNull(reply.error());
        assertThat(error.code()).isEqualTo(code);
        assertThat(error.executed()).isEqualTo(executed);
        assertThat(error).hasMessageContaining(text);
        assertThat(reply.id()).isEqualTo(id);
    }

    private void expectRefusal(long id, RPCXException.Code code, String text) {
        expectError(id, code, RPCXException.Executed.NOT_EXECUTED, text);
    }

    private void pass(Duration time) {
        for (long left = time.toMillis(); left > 0; left -= 500) {
            hand.ticker.advance(500, TimeUnit.MILLISECONDS);
            channel.runScheduledPendingTasks();
        }
    }

    /** Takes all that the connection may have of this, as another owner would, and returns how much that is. */
    private long takeAll(Resource kind) {
        long taken = 0;
        for (long step = 1L << 40; step > 0; step /= 2) {
            while (account.tryCharge(kind, step)) {
                taken += step;
            }
        }
        return taken;
    }

    // ---- handlers

    @Test
    void aCallIsAnsweredWithWhatItsHandlerReturns() {
        call(7, "echo", text("a"));
        assertThat(hasReply()).isFalse();
        assertThat(server.core().running()).isEqualTo(1);
        assertThat(connection.isBusy()).isTrue();
        handle();
        expectValue(7, "a");
        assertThat(server.core().running()).isZero();
        assertThat(connection.isBusy()).isFalse();
        call(8, "here", text("b"));
        expectValue(8, "b");
        call(9, "fails");
        handle();
        expectError(9, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.EXECUTED, "on purpose");
    }

    @Test
    void aStageIsAnsweredWhenItEndsAndHeardOnce() {
        call(1, "later");
        handle();
        assertThat(hasReply()).isFalse();
        service.waiting.get(0).complete("a");
        expectValue(1, "a");
        call(2, "later");
        handle();
        service.waiting.get(1).completeExceptionally(new IllegalStateException("in the end"));
        expectError(2, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.EXECUTED, "in the end");
        call(3, "twice");
        handle();
        ((Twice) service.waiting.get(2)).tell("b", null);
        expectValue(3, "b");
        assertThat(hasReply()).isFalse();
        assertThat(server.core().running()).isZero();
        assertThat(account.held(Resource.CALLS)).isZero();
        call(4, "never");
        handle();
        expectError(4, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.EXECUTED, "takes nobody");
        assertThat(service.told).isEmpty();
    }

    @Test
    void aHandlerKnowsItsCallWhileItRunsAndNoLonger() {
        List<Long> left = new ArrayList<>();
        service.within = () -> left.add(CallContext.current().orElseThrow().remainingNanos());
        call(1, "here", text("a"));
        assertThat(CurrentCall.get()).isNull();
        hand.ticker.advance(5, TimeUnit.SECONDS);
        call(2, "echo", text("a"));
        hand.ticker.advance(1, TimeUnit.SECONDS);
        handle();
        assertThat(left)
                .containsExactly(
                        ClassicServerConnection.MAX_CALL_NANOS,
                        ClassicServerConnection.MAX_CALL_NANOS - TimeUnit.SECONDS.toNanos(1));
    }

    @Test
    void anInterruptThatAHandlerLeavesEndsWithIt() {
        service.within = () -> Thread.currentThread().interrupt();
        call(1, "here", text("a"));
        assertThat(Thread.interrupted()).isFalse();
        expectValue(1, "a");
    }

    @Test
    void theEndOfTheConnectionInterruptsWhoIsAtWork() {
        List<Boolean> seen = new ArrayList<>();
        service.within = () -> {
            channel.close();
            seen.add(Thread.interrupted());
            seen.add(CallContext.current().orElseThrow().isCancelled());
        };
        call(1, "echo", text("a"));
        handle();
        assertThat(seen).containsExactly(true, true);
        assertThat(hasReply()).isFalse();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void whoAskedIsToldOfTheEndOfTheConnectionWhereHandlersRun() {
        call(1, "later");
        handle();
        call(2, "laterHere");
        channel.close();
        channel.runPendingTasks();
        assertThat(service.told).as("on the event loop at once").hasSize(1);
        handle();
        assertThat(service.told).hasSize(2);
    }

    @Test
    void whoAskedIsToldAlsoWhereThreadsHaveEnded() {
        call(1, "later");
        handle();
        isStopped = true;
        channel.close();
        assertThat(service.told).hasSize(1);
    }

    /** Lets the client disconnect. The channel's own close would end the loop's timers too. */
    private void disconnect() {
        channel.pipeline().fireChannelInactive();
        channel.runPendingTasks();
    }

    @Test
    void aFutureWhoseCallerIsGoneIsWaitedForASecond() {
        call(1, "later");
        call(2, "later");
        handle();
        handle();
        disconnect();
        pass(Duration.ofMillis(500));
        assertThat(server.core().running()).isEqualTo(2);
        service.waiting.get(0).complete("in time");
        channel.runPendingTasks();
        assertThat(server.core().running()).isEqualTo(1);
        pass(Duration.ofMillis(500));
        assertThat(server.core().running()).isZero();
        assertThat(connection.isBusy()).isFalse();
        hand.handleAll(channel);
        assertThat(account.held(Resource.CALLS)).isZero();
        service.waiting.get(1).complete("late");
        channel.runPendingTasks();
        assertThat(server.core().running()).isZero();
        assertThat(account.held(Resource.CALLS)).isZero();
    }

    @Test
    void aFutureThatIsBroughtWhenTheCallerIsGoneIsWaitedForASecond() {
        service.within = this::disconnect;
        call(1, "laterWith", text("a"));
        handle();
        assertThat(server.core().running()).isEqualTo(1);
        pass(Duration.ofSeconds(1));
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aFutureThatIsNotDoneInItsTimeIsWaitedForASecondMore() {
        call(1, "later");
        handle();
        pass(Duration.ofSeconds(60));
        while (!hasReply()) {
            pass(Duration.ofMillis(500));
        }
        expectError(1, RPCXException.Code.DEADLINE_EXCEEDED, RPCXException.Executed.MAYBE, "60 s");
        assertThat(server.core().running()).isEqualTo(1);
        pass(Duration.ofSeconds(1));
        assertThat(server.core().running()).isZero();
        hand.handleAll(channel);
        assertThat(account.held(Resource.CALLS)).isZero();
        call(1, "echo", text("again"));
        hand.handleAll(channel);
        expectValue(1, "again");
    }

    @Test
    void whatAGivenUpCallWasReadIntoStaysChargedUntilItsFutureEnds() {
        call(1, "laterWith", text("x".repeat(50_000)));
        handle();
        disconnect();
        pass(Duration.ofSeconds(1));
        assertThat(server.core().running()).isZero();
        hand.handleAll(channel);
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
        assertThat(account.held(Resource.OBJECT_BYTES)).isGreaterThanOrEqualTo(50_000);
        service.waiting.get(0).complete("over");
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
    }

    /** Each of these arguments would not be charged if it were the only one. */
    @Test
    void whatACallHasWithoutBeingChargedIsForAllItsArguments() {
        call(1, "laterOfThree", sevens(5), sevens(5), sevens(5));
        handle();
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
        call(2, "laterOfThree", sevens(20), sevens(20), sevens(20));
        handle();
        assertThat(account.held(Resource.OBJECT_BYTES)).isPositive();
        service.waiting.forEach(waiting -> waiting.complete("over"));
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
    }

    @Test
    void whatSmallArgumentsWereReadIntoIsChargedOnceTheirCallIsGivenUp() {
        call(1, "laterOfThree", sevens(5), sevens(5), sevens(5));
        handle();
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
        disconnect();
        pass(Duration.ofSeconds(1));
        hand.handleAll(channel);
        // each argument has an array in which five elements were gathered, and five boxes
        assertThat(account.held(Resource.OBJECT_BYTES))
                .isGreaterThanOrEqualTo(PendingResult.MAX_LINGERING_BYTES + 3 * (104 + 5 * 16));
        service.waiting.get(0).complete("over");
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
    }

    private static byte[] sevens(int count) {
        byte[] list = new byte[2 + count];
        Arrays.fill(list, (byte) 7);
        list[0] = 1 << 3 | 2;
        list[1] = (byte) count;
        return list;
    }

    @Test
    void aGivenUpCallKeepsItsPlaceWhereItsObjectsCannotBeCharged() {
        long taken = takeAll(Resource.OBJECT_BYTES);
        call(1, "laterWith", text("a"));
        handle();
        disconnect();
        pass(Duration.ofSeconds(1));
        assertThat(server.core().running()).isZero();
        assertThat(account.held(Resource.CALLS)).isEqualTo(1);
        service.waiting.get(0).complete("over");
        assertThat(account.held(Resource.CALLS)).isZero();
        account.release(Resource.OBJECT_BYTES, taken);
    }

    @Test
    void aServerThatStopsWaitsForNoFutureOfACallerThatIsGone() {
        call(1, "later");
        handle();
        connection.drain();
        channel.runPendingTasks();
        disconnect();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aCallWhoseCallerIsGoneIsNotHandled() {
        call(1, "echo", text("a"));
        channel.close();
        handle();
        assertThat(service.begun).isZero();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aCallWhoseTimeIsOverIsNotHandled() {
        call(1, "echo", text("a"));
        hand.ticker.advance(ClassicServerConnection.MAX_CALL_NANOS - 1, TimeUnit.NANOSECONDS);
        assertThat(hand.handle(0)).isTrue();
        assertThat(service.begun).isEqualTo(1);
        expectValue(1, "a");
        call(2, "echo", text("a"));
        hand.ticker.advance(ClassicServerConnection.MAX_CALL_NANOS, TimeUnit.NANOSECONDS);
        assertThat(hand.handle(0)).isTrue();
        expectRefusal(2, RPCXException.Code.DEADLINE_EXCEEDED, "before the handler started");
        assertThat(service.begun).isEqualTo(1);
    }

    @Test
    void whatIsNotDoneInItsTimeIsToldSoAndItsHandlerInterrupted() {
        List<Boolean> seen = new ArrayList<>();
        service.within = () -> {
            pass(Duration.ofSeconds(70));
            seen.add(Thread.interrupted());
        };
        call(1, "echo", text("a"));
        handle();
        assertThat(seen).containsExactly(true);
        expectError(1, RPCXException.Code.DEADLINE_EXCEEDED, RPCXException.Executed.MAYBE, "60 s");
        assertThat(hasReply()).as("one reply").isFalse();
    }

    @Test
    void whatNoThreadHasBegunInItsTimeIsToldThatItHasNot() {
        call(1, "echo", text("a"));
        pass(Duration.ofSeconds(60));
        expectRefusal(1, RPCXException.Code.DEADLINE_EXCEEDED, "60 s");
        handle();
        assertThat(service.begun).isZero();
        assertThat(hasReply()).as("one reply").isFalse();
    }

    @Test
    void callsWhoseTimeEndsTogetherAreAnsweredInOneWrite() {
        for (int i = 1; i <= 3; i++) {
            call(i, "laterHere");
        }
        AtomicInteger flushes = new AtomicInteger();
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                flushes.incrementAndGet();
                ctx.flush();
            }
        });
        isStopped = true;
        pass(Duration.ofSeconds(60));
        for (int i = 1; i <= 3; i++) {
            expectError(i, RPCXException.Code.DEADLINE_EXCEEDED, RPCXException.Executed.MAYBE, "60 s");
        }
        assertThat(flushes).hasValue(1);
    }

    @Test
    void aLateCallThatEndsAsItIsToldSoIsForgotten() {
        service.within = () -> CallContext.current()
                .orElseThrow()
                .onCancel(() -> service.waiting.get(0).complete("b"));
        call(1, "laterWith", text("a"));
        handle();
        isStopped = true;
        pass(Duration.ofSeconds(60));
        assertThat(service.waiting.get(0)).isDone();
        expectError(1, RPCXException.Code.DEADLINE_EXCEEDED, RPCXException.Executed.MAYBE, "60 s");
        assertThat(account.held(Resource.CALLS)).isZero();
        assertThat(connection.abandonedCalls()).isZero();
    }

    @Test
    void argumentsThatCannotBeReadAreRefused() {
        call(1, "echo");
        expectRefusal(1, RPCXException.Code.INVALID, "0 parameters (expected: 1)");
        call(2, "echo", text("a"), text("b"));
        expectRefusal(2, RPCXException.Code.INVALID, "2 parameters (expected: 1)");
        assertThat(hand.handle(0)).as("a handler waits").isFalse();
        call(3, "reads", text("read"));
        handle();
        expectRefusal(3, RPCXException.Code.INVALID, "cannot be read");
        call(4, "reads", text("speechless"));
        handle();
        expectRefusal(4, RPCXException.Code.INVALID, "cannot be read");
        assertThat(service.begun).isZero();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aResultThatCannotBeSentIsSaidSo() {
        call(1, "writes");
        handle();
        expectError(1, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.EXECUTED, "cannot be sent");
    }

    @Test
    void aReplyIsAtMostAsLargeAsAMessage() {
        boolean wasAtMost = false;
        List<String> refused = new ArrayList<>();
        for (int bytes = Wire.MAX_MESSAGE_BYTES - 16; bytes < Wire.MAX_MESSAGE_BYTES; bytes++) {
            ByteBuf number = Unpooled.buffer().writeByte(1 << 3);
            Varint.write(number, bytes);
            call(1, "much", ByteBufUtil.getBytes(number));
            handle();
            assertThat(hasReply()).isTrue();
            int length = said.getInt(said.readerIndex());
            assertThat(length).isLessThanOrEqualTo(Wire.MAX_MESSAGE_BYTES);
            wasAtMost |= length == Wire.MAX_MESSAGE_BYTES;
            ClassicWire.Reply reply = reply();
            if (length < 1000) {
                assertThat(Objects.requireNonNull(reply.error()).code()).isEqualTo(RPCXException.Code.TOO_LARGE);
                assertThat(reply.error().executed()).isEqualTo(RPCXException.Executed.EXECUTED);
                refused.add(reply.error().getMessage());
            }
            said.discardReadBytes();
        }
        assertThat(wasAtMost).isTrue();
        assertThat(refused).first().asString().contains("a reply of 4194305 bytes (expected: at most 4194304)");
    }

    @Test
    void aCallHasItsTimeToTheNanosecond() {
        call(1, "laterHere");
        pass(Duration.ofSeconds(57).plusMillis(500));
        assertThat(hasReply()).isFalse();
        pass(Duration.ofMillis(2_500));
        expectError(1, RPCXException.Code.DEADLINE_EXCEEDED, RPCXException.Executed.MAYBE, "60 s");
    }

    @Test
    void anotherThreadMayAnswer() throws Exception {
        call(1, "laterHere");
        Thread other = new Thread(() -> service.waiting.get(0).complete("a"));
        other.start();
        other.join();
        channel.runPendingTasks();
        expectValue(1, "a");
    }

    // ---- requests

    @Test
    void whatIsNotServedIsRefused() {
        call(1, "nothing");
        expectRefusal(1, RPCXException.Code.NOT_FOUND, "no such");
        call(2, "brings");
        expectRefusal(2, RPCXException.Code.INVALID, "native wire");
        call(3, "takes");
        expectRefusal(3, RPCXException.Code.INVALID, "native wire");
        assertThat(account.held(Resource.CALLS)).isZero();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void anIdThatIsUnderWayEndsTheConnection() {
        call(1, "later");
        call(1, "echo", text("a"));
        expectError(0, RPCXException.Code.PROTOCOL, RPCXException.Executed.MAYBE, "twice");
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aConnectionHasAsManyCallsAsItMay() {
        for (int i = 1; i <= MAX_CALLS; i++) {
            call(i, "laterHere");
        }
        call(99, "here", text("a"));
        expectRefusal(99, RPCXException.Code.OVERLOADED, "on this connection");
        service.waiting.get(0).complete("a");
        expectValue(1, "a");
        call(99, "here", text("a"));
        expectValue(99, "a");
    }

    @Test
    void callsThatTheServerHasNoPlaceForAreRefused() {
        long taken = takeAll(Resource.CALLS);
        call(1, "here", text("a"));
        expectRefusal(1, RPCXException.Code.OVERLOADED, "too many calls under way");
        account.release(Resource.CALLS, taken);
        call(1, "here", text("a"));
        expectValue(1, "a");
    }

    /** One connection may run three of four handlers, so that one remains for others. */
    @Test
    void oneConnectionDoesNotRunAllHandlers() {
        for (int round = 0; round < 3; round++) {
            for (int i = 1; i <= 3; i++) {
                call(i, "echo", text("a"));
            }
            call(4, "echo", text("a"));
            expectRefusal(4, RPCXException.Code.OVERLOADED, "more to do");
            assertThat(account.held(Resource.CALLS)).isEqualTo(3);
            for (int i = 1; i <= 3; i++) {
                handle();
                expectValue(i, "a");
            }
        }
    }

    @Test
    void whereThreadsHaveEndedACallIsRefused() {
        isStopped = true;
        call(1, "echo", text("a"));
        expectRefusal(1, RPCXException.Code.UNAVAILABLE, "closing");
        assertThat(server.core().running()).isZero();
        assertThat(account.held(Resource.CALLS)).isZero();
    }

    @Test
    void whereNoThreadCanBeHadACallIsRefused() {
        isExhausted = true;
        call(1, "echo", text("a"));
        expectRefusal(1, RPCXException.Code.UNAVAILABLE, "no thread");
        assertThat(server.core().running()).isZero();
        assertThat(account.held(Resource.CALLS)).isZero();
    }

    /** The bytes of the request are released for whatever reason it is refused. */
    @Test
    void aLargeRequestThatIsRefusedIsHeldNoLonger() {
        byte[] large = text("x".repeat(20_000));
        for (String method : List.of("nothing", "brings", "takes")) {
            call(1, method, large);
            assertThat(reply().error()).isNotNull();
        }
        long taken = takeAll(Resource.CALLS);
        call(2, "here", large);
        expectRefusal(2, RPCXException.Code.OVERLOADED, "too many calls");
        account.release(Resource.CALLS, taken);
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
        for (int i = 1; i <= 3; i++) {
            call(i, "echo", text("a"));
        }
        call(4, "echo", large);
        expectRefusal(4, RPCXException.Code.OVERLOADED, "more to do");
        for (int i = 4; i <= MAX_CALLS; i++) {
            call(i, "laterHere");
        }
        call(99, "here", large);
        expectRefusal(99, RPCXException.Code.OVERLOADED, "on this connection");
        connection.drain();
        channel.runPendingTasks();
        call(99, "here", large);
        expectRefusal(99, RPCXException.Code.UNAVAILABLE, "closing");
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
        assertThat(server.core().ledger().audit()).contains("a connection has 6 calls under way");
    }

    /** The heap is full when a call comes in: its connection ends, and nothing of it stays counted. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4})
    void nothingIsKeptOfACallForWhichThereWasNoMemory(int readings) {
        hand.ticker.failAt(readings);
        channel.pipeline().fireChannelRead(ClassicRequests.of(1, "hand", "echo", List.of("any"), List.of(text("a"))));
        hand.ticker.failAt(0);
        channel.runPendingTasks();
        hand.handleAll(channel);
        assertThat(server.core().running()).isZero();
        assertThat(account.held(Resource.CALLS)).isZero();
        assertThat(account.held(Resource.HANDLERS)).isZero();
    }

    @Test
    void whatHasArrivedOfARequestIsHeldWhereverItIsCut() {
        ByteBuf frame = ClassicRequests.of(5, "hand", "here", List.of("any"), List.of(text("x".repeat(60_000))));
        for (int arrived = 1_000; arrived <= 60_000; arrived += 1_000) {
            channel.writeInbound(frame.readRetainedSlice(1_000));
            if (arrived > 2 * COUNTED_BYTES) {
                assertThat(account.held(Resource.REQUEST_BYTES)).isBetween(arrived - 4L, 2L * arrived + COUNTED_BYTES);
            }
        }
        channel.writeInbound(frame);
        assertThat(reply().error()).isNull();
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void whatHasArrivedOfARequestIsGivenBackWithItsConnection() {
        ByteBuf frame = ClassicRequests.of(5, "hand", "here", List.of("any"), List.of(text("x".repeat(60_000))));
        channel.writeInbound(frame.readRetainedSlice(10_000));
        assertThat(account.held(Resource.REQUEST_BYTES)).isPositive();
        channel.close();
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
        frame.release();
    }

    @Test
    void aLargeRequestIsHeldUntilItsHandlerHasEnded() {
        call(1, "echo", text("x".repeat(COUNTED_BYTES - 200)));
        assertThat(account.held(Resource.REQUEST_BYTES)).as("a small one").isZero();
        handle();
        call(2, "echo", text("x".repeat(10_000)));
        assertThat(account.held(Resource.REQUEST_BYTES)).isBetween(10_000L, 20_000L);
        handle();
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
    }

    /**
     * The server reads only the frame of a request that it refuses. A request that is too small to be charged needs no
     * room.
     */
    @Test
    void aRequestThatFindsNoRoomIsRefusedAndTheNextIsNot() {
        long taken = takeAll(Resource.REQUEST_BYTES);
        String exact = exactly(COUNTED_BYTES);
        call(1, "here", text(exact));
        expectValue(1, exact);
        call(2, "here", text(exact + "y"));
        expectRefusal(2, RPCXException.Code.OVERLOADED, "too many bytes of requests");
        call(3, "here", text("a"));
        expectValue(3, "a");
        // this request has the largest size that is allowed, so only the room is missing
        call(4, "here", text(exactly(MAX_MESSAGE_BYTES)));
        expectRefusal(4, RPCXException.Code.OVERLOADED, "too many bytes of requests");
        account.release(Resource.REQUEST_BYTES, taken);
        call(4, "here", text(exact + "y"));
        expectValue(4, exact + "y");
    }

    /** A frame comes in parts, and there is room for its first part only. */
    @Test
    void whatWasHeldOfARequestThatIsRefusedIsGivenBack() {
        ByteBuf frame = ClassicRequests.of(5, "hand", "here", List.of("any"), List.of(text("x".repeat(60_000))));
        channel.writeInbound(frame.readRetainedSlice(10_000));
        long held = account.held(Resource.REQUEST_BYTES);
        assertThat(held).isPositive();
        long taken = takeAll(Resource.REQUEST_BYTES);
        channel.writeInbound(frame.readRetainedSlice(30_000));
        channel.writeInbound(frame);
        expectRefusal(5, RPCXException.Code.OVERLOADED, "too many bytes of requests");
        assertThat(account.held(Resource.REQUEST_BYTES)).isEqualTo(taken);
        account.release(Resource.REQUEST_BYTES, taken);
    }

    @Test
    void aRequestThatIsTooLargeIsRefusedByItsId() {
        String exact = exactly(MAX_MESSAGE_BYTES);
        call(1, "here", text(exact));
        expectValue(1, exact);
        call(2, "here", text(exact + "y"));
        expectRefusal(2, RPCXException.Code.TOO_LARGE, "of 65537 bytes (expected: at most 65536)");
        call(3, "here", text("a"));
        expectValue(3, "a");
    }

    @ParameterizedTest
    @ValueSource(strings = {"120161", "0800", "1a00"})
    void aLargeRequestThatBeginsOtherwiseThanWithItsIdEndsTheConnection(String begin) {
        ByteBuf frame = Unpooled.buffer().writeInt(MAX_MESSAGE_BYTES + 1);
        frame.writeBytes(java.util.HexFormat.of().parseHex(begin));
        frame.writeZero(MAX_MESSAGE_BYTES + 5 - frame.readableBytes());
        channel.writeInbound(frame);
        expectError(0, RPCXException.Code.PROTOCOL, RPCXException.Executed.MAYBE, "id as first field");
    }

    @Test
    void aLengthBeyondAllMessagesEndsTheConnection() {
        channel.writeInbound(Unpooled.buffer().writeInt(Wire.MAX_MESSAGE_BYTES));
        assertThat(hasReply()).as("it is passed over").isFalse();
        channel.writeInbound(Unpooled.buffer().writeZero(Wire.MAX_MESSAGE_BYTES - 1));
        channel.writeInbound(Unpooled.buffer().writeByte(0));
        expectError(0, RPCXException.Code.PROTOCOL, RPCXException.Executed.MAYBE, "4194304");
    }

    // ---- replies

    @Test
    void whatIsNotReadIsChargedUntilItHasBeenSent() {
        List<Runnable> kept = keepWrites();
        ByteBuf number = Unpooled.buffer().writeByte(1 << 3);
        Varint.write(number, 40_000);
        call(1, "much", ByteBufUtil.getBytes(number));
        handle();
        assertThat(account.held(Resource.REPLY_BYTES)).isBetween(40_000L, 50_000L);
        assertThat(connection.waitingBytes()).isBetween(40_000L, 40_100L);
        assertThat(kept).as("in chunks").hasSize(3);
        kept.remove(0).run();
        assertThat(connection.waitingBytes()).isBetween(40_000L - (16 << 10), 40_100L - (16 << 10));
        kept.forEach(Runnable::run);
        kept.clear();
        assertThat(connection.waitingBytes()).isZero();
        assertThat(account.held(Resource.REPLY_BYTES)).isZero();
        call(2, "here", text("a"));
        assertThat(account.held(Resource.REPLY_BYTES)).as("a small one").isZero();
        kept.remove(0).run();
    }

    /** The socket takes nothing before a test runs what this returns. */
    private List<Runnable> keepWrites() {
        List<Runnable> kept = new ArrayList<>();
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
                kept.add(() -> ctx.writeAndFlush(message, promise));
            }

            @Override
            public void close(ChannelHandlerContext ctx, ChannelPromise promise) {
                List<Runnable> rest = List.copyOf(kept);
                kept.clear();
                ctx.close(promise);
                rest.forEach(Runnable::run);
            }
        });
        return kept;
    }

    @Test
    void aLargeReplyThatFindsNoRoomIsAnErrorOfAHandlerThatRan() {
        long taken = takeAll(Resource.REPLY_BYTES);
        int around = ClassicWire.reply(3, Unpooled.wrappedBuffer(text("x".repeat(4_000))), null).length - 4_000;
        String exact = "x".repeat(COUNTED_BYTES - around);
        call(3, "here", text(exact));
        expectValue(3, exact);
        call(4, "here", text(exact + "y"));
        expectError(4, RPCXException.Code.OVERLOADED, RPCXException.Executed.EXECUTED, "could not be kept");
        call(1, "here", text("x".repeat(COUNTED_BYTES)));
        expectError(1, RPCXException.Code.OVERLOADED, RPCXException.Executed.EXECUTED, "could not be kept");
        call(2, "here", text("a"));
        expectValue(2, "a");
        account.release(Resource.REPLY_BYTES, taken);
    }

    @Test
    void oneSmallReplyMayWaitForWhoDoesNotReadWhereThereIsNoRoom() {
        call(1, "laterHere");
        hand.reads(channel, false);
        assertThat(channel.config().isAutoRead()).isFalse();
        long taken = takeAll(Resource.REPLY_BYTES);
        service.waiting.get(0).complete("a");
        assertThat(channel.isOpen()).isTrue();
        hand.reads(channel, true);
        expectValue(1, "a");
        account.release(Resource.REPLY_BYTES, taken);
    }

    @Test
    void whoDoesNotReadItsRepliesIsNotReadUntilItDoes() {
        call(1, "laterHere");
        hand.reads(channel, false);
        assertThat(channel.config().isAutoRead()).isFalse();
        service.waiting.get(0).complete("a");
        expectValue(1, "a");
        hand.reads(channel, true);
        assertThat(channel.config().isAutoRead()).isTrue();
    }

    // ---- the end

    @Test
    void aConnectionThatDrainsFinishesWhatIsUnderWay() {
        call(1, "later");
        handle();
        connection.drain();
        channel.runPendingTasks();
        assertThat(hasReply()).isFalse();
        call(2, "here", text("a"));
        expectRefusal(2, RPCXException.Code.UNAVAILABLE, "closing");
        service.waiting.get(0).complete("a");
        expectValue(1, "a");
        expectRefusal(0, RPCXException.Code.UNAVAILABLE, "closing");
    }

    @Test
    void aConnectionThatDrainsInTheLastMomentOfACallEndsWithIt() {
        call(1, "laterHere");
        connection.drain();
        channel.runPendingTasks();
        assertThat(channel.isOpen()).isTrue();
        pass(Duration.ofSeconds(65));
        expectError(1, RPCXException.Code.DEADLINE_EXCEEDED, RPCXException.Executed.MAYBE, "60 s");
        expectRefusal(0, RPCXException.Code.UNAVAILABLE, "closing");
    }

    @Test
    void aConnectionWithoutCallsIsDrainedAtOnceAndSaysWhy() {
        connection.drain();
        channel.runPendingTasks();
        expectRefusal(0, RPCXException.Code.UNAVAILABLE, "closing");
        // LastFrameTest tests that the reason arrives, since this channel does not have two directions
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void theEndIsReadAlsoByWhoDidNotRead() {
        hand.reads(channel, false);
        connection.drain();
        channel.runPendingTasks();
        assertThat(channel.config().isAutoRead()).isTrue();
        hand.reads(channel, true);
        hand.reads(channel, false);
        assertThat(channel.config().isAutoRead()).isTrue();
    }

    @Test
    void aReasonThatCannotBeSentClosesAtOnce() {
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
                io.netty.util.ReferenceCountUtil.release(message);
                promise.setFailure(new ClosedChannelException());
            }
        });
        connection.drain();
        channel.runPendingTasks();
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void theEndCancelsWhatIsUnderWayAndItsAnswersAreDropped() {
        call(1, "laterHere");
        channel.writeInbound(Unpooled.buffer().writeInt(-1));
        channel.runPendingTasks();
        expectError(0, RPCXException.Code.PROTOCOL, RPCXException.Executed.MAYBE, "-1 bytes (expected: 0 to ");
        assertThat(service.told).containsExactly("cancelled");
        assertThat(connection.isBusy()).isFalse();
        service.waiting.get(0).complete("a");
        assertThat(hasReply()).isFalse();
        assertThat(account.held(Resource.CALLS)).isZero();
    }

    @Test
    void aServerThatDoesNotServeThisWireSaysSo() {
        Server other = Server.builder(RegistryServer.registry(service))
                .platform(hand)
                .build()
                .start();
        Account own = Objects.requireNonNull(other.core().ledger().open(null));
        EmbeddedChannel refused = EmbeddedChannel.builder().ticker(hand.ticker).build();
        refused.pipeline().addLast(new ClassicServerConnection(refused, other.core(), own));
        ByteBuf reply = refused.readOutbound();
        RPCXException why = Objects.requireNonNull(ClassicWire.readReply(reply.skipBytes(ClassicFrames.LENGTH_BYTES))
                .error());
        assertThat(why.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
        assertThat(why.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(other.core().connections()).as("it is the server's to close").isEqualTo(1);
        refused.finishAndReleaseAll();
        own.close();
    }
}
