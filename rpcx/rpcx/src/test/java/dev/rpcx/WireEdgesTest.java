package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.EOFException;
import java.io.IOException;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests points of the wire's page where two rules meet. The peer in each test acts like an author who has read only the
 * page.
 */
@Timeout(120)
class WireEdgesTest {
    private static final int ID = 1 << 16;
    private static final int MAX_MESSAGE = 100;

    /** The keepalive time. A message in parts also counts as stalled after this time. */
    private static final Duration KEEP_ALIVE = Duration.ofSeconds(3);

    /**
     * The pause of a slow reader between two frames. With it, reading the frames of all replies takes longer than the
     * keepalive time.
     */
    private static final long READING_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final int REPLY_CHARS = 4_000_000;

    /** Length of the other replies. One of them is sent alternately with a larger one. */
    private static final int OTHER_CHARS = 1_000_000;

    /** All of their replies together are more than two sockets' buffers hold. */
    private static final int OTHER_CALLS = 12;

    @RPCXServer("edges")
    static final class Edges {
        final AtomicInteger received = new AtomicInteger();

        @Method
        String echo(String text) {
            return text;
        }

        @Method
        String much(String text) {
            return text.repeat(OTHER_CHARS);
        }

        @Method
        String moment(Instant when) {
            return when.toString();
        }

        @Method
        String price(BigDecimal given) {
            return given.toPlainString();
        }

        @Method
        void refused(String text) {
            throw new IllegalStateException("not\nfor the log");
        }

        /** Answers the first item with far more than a socket takes at once, and counts the others. */
        @Method
        CompletableFuture<String> first(Flow.Publisher<String> items) {
            CompletableFuture<String> result = new CompletableFuture<>();
            items.subscribe(new Taker(result) {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(100);
                }

                @Override
                public void onNext(String item) {
                    received.incrementAndGet();
                    result.complete("x".repeat(REPLY_CHARS));
                }
            });
            return result;
        }

