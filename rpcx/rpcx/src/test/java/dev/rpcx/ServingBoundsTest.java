package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.RPCXException.Code;
import dev.rpcx.RPCXException.Executed;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.ledger.UnchargedAllowance;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.server.ServerPlatform;
import dev.rpcx.internal.server.Threads;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.Ticker;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests the bounds of a server's side of the native wire, each of them met exactly or exceeded by one. The bounds are
 * on what the server takes, on what it charges, and on how long it waits for what stands still. The clock is simulated,
 * and the test decides when a handler runs.
 */
class ServingBoundsTest {
    private static final int FIRST = 1 << 16;
    private static final int MANY = 2_000;
    private static final int ALL = 1_000_000;

    private record Frame(int head, int id, byte[] payload) {
        int type() {
            return head & Wire.TYPE_MASK;
        }
    }

    record Torn(String first, String second) {
        @Override
        public String second() {
            throw new IllegalStateException("by the test");
        }
    }

    @RPCXServer("bounds")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();
        final List<String> told = new ArrayList<>();

        @Method
        String echo(String text) {
            return text;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here(String text) {
            return text;
        }

        @Method
        CompletionStage<String> later() {
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            CallContext.current().orElseThrow().onCancel(() -> told.add("cancelled"));
            return result;
        }

        @Method
        CompletionStage<String> keeps(String text) {
            return later();
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> laterHere() {
            return later();
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String much(int bytes) {
            return "x".repeat(bytes);
        }

        @Method
        Torn torn() {
            return new Torn("written", "not written");
        }

        @Method
        List<String> hole() {
            return Arrays.asList("written", null);
        }

        @Method
        Flow.Publisher<String> brings(int count) {
            return new FuzzService.Items(count, false);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        Flow.Publisher<String> bringsHere(int count) {
            return new FuzzService.Items(count, false);
        }

        @Method
        CompletionStage<String> takes(Flow.Publisher<String> given) {
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            given.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(5);
                }

                @Override
                public void onNext(String item) {
                    told.add("item of " + item.length());
                }

                @Override
                public void onError(Throwable thrown) {
                    told.add(String.valueOf(thrown.getMessage()));
                }

                @Override
                public void onComplete() {
                    told.add("end");
                }
            });
            return result;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> takesHere(Flow.Publisher<String> given) {
            return takes(given);
        }
    }

    /** Handlers wait in a queue, or find no thread where a test wants that. */
    private final class Queued implements ServerPlatform {
        @Override
        public Loops loops(int count, String name, boolean inProcess) {
            return hand.loops(count, name, inProcess);
        }

        @Override
        public Threads threads(int poolSize) {
            return new Threads(poolSize) {
                @Override
                public void run(EventLoop loop, RunOn.Place place, Runnable handler) {
                    if (hasNoThread) {
                        throw new RejectedExecutionException("by the test");
                    }
                    handlers.add(() -> runShared(handler));
                }
            };
        }

        @Override
        public Ticker ticker() {
            return hand.ticker();
        }

        @Override
        public RandomGenerator random() {
            return hand.random();
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final ArrayDeque<Runnable> handlers = new ArrayDeque<>();
    private final Service service = new Service();
    private final ArrayDeque<Frame> frames = new ArrayDeque<>();
    private final ByteBuf said = Unpooled.buffer();
    private final List<Account> greedy = new ArrayList<>();
    private boolean hasNoThread;
    private boolean greeted;
    private @Nullable Server server;
    private @Nullable EmbeddedChannel channel;

    private void serve(int maxRunning, int maxCalls, int maxMessageBytes) {
        server = Server.builder(RegistryServer.registry(service))
                .platform(new Queued())
                .maxRunning(maxRunning)
                .maxCalls(maxCalls)
                .maxMessageBytes(maxMessageBytes)
                .keepAlive(Duration.ofMinutes(60))
                .build()
                .start();
        channel = hand.accept();
        send(RawPeer.preface());
        assertThat(next().head()).isEqualTo(Wire.SETTINGS);
        assertThat(next().head()).as("the last part of the dictionary").isEqualTo(Wire.DICTIONARY);
        expectNothing();
    }

    private void serve() {
        serve(100, MANY, 4 << 20);
    }

    @AfterEach
    void nothingIsLeft() {
        hasNoThread = false;
        giveAll();
        handleAll();
        channel().close();
        service.waiting.forEach(result -> result.complete("over"));
        handleAll();
        channel().releaseOutbound();
        hand.pass(channel(), 2, TimeUnit.HOURS);
        assertThat(server().core().running()).isZero();
        assertThat(server().core().connections()).isZero();
        assertThat(server().core().ledger().audit()).isEmpty();
        assertThat(hand.heldBytes()).isZero();
    }

    private Server server() {
        return Objects.requireNonNull(server);
    }

    private EmbeddedChannel channel() {
        return Objects.requireNonNull(channel);
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel(), all, 0, all.length);
    }

    private void send(int head, int id, ByteBuf payload) {
        send(RawPeer.frame(head, id, payload));
    }

    /** Sends a frame whose bytes have arrived before the server stopped reading. */
    private void sendToo(ByteBuf frame) {
        channel().config().setAutoRead(true);
        send(frame);
    }

    private static ByteBuf request(int id, String method, ByteBuf body) {
        return RawPeer.frame(
                Wire.REQUEST | Wire.NAMED, id, RawPeer.prelude("bounds", method).writeBytes(body));
    }

    private static ByteBuf request(int id, String method) {
        return request(id, method, RawPeer.text("a"));
    }

    private void call(int id, String method, ByteBuf body) {
        send(request(id, method, body));
    }

    private void call(int id, String method) {
        send(request(id, method));
    }

    private void begin(int id, String method, Duration time, int more) {
        ByteBuf prelude = RawPeer.prelude("bounds", method);
        Varint.write(prelude, TimeUnit.NANOSECONDS.toMicros(time.toNanos()));
        send(Wire.REQUEST | Wire.NAMED | Wire.TIME | more, id, prelude);
    }

    private static ByteBuf zeros(int bytes) {
        return Unpooled.buffer().writeZero(bytes);
    }

    /** Returns a text that takes so many bytes as a message. */
    private static ByteBuf message(int bytes) {
        ByteBuf text = RawPeer.text("m".repeat(bytes - textHeader(bytes)));
        assertThat(text.readableBytes()).isEqualTo(bytes);
        return text;
    }

    private static int textHeader(int bytes) {
        return bytes <= 129 ? 2 : bytes <= 16_386 ? 3 : 4;
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
        assertThat(handlers).as("a handler waits").isNotEmpty();
        handlers.remove().run();
        hand.settle(channel());
    }

    private void handleAll() {
        hand.settle(channel());
        while (!handlers.isEmpty()) {
            handle();
        }
    }

    private void pass(long millis) {
        hand.pass(channel(), millis, TimeUnit.MILLISECONDS);
    }

    private void look() {
        said.writeBytes(HandPlatform.written(channel()));
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

    private void expectReply(int id) {
        Frame frame = next();
        assertThat(frame.head()).isEqualTo(Wire.REPLY);
        assertThat(frame.id()).isEqualTo(id);
    }

    private static RPCXException error(Frame frame, int id) {
        assertThat(frame.head()).isEqualTo(Wire.ERROR);
        assertThat(frame.id()).isEqualTo(id);
        return WireError.read(Unpooled.wrappedBuffer(frame.payload()));
    }

    private void expectError(int id, Code code, Executed executed, String text) {
        RPCXException error = error(next(), id);
        assertThat(error.code()).isEqualTo(code);
        assertThat(error.executed()).isEqualTo(executed);
        assertThat(error).hasMessageContaining(text);
    }

    private void expectRefusal(int id, Code code, String text) {
        expectError(id, code, Executed.NOT_EXECUTED, text);
    }

    private long held(Resource kind) {
        return server().core().ledger().held(kind);
    }

    /** Lets others take all that there is of this resource. */
    private void takeAll(Resource kind) {
        for (boolean hasTaken = true; hasTaken; ) {
            hasTaken = false;
            Account other = Objects.requireNonNull(server().core().ledger().open(null));
            greedy.add(other);
            for (long step = 1L << 40; step > 0; step /= 2) {
                while (other.tryCharge(kind, step)) {
                    hasTaken = true;
                }
            }
        }
    }

    private void giveAll() {
        for (Account other : greedy) {
            for (Resource kind : Resource.values()) {
                long all = other.held(kind);
                if (all > 0) {
                    other.release(kind, all);
                }
            }
            other.close();
        }
        greedy.clear();
    }

    // ---- slots and places

    @Test
    void aSlotFarAboveThoseBeforeItIsMadeRoomFor() {
        serve();
        send(Wire.CANCEL, FIRST + 8, Unpooled.EMPTY_BUFFER);
        expectNothing();
        call(FIRST + MANY - 1, "here");
        expectReply(FIRST + MANY - 1);
        call(FIRST + 8, "here");
        expectReply(FIRST + 8);
    }

    /** Every connection has room for 64 slots without a charge. */
    @Test
    void aSlotThatFindsNoRoomIsRefused() {
        serve();
        takeAll(Resource.TABLE_BYTES);
        call(FIRST + 63, "here");
        expectReply(FIRST + 63);
        call(FIRST + 64, "here");
        expectRefusal(FIRST + 64, Code.OVERLOADED, "too many bytes");
        giveAll();
        call(FIRST + 64, "here");
        expectReply(FIRST + 64);
        assertThat(held(Resource.TABLE_BYTES))
                .as("as many slots again, at eight bytes")
                .isEqualTo(8 * 64);
    }

    @Test
    void aSlotHasRoomThoughBuffersThatAreKeptHaveNone() {
        serve();
        takeAll(Resource.KEPT_BYTES);
        for (int slot : new int[] {8, 63, 64, MANY - 1}) {
            call(FIRST + slot, "here");
            expectReply(FIRST + slot);
        }
        assertThat(held(Resource.TABLE_BYTES)).isEqualTo(8 * (MANY - 64));
    }

    /**
     * A client that is at rest, or has used only few slots for a while, keeps room for those slots only. Others need
     * the rest.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void roomForSlotsThatAreNotUsedAnyMoreIsGivenBack(boolean isLively) {
        serve();
        begin(FIRST + 599, "takesHere", Duration.ofHours(1), 0);
        assertThat(next().head()).isEqualTo(Wire.CREDIT);
        call(FIRST + MANY - 1, "here");
        expectReply(FIRST + MANY - 1);
        long third = TimeUnit.MINUTES.toMillis(20);
        pass(third);
        assertThat(held(Resource.TABLE_BYTES)).as("it was just used").isEqualTo(8 * (MANY - 64));
        if (isLively) {
            call(FIRST, "here");
            expectReply(FIRST);
        }
        pass(third);
        assertThat(held(Resource.TABLE_BYTES)).as("a call is there").isEqualTo(8 * (600 - 64));
        if (!isLively) {
            assertThat(next().head()).isEqualTo(Wire.PING);
        }
        send(Wire.CANCEL, FIRST + 599, Unpooled.EMPTY_BUFFER);
        assertThat(next().head()).isEqualTo(Wire.ERROR);
        pass(third);
        assertThat(held(Resource.TABLE_BYTES)).as("it was there just now").isEqualTo(8 * (600 - 64));
        pass(third);
        assertThat(held(Resource.TABLE_BYTES)).isZero();
        assertThat(next().head()).isEqualTo(Wire.PING);
        call(2 * FIRST + MANY - 1, "here");
        expectReply(2 * FIRST + MANY - 1);
        call(2 * FIRST + 599, "here");
        expectReply(2 * FIRST + 599);
    }

    /** A client takes slots in this order. */
    @Test
    void slotsThatWereUsedOneAfterTheOtherAreAllKnown() {
        serve();
        call(FIRST + 900, "here");
        expectReply(FIRST + 900);
        pass(TimeUnit.MINUTES.toMillis(20));
        for (int slot = 0; slot < 101; slot++) {
            call(FIRST + slot, "here");
            expectReply(FIRST + slot);
        }
        pass(TimeUnit.MINUTES.toMillis(20));
        assertThat(held(Resource.TABLE_BYTES)).isEqualTo(8 * (101 - 64));
        ServerConnection connection = channel().pipeline().get(ServerConnection.class);
        assertThat(connection.tableSlots()).isEqualTo(2 * 101);
    }

    /** A request that comes twice is not executed twice, since a slot is not forgotten as soon as its call is over. */
    @Test
    void theLastCallOfASlotIsKnownForAWhile() {
        serve();
        call(FIRST + 599, "here");
        expectReply(FIRST + 599);
        pass(TimeUnit.MINUTES.toMillis(20));
        call(FIRST + 599, "here");
        Frame frame = next();
        assertThat(frame.head()).isEqualTo(Wire.ERROR);
        assertThat(frame.id()).isZero();
    }

    @Test
    void aCancelledCallHasItsPlaceUntilItsHandlerHasEnded() {
        serve(100, 3, 4 << 20);
        for (int i = 0; i < 3; i++) {
            call(FIRST + i, "echo");
            send(Wire.CANCEL, FIRST + i, Unpooled.EMPTY_BUFFER);
            expectRefusal(FIRST + i, Code.CANCELLED, "cancelled");
        }
        call(2 * FIRST, "echo");
        expectRefusal(2 * FIRST, Code.OVERLOADED, "too many calls under way");
        handle();
        call(3 * FIRST, "here");
        expectReply(3 * FIRST);
    }

    /** The heap is full when a call comes in: its connection ends, and nothing of it stays counted. */
    @Test
    void nothingIsKeptOfACallForWhichThereWasNoMemory() {
        serve();
        for (String method : List.of("later", "laterHere")) {
            for (int readings = 1; readings <= 12; readings++) {
                EmbeddedChannel peer = hand.accept();
                peer.pipeline().fireChannelRead(RawPeer.preface());
                hand.ticker.failAt(readings);
                peer.pipeline().fireChannelRead(request(FIRST, method));
                hand.ticker.failAt(0);
                peer.runPendingTasks();
                handleAll();
                peer.close();
                service.waiting.forEach(result -> result.complete("over"));
                handleAll();
                hand.pass(peer, 5, TimeUnit.SECONDS);
                peer.releaseOutbound();
                assertThat(server().core().running())
                        .as(method + " " + readings)
                        .isZero();
                assertThat(server().core().ledger().audit())
                        .as(method + " " + readings)
                        .isEmpty();
            }
        }
    }

    /** The heap is full when a call with metadata comes in, in a place that has a large buffer. */
    @Test
    void nothingOfMetadataAndBuffersIsKeptOfACallForWhichThereWasNoMemory() {
        serve();
        ByteBuf payload = RawPeer.prelude("bounds", "echo").writeBytes(metadata(5_000));
        ByteBuf request =
                RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.METADATA, 2 * FIRST, payload.writeBytes(message(4_000)));
        for (int readings = 1; readings <= 6; readings++) {
            EmbeddedChannel peer = hand.accept();
            peer.pipeline().fireChannelRead(RawPeer.preface());
            peer.pipeline().fireChannelRead(request(FIRST, "much", numbers(10_000)));
            assertThat(held(Resource.KEPT_BYTES)).isGreaterThan(10_000);
            hand.ticker.failAt(readings);
            peer.pipeline().fireChannelRead(request.copy());
            hand.ticker.failAt(0);
            peer.runPendingTasks();
            handleAll();
            peer.close();
            hand.pass(peer, 5, TimeUnit.SECONDS);
            peer.releaseOutbound();
            assertThat(server().core().running()).as("%s", readings).isZero();
            assertThat(server().core().ledger().audit()).as("%s", readings).isEmpty();
        }
    }

    /** The heap is full when a call comes in that would be refused. */
    @Test
    void nothingIsKeptOfARefusalForWhichThereWasNoMemory() {
        serve(AdmissionLimit.MIN_LIMIT, MANY, 4 << 20);
        for (int readings = 1; readings <= 4; readings++) {
            EmbeddedChannel peer = hand.accept();
            peer.pipeline().fireChannelRead(RawPeer.preface());
            int calls = 0;
            do {
                peer.pipeline().fireChannelRead(request(FIRST + calls, "echo"));
                calls++;
            } while (server().core().running() == calls);
            hand.ticker.failAt(readings);
            peer.pipeline().fireChannelRead(request(FIRST + calls, "echo"));
            hand.ticker.failAt(0);
            peer.close();
            peer.runPendingTasks();
            handleAll();
            peer.releaseOutbound();
            assertThat(server().core().running()).as("%s", readings).isZero();
            assertThat(server().core().ledger().audit()).as("%s", readings).isEmpty();
        }
    }

    @Test
    void aStreamForWhichThereIsNoRoomIsRefused() {
        serve();
        takeAll(Resource.STREAMS);
        call(FIRST, "takesHere", Unpooled.buffer());
        expectRefusal(FIRST, Code.OVERLOADED, "too many streams");
        giveAll();
        call(FIRST + 1, "takesHere", Unpooled.buffer());
        assertThat(next().head()).isEqualTo(Wire.CREDIT);
    }

    @Test
    void asManyPlacesAreKeptAsABurstIsSmall() {
        serve();
        for (int i = 0; i < 515; i++) {
            call(FIRST + i, "laterHere");
        }
        assertThat(held(Resource.CALLS)).isEqualTo(515);
        service.waiting.forEach(result -> result.complete("b"));
        hand.settle(channel());
        assertThat(held(Resource.CALLS)).isEqualTo(512);
    }

    @Test
    void aLargeBufferIsChargedOnceWhileItsPlaceKeepsIt() {
        serve();
        call(FIRST, "much", numbers(10));
        expectReply(FIRST);
        assertThat(held(Resource.KEPT_BYTES)).as("of the first size").isZero();
        call(2 * FIRST, "much", numbers(10_000));
        expectReply(2 * FIRST);
        long kept = held(Resource.KEPT_BYTES);
        assertThat(kept).isBetween(10_000L, 20_000L);
        call(3 * FIRST, "laterHere");
        assertThat(held(Resource.KEPT_BYTES)).as("also while a call has it").isEqualTo(kept);
        service.waiting.get(0).complete("b");
        hand.settle(channel());
        assertThat(held(Resource.KEPT_BYTES)).isEqualTo(kept);
        // the server reads nothing for as long as two looks take
        pass(TimeUnit.MINUTES.toMillis(20));
        pass(TimeUnit.MINUTES.toMillis(20));
        assertThat(held(Resource.KEPT_BYTES)).isZero();
        assertThat(held(Resource.CALLS)).isZero();
        call(4 * FIRST, "laterHere");
        assertThat(held(Resource.CALLS)).isEqualTo(1);
    }

    @Test
    void aBufferThatIsTooLargeIsNotKept() {
        serve();
        call(FIRST, "much", numbers(1_000_000));
        hand.settle(channel());
        look();
        assertThat(frames).hasSizeGreaterThan(50);
        frames.clear();
        assertThat(held(Resource.KEPT_BYTES)).isZero();
    }

    @Test
    void aBufferThatWasKeptIsChargedNoLongerOnceItsReplyHasBeenRefused() {
        serve();
        call(FIRST, "much", numbers(10_000));
        expectReply(FIRST);
        assertThat(held(Resource.KEPT_BYTES)).isGreaterThan(10_000);
        call(2 * FIRST, "laterHere");
        hand.reads(channel(), false);
        takeAll(Resource.REPLY_BYTES);
        service.waiting.get(0).complete("b".repeat(9_000));
        hand.settle(channel());
        hand.reads(channel(), true);
        expectError(2 * FIRST, Code.OVERLOADED, Executed.EXECUTED, "the reply could not be kept");
        assertThat(held(Resource.KEPT_BYTES)).isZero();
    }

    @Test
    void aBufferThatHasGrownAndMayNotBeKeptIsChargedNoLonger() {
        serve();
        call(FIRST, "much", numbers(10_000));
        expectReply(FIRST);
        long kept = held(Resource.KEPT_BYTES);
        takeAll(Resource.KEPT_BYTES);
        long all = held(Resource.KEPT_BYTES);
        call(2 * FIRST, "much", numbers(100_000));
        hand.settle(channel());
        look();
        assertThat(frames).isNotEmpty();
        frames.clear();
        assertThat(held(Resource.KEPT_BYTES)).isEqualTo(all - kept);
    }

    /** What the call has sent beside its stream is read once, and the stream may go on for long. */
    @Test
    void aCallThatTakesAStreamKeepsNoLargeBuffer() {
        serve();
        ByteBuf unknown = Unpooled.buffer().writeByte(15 << 3 | 2);
        unknown.writeBytes(number(9_000)).writeZero(9_000);
        call(FIRST, "takes", unknown);
        assertThat(held(Resource.REQUEST_BYTES)).isGreaterThan(9_000);
        handleAll();
        assertThat(service.waiting).hasSize(1);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        service.waiting.get(0).complete("b");
        handleAll();
        look();
        assertThat(frames).anyMatch(frame -> frame.type() == Wire.REPLY);
        frames.clear();
        assertThat(held(Resource.KEPT_BYTES)).isZero();
    }

    /** The handler of the stream has ended, and the stream may go on for long. */
    @Test
    void aStreamKeepsNoLargeBuffer() {
        serve();
        call(FIRST, "much", numbers(10_000));
        expectReply(FIRST);
        assertThat(held(Resource.KEPT_BYTES)).isGreaterThan(10_000);
        call(2 * FIRST, "brings", numbers(1));
        handleAll();
        assertThat(held(Resource.KEPT_BYTES)).isZero();
        send(Wire.CREDIT, 2 * FIRST, number(1));
        handleAll();
        assertThat(next().type()).isEqualTo(Wire.ITEM);
        expectReply(2 * FIRST);
    }

    /** Makes so many calls at once. After each of them, its place keeps a large buffer. */
    private void burst(int generation, int calls) {
        service.waiting.clear();
        for (int i = 0; i < calls; i++) {
            call(generation * FIRST + i, "laterHere");
        }
        for (int i = 0; i < calls; i++) {
            service.waiting.get(i).complete("b".repeat(10_000));
            hand.settle(channel());
            expectReply(generation * FIRST + i);
        }
        assertThat(held(Resource.CALLS)).isEqualTo(calls);
    }

    @Test
    void halfOfThePlacesOfABurstIsGivenUpEachTimeThoughTheirConnectionIsLively() {
        serve();
        burst(1, 8);
        long each = held(Resource.KEPT_BYTES) / 8;
        assertThat(each).isGreaterThan(10_000);
        for (int left = 4; left >= 0; left /= 2) {
            send(Wire.PING, 7, Unpooled.EMPTY_BUFFER);
            assertThat(next().type()).isEqualTo(Wire.PONG);
            pass(TimeUnit.MINUTES.toMillis(20));
            assertThat(held(Resource.CALLS)).isEqualTo(left);
            assertThat(held(Resource.KEPT_BYTES)).isEqualTo(left * each);
            if (left == 0) {
                break;
            }
        }
        burst(2, 3);
    }

    @Test
    void placesThatAConnectionKeepsAreGivenUpWhereAnotherFindsNone() {
        serve();
        burst(1, 5);
        pass(1_000);
        takeAll(Resource.CALLS);
        EmbeddedChannel other = hand.accept();
        hand.read(other, ByteBufUtil.getBytes(RawPeer.preface()), 0, Wire.PREFACE_BYTES);
        HandPlatform.written(other);
        for (int code : new int[] {Wire.ERROR, Wire.REPLY}) {
            byte[] request = ByteBufUtil.getBytes(request(code * FIRST, "here"));
            hand.read(other, request, 0, request.length);
            hand.settle(channel());
            ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(other));
            Varint.readLength(in, Wire.MAX_FRAME_BYTES, "a frame");
            assertThat(in.readUnsignedByte()).isEqualTo((short) code);
        }
        other.close();
        other.releaseOutbound();
        giveAll();
        burst(2, 3);
    }

    @Test
    void aBufferThatMayNotBeKeptIsGivenUp() {
        serve();
        call(FIRST, "here");
        expectReply(FIRST);
        takeAll(Resource.KEPT_BYTES);
        call(2 * FIRST, "much", numbers(10_000));
        expectReply(2 * FIRST);
        giveAll();
        call(3 * FIRST, "here");
        expectReply(3 * FIRST);
        assertThat(held(Resource.KEPT_BYTES)).isZero();
    }

    @Test
    void whatManyRepliesWereGatheredInIsGivenUpWhenItIsQuiet() {
        serve();
        ByteBuf many = Unpooled.buffer();
        for (int i = 0; i < 900; i++) {
            many.writeBytes(request(FIRST + i, "here"));
        }
        send(many);
        look();
        assertThat(frames).hasSize(900);
        assertThat(held(Resource.TABLE_BYTES)).isEqualTo(8 * (1024 - 64));
        assertThat(held(Resource.KEPT_BYTES)).isGreaterThan(4096);
        pass(TimeUnit.MINUTES.toMillis(20));
        pass(TimeUnit.MINUTES.toMillis(20));
        assertThat(held(Resource.KEPT_BYTES)).isZero();
    }

    // ---- what requests cost

    @Test
    void aRequestIsChargedFromFourKibibytesOn() {
        serve();
        call(FIRST, "echo", message(4_096));
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        call(FIRST + 1, "echo", message(4_097));
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(8_192);
    }

    private static ByteBuf metadata(int bytes) {
        ByteBuf encoded = Unpooled.buffer();
        for (int text = bytes; encoded.readableBytes() != bytes; text--) {
            encoded.clear();
            MetadataFields.write(encoded, Metadata.EMPTY.with("n", "v".repeat(text)));
        }
        return encoded;
    }

    private void callWith(int id, ByteBuf metadata) {
        callWith(id, metadata, 4_000);
    }

    private void callWith(int id, ByteBuf metadata, int bytes) {
        send(
                Wire.REQUEST | Wire.NAMED | Wire.METADATA,
                id,
                RawPeer.prelude("bounds", "echo").writeBytes(metadata).writeBytes(message(bytes)));
    }

    /** Metadata are charged two bytes of memory for each of their bytes, and what an entry costs beside that. */
    @Test
    void metadataAreChargedByWhatTheyTakeInMemory() {
        serve();
        callWith(FIRST, metadata((4_096 - 160) / 2));
        assertThat(held(Resource.REQUEST_BYTES)).as("just not counted").isZero();
        callWith(FIRST + 1, metadata(5_000));
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(12_288);
        takeAll(Resource.REQUEST_BYTES);
        callWith(FIRST + 2, metadata(5_000));
        expectRefusal(FIRST + 2, Code.OVERLOADED, "too many bytes of requests");
    }

    @Test
    void metadataStayChargedForAsLongAsAStream() {
        serve();
        ByteBuf payload = RawPeer.prelude("bounds", "takes").writeBytes(metadata(5_000));
        send(Wire.REQUEST | Wire.NAMED | Wire.METADATA, FIRST, payload);
        handleAll();
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(12_288);
        service.waiting.get(0).complete("enough");
        handleAll();
        expectReply(FIRST);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void aCallThatWaitsForItsCallerToReadIsChargedForItsMetadata() {
        serve();
        wait(0, 1);
        ByteBuf payload = RawPeer.prelude("bounds", "echo").writeBytes(metadata(1_000));
        sendToo(RawPeer.frame(
                Wire.REQUEST | Wire.NAMED | Wire.METADATA, FIRST + 10, payload.writeBytes(RawPeer.text("a"))));
        assertThat(held(Resource.REQUEST_BYTES))
                .as("it is counted as one that runs")
                .isZero();
        handleAll();
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(4_096);
        hand.reads(channel(), true);
        handleAll();
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    /** A handler that is counted may hold more without a charge than one that is not. */
    @Test
    void whatASmallRequestIsReadIntoNeedsNoRoomWhereItsHandlerIsCounted() {
        serve();
        takeAll(Resource.OBJECT_BYTES);
        call(FIRST, "echo", message(10_000));
        handleAll();
        expectReply(FIRST);
        call(2 * FIRST, "here", message(900));
        expectReply(2 * FIRST);
        call(3 * FIRST, "here", message(10_000));
        expectRefusal(3 * FIRST, Code.OVERLOADED, "the request cannot be read");
    }

    /** Such a call is not counted among the calls that run, which are few. */
    @Test
    void aRequestThatIsNotWholeIsChargedForMoreThanAToken() {
        serve();
        for (int bytes : new int[] {(UnchargedAllowance.MAX_IDLE_METADATA_BYTES - 160) / 2, 200}) {
            assertThat(held(Resource.REQUEST_BYTES)).isZero();
            send(
                    Wire.REQUEST | Wire.NAMED | Wire.METADATA | Wire.MORE,
                    FIRST + bytes,
                    RawPeer.prelude("bounds", "echo").writeBytes(metadata(bytes)));
        }
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(4_096);
    }

    @Test
    void whereManyMayRunARequestIsChargedFromFewerBytesOn() {
        serve(1_000_000, MANY, 4 << 20);
        UnchargedAllowance most = server().core().ledger().uncharged();
        assertThat(most.bodyBytes()).isLessThan(4_096);
        call(FIRST, "echo", message(most.bodyBytes()));
        callWith(FIRST + 1, metadata((most.metadataBytes() - 160) / 2), most.bodyBytes());
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        call(FIRST + 2, "echo", message(most.bodyBytes() + 1));
        assertThat(held(Resource.REQUEST_BYTES)).isPositive();
    }

    @Test
    void metadataOfARefusedCallAreNotCharged() {
        serve(AdmissionLimit.MIN_LIMIT, MANY, 4 << 20);
        for (int i = 0; i < 3; i++) {
            call(FIRST + i, "echo");
        }
        callWith(FIRST + 3, metadata(5_000));
        expectRefusal(FIRST + 3, Code.OVERLOADED, "more to do");
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void messagesAreTakenUpToTheLargest() {
        serve(100, MANY, 100);
        call(FIRST, "here", message(100));
        expectReply(FIRST);
        call(2 * FIRST, "here", message(101));
        expectRefusal(2 * FIRST, Code.TOO_LARGE, "a request of more than 100");
        call(FIRST + 1, "takesHere", Unpooled.EMPTY_BUFFER);
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        send(Wire.ITEM, FIRST + 1, message(100));
        assertThat(service.told).containsExactly("item of 98");
        send(Wire.ITEM, FIRST + 1, message(101));
        expectError(FIRST + 1, Code.TOO_LARGE, Executed.EXECUTED, "an item of more than 100");
    }

    @Test
    void aRequestRefusedForItsBytesIsNotBegunAndGivesUpItsHandlersPlace() {
        serve(AdmissionLimit.MIN_LIMIT, MANY, 4 << 20);
        takeAll(Resource.REQUEST_BYTES);
        for (int i = 0; i < 8; i++) {
            call(FIRST + i, "echo", message(10_000));
            expectRefusal(FIRST + i, Code.OVERLOADED, "too many bytes of requests");
        }
        send(Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST + 8, RawPeer.prelude("bounds", "echo"));
        send(Wire.PART, FIRST + 8, message(10_000));
        expectRefusal(FIRST + 8, Code.OVERLOADED, "too many bytes of requests");
        assertThat(handlers).isEmpty();
        assertThat(server().core().running()).isZero();
        giveAll();
        for (int i = 0; i < 3; i++) {
            call(2 * FIRST + i, "echo", message(10_000));
        }
        expectNothing();
        assertThat(handlers).hasSize(3);
    }

    @Test
    void aRequestInPartsThatIsRefusedByItsLastIsNotBegun() {
        serve(AdmissionLimit.MIN_LIMIT, MANY, 4 << 20);
        for (int i = 0; i < 3; i++) {
            call(FIRST + i, "echo");
        }
        send(Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST + 3, RawPeer.prelude("bounds", "echo"));
        send(Wire.PART, FIRST + 3, RawPeer.text("a"));
        expectRefusal(FIRST + 3, Code.OVERLOADED, "more to do");
        assertThat(handlers).hasSize(3);
    }

    @Test
    void manyRefusalsAtOnceHaveNoTextFromSomeOn() {
        serve(AdmissionLimit.MIN_LIMIT, MANY, 4 << 20);
        ByteBuf many = Unpooled.buffer();
        for (int i = 0; i < 603; i++) {
            many.writeBytes(request(FIRST + i, "echo"));
        }
        send(many);
        look();
        assertThat(frames).hasSize(600);
        RPCXException first = error(frames.getFirst(), FIRST + 3);
        assertThat(first).hasMessageContaining("more to do");
        RPCXException last = error(frames.getLast(), FIRST + 602);
        assertThat(last.code()).isEqualTo(Code.OVERLOADED);
        assertThat(last.executed()).isEqualTo(Executed.NOT_EXECUTED);
        assertThat(last.getMessage()).doesNotContain("more to do");
    }

    // ---- what stands still

    @Test
    void aRequestThatStandsStillIsEndedAfterTenSecondsHoweverMuchTimeItHas() {
        serve();
        begin(FIRST, "echo", Duration.ofHours(1), Wire.MORE);
        pass(9_999);
        expectNothing();
        pass(1);
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "did not come to its end");
    }

    @Test
    void aRequestThatBringsAKibibyteInTenSecondsHasTenMore() {
        serve();
        begin(FIRST, "echo", Duration.ofHours(1), Wire.MORE);
        begin(FIRST + 1, "echo", Duration.ofHours(1), Wire.MORE);
        send(Wire.PART | Wire.MORE, FIRST, zeros(1024));
        send(Wire.PART | Wire.MORE, FIRST + 1, zeros(1023));
        pass(10_000);
        expectRefusal(FIRST + 1, Code.DEADLINE_EXCEEDED, "did not come to its end");
        pass(9_999);
        expectNothing();
        pass(1);
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "did not come to its end");
    }

    @Test
    void aLookForAnotherCallDoesNotBeginTheTenSecondsAnew() {
        serve();
        pass(20_000);
        begin(FIRST, "echo", Duration.ofHours(1), Wire.MORE);
        begin(FIRST + 1, "laterHere", Duration.ofSeconds(5), 0);
        pass(4_000);
        send(Wire.PART | Wire.MORE, FIRST, zeros(2_000));
        pass(1_000);
        expectError(FIRST + 1, Code.DEADLINE_EXCEEDED, Executed.MAYBE, "time");
        // the first step ends at ten seconds, since the look at that moment is the one that counts
        pass(5_000);
        pass(9_999);
        expectNothing();
        pass(1);
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "did not come to its end");
    }

    /** Such a request has half a minute, and a second for each 16 KiB that have come. */
    @Test
    void aLargeRequestHasTimeByWhatItHasBrought() {
        serve();
        begin(FIRST, "echo", Duration.ofHours(1), Wire.MORE);
        for (int seconds = 5; seconds <= 35; seconds += 5) {
            pass(5_000);
            expectNothing();
            send(Wire.PART | Wire.MORE, FIRST, zeros(10_000));
            send(Wire.PART | Wire.MORE, FIRST, zeros(10_000));
        }
        // the request has 30 s and 140,000 / 16,384 s
        pass(3_544);
        expectNothing();
        // looks are 5 ms apart at least
        pass(6);
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "did not come to its end");
    }

