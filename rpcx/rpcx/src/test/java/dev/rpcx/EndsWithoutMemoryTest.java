package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.server.Sniffer;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.Attribute;
import io.netty.util.AttributeKey;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.MockTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests a server that runs out of memory while a connection begins, is checked or ends. Nothing of the connection stays
 * counted.
 */
class EndsWithoutMemoryTest {
    private static final int FIRST = 1 << 16;

    @RPCXServer("ends")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();
        Runnable within = () -> {};

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here(String text) {
            return text;
        }

        /**
         * Returns a large reply to a small request. Replies to small requests are sent together, but those to large
         * requests are sent while the requests are read.
         */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String large(String length) {
            return "x".repeat(Integer.parseInt(length));
        }

        @Method
        String elsewhere(String text) {
            within.run();
            return text;
        }

        @Method
        CompletionStage<String> later(String text) {
            within.run();
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            return result;
        }
    }

    private final Service service = new Service();
    private final HandPlatform hand = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(hand)
            .keepAlive(Duration.ofHours(1))
            .build()
            .start();
    private final EmbeddedChannel timers =
            EmbeddedChannel.builder().ticker(hand.ticker).build();
    private final HandChannel channel = new HandChannel(hand.ticker);
    private final Account account =
            Objects.requireNonNull(server.core().ledger().open(null));
    private final ServerConnection connection =
            new ServerConnection(channel, server.core(), account, hand.ticker.nanoTime());
    private final List<Throwable> reported = new ArrayList<>();
    private final Thread.UncaughtExceptionHandler before =
            Thread.currentThread().getUncaughtExceptionHandler();

    @BeforeEach
    void greet() {
        Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> reported.add(thrown));
        channel.loop.timers = timers.eventLoop();
        channel.pipeline().addLast(connection);
        channel.writeInbound(RawPeer.preface());
        channel.runPendingTasks();
    }

    @AfterEach
    void nothingIsLeft() {
        Thread.currentThread().setUncaughtExceptionHandler(before);
        channel.loop.failingTimers = 0;
        channel.close();
        service.waiting.forEach(result -> result.complete("over"));
        hand.handleAll(channel);
        pass(3_600_000);
        channel.releaseOutbound();
        account.close();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().served()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    private void call(int slot, String method, long millis) {
        call(Wire.REQUEST, slot, method, millis);
    }

    private void call(int type, int slot, String method, long millis) {
        ByteBuf payload = RawPeer.prelude("ends", method);
        Varint.write(payload, TimeUnit.MILLISECONDS.toMicros(millis));
        payload.writeBytes(RawPeer.text("a"));
        channel.writeInbound(RawPeer.frame(type | Wire.NAMED | Wire.TIME, FIRST + slot, payload));
        channel.runPendingTasks();
    }

    /** Returns the frames that the server has written since the last call of this method, without its greeting. */
    private List<RawPeer.Frame> answers() {
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        if (in.isReadable() && in.getByte(0) == 'R') {
            in.skipBytes(Wire.PREFACE_BYTES);
        }
        List<RawPeer.Frame> frames = new ArrayList<>();
        while (in.isReadable()) {
            ByteBuf frame = in.readSlice((int) Varint.read(in));
            int head = frame.readUnsignedByte();
            int id = frame.readInt();
            if (head != Wire.SETTINGS && head != Wire.DICTIONARY) {
                frames.add(new RawPeer.Frame(head, id, ByteBufUtil.getBytes(frame)));
            }
        }
        return frames;
    }

    private RPCXException error() {
        List<RawPeer.Frame> answers = answers();
        assertThat(answers).extracting(RawPeer.Frame::head).containsExactly(Wire.ERROR);
        assertThat(answers.get(0).id()).isEqualTo(FIRST);
        return WireError.read(Unpooled.wrappedBuffer(answers.get(0).payload()));
    }

    private void handle() {
        assertThat(hand.handle(0)).as("a handler waits").isTrue();
        channel.runPendingTasks();
    }

    /** Runs a task of the event loop, in which an OutOfMemoryError of the test may be thrown. */
    private static void run(Runnable task) {
        try {
            task.run();
        } catch (OutOfMemoryError ofThisTest) {
            // the test then checks what has become of the connection
        }
    }

    private void end() {
        run(() -> connection.close("of this test"));
        channel.runPendingTasks();
    }

    private void pass(long millis) {
        hand.ticker.advance(millis, TimeUnit.MILLISECONDS);
        timers.runScheduledPendingTasks();
        channel.runPendingTasks();
    }

    private long places() {
        return account.held(Resource.CALLS);
    }

    @Test
    void aConnectionThatEndsWithoutMemoryGivesBackItsPlacesAndItsCalls() {
        for (int slot = 0; slot < 3; slot++) {
            call(slot, "later", 10_000);
            handle();
        }
        service.waiting.forEach(result -> result.complete("a"));
        channel.runPendingTasks();
        assertThat(places()).as("kept for calls to come").isEqualTo(3);
        call(4, "later", 10_000);
        handle();
        channel.loop.failingTimers = 2;
        end();
        assertThat(channel.loop.failingTimers).isZero();
        assertThat(places()).as("that of the call whose future is waited for").isEqualTo(1);
        pass(5_000);
        hand.handleAll(channel);
        assertThat(places()).isZero();
        assertThat(server.core().served()).isZero();
    }

    @Test
    void aConnectionWhoseDeadlinesCannotBeLookedAtEnds() {
        call(0, "later", 1_000);
        call(1, "later", 2_000);
        channel.loop.failingTimers = 1;
        pass(1_000);
        assertThat(channel.loop.failingTimers).isZero();
        assertThat(connection.isClosed()).isTrue();
        hand.handleAll(channel);
        assertThat(places()).isZero();
    }

    @Test
    void aFutureThatIsBroughtToNobodyIsGivenUpAlsoWhereNoTimerCanBeSet() {
        service.within = () -> {
            end();
            channel.loop.failingTimers = 1;
        };
        call(0, "later", 10_000);
        run(this::handle);
        assertThat(channel.loop.failingTimers).isZero();
        assertThat(places()).isEqualTo(1);
        pass(5_000);
        hand.handleAll(channel);
        assertThat(places()).isZero();
        assertThat(server.core().served()).isZero();
    }

    @Test
    void aSocketIsClosedWhoseLastTimerCannotBeSet() {
        channel.loop.failingTimers = 1;
        end();
        assertThat(channel.loop.failingTimers).isZero();
        assertThat(channel.isOpen()).isFalse();
        assertThat(account.held(Resource.TIMERS)).isZero();
    }

    @Test
    void aTimerThatCouldNotBeSetAsAConnectionBeginsIsNotCounted() {
        HandChannel next = new HandChannel(hand.ticker);
        Account its = Objects.requireNonNull(server.core().ledger().open(null));
        next.loop.failingTimers = 1;
        assertThatThrownBy(() -> new ServerConnection(next, server.core(), its, hand.ticker.nanoTime()))
                .isInstanceOf(OutOfMemoryError.class);
        assertThat(its.held(Resource.TIMERS)).isZero();
        its.close();
        next.close();
    }

    @Test
    void aTimerThatCouldNotBeSetAsAConnectionIsGreetedIsNotCounted() {
        HandChannel next = new HandChannel(hand.ticker);
        Account its = Objects.requireNonNull(server.core().ledger().open(null));
        ServerConnection silent = new ServerConnection(next, server.core(), its, hand.ticker.nanoTime());
        next.pipeline().addLast(silent);
        next.loop.failingTimers = 1;
        run(() -> next.writeInbound(RawPeer.preface()));
        next.runPendingTasks();
        assertThat(next.loop.failingTimers).isZero();
        assertThat(silent.isClosed()).isTrue();
        assertThat(its.held(Resource.TIMERS)).isZero();
        its.close();
        next.close();
        next.releaseOutbound();
    }

    @Test
    void aTimerThatCouldNotBeSetAsAConnectionIsTakenIsNotCounted() {
        HandChannel next = new HandChannel(hand.ticker);
        Account its = Objects.requireNonNull(server.core().ledger().open(null));
        next.loop.failingTimers = 1;
        next.pipeline().addLast(new Sniffer(server.core(), its));
        next.pipeline().fireChannelActive();
        next.runPendingTasks();
        assertThat(next.loop.failingTimers).isZero();
        assertThat(next.isOpen()).isFalse();
        assertThat(its.held(Resource.TIMERS)).isZero();
        its.close();
    }

    /** The reply is ready, but the thread that made it could not notify the event loop. */
    @Test
    void anAnswerThatTheEventLoopWasNotToldOfIsSentAtItsNextLook() {
        service.within = () -> {
            channel.loop.isElsewhere = true;
            channel.loop.fails = true;
        };
        call(0, "elsewhere", 10_000);
        call(1, "later", 1_000);
        answers();
        run(() -> hand.handle(0));
        channel.loop.isElsewhere = false;
        channel.loop.fails = false;
        channel.runPendingTasks();
        assertThat(answers()).isEmpty();
        service.within = () -> {};
        pass(1_000);
        assertThat(answers()).extracting(RawPeer.Frame::head).containsExactly(Wire.REPLY, Wire.ERROR);
    }

    @Test
    void aCallWhoseThreadFailsAtItsEndIsToldThatItWasExecuted() {
        service.within = () -> hand.ticker.failAt(1);
        call(0, "elsewhere", 10_000);
        answers();
        run(this::handle);
        channel.runPendingTasks();
        assertThat(error().executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit())
                .as("a place that is kept for the next call")
                .isEmpty();
        service.within = () -> {};
        call(1, "elsewhere", 10_000);
        handle();
        assertThat(places()).as("it is the same").isEqualTo(1);
        assertThat(answers()).extracting(RawPeer.Frame::head).containsExactly(Wire.REPLY);
    }

    /** The thread cannot read the request, and fails when it is about to report that. */
    @Test
    void aCallWhoseThreadFailsBeforeItsHandlerBeginsWasNotExecuted() {
        ByteBuf unreadable = RawPeer.prelude("ends", "elsewhere").writeLong(-1).writeInt(-1);
        channel.writeInbound(RawPeer.frame(Wire.REQUEST | Wire.NAMED, FIRST, unreadable));
        answers();
        hand.ticker.failAt(2);
        run(this::handle);
        hand.ticker.failAt(0);
        channel.runPendingTasks();
        assertThat(error().executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aNoticeWhoseThreadFailsAtItsEndIsCountedNoLonger() {
        service.within = () -> hand.ticker.failAt(1);
        call(Wire.NOTICE, 0, "elsewhere", 10_000);
        run(this::handle);
        channel.runPendingTasks();
        assertThat(server.core().running()).isZero();
        end();
        assertThat(server.core().served()).isZero();
    }

    @Test
    void aCallWhoseCallerHasGoneAndWhoseThreadFailsAtItsEndIsCountedNoLonger() {
        service.within = () -> {
            channel.writeInbound(RawPeer.frame(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER));
            hand.ticker.failAt(1);
        };
        call(0, "elsewhere", 10_000);
        answers();
        run(this::handle);
        channel.runPendingTasks();
        assertThat(error().code()).isEqualTo(RPCXException.Code.CANCELLED);
        assertThat(server.core().running()).isZero();
        end();
        assertThat(server.core().served()).isZero();
    }

    @Test
    void whoWantsToKnowOfACancelIsToldAlsoWhereItsHandlerCannotBeInterrupted() throws Exception {
        List<String> told = new ArrayList<>();
        service.within = () -> {
            CallContext.current().orElseThrow().onCancel(() -> told.add("cancelled"));
            channel.writeInbound(RawPeer.frame(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER));
        };
        call(0, "elsewhere", 10_000);
        answers();
        Thread handler = new UninterruptibleThread(this::handle, reported);
        handler.start();
        handler.join();
        hand.handleAll(channel);
        assertThat(told).containsExactly("cancelled");
        assertThat(reported).hasSize(1).first().isInstanceOf(OutOfMemoryError.class);
        assertThat(error().code()).isEqualTo(RPCXException.Code.CANCELLED);
    }

    /** By then, everybody else who had to learn of the end of the connection has learnt of it. */
    @Test
    void aCallThatItsThreadLosesBehindTheEndOfItsConnectionIsFoundAfterFiveSeconds() {
        service.within = () -> {
            end();
            pass(5_000);
            channel.loop.fails = true;
            hand.ticker.failAt(1);
        };
        call(0, "elsewhere", 10_000);
        run(this::handle);
        channel.loop.fails = false;
        pass(4_999);
        assertThat(server.core().running()).isEqualTo(1);
        assertThat(server.core().served()).isEqualTo(1);
        pass(1);
        assertThat(server.core().running()).isZero();
        assertThat(server.core().served()).isZero();
    }

    /** The callback for the cancel has run, but its thread could not notify the event loop that it is done. */
    @Test
    void thePlaceOfACallWhoseLastThreadCannotBeToldOfComesBackAtTheNextLook() {
        service.within = () -> CallContext.current().orElseThrow().onCancel(() -> {
            channel.loop.isElsewhere = true;
            channel.loop.fails = true;
        });
        call(0, "later", 10_000);
        handle();
        channel.writeInbound(RawPeer.frame(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER));
        service.waiting.get(0).complete("late");
        channel.runPendingTasks();
        service.within = () -> {};
        call(1, "later", 1_000);
        run(() -> hand.handle(0));
        channel.loop.isElsewhere = false;
        channel.loop.fails = false;
        handle();
        assertThat(places()).isEqualTo(2);
        pass(1_000);
        pass(1_000);
        hand.handleAll(channel);
        call(2, "later", 10_000);
        call(3, "later", 10_000);
        assertThat(places()).as("both serve other calls").isEqualTo(2);
        end();
        hand.handleAll(channel);
        assertThat(server.core().served()).isZero();
    }

    /**
     * Two calls are lost after the end of their connection, and memory runs out again while the server looks for them.
     *
     * @param reading the reading of the clock that fails: at the end of the first call, of the second, or after both
     */
    @ParameterizedTest
    @CsvSource({"3, false", "4, false", "5, false", "3, true", "4, true", "5, true"})
    void callsThatAreLostAreFoundAlsoWhereALookAtThemFails(int reading, boolean areCancelled) {
        service.within = () -> {
            service.within = () -> {
                for (int slot = 0; areCancelled && slot < 2; slot++) {
                    channel.writeInbound(RawPeer.frame(Wire.CANCEL, FIRST + slot, Unpooled.EMPTY_BUFFER));
                }
                end();
                pass(5_000);
                channel.loop.fails = true;
                hand.ticker.failAt(1);
            };
            assertThat(hand.handle(0)).isTrue();
            hand.ticker.failAt(1);
        };
        call(0, "elsewhere", 10_000);
        call(1, "elsewhere", 10_000);
        run(() -> hand.handle(0));
        channel.loop.fails = false;
        assertThat(server.core().running()).isEqualTo(2);
        hand.ticker.advance(5_000, TimeUnit.MILLISECONDS);
        hand.ticker.failAt(reading);
        timers.runScheduledPendingTasks();
        hand.ticker.failAt(0);
        pass(5_000);
        assertThat(server.core().running()).isZero();
        assertThat(server.core().served()).isZero();
        assertThat(places()).isZero();
    }

    @Test
    void aNoticeWhoseTimeCannotBeLookedAtEndsWithItsConnection() {
        channel.loop.failingTimers = 1;
        call(Wire.NOTICE, 0, "later", 10_000);
        assertThat(channel.loop.failingTimers).isZero();
        assertThat(connection.isClosed()).isTrue();
        assertThat(server.core().running()).isZero();
        assertThat(places()).isZero();
        assertThat(server.core().served()).isZero();
    }

    /** Many replies are sent together with the answer to the notice, and the connection ends while they are written. */
    @Test
    void aNoticeWithinWhoseAnswerItsConnectionEndsIsFoundAlsoWhereNoTimerCanBeSet() {
        ByteBuf requests = Unpooled.buffer();
        int slot = 0;
        for (int left = 256 * 1024; left > Wire.HEAD_BYTES; ) {
            int length = Math.min(16_000, left - 12);
            left -= RawPeer.frame(Wire.REPLY, FIRST, RawPeer.text("x".repeat(length)))
                    .readableBytes();
            ByteBuf payload = RawPeer.prelude("ends", "large").writeBytes(RawPeer.text(Integer.toString(length)));
            requests.writeBytes(RawPeer.frame(Wire.REQUEST | Wire.NAMED, FIRST + slot++, payload));
        }
        ByteBuf notice = RawPeer.prelude("ends", "elsewhere");
        Varint.write(notice, TimeUnit.SECONDS.toMicros(1));
        notice.writeBytes(RawPeer.text("a"));
        requests.writeBytes(RawPeer.frame(Wire.NOTICE | Wire.NAMED | Wire.TIME, FIRST + slot, notice));
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
                ReferenceCountUtil.release(message);
                if (!connection.isClosed()) {
                    channel.loop.failingTimers = 1;
                    connection.abort("of this test");
                    // the timer that is set after the failed one is due five seconds later
                    assertThat(channel.loop.failingTimers).isZero();
                    channel.loop.failingTimers = 1;
                }
            }
        });
        channel.writeInbound(requests);
        channel.runPendingTasks();
        channel.loop.failingTimers = 0;
        assertThat(connection.isClosed()).isTrue();
        assertThat(places()).as("that of the notice").isEqualTo(1);
        pass(5_000);
        hand.handleAll(channel);
        assertThat(server.core().running()).isZero();
        assertThat(places()).isZero();
        assertThat(server.core().served()).isZero();
    }

    /** A channel that fails once while a server accepts it. */
    private static final class Failing extends EmbeddedChannel {
        private final boolean failsAtOnce;
        private boolean hasFailed;

        Failing(MockTicker clock, boolean failsAtOnce) {
            super(EmbeddedChannel.builder().ticker(clock).register(false));
            this.failsAtOnce = failsAtOnce;
        }

        private void fail() {
            if (!hasFailed) {
                hasFailed = true;
                throw new OutOfMemoryError("of this test");
            }
        }

        @Override
        public ChannelFuture closeFuture() {
            if (failsAtOnce) {
                fail();
            }
            return super.closeFuture();
        }

        @Override
        public <T> Attribute<@Nullable T> attr(AttributeKey<T> key) {
            fail();
            return super.attr(key);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aConnectionThatCannotBeTakenIsNotCounted(boolean atOnce) {
        long before = server.core().ledger().held(Resource.CONNECTIONS);
        Failing failing = new Failing(hand.ticker, atOnce);
        hand.accept(failing);
        assertThat(failing.hasFailed).isTrue();
        assertThat(failing.isOpen()).isFalse();
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isEqualTo(before);
    }

    /** A channel to which no attribute can be attached while {@code isFull} is set. */
    private static final class Full extends EmbeddedChannel {
        private boolean isFull;

        Full(MockTicker clock) {
            super(EmbeddedChannel.builder().ticker(clock).register(false));
        }

        @Override
        public <T> Attribute<@Nullable T> attr(AttributeKey<T> key) {
            if (isFull) {
                throw new OutOfMemoryError("of this test");
            }
            return super.attr(key);
        }
    }

    private static ByteBuf connectionWithACall() {
        ByteBuf call = RawPeer.prelude("ends", "elsewhere");
        Varint.write(call, TimeUnit.SECONDS.toMicros(10));
        call.writeBytes(RawPeer.text("a"));
        return Unpooled.wrappedBuffer(
                RawPeer.preface(), RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME, FIRST, call));
    }

    /**
     * This happens over TLS: the last bytes are sent before the close, and records that come together are read one by
     * one.
     */
    @Test
    void whatFollowsABeginThatHasFailedIsNotTakenForAnotherUntilTheChannelIsClosed() {
        Full full = new Full(hand.ticker);
        hand.accept(full);
        full.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void close(ChannelHandlerContext ctx, ChannelPromise promise) {
                // the last bytes are never sent, so the channel does not close
            }
        });
        full.isFull = true;
        full.pipeline().fireChannelRead(connectionWithACall());
        full.isFull = false;
        ByteBuf second = connectionWithACall();
        full.pipeline().fireChannelRead(second);
        assertThat(second.refCnt()).isZero();
        assertThat(full.pipeline().get(ServerConnection.class)).isNull();
        assertThat(hand.handle(0)).as("a handler waits").isFalse();
        hand.ticker.advance(10, TimeUnit.SECONDS);
        assertThat(full.isOpen()).isTrue();
        full.runScheduledPendingTasks();
        assertThat(full.isOpen()).isFalse();
    }
}