        /** Requests no items, and so gives no credit. */
        @Method
        CompletableFuture<String> none(Flow.Publisher<String> items) {
            CompletableFuture<String> result = new CompletableFuture<>();
            items.subscribe(new Taker(result));
            return result;
        }
    }

    /** Completes the handler's result when its stream fails. */
    private static class Taker implements Flow.Subscriber<String> {
        private final CompletableFuture<String> result;

        Taker(CompletableFuture<String> result) {
            this.result = result;
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {}

        @Override
        public void onNext(String item) {}

        @Override
        public void onError(Throwable thrown) {
            result.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {}
    }

    @RPCXClient(remoteServerName = "edges")
    interface EdgesClient {
        String echo(String text);
    }

    private final Edges service = new Edges();
    private Server server;

    @AfterEach
    void stop() {
        if (server != null) {
            server.close();
        }
    }

    private RawPeer peer(int maxMessage) throws IOException {
        server = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .maxMessageBytes(maxMessage)
                .keepAlive(KEEP_ALIVE)
                .build()
                .start();
        RawPeer peer = new RawPeer(server.port());
        peer.send(RawPeer.preface());
        peer.readPreface();
        return peer;
    }

    private static ByteBuf begins(String method) {
        return RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID, RawPeer.prelude("edges", method));
    }

    private static void assertEnds(RawPeer peer) throws IOException {
        RawPeer.Frame last = peer.readAnswer();
        assertThat(last.type()).as(ServerWalk.told(last)).isEqualTo(Wire.ERROR);
        assertThat(last.id()).isZero();
        assertThat(WireError.read(Unpooled.wrappedBuffer(last.payload())).code())
                .isEqualTo(RPCXException.Code.PROTOCOL);
        assertThat(peer.readToEnd()).isEmpty();
    }

    @Test
    void anItemThatTheBeginOfAReplyCutsShortDoesNotStandStillAndWhatCrossesIsPassedOver() throws Exception {
        try (RawPeer peer = peer(Wire.MAX_MESSAGE_BYTES)) {
            peer.send(begins("first"));
            assertThat(peer.readAnswer().type()).isEqualTo(Wire.CREDIT);
            for (int slot = 1; slot <= OTHER_CALLS; slot++) {
                peer.send(RawPeer.request(ID | slot, "edges", "much", "y"));
            }
            // the second item is never complete: its client has got the beginning of the reply, and does not send the
            // rest
            peer.send(Unpooled.wrappedBuffer(
                    RawPeer.frame(Wire.ITEM, ID, RawPeer.text("first")),
                    RawPeer.frame(Wire.ITEM | Wire.MORE, ID, RawPeer.text("begun"))));
            RawPeer.Frame reply = readOf(peer);
            assertThat(reply.head()).as(ServerWalk.told(reply)).isEqualTo(Wire.REPLY | Wire.MORE);
            peer.send(Unpooled.wrappedBuffer(
                    RawPeer.frame(Wire.END, ID, Unpooled.EMPTY_BUFFER),
                    RawPeer.frame(Wire.ITEM, ID, RawPeer.text("whole")),
                    RawPeer.frame(Wire.PART, ID, RawPeer.text("part"))));
            int bytes = reply.payload().length;
            RawPeer.Frame part;
            do {
                part = readOf(peer);
                assertThat(part.type()).as(ServerWalk.told(part)).isEqualTo(Wire.PART);
                bytes += part.payload().length;
            } while ((part.head() & Wire.MORE) != 0);
            assertThat(bytes).isGreaterThan(REPLY_CHARS);
            assertThat(service.received).hasValue(1);
        }
    }

    /**
     * The test uses no socket, because a socket would have to be read in the middle of a reply, when the server does
     * not read. It uses one thread, on which handlers run as well, because a channel without a socket takes nothing
     * from other threads.
     */
    @Test
    void anItemForACallThatTakesNoneIsPassedOverBehindTheBeginOfItsReply() {
        HandPlatform platform = new HandPlatform();
        Server.builder(RegistryServer.registry(service))
                .platform(platform)
                .build()
                .start();
        EmbeddedChannel channel = platform.accept();
        read(platform, channel, RawPeer.preface());
        channel.pipeline().addFirst(new ChannelDuplexHandler() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                // the peer reads nothing
            }
        });
        read(platform, channel, RawPeer.request(ID, "edges", "much", "x"));
        platform.handleAll(channel);
        assertThat(channel.isWritable()).as("the reply has begun").isFalse();
        // the server has stopped reading, and this has already arrived
        channel.config().setAutoRead(true);
        read(platform, channel, RawPeer.frame(Wire.ITEM, ID, RawPeer.text("whole")));
        ServerConnection connection = Objects.requireNonNull(channel.pipeline().get(ServerConnection.class));
        assertThat(connection.isClosed()).isFalse();
        connection.abort("the test is over");
        channel.finishAndReleaseAll();
    }

    private static void read(HandPlatform platform, EmbeddedChannel channel, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
    }

    @Test
    void anItemForACallThatTakesNoneEndsTheConnectionBeforeItsReply() throws Exception {
        try (RawPeer peer = peer(MAX_MESSAGE)) {
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, ID, RawPeer.prelude("edges", "echo")));
            peer.send(RawPeer.frame(Wire.ITEM, ID, RawPeer.text("whole")));
            assertEnds(peer);
        }
    }

    /** Returns the next frame of the first slot's call, or of the connection itself. It reads slowly. */
    private static RawPeer.Frame readOf(RawPeer peer) throws IOException {
        while (true) {
            RawPeer.Frame frame = peer.readAnswer();
            LockSupport.parkNanos(READING_NANOS);
            if (frame.type() == Wire.PING) {
                peer.send(RawPeer.frame(Wire.PONG, frame.id(), Unpooled.EMPTY_BUFFER));
            } else if ((frame.id() & Wire.SLOT_MASK) == 0) {
                return frame;
            }
        }
    }

    @Test
    void anItemWithoutCreditEndsTheConnectionAlsoWhereItIsTooLarge() throws Exception {
        try (RawPeer peer = peer(MAX_MESSAGE)) {
            peer.send(begins("none"));
            peer.send(RawPeer.frame(Wire.ITEM, ID, RawPeer.text("x".repeat(2 * MAX_MESSAGE))));
            assertEnds(peer);
        }
    }

    @Test
    void anItemWithCreditThatIsTooLargeEndsItsCallAlone() throws Exception {
        try (RawPeer peer = peer(MAX_MESSAGE)) {
            peer.send(begins("first"));
            assertThat(peer.readAnswer().type()).isEqualTo(Wire.CREDIT);
            peer.send(RawPeer.frame(Wire.ITEM, ID, RawPeer.text("x".repeat(2 * MAX_MESSAGE))));
            RPCXException error =
                    WireError.read(Unpooled.wrappedBuffer(peer.readAnswer().payload()));
            assertThat(error.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        }
    }

    /** Returns a tag whose low 32 bits are those of a text in field 1. */
    private static ByteBuf longTag() {
        ByteBuf message = Unpooled.buffer();
        Varint.write(message, ((1L << 32) + 1) << 3 | 2);
        return message.writeByte(0);
    }

    @Test
    void aTagOfMoreThan32BitsIsNoKnownFieldAndEndsTheConnection() throws Exception {
        try (RawPeer peer = peer(MAX_MESSAGE)) {
            ByteBuf entry = longTag();
            ByteBuf prelude = RawPeer.prelude("edges", "echo");
            Varint.write(prelude, 2 + entry.readableBytes());
            prelude.writeByte(10);
            Varint.write(prelude, entry.readableBytes());
            prelude.writeBytes(entry);
            peer.send(RawPeer.frame(
                    Wire.REQUEST | Wire.NAMED | Wire.METADATA, ID, prelude.writeBytes(RawPeer.text("hello"))));
            assertEnds(peer);
        }
        assertThatThrownBy(() -> Settings.read(longTag())).isInstanceOf(WireFault.class);
        assertThatThrownBy(() -> WireError.read(longTag())).isInstanceOf(WireFault.class);
        assertThatThrownBy(() -> MethodDictionary.read(longTag(), (name, number, shape, schemaHash) -> {}))
                .isInstanceOf(WireFault.class);
    }

    @Test
    void aNumberOfAnErrorThatIsLargerThanAnyKnownOneIsNone() {
        ByteBuf payload = Unpooled.buffer();
        ProtoFields.writeNumber(payload, 1, (1L << 32) + WireError.number(RPCXException.Code.CANCELLED));
        ProtoFields.writeNumber(payload, 3, (1L << 32) + WireError.number(RPCXException.Executed.NOT_EXECUTED));
        RPCXException read = WireError.read(payload);
        assertThat(read.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
        assertThat(read.executed()).isEqualTo(RPCXException.Executed.MAYBE);
    }

    @Test
    void theLastErrorOfAServerIsNotAnsweredAlsoWhereItCannotBeRead() throws Exception {
        try (RawServer raw = new RawServer();
                Client client = Client.standard()) {
            CompletableFuture<Throwable> outcome = new CompletableFuture<>();
            Thread caller = new Thread(() -> {
                try {
                    outcome.complete(new AssertionError(client.create(EdgesClient.class, "127.0.0.1", raw.port())
                            .echo("hello")));
                } catch (RPCXException expected) {
                    outcome.complete(expected);
                }
            });
            caller.start();
            try (RawServer.Peer peer = raw.accept(10)) {
                peer.read(Wire.REQUEST);
                peer.send(Wire.ERROR, 0, Unpooled.wrappedBuffer(new byte[] {0x18, (byte) 0x80}));
                assertThatThrownBy(() -> {
                            RawPeer.Frame frame = peer.read();
                            throw new AssertionError(ServerWalk.told(frame));
                        })
                        .isInstanceOf(EOFException.class);
            }
            assertThat(outcome.get())
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE));
            caller.join();
        }
    }

    @Test
    void aDictionaryMayBeEmptyAndAMethodMayHaveTwoNames() {
        AtomicInteger entries = new AtomicInteger();
        MethodDictionary.read(Unpooled.EMPTY_BUFFER, (name, number, shape, schemaHash) -> entries.incrementAndGet());
        assertThat(entries).hasValue(0);
        ByteBuf two = Unpooled.buffer();
        ByteBuf scratch = Unpooled.buffer();
        MethodDictionary.write(two, scratch, "a", "one", 1, 0, 0);
        MethodDictionary.write(two, scratch, "a", "two", 1, 0, 0);
        MethodDictionary.read(two, (name, number, shape, schemaHash) -> {
            assertThat(number).isEqualTo(1);
            entries.incrementAndGet();
        });
        assertThat(entries).hasValue(2);
        assertThat(ByteBufUtil.hexDump(two)).isEmpty();
    }

    /** Returns a value that is a message in field 1, which contains only a number in field 2. */
    private static ByteBuf number(long number) {
        ByteBuf message = Unpooled.buffer();
        ProtoFields.writeNumber(message, 2, number);
        ByteBuf body = Unpooled.buffer().writeByte(1 << 3 | 2).writeByte(message.readableBytes());
        return body.writeBytes(message);
    }

    private static RawPeer.Frame asked(RawPeer peer, int generation, String method, ByteBuf body) throws IOException {
        ByteBuf prelude = RawPeer.prelude("edges", method).writeBytes(body);
        peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, generation << 16, prelude));
        return peer.readAnswer();
    }

    @Test
    void noPartOfANumberThatIsTooLargePassesForOneOfABody() throws Exception {
        try (RawPeer peer = peer(Wire.MAX_MESSAGE_BYTES)) {
            assertThat(asked(peer, 1, "moment", number(5)).payload())
                    .isEqualTo(ByteBufUtil.getBytes(RawPeer.text("1970-01-01T00:00:00.000000005Z")));
            int generation = 2;
            for (String method : new String[] {"moment", "price"}) {
                RawPeer.Frame answer = asked(peer, generation++, method, number((1L << 32) + 4));
                assertThat(answer.type()).as(method).isEqualTo(Wire.ERROR);
                assertThat(WireError.read(Unpooled.wrappedBuffer(answer.payload()))
                                .code())
                        .isEqualTo(RPCXException.Code.INVALID);
            }
        }
    }

    @Test
    void aNoticeThatFailsIsToldInTheServersLogAloneWithoutItsText() throws Exception {
        List<String> told = Collections.synchronizedList(new ArrayList<>());
        Logger logger = Logger.getLogger(Server.class.getName());
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord entry) {
                told.add(entry.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
        try (RawPeer peer = peer(Wire.MAX_MESSAGE_BYTES)) {
            for (int generation = 1; generation <= 3; generation++) {
                ByteBuf prelude = RawPeer.prelude("edges", "refused").writeBytes(RawPeer.text("x"));
                peer.send(RawPeer.frame(Wire.NOTICE | Wire.NAMED, generation << 16, prelude));
                RawPeer.Frame reply = peer.readAnswer();
                assertThat(reply.type()).as(ServerWalk.told(reply)).isEqualTo(Wire.REPLY);
            }
            await().until(() -> !told.isEmpty());
            assertThat(told).hasSize(1).allMatch(line -> line.startsWith("a notice of edges/refused failed as "));
            assertThat(told.get(0)).doesNotContain("for the log");
        } finally {
            logger.removeHandler(handler);
            logger.setUseParentHandlers(true);
        }
    }
}