    @Test
    void theTimeOfARequestInPartsIsItsOwnAndNotThatOfTheCallBeforeInItsPlace() {
        serve();
        begin(FIRST, "here", Duration.ofHours(1), Wire.MORE);
        send(Wire.PART, FIRST, RawPeer.text("a"));
        expectReply(FIRST);
        pass(40_000);
        begin(2 * FIRST, "here", Duration.ofHours(1), Wire.MORE);
        pass(9_999);
        expectNothing();
        pass(1);
        expectRefusal(2 * FIRST, Code.DEADLINE_EXCEEDED, "did not come to its end");
    }

    @Test
    void anItemThatStandsStillIsEndedAfterTenSecondsHoweverMuchTimeItsCallHas() {
        serve();
        begin(FIRST, "takesHere", Duration.ofHours(1), 0);
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        pass(40_000);
        send(Wire.ITEM | Wire.MORE, FIRST, zeros(100));
        pass(9_999);
        expectNothing();
        pass(1);
        expectError(
                FIRST,
                Code.DEADLINE_EXCEEDED,
                Executed.MAYBE,
                "an item did not come to its end in time (expected: 1024 bytes of it in each 10000 ms)");
    }

    private RPCXException late(int id) {
        RPCXException error = error(next(), id);
        assertThat(error.code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        return error;
    }

    /**
     * The error of each call says what has kept the call from its end. This is its own time, or what its message was
     * expected to bring.
     */
    @Test
    void whoComesTooLateIsToldWhatWasExpected() {
        serve();
        pass(60_000);
        begin(FIRST, "takesHere", Duration.ofSeconds(3), 0);
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        send(Wire.ITEM | Wire.MORE, FIRST, zeros(100));
        begin(FIRST + 1, "echo", Duration.ofSeconds(3), Wire.MORE);
        begin(FIRST + 2, "echo", Duration.ofHours(1), Wire.MORE);
        begin(FIRST + 3, "echo", Duration.ofHours(1), Wire.MORE);
        pass(3_000);
        assertThat(late(FIRST)).hasMessage("the time of the call is over");
        assertThat(late(FIRST + 1)).hasMessage("the request did not come to its end in time");
        for (int seconds = 3; seconds < 33; seconds += 5) {
            send(Wire.PART | Wire.MORE, FIRST + 3, zeros(1_024));
            pass(5_000);
        }
        assertThat(late(FIRST + 2))
                .hasMessage(
                        "the request did not come to its end in time (expected: 1024 bytes of it in each 10000 ms)");
        assertThat(late(FIRST + 3))
                .hasMessage("the request did not come to its end in time (expected: 16384 bytes of it a second)");
    }

    /**
     * The peer may have sent the rest long ago, since it is the server that does not read. It does not read because its
     * peer reads slowly.
     */
    @Test
    void timeInWhichTheServerDoesNotReadCountsAgainstNoRequestAndNoItem() {
        serve();
        begin(FIRST, "laterHere", Duration.ofHours(1), Wire.MORE);
        begin(FIRST + 1, "takesHere", Duration.ofHours(1), 0);
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        send(Wire.ITEM | Wire.MORE, FIRST + 1, RawPeer.text("abc"));
        for (int i = 0; i < 9; i++) {
            pass(1_000);
            hand.reads(channel(), false);
            pass(5_000);
            hand.reads(channel(), true);
            // something is read between two pauses
            send(Wire.PONG, 0, Unpooled.EMPTY_BUFFER);
        }
        expectNothing();
        send(Wire.PART, FIRST, Unpooled.EMPTY_BUFFER);
        send(Wire.PART, FIRST + 1, Unpooled.EMPTY_BUFFER);
        assertThat(service.told).containsExactly("item of 3");
        assertThat(service.waiting).hasSize(2);
    }

    /**
     * A client that reads no replies makes the server stop reading. It would otherwise keep the room of what it has
     * begun.
     */
    @Test
    void pausesGiveAMessageItsOwnTimeAgainAndNoMore() {
        serve();
        begin(FIRST, "laterHere", Duration.ofHours(1), Wire.MORE);
        send(Wire.PART | Wire.MORE, FIRST, zeros(16_000));
        begin(FIRST + 1, "takesHere", Duration.ofHours(1), 0);
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        send(Wire.ITEM | Wire.MORE, FIRST + 1, RawPeer.text("abc"));
        hand.reads(channel(), false);
        pass(59_999);
        assertThat(server().core().ledger().held(Resource.STREAMS)).isEqualTo(1);
        // this is twice half a minute, and two looks are at least 5 ms apart
        pass(6);
        assertThat(server().core().ledger().held(Resource.STREAMS)).isZero();
        // the request has one more second for 16,384 bytes
        pass(1_940);
        assertThat(server().core().ledger().held(Resource.REQUEST_BYTES)).isPositive();
        pass(20);
        assertThat(server().core().ledger().held(Resource.REQUEST_BYTES)).isZero();
        hand.reads(channel(), true);
        expectError(FIRST + 1, Code.DEADLINE_EXCEEDED, Executed.MAYBE, "");
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "");
    }

