package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.RPCXException.Code;
import dev.rpcx.RPCXException.Executed;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.FloodGuard;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests a server's side of the native wire without sockets and threads. The test decides when a handler runs, and what
 * time it is.
 */
class WireServingTest {
    private static final int MAX_MESSAGE_BYTES = 64 * 1024;
    private static final int MAX_CALLS = 12;

    /** Id of the first generation in slot 0. */
    private static final int FIRST = 1 << 16;

    private record Frame(int head, int id, byte[] payload) {
        int type() {
            return head & Wire.TYPE_MASK;
        }
    }

    @RPCXServer("hand")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();
        final List<String> told = new ArrayList<>();
        final List<String> items = new ArrayList<>();
        final List<Flow.Subscription> takers = new ArrayList<>();
        final List<Long> left = new ArrayList<>();
        int begun;
        Runnable within = () -> {};
        Runnable atItem = () -> {};
        Runnable atError = () -> {};

        @Method
        String echo(String text) {
            begun++;
            left.add(CallContext.current().orElseThrow().remainingNanos());
            within.run();
            return text;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here(String text) {
            begun++;
            return text;
        }

        @Method
        CompletionStage<String> later() {
            within.run();
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            CallContext.current().orElseThrow().onCancel(() -> told.add("cancelled"));
            return result;
        }

        /** Returns a future like that of a call which is made on behalf of this one. */
        @Method
        CompletionStage<String> forwards() {
            within.run();
            CallFuture<String> made = new CallFuture<>();
            waiting.add(made);
            return made;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> laterHere() {
            return later();
        }

        @Method
        String much(int bytes) {
            return "x".repeat(bytes);
        }

        @Method
        @SuppressWarnings("NullAway") // a handler can do this all the same
        Flow.Publisher<String> bringsNothing() {
            return null;
        }

        @Method
        Flow.Publisher<String> fails(int count) {
            return new FuzzService.Items(count, true);
        }

        @Method
        Flow.Publisher<String> brings(int count) {
            within.run();
            return new FuzzService.Items(count, false);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> takes(Flow.Publisher<String> given) {
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            given.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    takers.add(subscription);
                }

                @Override
                public void onNext(String item) {
                    items.add(item);
                    atItem.run();
                }

                @Override
                public void onError(Throwable thrown) {
                    items.add("error");
                    atError.run();
                }

                @Override
                public void onComplete() {
                    items.add("end");
                }
            });
            return result;
        }
    }

    private final Service service = new Service();
    private final HandPlatform hand = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(hand)
            .maxCalls(MAX_CALLS)
            .maxRunning(AdmissionLimit.MIN_LIMIT)
            .maxMessageBytes(MAX_MESSAGE_BYTES)
            .keepAlive(Duration.ofMinutes(10))
            .build()
            .start();
    private final EmbeddedChannel channel = hand.accept();
    private final ArrayDeque<Frame> frames = new ArrayDeque<>();
    private final ByteBuf said = Unpooled.buffer();
    private boolean greeted;

    @BeforeEach
    void greet() {
        send(RawPeer.preface());
        Frame settings = next();
        assertThat(settings.type()).isEqualTo(Wire.SETTINGS);
        assertThat(Settings.read(Unpooled.wrappedBuffer(settings.payload())))
                .isEqualTo(new Settings(MAX_MESSAGE_BYTES, MAX_CALLS, Settings.INITIAL.defaultMicros()));
        assertThat(server.core().connections()).isEqualTo(1);
        assertThat(next().type()).isEqualTo(Wire.DICTIONARY);
        expectNothing();
    }

    @AfterEach
    void nothingIsLeft() {
        hand.handleAll(channel);
        channel.close();
        service.waiting.forEach(result -> result.complete("over"));
        hand.handleAll(channel);
        channel.releaseOutbound();
        hand.pass(channel, 2, TimeUnit.HOURS);
        assertThat(server.core().running()).isZero();
        assertThat(server.core().connections()).isZero();
        assertThat(server.core().served()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(hand.heldBytes()).isZero();
    }

    /** A long dictionary is written while it is made. Such a write ends a connection that has been reset. */
    @Test
    void aConnectionThatEndsWhileItIsGreetedIsForgotten() {
        EmbeddedChannel reset = hand.accept();
        byte[] preface = ByteBufUtil.getBytes(RawPeer.preface());
        hand.read(reset, preface, 0, preface.length);
        ServerConnection connection = reset.pipeline().get(ServerConnection.class);
        assertThat(server.core().connections()).isEqualTo(2);
        reset.close();
        assertThat(server.core().connections()).isEqualTo(1);
        server.core().register(reset, connection);
        assertThat(server.core().connections()).isEqualTo(1);
        assertThat(server.core().served()).isEqualTo(1);
        reset.releaseOutbound();
    }

    /**
     * The end of an upload is reported on the event loop, within the end of its connection. Code that waited for the
     * items learns of it and completes another call, whose slot is visited later.
     */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void aCallThatAnotherOnesEndCompletesWithinTheEndOfTheirConnectionEndsOnce(int polls) {
        for (int slot = 0; slot < 4; slot++) {
            call(FIRST + slot, "laterHere");
        }
        service.waiting.forEach(result -> result.complete("before"));
        hand.settle(channel);
        for (int slot = 0; slot < 4; slot++) {
            expectReply(FIRST + slot, "before");
        }
        service.waiting.clear();
        call(2 * FIRST, "takes", Unpooled.EMPTY_BUFFER);
        for (int poll = 1; poll <= polls; poll++) {
            call(2 * FIRST + poll, "laterHere");
        }
        assertThat(service.waiting).hasSize(1 + polls);
        service.atError = () -> service.waiting.forEach(result -> result.complete("it has gone"));
        channel.close();
        assertThat(service.items).containsExactly("error");
        assertThat(service.waiting).allMatch(CompletableFuture::isDone);
        assertThat(held(Resource.CALLS)).isZero();
        assertThat(server.core().connections()).isZero();
    }

    @Test
    void creditThatIsGivenOftenBeforeItsFrameIsSentIsOneFrame() throws InterruptedException {
        call(FIRST, "takes", Unpooled.EMPTY_BUFFER);
        Flow.Subscription taker = service.takers.get(0);
        Thread handler = new Thread(() -> {
            for (int item = 0; item < 1_500; item++) {
                taker.request(1);
            }
        });
        handler.start();
        handler.join();
        hand.settle(channel);
        Frame credit = next();
        assertThat(credit.type()).isEqualTo(Wire.CREDIT);
        assertThat(Varint.read(Unpooled.wrappedBuffer(credit.payload()))).isEqualTo(1_500);
        expectNothing();
        taker.request(2);
        hand.settle(channel);
        assertThat(Varint.read(Unpooled.wrappedBuffer(next().payload()))).isEqualTo(2);
        expectNothing();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    private void send(int head, int id, ByteBuf payload) {
        send(RawPeer.frame(head, id, payload));
    }

    private void call(int id, String method, ByteBuf body) {
        send(Wire.REQUEST | Wire.NAMED, id, RawPeer.prelude("hand", method).writeBytes(body));
    }

    private void call(int id, String method) {
        call(id, method, RawPeer.text("a"));
    }

    private static ByteBuf number(long number) {
        ByteBuf bytes = Unpooled.buffer();
        Varint.write(bytes, number);
        return bytes;
    }

    private static ByteBuf numbers(int argument) {
        return Unpooled.buffer().writeByte(1 << 3).writeBytes(number(argument));
    }

    private void handle() {
        assertThat(hand.handle(0)).as("a handler waits").isTrue();
        hand.settle(channel);
    }

    private void pass(Duration time) {
        hand.pass(channel, time.toNanos(), TimeUnit.NANOSECONDS);
    }

    private void look() {
        said.writeBytes(HandPlatform.written(channel));
        if (!greeted && said.readableBytes() >= Wire.PREFACE_BYTES) {
            said.skipBytes(Wire.PREFACE_BYTES);
            greeted = true;
        }
        while (said.isReadable()) {
            int length = Varint.readLength(said, Wire.MAX_FRAME_BYTES, "a frame");
            Frame frame = new Frame(said.readUnsignedByte(), said.readInt(), new byte[length - Wire.HEAD_BYTES]);
            said.readBytes(frame.payload());
            frames.add(frame);
        }
    }

    private Frame next() {
        look();
        assertThat(frames).as("a frame").isNotEmpty();
        return frames.remove();
    }

    private void expectNothing() {
        look();
        assertThat(frames).isEmpty();
    }

    private void expectReply(int id, String text) {
        Frame frame = next();
        assertThat(frame.head()).isEqualTo(Wire.REPLY);
        assertThat(frame.id()).isEqualTo(id);
        assertThat(frame.payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text(text)));
    }

    private void expectError(int id, Code code, Executed executed, String text) {
        Frame frame = next();
        assertThat(frame.head()).isEqualTo(Wire.ERROR);
        assertThat(frame.id()).isEqualTo(id);
        RPCXException error = WireError.read(Unpooled.wrappedBuffer(frame.payload()));
        assertThat(error.code()).isEqualTo(code);
        assertThat(error.executed()).isEqualTo(executed);
        assertThat(error).hasMessageContaining(text);
    }

    private void expectRefusal(int id, Code code, String text) {
        expectError(id, code, Executed.NOT_EXECUTED, text);
    }

    private void expectEnd(String text) {
        expectError(0, Code.PROTOCOL, Executed.MAYBE, text);
        pass(Duration.ofSeconds(3));
        assertThat(channel.isOpen()).isFalse();
    }

    private long held(Resource kind) {
        return server.core().ledger().held(kind);
    }

    // ---- calls

    @Test
    void aCallIsAnsweredWithWhatItsHandlerReturns() {
        call(FIRST, "echo");
        expectNothing();
        assertThat(server.core().running()).isEqualTo(1);
        handle();
        expectReply(FIRST, "a");
        assertThat(server.core().running()).isZero();
        call(FIRST + 1, "here");
        expectReply(FIRST + 1, "a");
    }

    @Test
    void aMethodIsCalledByItsNumberToo() {
        int found = 0;
        for (int number = 0; number < 10; number++) {
            send(Wire.REQUEST, FIRST + number, number(number).writeBytes(RawPeer.text("a")));
            while (hand.handle(0)) {
                hand.settle(channel);
            }
            look();
            Frame frame = frames.poll();
            found += frame == null || frame.type() != Wire.ERROR ? 1 : 0;
            frames.clear();
        }
        assertThat(found)
                .as("seven methods, of which one takes another argument")
                .isBetween(5, 7);
        send(Wire.REQUEST, FIRST + 11, number((1L << 32) + 1));
        expectRefusal(FIRST + 11, Code.NOT_FOUND, "no such");
    }

    @Test
    void theTimeOfACallIsWhatItSaysOrWhatTheClientHasSaid() {
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.DEFAULT_MICROS, 3_000_000);
        send(Wire.SETTINGS, 0, settings);
        call(FIRST, "echo");
        handle();
        send(
                Wire.REQUEST | Wire.NAMED | Wire.TIME,
                FIRST + 1,
                RawPeer.prelude("hand", "echo").writeBytes(number(5)).writeBytes(RawPeer.text("a")));
        handle();
        assertThat(service.left).containsExactly(TimeUnit.SECONDS.toNanos(3), TimeUnit.MICROSECONDS.toNanos(5));
        send(
                Wire.REQUEST | Wire.NAMED | Wire.TIME,
                FIRST + 2,
                RawPeer.prelude("hand", "echo").writeBytes(number(-1)).writeBytes(RawPeer.text("a")));
        handle();
        assertThat(service.left).last().isEqualTo(server.core().maxCallNanos());
        assertThat(service.begun).isEqualTo(3);
    }

    /** Otherwise the call would be late when it begins, and that would be taken for too much load. */
    @Test
    void whatAHandlerOnTheLoopTakesIsNotTakenOffTheTimeOfCallsThatWereReadWithIt() {
        service.within = () -> hand.ticker.advance(10, TimeUnit.MILLISECONDS);
        ByteBuf both = RawPeer.frame(Wire.REQUEST | Wire.NAMED, FIRST, RawPeer.prelude("hand", "laterHere"));
        both.writeBytes(RawPeer.frame(
                Wire.REQUEST | Wire.NAMED | Wire.TIME,
                FIRST + 1,
                RawPeer.prelude("hand", "echo").writeBytes(number(5_000)).writeBytes(RawPeer.text("a"))));
        send(both);
        service.within = () -> {};
        handle();
        expectReply(FIRST + 1, "a");
        assertThat(service.left).containsExactly(TimeUnit.MILLISECONDS.toNanos(5));
    }

    @Test
    void whatASubscriberOnTheLoopTakesIsNotTakenOffTheTimeOfCallsThatWereReadWithItsItem() {
        call(FIRST, "takes", Unpooled.EMPTY_BUFFER);
        service.takers.get(0).request(300);
        hand.settle(channel);
        assertThat(next().head()).isEqualTo(Wire.CREDIT);
        service.atItem = () -> hand.ticker.advance(10, TimeUnit.MILLISECONDS);
        ByteBuf all = RawPeer.frame(
                Wire.REQUEST | Wire.NAMED,
                FIRST + 1,
                RawPeer.prelude("hand", "echo").writeBytes(RawPeer.text("a")));
        all.writeBytes(RawPeer.frame(Wire.ITEM, FIRST, RawPeer.text("b")));
        all.writeBytes(RawPeer.frame(
                Wire.REQUEST | Wire.NAMED | Wire.TIME,
                FIRST + 2,
                RawPeer.prelude("hand", "echo").writeBytes(number(5_000)).writeBytes(RawPeer.text("c"))));
        send(all);
        assertThat(service.items).containsExactly("b");
        handle();
        expectReply(FIRST + 1, "a");
        handle();
        expectReply(FIRST + 2, "c");
        assertThat(service.left.get(1)).isEqualTo(TimeUnit.MILLISECONDS.toNanos(5));
    }

    /** Such a stream may go on for years. */
    @Test
    void aStreamHoldsNothingOfItsRequestOnceThatHasBeenRead() {
        ByteBuf body =
                numbers(3).writeByte(15 << 3 | 2).writeBytes(number(6_000)).writeZero(6_000);
        call(FIRST, "brings", body);
        assertThat(held(Resource.REQUEST_BYTES)).isPositive();
        handle();
        assertThat(held(Resource.STREAMS)).isEqualTo(1);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void whatIsNotServedIsRefused() {
        call(FIRST, "nothing");
        expectRefusal(FIRST, Code.NOT_FOUND, "no such");
        send(
                Wire.NOTICE | Wire.NAMED,
                FIRST + 1,
                RawPeer.prelude("hand", "brings").writeBytes(numbers(1)));
        expectRefusal(FIRST + 1, Code.INVALID, "stream");
        send(Wire.NOTICE | Wire.NAMED, FIRST + 2, RawPeer.prelude("hand", "takes"));
        expectRefusal(FIRST + 2, Code.INVALID, "stream");
        send(
                Wire.REQUEST | Wire.NAMED | Wire.TIME,
                FIRST + 3,
                RawPeer.prelude("hand", "echo").writeByte(0));
        expectRefusal(FIRST + 3, Code.DEADLINE_EXCEEDED, "without time");
        call(FIRST + MAX_CALLS, "echo");
        expectRefusal(FIRST + MAX_CALLS, Code.OVERLOADED, "more calls");
        assertThat(server.core().running()).isZero();
    }

    @Test
    void anIdWithoutAGenerationEndsTheConnection() {
        call(3, "echo");
        expectEnd("generation");
    }

    @Test
    void aSlotThatHasACallTakesNoOther() {
        call(FIRST + 11, "laterHere");
        call(2 * FIRST + 11, "laterHere");
        expectEnd("under way");
        assertThat(service.told).hasSize(1);
    }

    @Test
    void anIdThatCameLastIsNoNewCall() {
        call(FIRST + 9, "here");
        expectReply(FIRST + 9, "a");
        call(2 * FIRST + 9, "here");
        expectReply(2 * FIRST + 9, "a");
        call(FIRST + 9, "here");
        expectReply(FIRST + 9, "a");
        call(FIRST + 9, "here");
        expectEnd("twice running");
        assertThat(service.begun).isEqualTo(3);
    }

    @Test
    void oneConnectionDoesNotRunAllHandlers() {
        for (int round = 1; round < 4; round++) {
            for (int i = 0; i < 3; i++) {
                call(round * FIRST + i, "echo");
            }
            call(round * FIRST + 3, "echo");
            expectRefusal(round * FIRST + 3, Code.OVERLOADED, "more to do");
            for (int i = 0; i < 3; i++) {
                handle();
                expectReply(round * FIRST + i, "a");
            }
        }
    }

    @Test
    void aNoticeIsTakenAtOnceAndItsHandlerRunsAllTheSame() {
        send(Wire.NOTICE | Wire.NAMED, FIRST, RawPeer.prelude("hand", "echo").writeBytes(RawPeer.text("a")));
        Frame taken = next();
        assertThat(taken.head()).isEqualTo(Wire.REPLY);
        assertThat(taken.id()).isEqualTo(FIRST);
        assertThat(taken.payload()).isEmpty();
        call(2 * FIRST, "here");
        expectReply(2 * FIRST, "a");
        handle();
        assertThat(service.begun).isEqualTo(2);
        expectNothing();
    }

    @Test
    void aNoticeWhoseTimeIsOverIsToldSo() {
        send(Wire.NOTICE | Wire.NAMED, FIRST, RawPeer.prelude("hand", "laterHere"));
        next();
        pass(Duration.ofSeconds(9));
        assertThat(service.told).isEmpty();
        pass(Duration.ofSeconds(1));
        hand.settle(channel);
        assertThat(service.told).containsExactly("cancelled");
        assertThat(held(Resource.TIMERS)).as("it has a second to end").isEqualTo(2);
        pass(Duration.ofSeconds(1));
        assertThat(held(Resource.TIMERS)).isEqualTo(1);
        service.waiting.get(0).complete("late");
        expectNothing();
    }

    private final List<Account> greedy = new ArrayList<>();

    /** Charges others for all that there is of this resource. */
    private void takeAll(Resource kind) {
        // one connection has its own limit, so the number of connections depends on the heap
        for (boolean hasTaken = true; hasTaken; ) {
            hasTaken = false;
            Account other = Objects.requireNonNull(server.core().ledger().open(null));
            greedy.add(other);
            for (long step = 1L << 40; step > 0; step /= 2) {
                while (other.tryCharge(kind, step)) {
                    hasTaken = true;
                }
            }
        }
    }

    private void giveAll(Resource kind) {
        for (Account other : greedy) {
            other.release(kind, other.held(kind));
            other.close();
        }
        greedy.clear();
    }

    @Test
    void aRequestThatFindsNoRoomIsRefused() {
        call(FIRST, "here");
        expectReply(FIRST, "a");
        takeAll(Resource.REQUEST_BYTES);
        ByteBuf large = RawPeer.text("x".repeat(10_000));
        call(2 * FIRST, "echo", large.duplicate());
        expectRefusal(2 * FIRST, Code.OVERLOADED, "too many bytes of requests");
        send(
                Wire.REQUEST | Wire.NAMED | Wire.MORE,
                FIRST + 1,
                RawPeer.prelude("hand", "echo").writeBytes(large.duplicate()));
        expectRefusal(FIRST + 1, Code.OVERLOADED, "too many bytes of requests");
        assertThat(server.core().running()).isZero();
        call(3 * FIRST, "here");
        expectReply(3 * FIRST, "a");
        giveAll(Resource.REQUEST_BYTES);
        call(4 * FIRST, "echo", large.duplicate());
        handle();
        assertThat(next().type()).isEqualTo(Wire.REPLY);
    }

    @Test
    void aCallThatFindsNoPlaceIsRefused() {
        takeAll(Resource.CALLS);
        call(FIRST, "here");
        expectRefusal(FIRST, Code.OVERLOADED, "too many calls under way");
        giveAll(Resource.CALLS);
        call(2 * FIRST, "here");
        expectReply(2 * FIRST, "a");
    }

    @Test
    void aRequestInPartsIsRefusedByItsLastWhereTooManyRun() {
        for (int i = 0; i < 3; i++) {
            call(FIRST + i, "echo");
        }
        send(Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST + 3, RawPeer.prelude("hand", "echo"));
        expectNothing();
        send(Wire.PART, FIRST + 3, RawPeer.text("a"));
        expectRefusal(FIRST + 3, Code.OVERLOADED, "more to do");
        assertThat(server.core().running()).isEqualTo(3);
        assertThat(server.core().ledger().audit()).contains("a connection has 3 calls under way");
    }

    // ---- what is not read

    /** More than a megabyte of replies waits: the next requests are not begun before a part has been read. */
    @Test
    void requestsWaitWhileRepliesAreNotRead() {
        for (int i = 0; i < 6; i++) {
            call(FIRST + i, "laterHere");
        }
        call(FIRST + 6, "echo");
        call(FIRST + 7, "echo");
        hand.reads(channel, false);
        for (int i = 0; i < 6; i++) {
            service.waiting.get(i).complete("w".repeat(200_000));
            hand.settle(channel);
        }
        assertThat(held(Resource.REPLY_BYTES)).isGreaterThan(1 << 20);
        hand.handle(0);
        hand.settle(channel);
        hand.handle(0);
        hand.settle(channel);
        assertThat(service.begun).as("they wait").isZero();
        assertThat(server.core().running()).as("in no place of a handler").isZero();
        hand.reads(channel, true);
        hand.handleAll(channel);
        assertThat(service.begun).isEqualTo(2);
        look();
        assertThat(frames.stream().filter(frame -> frame.type() == Wire.REPLY)).hasSize(8);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
    }

    @Test
    void aRequestThatWaitsAndIsCancelledIsNotBegun() {
        for (int i = 0; i < 6; i++) {
            call(FIRST + i, "laterHere");
        }
        call(FIRST + 6, "echo");
        hand.reads(channel, false);
        for (int i = 0; i < 6; i++) {
            service.waiting.get(i).complete("w".repeat(200_000));
            hand.settle(channel);
        }
        hand.handle(0);
        hand.settle(channel);
        channel.close();
        hand.handleAll(channel);
        assertThat(service.begun).isZero();
        assertThat(server.core().running()).isZero();
    }

    // ---- floods

    @Test
    void pingsWithoutEndEndTheConnection() {
        for (int i = 0; i < FloodGuard.MAX_PINGS_PER_SECOND; i++) {
            send(Wire.PING, i, Unpooled.EMPTY_BUFFER);
            assertThat(next().type()).isEqualTo(Wire.PONG);
        }
        send(Wire.PING, 0, Unpooled.EMPTY_BUFFER);
        expectEnd("pings");
    }

    @Test
    void cancelsWithoutEndEndTheConnection() {
        call(FIRST, "here");
        expectReply(FIRST, "a");
        ByteBuf many = Unpooled.buffer();
        for (int i = 0; i <= FloodGuard.MAX_CANCELS_PER_SECOND; i++) {
            many.writeBytes(RawPeer.frame(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER));
        }
        send(many);
        expectNothing();
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectEnd("cancels");
    }

    // ---- handlers that end oddly

    @Test
    void aStreamThatIsNoneAndOneThatFailsAreErrors() {
        call(FIRST, "bringsNothing", Unpooled.EMPTY_BUFFER);
        hand.handleAll(channel);
        expectError(FIRST, Code.HANDLER_FAILED, Executed.EXECUTED, "no stream");
        call(FIRST + 1, "fails", numbers(1));
        send(Wire.CREDIT, FIRST + 1, number(1));
        send(Wire.CREDIT, FIRST + 1, number(1));
        hand.handleAll(channel);
        assertThat(next().type()).isEqualTo(Wire.ITEM);
        expectError(FIRST + 1, Code.HANDLER_FAILED, Executed.EXECUTED, "the publisher has failed");
        assertThat(server.core().running()).isZero();
        assertThat(held(Resource.STREAMS)).isZero();
    }

    @Test
    void creditsAddUp() {
        call(FIRST, "brings", numbers(9));
        send(Wire.CREDIT, FIRST, number(1));
        send(Wire.CREDIT, FIRST, number(2));
        hand.handleAll(channel);
        look();
        assertThat(frames).hasSize(3);
        frames.clear();
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        hand.handleAll(channel);
        next();
    }

    @Test
    void aStreamWhoseCallerGoesWhileItsHandlerRunsIsNotSubscribedTo() {
        service.within = () -> send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        call(FIRST, "brings", numbers(3));
        send(Wire.CREDIT, FIRST, number(3));
        hand.handleAll(channel);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        expectNothing();
        assertThat(server.core().running()).isZero();
        assertThat(held(Resource.STREAMS)).isZero();
    }

    /** A stream that has just begun counts as a fixed amount of unread data, until it makes an item itself. */
    @Test
    void streamsThatAreNotSubscribedToCountAsNothingThatIsUnread() {
        for (int i = 1; i <= 40; i++) {
            int id = i * FIRST;
            service.within = () -> send(Wire.CANCEL, id, Unpooled.EMPTY_BUFFER);
            call(id, "brings", numbers(3));
            hand.handleAll(channel);
            expectError(id, Code.CANCELLED, Executed.MAYBE, "cancelled");
        }
        service.within = () -> {};
        call(41 * FIRST, "brings", numbers(1));
        send(Wire.CREDIT, 41 * FIRST, number(1));
        hand.handleAll(channel);
        assertThat(next().type()).isEqualTo(Wire.ITEM);
        assertThat(next().type()).isEqualTo(Wire.REPLY);
    }

    @Test
    void aHandlerIsToldThatTheCallerOfItsStreamHasGone() {
        service.within =
                () -> CallContext.current().orElseThrow().onCancel(() -> service.told.add("the caller has gone"));
        call(FIRST, "brings", numbers(3));
        hand.handleAll(channel);
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        hand.handleAll(channel);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        assertThat(service.told).containsExactly("the caller has gone");
    }

    /** The slot may have another call by then. */
    @Test
    void creditThatIsGivenAsItsCallEndsIsNotSent() throws InterruptedException {
        call(FIRST, "takes", Unpooled.EMPTY_BUFFER);
        Thread handler = new Thread(() -> service.takers.get(0).request(1));
        handler.start();
        handler.join();
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        hand.settle(channel);
        expectNothing();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatIsMadeForACancelledOneIsCancelled(boolean isWhileTheHandlerRuns) {
        if (isWhileTheHandlerRuns) {
            service.within = () -> send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        }
        call(FIRST, "forwards", Unpooled.EMPTY_BUFFER);
        hand.handleAll(channel);
        if (!isWhileTheHandlerRuns) {
            assertThat(service.waiting.get(0)).isNotDone();
            send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
            hand.handleAll(channel);
        }
        assertThat(service.waiting.get(0)).isCancelled();
    }

    @Test
    void aFutureOfAHandlerWhoseCallerWentMeanwhileHasASecond() {
        service.within = () -> send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        call(FIRST, "later");
        handle();
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        assertThat(server.core().running()).isEqualTo(1);
        pass(Duration.ofMillis(999));
        assertThat(server.core().running()).isEqualTo(1);
        pass(Duration.ofMillis(2));
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aServerThatDrainsSaysSo() {
        channel.pipeline().get(ServerConnection.class).drain();
        hand.settle(channel);
        assertThat(next().type()).isEqualTo(Wire.GOAWAY);
        call(FIRST, "here");
        expectReply(FIRST, "a");
    }

    // ---- requests in parts

    @Test
    void aRequestInPartsIsWholeWithItsLast() {
        String text = "y".repeat(30_000);
        byte[] body = ByteBufUtil.getBytes(RawPeer.text(text));
        ByteBuf first = RawPeer.prelude("hand", "echo").writeBytes(body, 0, 10_000);
        send(Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST, first);
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(16 << 10);
        assertThat(server.core().running()).isZero();
        send(Wire.PART | Wire.MORE, FIRST, Unpooled.wrappedBuffer(body, 10_000, 10_000));
        send(Wire.PART, FIRST, Unpooled.wrappedBuffer(body, 20_000, body.length - 20_000));
        assertThat(server.core().running()).isEqualTo(1);
        assertThat(held(Resource.REQUEST_BYTES)).isBetween(30_000L, 36_000L);
        handle();
        assertThat(next().head()).isEqualTo(Wire.REPLY | Wire.MORE);
        assertThat(next().head()).isEqualTo(Wire.PART);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        send(Wire.PART, FIRST, Unpooled.buffer().writeByte(1));
        expectNothing();
        assertThat(channel.isOpen())
                .as("a part of a call that is over is passed over")
                .isTrue();
    }

    @Test
    void aRequestInPartsIsAtMostAsLargeAsAMessage() {
        int text = MAX_MESSAGE_BYTES - 4;
        byte[] body = ByteBufUtil.getBytes(RawPeer.text("y".repeat(text)));
        assertThat(body).hasSize(MAX_MESSAGE_BYTES);
        for (int more = 0; more < 2; more++) {
            int id = FIRST * (more + 1);
            send(Wire.REQUEST | Wire.NAMED | Wire.MORE, id, RawPeer.prelude("hand", "here"));
            for (int at = 0; at < body.length; at += 16_000) {
                int bytes = Math.min(16_000, body.length - at);
                boolean last = at + bytes == body.length;
                ByteBuf part = Unpooled.buffer().writeBytes(body, at, bytes).writeZero(last ? more : 0);
                send(last ? Wire.PART : Wire.PART | Wire.MORE, id, part);
            }
            if (more == 1) {
                expectRefusal(id, Code.TOO_LARGE, "65536");
            } else {
                look();
                assertThat(frames.peek().type()).isEqualTo(Wire.REPLY);
                frames.clear();
            }
        }
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void aPartOfAMessageThatHasNotBegunEndsTheConnection() {
        call(FIRST, "laterHere");
        send(Wire.PART, FIRST, RawPeer.text("a"));
        expectEnd("has not begun");
    }

    @Test
    void aRequestThatStandsStillIsEnded() {
        send(Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST, RawPeer.prelude("hand", "echo"));
        pass(Duration.ofMillis(9_900));
        send(Wire.PART | Wire.MORE, FIRST, Unpooled.buffer().writeZero(500));
        expectNothing();
        pass(Duration.ofMillis(100));
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "time");
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void aRequestThatGoesOnHasItsTime() {
        send(
                Wire.REQUEST | Wire.NAMED | Wire.MORE | Wire.TIME,
                FIRST,
                RawPeer.prelude("hand", "echo").writeBytes(number(TimeUnit.HOURS.toMicros(1))));
        int seconds = 0;
        look();
        while (frames.isEmpty()) {
            pass(Duration.ofSeconds(5));
            seconds += 5;
            send(Wire.PART | Wire.MORE, FIRST, Unpooled.buffer().writeZero(1_100));
            assertThat(seconds).isLessThan(200);
            look();
        }
        assertThat(seconds)
                .as("three times ten seconds, and what 16 KiB a second give")
                .isBetween(30, 40);
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "did not come to its end");
    }

    // ---- the end of calls

    /** The handler may be about to end a call of the connection. A server that stops waits for that. */
    @Test
    void aServerKnowsAConnectionThatIsOverUntilItsHandlerHasEnded() {
        List<Integer> known = new ArrayList<>();
        service.within = () -> {
            channel.close();
            known.add(server.core().served());
        };
        call(FIRST, "echo");
        handle();
        known.add(server.core().served());
        assertThat(known).containsExactly(1, 0);
    }

    @Test
    void aServerKnowsAConnectionThatIsOverUntilWhoWantedToBeToldHasBeenTold() {
        call(FIRST, "later");
        handle();
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        service.waiting.get(0).complete("late");
        hand.settle(channel);
        channel.close();
        assertThat(service.told).isEmpty();
        assertThat(server.core().served()).isEqualTo(1);
        handle();
        assertThat(service.told).containsExactly("cancelled");
        assertThat(server.core().served()).isZero();
    }

    @Test
    void aCallThatIsCancelledBeforeItsHandlerBeginsMakesRoomForAnotherAtOnce() {
        for (int i = 0; i < 3; i++) {
            call(FIRST + i, "echo");
        }
        send(Wire.CANCEL, FIRST + 1, Unpooled.EMPTY_BUFFER);
        expectRefusal(FIRST + 1, Code.CANCELLED, "cancelled");
        call(FIRST + 3, "echo");
        expectNothing();
        for (int i = 0; i < 4; i++) {
            handle();
        }
        for (int i : new int[] {0, 2, 3}) {
            expectReply(FIRST + i, "a");
        }
    }

    /** Code that waited for the items learns that the caller has gone, and ends the call within that notification. */
    @Test
    void aCallThatEndsWithinItsCancelIsToldThatItsHandlerMayHaveRun() {
        call(FIRST, "takes", Unpooled.EMPTY_BUFFER);
        service.atError = () -> service.waiting.get(0).complete("it has gone");
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        expectNothing();
        assertThat(service.items).containsExactly("error");
    }

    @Test
    void aFutureWhoseCallerGoesIsGivenUpAtOnceWhereItsServerDrains() {
        call(FIRST, "later");
        handle();
        channel.pipeline().get(ServerConnection.class).drain();
        hand.settle(channel);
        assertThat(next().type()).isEqualTo(Wire.GOAWAY);
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        assertThat(server.core().running()).isZero();
    }

    @Test
    void futuresOfWhichNoneEndsAreGivenUpOneAfterTheOther() {
        for (int i = 0; i < 3; i++) {
            call(FIRST + i, "later");
            handle();
        }
        for (int i = 0; i < 3; i++) {
            send(Wire.CANCEL, FIRST + i, Unpooled.EMPTY_BUFFER);
            handle();
            pass(Duration.ofMillis(300));
        }
        pass(Duration.ofMillis(100));
        for (int left = 2; left >= 0; left--) {
            assertThat(server.core().running()).isEqualTo(left);
            pass(Duration.ofMillis(300));
        }
    }

    @Test
    void aCallWhoseTimeIsOverIsToldSo() {
        call(FIRST, "laterHere");
        pass(Duration.ofMillis(9_999));
        expectNothing();
        pass(Duration.ofMillis(1));
        expectError(FIRST, Code.DEADLINE_EXCEEDED, Executed.MAYBE, "the time of the call is over");
        assertThat(service.told).containsExactly("cancelled");
        // the answer of the handler within the following second is dropped
        service.waiting.get(0).complete("late");
        hand.settle(channel);
        expectNothing();
        assertThat(held(Resource.HANDLERS)).isZero();
        call(FIRST + 1, "echo");
        pass(Duration.ofSeconds(10));
        expectRefusal(FIRST + 1, Code.DEADLINE_EXCEEDED, "time");
        handle();
        expectNothing();
        assertThat(service.begun).isZero();
    }

    /** All calls that one timer ends may be answered together. */
    @Test
    void callsWhoseTimeEndsTogetherAreAnsweredInOneWrite() {
        for (int i = 0; i < MAX_CALLS; i++) {
            call(FIRST + i, "laterHere");
        }
        AtomicInteger flushes = new AtomicInteger();
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                flushes.incrementAndGet();
                ctx.flush();
            }
        });
        pass(Duration.ofSeconds(10));
        for (int i = 0; i < MAX_CALLS; i++) {
            expectError(FIRST + i, Code.DEADLINE_EXCEEDED, Executed.MAYBE, "time");
        }
        assertThat(flushes).hasValue(1);
    }

    @Test
    void theEarliestOfSeveralDeadlinesIsKept() {
        for (int i = 1; i <= 3; i++) {
            send(
                    Wire.REQUEST | Wire.NAMED | Wire.TIME,
                    FIRST + i,
                    RawPeer.prelude("hand", "laterHere").writeBytes(number((4 - i) * 1_000_000L)));
        }
        for (int i = 3; i >= 1; i--) {
            pass(Duration.ofMillis(999));
            expectNothing();
            pass(Duration.ofMillis(1));
            expectError(FIRST + i, Code.DEADLINE_EXCEEDED, Executed.MAYBE, "time");
        }
    }

    @Test
    void aCancelEndsItsCallOnly() {
        call(FIRST, "laterHere");
        call(FIRST + 1, "laterHere");
        send(Wire.CANCEL, FIRST + 2, Unpooled.EMPTY_BUFFER);
        send(Wire.CANCEL, 2 * FIRST, Unpooled.EMPTY_BUFFER);
        expectNothing();
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        assertThat(service.told).hasSize(1);
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectNothing();
        service.waiting.get(1).complete("b");
        expectReply(FIRST + 1, "b");
    }

    @Test
    void aCallThatIsCancelledBeforeItsHandlerBeginsIsNotHandled() {
        call(FIRST, "echo");
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectError(FIRST, Code.CANCELLED, Executed.NOT_EXECUTED, "cancelled");
        handle();
        assertThat(service.begun).isZero();
        send(Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST + 1, RawPeer.prelude("hand", "echo"));
        send(Wire.CANCEL, FIRST + 1, Unpooled.EMPTY_BUFFER);
        expectRefusal(FIRST + 1, Code.CANCELLED, "cancelled");
        expectNothing();
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void aCallWhoseCallerIsGoneHasASecondToEnd() {
        call(FIRST, "later");
        handle();
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        handle();
        assertThat(service.told).containsExactly("cancelled");
        assertThat(server.core().running()).isEqualTo(1);
        pass(Duration.ofMillis(999));
        assertThat(server.core().running()).isEqualTo(1);
        pass(Duration.ofMillis(1));
        assertThat(server.core().running()).isZero();
    }

    @Test
    void severalCallsWhoseCallersAreGoneAreGivenUpEachInItsTime() {
        for (int i = 0; i < 3; i++) {
            call(FIRST + i, "later");
            handle();
        }
        for (int i : new int[] {1, 0, 2}) {
            send(Wire.CANCEL, FIRST + i, Unpooled.EMPTY_BUFFER);
            handle();
            pass(Duration.ofMillis(300));
        }
        assertThat(server.core().running()).isEqualTo(3);
        // the handler in the middle ends by itself
        service.waiting.get(0).complete("late");
        hand.settle(channel);
        assertThat(server.core().running()).isEqualTo(2);
        pass(Duration.ofMillis(100));
        assertThat(server.core().running()).isEqualTo(1);
        pass(Duration.ofMillis(600));
        assertThat(server.core().running()).isZero();
    }

    // ---- streams

    @Test
    void aStreamBringsWhatItsCallerHasCreditForAndEnds() {
        call(FIRST, "brings", numbers(3));
        handle();
        hand.handleAll(channel);
        expectNothing();
        send(Wire.CREDIT, FIRST, number(2));
        hand.handleAll(channel);
        for (int i = 1; i <= 2; i++) {
            Frame item = next();
            assertThat(item.head()).isEqualTo(Wire.ITEM);
            assertThat(item.id()).isEqualTo(FIRST);
        }
        expectNothing();
        send(Wire.CREDIT, FIRST, number(5));
        hand.handleAll(channel);
        assertThat(next().head()).isEqualTo(Wire.ITEM);
        Frame end = next();
        assertThat(end.head()).isEqualTo(Wire.REPLY);
        assertThat(end.payload()).isEmpty();
        assertThat(held(Resource.STREAMS)).isZero();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void creditThatComesBeforeTheHandlerIsKept() {
        call(FIRST, "brings", numbers(3));
        send(Wire.CREDIT, FIRST, number(-1));
        send(Wire.CREDIT, FIRST, number(2));
        send(Wire.CREDIT, FIRST + 1, number(2));
        hand.handleAll(channel);
        for (int i = 1; i <= 3; i++) {
            assertThat(next().head()).isEqualTo(Wire.ITEM);
        }
        assertThat(next().head()).isEqualTo(Wire.REPLY);
    }

    @Test
    void noCreditIsAFault() {
        call(FIRST, "brings", numbers(3));
        send(Wire.CREDIT, FIRST, number(0));
        expectEnd("credit 0");
    }

    @Test
    void aStreamThatIsCancelledEndsAndItsPlaceIsFree() {
        call(FIRST, "brings", numbers(1_000));
        hand.handleAll(channel);
        send(Wire.CREDIT, FIRST, number(1));
        hand.handleAll(channel);
        next();
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        hand.handleAll(channel);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        assertThat(held(Resource.STREAMS)).isZero();
    }

    private void item(int head, int id, String text) {
        send(head, id, RawPeer.text(text));
    }

    @Test
    void aStreamThatAServerTakesComesItemByItem() {
        call(FIRST, "takes", Unpooled.EMPTY_BUFFER);
        expectNothing();
        service.takers.get(0).request(300);
        hand.settle(channel);
        Frame credit = next();
        assertThat(credit.head()).isEqualTo(Wire.CREDIT);
        assertThat(credit.id()).isEqualTo(FIRST);
        assertThat(credit.payload()).isEqualTo(ByteBufUtil.getBytes(number(300)));
        item(Wire.ITEM, FIRST, "a");
        byte[] large = ByteBufUtil.getBytes(RawPeer.text("z".repeat(20_000)));
        send(Wire.ITEM | Wire.MORE, FIRST, Unpooled.wrappedBuffer(large, 0, 10_000));
        assertThat(held(Resource.ITEM_BYTES_IN)).isBetween(10_000L, 16_000L);
        send(Wire.PART, FIRST, Unpooled.wrappedBuffer(large, 10_000, large.length - 10_000));
        assertThat(held(Resource.ITEM_BYTES_IN)).isZero();
        item(Wire.ITEM, FIRST + 1, "of nobody");
        send(Wire.END, FIRST + 1, Unpooled.EMPTY_BUFFER);
        send(Wire.END, FIRST, Unpooled.EMPTY_BUFFER);
        assertThat(service.items).containsExactly("a", "z".repeat(20_000), "end");
        service.waiting.get(0).complete("b");
        expectReply(FIRST, "b");
        assertThat(held(Resource.STREAMS)).isZero();
    }

    @Test
    void anItemThatStandsStillEndsItsCall() {
        call(FIRST, "takes", Unpooled.EMPTY_BUFFER);
        service.takers.get(0).request(3);
        hand.settle(channel);
        next();
        send(Wire.ITEM | Wire.MORE, FIRST, Unpooled.buffer().writeZero(100));
        pass(Duration.ofMillis(9_999));
        expectNothing();
        pass(Duration.ofMillis(1));
        expectError(FIRST, Code.DEADLINE_EXCEEDED, Executed.MAYBE, "time");
        assertThat(service.items).containsExactly("error");
        assertThat(held(Resource.ITEM_BYTES_IN)).isZero();
    }

    @Test
    void anItemIsAtMostAsLargeAsAMessage() {
        call(FIRST, "takes", Unpooled.EMPTY_BUFFER);
        service.takers.get(0).request(3);
        hand.settle(channel);
        next();
        byte[] large = ByteBufUtil.getBytes(RawPeer.text("z".repeat(MAX_MESSAGE_BYTES - 3)));
        for (int at = 0; at < large.length; at += 16_000) {
            int bytes = Math.min(16_000, large.length - at);
            int head = at == 0 ? Wire.ITEM | Wire.MORE : at + bytes < large.length ? Wire.PART | Wire.MORE : Wire.PART;
            send(head, FIRST, Unpooled.wrappedBuffer(large, at, bytes));
        }
        expectError(FIRST, Code.TOO_LARGE, Executed.EXECUTED, "an item of more than 65536");
        assertThat(service.items).containsExactly("error");
    }

    @Test
    void itemsForACallThatTakesNoneEndTheConnection() {
        call(FIRST, "laterHere");
        item(Wire.ITEM, FIRST, "a");
        expectEnd("takes none");
    }

    @Test
    void theEndOfAStreamWithinARequestEndsTheConnection() {
        send(Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST, RawPeer.prelude("hand", "takes"));
        send(Wire.END, FIRST, Unpooled.EMPTY_BUFFER);
        expectEnd("within a request");
    }

    // ---- replies

    @Test
    void aReplyIsAtMostWhatTheClientTakes() {
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.MAX_MESSAGE, 1_000);
        send(Wire.SETTINGS, 0, settings);
        call(FIRST, "much", numbers(997));
        handle();
        assertThat(next().head()).isEqualTo(Wire.REPLY);
        call(FIRST + 1, "much", numbers(998));
        handle();
        expectError(FIRST + 1, Code.TOO_LARGE, Executed.EXECUTED, "1000");
        send(Wire.SETTINGS, 0, settings);
        expectEnd("settings twice");
    }

    @Test
    void whoDoesNotReadIsNotReadAndItsRepliesWait() {
        call(FIRST, "laterHere");
        call(FIRST + 1, "laterHere");
        hand.reads(channel, false);
        assertThat(channel.config().isAutoRead()).isFalse();
        service.waiting.get(0).complete("w".repeat(40_000));
        hand.settle(channel);
        expectNothing();
        assertThat(held(Resource.REPLY_BYTES)).as("the buffer").isBetween(64L << 10, 68L << 10);
        service.waiting.get(1).complete("b");
        hand.settle(channel);
        hand.reads(channel, true);
        assertThat(channel.config().isAutoRead()).isTrue();
        look();
        assertThat(frames).hasSize(4);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
    }

    /**
     * More than a megabyte of replies waits. The next requests of this client do not begin before it has read a part.
     */
    @Test
    void whoDoesNotReadHasNoMoreMadeForIt() {
        for (int i = 0; i < MAX_CALLS; i++) {
            call(FIRST + i, "laterHere");
        }
        int half = MAX_CALLS / 2;
        hand.reads(channel, false);
        for (int i = 0; i < half; i++) {
            service.waiting.get(i).complete("w".repeat(200_000));
            hand.settle(channel);
        }
        assertThat(held(Resource.REPLY_BYTES)).isGreaterThan(1 << 20);
        hand.reads(channel, true);
        look();
        assertThat(frames.stream().filter(frame -> frame.type() == Wire.REPLY)).hasSize(half);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
        frames.clear();
        call(2 * FIRST, "echo");
        handle();
        expectReply(2 * FIRST, "a");
    }

    // ---- the connection

    @Test
    void aPingIsAnsweredAndWhatIsUnknownIsPassedOver() {
        send(Wire.PING, 77, Unpooled.EMPTY_BUFFER);
        Frame pong = next();
        assertThat(pong.head()).isEqualTo(Wire.PONG);
        assertThat(pong.id()).isEqualTo(77);
        send(0, 3, RawPeer.text("a"));
        send(Wire.ERROR, 7, Unpooled.EMPTY_BUFFER);
        expectNothing();
        assertThat(channel.isOpen()).isTrue();
        send(Wire.ERROR, 0, Unpooled.EMPTY_BUFFER);
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aClientThatDrainsIsServedToTheEndOfItsCalls() {
        call(FIRST, "laterHere");
        send(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER);
        call(FIRST + 1, "here");
        expectRefusal(FIRST + 1, Code.UNAVAILABLE, "GOAWAY");
        assertThat(channel.isOpen()).isTrue();
        service.waiting.get(0).complete("b");
        hand.settle(channel);
        expectReply(FIRST, "b");
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aClientThatDrainsWithoutCallsIsClosed() {
        send(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER);
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aPeerThatBeginsItsPrefaceAndDoesNotEndItIsDisconnected() {
        pass(Duration.ofSeconds(30));
        EmbeddedChannel slow = hand.accept();
        hand.read(slow, new byte[] {'R', 'P'}, 0, 2);
        hand.pass(slow, 9_999, TimeUnit.MILLISECONDS);
        assertThat(slow.isOpen()).isTrue();
        hand.pass(slow, 1, TimeUnit.MILLISECONDS);
        assertThat(slow.isOpen()).isFalse();
        EmbeddedChannel good = hand.accept();
        byte[] preface = ByteBufUtil.getBytes(RawPeer.preface());
        hand.read(good, preface, 0, preface.length);
        hand.pass(good, 60, TimeUnit.SECONDS);
        assertThat(good.isOpen()).isTrue();
        good.close();
        good.releaseOutbound();
        slow.releaseOutbound();
    }

    @Test
    void placesAreKeptForCallsThatComeNextAndGivenUpWhenItIsQuiet() {
        long before = held(Resource.CALLS);
        for (int i = 0; i < 3; i++) {
            call(FIRST + i, "laterHere");
        }
        assertThat(held(Resource.CALLS)).isEqualTo(before + 3);
        service.waiting.forEach(result -> result.complete("b"));
        hand.settle(channel);
        assertThat(held(Resource.CALLS)).isEqualTo(before + 3);
        call(2 * FIRST, "laterHere");
        assertThat(held(Resource.CALLS)).as("one of them").isEqualTo(before + 3);
        service.waiting.get(3).complete("b");
        hand.settle(channel);
        // the first check finds that something was heard, and the second finds nothing
        pass(Duration.ofSeconds(200));
        pass(Duration.ofSeconds(200));
        assertThat(held(Resource.CALLS)).isZero();
    }

    @Test
    void theEndOfTheConnectionEndsEveryCall() {
        call(FIRST, "laterHere");
        call(FIRST + 1, "echo");
        call(FIRST + 2, "takes", Unpooled.EMPTY_BUFFER);
        send(Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST + 3, RawPeer.prelude("hand", "echo"));
        channel.close();
        hand.settle(channel);
        assertThat(service.told).hasSize(1);
        assertThat(service.items).containsExactly("error");
        handle();
        assertThat(service.begun).isZero();
        assertThat(held(Resource.STREAMS)).isZero();
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(server.core().running()).isZero();
    }
}