    @Test
    void pausesGiveARequestThatStandsStillNoMoreThanTheirOwnTime() {
        serve();
        begin(FIRST, "echo", Duration.ofHours(1), Wire.MORE);
        pass(4_000);
        hand.reads(channel(), false);
        pass(20_000);
        hand.reads(channel(), true);
        // otherwise the next pause would wait until something has been read
        send(Wire.PONG, 0, Unpooled.EMPTY_BUFFER);
        pass(5_000);
        hand.reads(channel(), false);
        pass(20_000);
        hand.reads(channel(), true);
        pass(999);
        expectNothing();
        // after a look in a pause, the next one follows a second later
        pass(1_001);
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "did not come to its end");
    }

    /** What the peer has said is still in the socket when its channel is looked at next. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anAnswerToAPingIsNotMissedWhereTheServerDidNotRead(boolean isLookedAtMeanwhile) {
        serve();
        passALook();
        passALook();
        assertThat(next().head()).isEqualTo(Wire.PING);
        hand.reads(channel(), false);
        if (isLookedAtMeanwhile) {
            passALook();
        }
        hand.reads(channel(), true);
        passALook();
        assertThat(channel().isOpen()).isTrue();
        passALook();
        assertThat(next().head()).as("asked anew").isEqualTo(Wire.PING);
        passALook();
        assertThat(channel().isOpen()).as("behind an answer that does not come").isFalse();
    }

    private void passALook() {
        hand.pass(channel(), 20, TimeUnit.MINUTES);
    }

    /**
     * More replies fill the room again at once. Without a read in between, an upload beside them would never get out of
     * its client.
     */
    @Test
    void somethingIsReadBetweenOnePauseAndTheNext() {
        serve();
        hand.reads(channel(), false);
        assertThat(channel().config().isAutoRead()).isFalse();
        hand.reads(channel(), true);
        hand.reads(channel(), false);
        assertThat(channel().config().isAutoRead()).isTrue();
        send(Wire.PONG, 0, Unpooled.EMPTY_BUFFER);
        assertThat(channel().config().isAutoRead()).isFalse();
        hand.reads(channel(), true);
        assertThat(channel().config().isAutoRead()).isTrue();
    }

    @Test
    void theTimeOfACallGoesOnWhileTheServerDoesNotRead() {
        serve();
        begin(FIRST, "echo", Duration.ofSeconds(30), Wire.MORE);
        hand.reads(channel(), false);
        pass(29_999);
        assertThat(server().core().ledger().held(Resource.CALLS)).isEqualTo(1);
        // looks are 5 ms apart at least
        pass(5);
        hand.reads(channel(), true);
        // the error has no text, since the client did not read
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "");
    }

    @Test
    void whatIsWholeIsNotWaitedFor() {
        serve();
        begin(FIRST, "laterHere", Duration.ofHours(1), Wire.MORE);
        begin(FIRST + 1, "takesHere", Duration.ofHours(1), 0);
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        send(Wire.ITEM | Wire.MORE, FIRST + 1, RawPeer.text("abc"));
        pass(5_000);
        send(Wire.PART, FIRST, Unpooled.EMPTY_BUFFER);
        send(Wire.PART, FIRST + 1, Unpooled.EMPTY_BUFFER);
        assertThat(service.told).containsExactly("item of 3");
        for (int seconds = 0; seconds < 100; seconds += 5) {
            pass(5_000);
        }
        expectNothing();
        service.waiting.forEach(result -> result.complete("b"));
        hand.settle(channel());
        expectReply(FIRST + 1);
        expectReply(FIRST);
    }

    @Test
    void aCallThatWaitsForAThreadHasItsTime() {
        serve();
        call(FIRST, "echo");
        pass(9_999);
        expectNothing();
        pass(1);
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "the time of the call is over");
    }

    @Test
    void aCallThatHasEndedLeavesNoTimer() {
        serve();
        long before = held(Resource.TIMERS);
        call(FIRST, "here");
        expectReply(FIRST);
        assertThat(held(Resource.TIMERS)).isEqualTo(before);
    }

    private long nextTaskMillis() {
        return TimeUnit.NANOSECONDS.toMillis(channel().runScheduledPendingTasks());
    }

    @Test
    void nobodyLooksBeforeThereIsSomethingToSee() {
        serve();
        begin(FIRST, "laterHere", Duration.ofSeconds(3), 0);
        begin(FIRST + 1, "laterHere", Duration.ofSeconds(1), 0);
        assertThat(nextTaskMillis()).isEqualTo(1_000);
        pass(1_000);
        // the future of the second call has a second to end
        assertThat(nextTaskMillis()).isEqualTo(1_000);
        pass(1_000);
        assertThat(nextTaskMillis()).isEqualTo(1_000);
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        assertThat(nextTaskMillis()).isEqualTo(1_000);
    }

    // ---- calls whose callers are gone

    @Test
    void theFutureOfANoticeWhoseTimeIsOverHasASecond() {
        serve();
        send(Wire.NOTICE | Wire.NAMED, FIRST, RawPeer.prelude("bounds", "later"));
        handleAll();
        expectReply(FIRST);
        begin(FIRST + 1, "laterHere", Duration.ofMillis(10_500), 0);
        pass(10_000);
        handleAll();
        assertThat(service.told).containsExactly("cancelled");
        assertThat(server().core().running()).isEqualTo(1);
        pass(500);
        assertThat(next().id()).as("a call that is looked at meanwhile").isEqualTo(FIRST + 1);
        assertThat(server().core().running()).isEqualTo(1);
        pass(499);
        assertThat(server().core().running()).isEqualTo(1);
        pass(1);
        assertThat(server().core().running()).isZero();
    }

    @Test
    void aPlaceThatAFutureKeepsIsNotItsConnectionsAnyMore() {
        serve(100, 1, 4 << 20);
        takeAll(Resource.OBJECT_BYTES);
        call(FIRST, "keeps");
        handleAll();
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        handleAll();
        pass(1_000);
        assertThat(server().core().running()).isZero();
        call(2 * FIRST, "here");
        expectReply(2 * FIRST);
        assertThat(held(Resource.CALLS)).isEqualTo(2);
        service.waiting.get(0).complete("late");
        assertThat(held(Resource.CALLS)).isEqualTo(1);
    }

    @Test
    void aPlaceThatAFutureKeepsHasNoLargeBuffer() {
        serve();
        call(FIRST, "much", numbers(10_000));
        expectReply(FIRST);
        assertThat(held(Resource.KEPT_BYTES)).isGreaterThan(10_000);
        takeAll(Resource.OBJECT_BYTES);
        call(2 * FIRST, "keeps");
        handleAll();
        send(Wire.CANCEL, 2 * FIRST, Unpooled.EMPTY_BUFFER);
        expectError(2 * FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        handleAll();
        pass(1_000);
        assertThat(held(Resource.CALLS)).as("the future's").isEqualTo(1);
        assertThat(held(Resource.KEPT_BYTES)).isZero();
    }

    @Test
    void aHandlerIsToldOfItsCallersEndAlsoWhereThereIsNoThread() {
        serve();
        call(FIRST, "later");
        handleAll();
        hasNoThread = true;
        send(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "cancelled");
        assertThat(service.told).containsExactly("cancelled");
    }

    // ---- streams

    @Test
    void aStreamsSlotIsFreeWhenItHasEnded() {
        serve();
        for (String method : List.of("brings", "bringsHere")) {
            call(FIRST, method, numbers(2));
            send(Wire.CREDIT, FIRST, number(2));
            handleAll();
            assertThat(next().type()).isEqualTo(Wire.ITEM);
            assertThat(next().type()).isEqualTo(Wire.ITEM);
            expectReply(FIRST);
            call(2 * FIRST, "here");
            expectReply(2 * FIRST);
        }
    }

    @Test
    void aSubscriberIsToldWhereItsHandlerRuns() {
        serve();
        call(FIRST, "takes", Unpooled.EMPTY_BUFFER);
        handleAll();
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        send(Wire.ITEM, FIRST, RawPeer.text("abc"));
        assertThat(service.told).isEmpty();
        handle();
        assertThat(service.told).containsExactly("item of 3");
        hasNoThread = true;
        send(Wire.ITEM, FIRST, RawPeer.text("abcd"));
        assertThat(service.told).as("at once where there is no thread").containsExactly("item of 3", "item of 4");
    }

    @Test
    void anItemThatFindsNoRoomEndsItsCall() {
        serve();
        call(FIRST, "takesHere", Unpooled.EMPTY_BUFFER);
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        takeAll(Resource.ITEM_BYTES_IN);
        send(Wire.ITEM | Wire.MORE, FIRST, zeros(10_000));
        expectError(FIRST, Code.OVERLOADED, Executed.EXECUTED, "too many bytes of items");
    }

    @Test
    void aReplyBeforeTheEndOfItsStreamEndsTheStream() {
        serve();
        call(FIRST, "takesHere", Unpooled.EMPTY_BUFFER);
        assertThat(next().type()).isEqualTo(Wire.CREDIT);
        service.waiting.get(0).complete("enough");
        expectReply(FIRST);
        assertThat(service.told).containsExactly("the call is over");
    }

    // ---- replies and who does not read them

    @Test
    void aReplyOfOneFrameIsSentToWhoReadsThoughNothingCanBeKept() {
        serve();
        takeAll(Resource.REPLY_BYTES);
        int most = Wire.MAX_PAYLOAD_BYTES - textHeader(Wire.MAX_PAYLOAD_BYTES);
        call(FIRST, "much", numbers(most));
        Frame reply = next();
        assertThat(reply.head()).isEqualTo(Wire.REPLY);
        assertThat(reply.payload()).hasSize(Wire.MAX_PAYLOAD_BYTES);
        call(2 * FIRST, "much", numbers(most + 1));
        expectError(2 * FIRST, Code.OVERLOADED, Executed.EXECUTED, "the reply could not be kept");
    }

    @Test
    void whoDoesNotReadIsToldWhereItsReplyCannotBeKept() {
        serve();
        call(FIRST, "laterHere");
        hand.reads(channel(), false);
        takeAll(Resource.REPLY_BYTES);
        service.waiting.get(0).complete("b");
        hand.settle(channel());
        assertThat(channel().isOpen()).isTrue();
        hand.reads(channel(), true);
        expectError(FIRST, Code.OVERLOADED, Executed.EXECUTED, "the reply could not be kept");
    }

    @ParameterizedTest
    @ValueSource(strings = {"torn", "hole"})
    void aResultThatCannotBeSentIsSaidSoAndNothingOfItIsSent(String method) {
        serve();
        call(FIRST, method);
        handleAll();
        Frame answer = next();
        RPCXException error = error(answer, FIRST);
        assertThat(error.code()).isEqualTo(Code.HANDLER_FAILED);
        assertThat(error.executed()).isEqualTo(Executed.EXECUTED);
        assertThat(error).hasMessageContaining("the result cannot be sent");
        ByteBuf alone = Unpooled.buffer();
        WireError.write(alone, error);
        assertThat(answer.payload()).isEqualTo(ByteBufUtil.getBytes(alone));
    }

    @Test
    void aResultThatIsLargerThanItsCallerTakesIsSaidSoAndNothingOfItIsSent() {
        serve();
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.MAX_MESSAGE, 1_000);
        send(Wire.SETTINGS, 0, settings);
        int most = 1_000 - textHeader(1_000);
        call(FIRST, "much", numbers(most));
        expectReply(FIRST);
        call(2 * FIRST, "much", numbers(most + 1));
        Frame answer = next();
        RPCXException error = error(answer, 2 * FIRST);
        assertThat(error.code()).isEqualTo(Code.TOO_LARGE);
        assertThat(error).hasMessage("a result of 1001 bytes (expected: at most 1000)");
        ByteBuf alone = Unpooled.buffer();
        WireError.write(alone, error);
        assertThat(answer.payload()).isEqualTo(ByteBufUtil.getBytes(alone));
    }

    /** The look that finds calls whose time is over has not come yet. */
    @Test
    void aHandlerDoesNotBeginAtTheEndOfItsTime() {
        serve();
        begin(FIRST, "later", Duration.ofMillis(500), 0);
        hand.settle(channel());
        hand.ticker.advance(500, TimeUnit.MILLISECONDS);
        handlers.remove().run();
        hand.settle(channel());
        assertThat(service.waiting).isEmpty();
        expectRefusal(FIRST, Code.DEADLINE_EXCEEDED, "the call's time was over before the handler started");
    }

    /** The caller may send the call again, since no handler has begun. */
    @Test
    void aRefusalThatCannotBeKeptStillSaysThatNothingWasExecuted() {
        serve();
        call(FIRST, "echo", Unpooled.buffer().writeLong(-1).writeInt(-1));
        hand.reads(channel(), false);
        takeAll(Resource.REPLY_BYTES);
        handleAll();
        hand.reads(channel(), true);
        expectError(FIRST, Code.OVERLOADED, Executed.NOT_EXECUTED, "the reply could not be kept");
    }

    /**
     * Such metadata are free of charge while a handler runs, since fewer handlers run than calls wait for their reader.
     */
    @Test
    void metadataAreChargedWhileTheReplyWaits() {
        serve();
        callWith(FIRST, metadata((4_096 - 160) / 2));
        hand.reads(channel(), false);
        handleAll();
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(held(Resource.REPLY_BYTES)).as("they, and a small buffer").isEqualTo(2 * 4_096);
        hand.reads(channel(), true);
        expectReply(FIRST);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
    }

    @Test
    void whoDoesNotReadIsDisconnectedWhereNobodyLetsMoreRepliesWait() {
        serve();
        call(FIRST, "laterHere");
        hand.reads(channel(), false);
        // a socket that takes no more has something in its queue
        channel().write(RawPeer.frame(Wire.PONG, 7, Unpooled.EMPTY_BUFFER));
        takeAll(Resource.UNREAD_REPLY_BYTES);
        service.waiting.get(0).complete("b");
        hand.settle(channel());
        assertThat(channel().isOpen()).isFalse();
        look();
        assertThat(frames).noneMatch(frame -> frame.type() == Wire.REPLY);
    }

    @Test
    void aReplyThatWaitsIsTakenBackByACancel() {
        serve();
        call(FIRST, "laterHere");
        hand.reads(channel(), false);
        service.waiting.get(0).complete("b".repeat(40_000));
        hand.settle(channel());
        sendToo(RawPeer.frame(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER));
        assertThat(held(Resource.REPLY_BYTES)).isZero();
        hand.reads(channel(), true);
        expectError(FIRST, Code.CANCELLED, Executed.MAYBE, "");
        expectNothing();
        assertThat(service.told).as("to a handler that has ended").isEmpty();
    }

    /**
     * Makes five large replies wait in buffers of 256 KiB, which is more than a megabyte. Each call that is cancelled
     * makes room.
     */
    private void wait(int from, int generation) {
        hand.reads(channel(), false);
        for (int i = 0; i < 5; i++) {
            sendToo(request(generation * FIRST + from + i, "laterHere"));
            service.waiting.get(service.waiting.size() - 1).complete("w".repeat(200_000));
            hand.settle(channel());
        }
        assertThat(held(Resource.REPLY_BYTES)).isGreaterThan(1 << 20);
    }

    @Test
    void aFewOfTheCallsThatWaitBeginWhereTheirCallerHasMuchToReadStill() {
        serve();
        for (int round = 1; round <= 2; round++) {
            wait(0, round);
            for (int i = 0; i < 40; i++) {
                sendToo(request(round * FIRST + 10 + i, "echo"));
            }
            handleAll();
            sendToo(RawPeer.frame(Wire.CANCEL, round * FIRST, Unpooled.EMPTY_BUFFER));
            assertThat(handlers).as("sixteen at a time").hasSize(16);
            handleAll();
            sendToo(RawPeer.frame(Wire.CANCEL, round * FIRST + 1, Unpooled.EMPTY_BUFFER));
            assertThat(handlers).as("as long as their replies are not read").isEmpty();
            hand.reads(channel(), true);
            handleAll();
            look();
            assertThat(frames.stream().filter(frame -> frame.type() == Wire.REPLY))
                    .hasSize(3 + 40);
            frames.clear();
            assertThat(held(Resource.REPLY_BYTES)).isZero();
        }
    }

    @Test
    void aCallThatWaitsBeginsWhenAHandlerOfItsConnectionHasBecomeAStream() {
        serve(AdmissionLimit.MIN_LIMIT, MANY, 4 << 20);
        hand.reads(channel(), false);
        sendToo(request(FIRST, "much", numbers(2 * ALL)));
        sendToo(request(FIRST + 1, "echo"));
        handleAll();
        assertThat(server().core().running()).as("it waits").isZero();
        for (int i = 0; i < 3; i++) {
            sendToo(request(FIRST + 2 + i, "brings", numbers(3)));
        }
        hand.reads(channel(), true);
        look();
        frames.clear();
        assertThat(server().core().running()).isEqualTo(3);
        handle();
        assertThat(server().core().running())
                .as("two of those, and the one that has waited")
                .isEqualTo(3);
        handleAll();
        expectReply(FIRST + 1);
        expectNothing();
    }
}
