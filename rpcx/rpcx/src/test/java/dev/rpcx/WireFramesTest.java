package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.io.SocketQueue;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireConnection;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests incoming and outgoing frames of the native wire on a channel without a socket: where incoming frames can be
 * cut, and how outgoing frames are gathered and ordered.
 */
class WireFramesTest {
    /** Payload sizes at which the length takes one byte more or the body is sent alone, and the largest size. */
    private static final int[] SIZES = {0, 1, 122, 123, 4000, 4091, 4092, 4096, 4097, 10_000, Wire.MAX_PAYLOAD_BYTES};

    private static final int REPLY_ID = 0x1234_5678;

    private record Frame(int head, int id, String payload) {}

    private final MockTicker clock = Ticker.newMockTicker();
    private final EmbeddedChannel channel =
            EmbeddedChannel.builder().ticker(clock).build();
    private final Ledger ledger = new Ledger("frames", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final List<Frame> arrived = new ArrayList<>();
    private final List<Integer> prefaces = new ArrayList<>();
    private final List<String> told = new ArrayList<>();
    private final List<String> closed = new ArrayList<>();
    private Runnable onFrame = () -> {};
    private Runnable onClosed = () -> {};
    private int reads;
    private int begunFrames;
    private int unsentChanges;
    private int closings;
    private boolean isHeap;
    private long replyBytes;
    private final Connection connection = new Connection(channel, account);

    private final class Connection extends WireConnection {
        Connection(EmbeddedChannel of, Account by) {
            super(of, by);
        }

        @Override
        public void onPreface(int version) {
            prefaces.add(version);
        }

        @Override
        public void onFrame(int head, int id, ByteBuf payload) {
            arrived.add(new Frame(head, id, ByteBufUtil.hexDump(payload)));
            isHeap = payload.hasArray();
            onFrame.run();
        }

        @Override
        public int maxBytesTaken() {
            return Integer.MAX_VALUE;
        }

        @Override
        public void beforeRead() {
            reads++;
        }

        @Override
        public void frameWaits(long nowNanos) {
            begunFrames++;
        }

        @Override
        public void unsentChanged() {
            unsentChanges++;
        }

        @Override
        public long replyBytes() {
            return replyBytes;
        }

        @Override
        public void beforeClose() {
            closings++;
        }

        @Override
        public void onClosed(String why) {
            closed.add(why);
            onClosed.run();
        }
    }

    private class TestMessage extends Outbound {
        private final String name;
        private final boolean isSent;

        TestMessage(String name, int bytes) {
            this(name, bytes, true);
        }

        TestMessage(String name, int bytes, boolean isSent) {
            super(Unpooled.wrappedBuffer(bytes(bytes)));
            this.name = name;
            this.isSent = isSent;
            head = Wire.REPLY;
            id = REPLY_ID;
        }

        @Override
        public boolean beforeSend() {
            return isSent;
        }

        @Override
        public void begins() {
            told.add(name + " begins");
        }

        @Override
        public void onSent() {
            told.add(name);
        }

        @Override
        public void onDropped() {
            told.add(name + " lost");
        }
    }

    /** Passes nothing to the socket while it is in the pipeline. */
    private static final class Deaf extends ChannelOutboundHandlerAdapter {
        @Override
        public void flush(ChannelHandlerContext ctx) {}
    }

    @BeforeEach
    void connect() {
        channel.pipeline().addLast(connection);
    }

    @AfterEach
    void nothingIsLeft() {
        connection.close("the test is over");
        channel.runPendingTasks();
        channel.finishAndReleaseAll();
        account.close();
        assertThat(ledger.audit()).isEmpty();
        assertThat(closed).hasSize(1);
        assertThat(channel.runScheduledPendingTasks()).as("no timer is left").isEqualTo(-1);
    }

    /** Returns this many bytes, each with a value of its own. */
    private static byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        for (int i = 0; i < count; i++) {
            bytes[i] = (byte) (i * 31 + i / 256);
        }
        return bytes;
    }

    private static ByteBuf frame(int head, int id, int bytes) {
        return RawPeer.frame(head, id, Unpooled.wrappedBuffer(bytes(bytes)));
    }

    private void greet() {
        channel.writeInbound(RawPeer.preface());
    }

    /** Reads bytes without the end of the read, so that nothing is flushed. */
    private void read(ByteBuf bytes) {
        channel.pipeline().fireChannelRead(bytes);
    }

    private void readComplete() {
        channel.pipeline().fireChannelReadComplete();
        channel.runPendingTasks();
    }

    private List<Frame> written() {
        ByteBuf all = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        List<Frame> frames = new ArrayList<>();
        while (all.isReadable()) {
            int length = Varint.readLength(all, Wire.MAX_FRAME_BYTES, "a frame");
            frames.add(new Frame(
                    all.readUnsignedByte(),
                    all.readInt(),
                    ByteBufUtil.hexDump(all.readSlice(length - Wire.HEAD_BYTES))));
        }
        return frames;
    }

    private static Frame part(int head, int from, int to) {
        return new Frame(head, REPLY_ID, HexFormat.of().formatHex(Arrays.copyOfRange(bytes(to), from, to)));
    }

    // ---- incoming

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 8, 100, 4_000, 4_097, 16_384, 70_000})
    void framesAreTheSameWhereverTheyAreCut(int step) {
        ByteBuf in = RawPeer.preface();
        List<Frame> expected = new ArrayList<>();
        for (int round = 0; round < (step < 100 ? 1 : 2); round++) {
            for (int size : SIZES) {
                int id = 0x8102_0300 + size;
                in.writeBytes(frame(0xA6, id, size));
                expected.add(new Frame(0xA6, id, HexFormat.of().formatHex(bytes(size))));
            }
        }
        while (in.isReadable()) {
            int bytes = Math.min(step, in.readableBytes());
            ByteBuf some = (step < 100 ? Unpooled.buffer(bytes) : Unpooled.directBuffer(bytes)).writeBytes(in, bytes);
            channel.writeInbound(some);
            assertThat(some.refCnt()).isZero();
            if (in.isReadable() && step == 70_000) {
                assertThat(connection.isBetweenFrames()).isFalse();
            }
        }
        assertThat(prefaces).containsExactly(Wire.VERSION);
        assertThat(arrived).isEqualTo(expected);
        assertThat(connection.isBetweenFrames()).isTrue();
        assertThat(connection.isClosed()).isFalse();
    }

    @Test
    void aConnectionIsBetweenFramesOnceItIsGreetedAndNoFrameIsCut() {
        assertThat(connection.isBetweenFrames()).isFalse();
        ByteBuf preface = RawPeer.preface();
        channel.writeInbound(preface.readRetainedSlice(7));
        assertThat(connection.isBetweenFrames()).isFalse();
        channel.writeInbound(preface);
        assertThat(connection.isBetweenFrames()).isTrue();
        ByteBuf frame = frame(Wire.PING, 1, 0);
        channel.writeInbound(frame.readRetainedSlice(5));
        assertThat(connection.isBetweenFrames()).isFalse();
        channel.writeInbound(frame);
        assertThat(connection.isBetweenFrames()).isTrue();
        assertThat(arrived).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "04 0000000000", // the length is shorter than the head
                "00",
                "818001 00", // the length is 16385
                "8500 00", // the length 5 takes two bytes
                "858000 00", // the length 5 takes three bytes
                "ff8000 00", // the length 127 takes three bytes
                "80808000", // the length takes four bytes
            })
    void aLengthThatIsNoneEndsTheConnection(String hex) {
        greet();
        byte[] bytes = HexFormat.of().parseHex(hex.replace(" ", ""));
        for (byte each : bytes) {
            read(Unpooled.buffer().writeByte(each));
        }
        assertThat(connection.isClosed()).isTrue();
        assertThat(arrived).isEmpty();
        assertThat(closed.get(0)).contains("length");
        Frame last = written().get(0);
        assertThat(last.head()).isEqualTo(Wire.ERROR);
        assertThat(last.id()).isZero();
        RPCXException error =
                WireError.read(Unpooled.wrappedBuffer(HexFormat.of().parseHex(last.payload())));
        assertThat(error.code()).isEqualTo(RPCXException.Code.PROTOCOL);
        assertThat(error.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(error).hasMessage(closed.get(0));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "5250435900000000",
                "5250435800ffffff",
                "0052435801000000",
                "5250435809000000", // 9 is the smallest number that will never be a version
                "525043580d0a6162", // this is the beginning of a line of text
                "5250435820616263", // this is the beginning of a word
                "525043582f616263",
                "52504358ff000000",
            })
    void anotherPrefaceEndsTheConnectionWithoutAWord(String hex) {
        channel.writeInbound(Unpooled.wrappedBuffer(HexFormat.of().parseHex(hex)));
        assertThat(connection.isClosed()).isTrue();
        assertThat(prefaces).isEmpty();
        assertThat(written()).isEmpty();
        assertThat(closed.get(0)).contains("preface " + Long.toHexString(Long.parseLong(hex, 16)));
    }

    /** An alert is shorter than a preface, and may arrive in pieces. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 7})
    void anAlertInPlaceOfAPrefaceSaysThatThePeerUsesTls(int step) {
        ByteBuf alert = Unpooled.wrappedBuffer(HexFormat.of().parseHex("1503030002020a"));
        while (alert.isReadable() && !connection.isClosed()) {
            channel.writeInbound(alert.readBytes(Math.min(step, alert.readableBytes())));
        }
        assertThat(written()).isEmpty();
        assertThat(closed)
                .containsExactly(
                        "the peer uses TLS, and this side does not (expected: TLS on both sides, or on neither)");
    }

    @Test
    void thePrefaceSaysThePeersVersion() {
        channel.writeInbound(Unpooled.buffer().writeInt(Wire.MAGIC).writeInt(0x0801_0203));
        assertThat(prefaces).containsExactly(0x08);
        assertThat(connection.isClosed()).isFalse();
    }

    @Test
    void nothingIsReadAfterTheEnd() {
        greet();
        onFrame = () -> connection.close("of this test");
        ByteBuf both = frame(Wire.PING, 1, 0).writeBytes(frame(Wire.PING, 2, 0));
        channel.writeInbound(both);
        assertThat(arrived).hasSize(1);
        read(frame(Wire.PING, 3, 0));
        assertThat(arrived).hasSize(1);
        assertThat(both.refCnt()).isZero();
    }

    @Test
    void aPeerIsHeardOncePerQuestion() {
        assertThat(connection.hadActivity()).isFalse();
        greet();
        assertThat(reads).isEqualTo(1);
        assertThat(connection.hadActivity()).isTrue();
        assertThat(connection.hadActivity()).isFalse();
        connection.recordActivity();
        assertThat(connection.hadActivity()).isTrue();
        assertThat(connection.hadActivity()).isFalse();
    }

    @Test
    void whatIsReadAndWhatAnotherThreadHearsAreTwoSignsOfLife() {
        greet();
        connection.recordActivity();
        assertThat(connection.hadActivity()).isTrue();
        channel.writeInbound(frame(Wire.PING, 1, 0));
        channel.pipeline().fireUserEventTriggered(SocketQueue.PART);
        assertThat(connection.hadActivity()).isTrue();
        channel.pipeline().fireUserEventTriggered(SocketQueue.PART);
        assertThat(connection.hadActivity()).as("a part of a record").isTrue();
        channel.pipeline().fireUserEventTriggered("something else");
        assertThat(connection.hadActivity()).isFalse();
    }

    @Test
    void framesThatAreReadTogetherWereThereAtOneTime() {
        List<Long> times = new ArrayList<>();
        greet();
        onFrame = () -> {
            times.add(connection.readNanos());
            clock.advance(1, TimeUnit.SECONDS);
        };
        clock.advance(5, TimeUnit.SECONDS);
        long first = clock.nanoTime();
        channel.writeInbound(frame(Wire.PING, 1, 0).writeBytes(frame(Wire.PING, 2, 0)));
        channel.writeInbound(frame(Wire.PING, 3, 0));
        assertThat(times).containsExactly(first, first, first + TimeUnit.SECONDS.toNanos(2));
    }

    @Test
    void aConnectionIsReadingUntilAllThatHasComeIsRead() {
        assertThat(connection.isReading()).isFalse();
        read(RawPeer.preface());
        assertThat(connection.isReading()).isTrue();
        readComplete();
        assertThat(connection.isReading()).isFalse();
    }

    @Test
    void aWholeFrameOfThisHeadAndIdIsEntered() {
        for (int size : SIZES) {
            ByteBuf in = Unpooled.buffer().writeByte(0).writeBytes(frame(6, 77, size));
            in.readByte();
            int whole = in.readableBytes();
            assertThat(WireConnection.enterFrame(in, 7, 77)).isFalse();
            assertThat(WireConnection.enterFrame(in, 6, 78)).isFalse();
            ByteBuf cut = in.slice(in.readerIndex(), whole - 1);
            assertThat(WireConnection.enterFrame(cut, 6, 77)).isFalse();
            assertThat(in.readableBytes()).isEqualTo(whole);
            assertThat(WireConnection.enterFrame(in, 6, 77)).isTrue();
            assertThat(ByteBufUtil.getBytes(in)).isEqualTo(bytes(size));
        }
        assertThat(WireConnection.enterFrame(Unpooled.buffer().writeByte(0x80), 6, 77))
                .isFalse();
        assertThat(WireConnection.enterFrame(Unpooled.EMPTY_BUFFER, 6, 77)).isFalse();
    }

    @Test
    void whatIsKeptForAFrameThatIsCutIsChargedUntilItRests() {
        greet();
        ByteBuf in = frame(Wire.PING, 1, 12_000);
        assertThat(account.held(Resource.KEPT_BYTES)).isZero();
        channel.writeInbound(in.readRetainedSlice(1_000));
        assertThat(account.held(Resource.KEPT_BYTES)).as("not yet large").isZero();
        channel.writeInbound(in.readRetainedSlice(7_000));
        assertThat(account.held(Resource.KEPT_BYTES)).isBetween(8_000L, 40_000L);
        connection.trimIdle();
        assertThat(account.held(Resource.KEPT_BYTES)).as("it is still needed").isBetween(8_000L, 40_000L);
        channel.writeInbound(in);
        assertThat(arrived).hasSize(1);
        connection.trimIdle();
        assertThat(account.held(Resource.KEPT_BYTES)).isZero();
    }

    /** The peer may leave the frame unfinished for as long as the keepalive time. */
    @Test
    void whatIsInUseAndFoundNoRoomIsChargedOnceThereIsSome() {
        Ledger full = new Ledger("full", Map.of(Resource.KEPT_BYTES, 100_000L), Map.of(), Integer.MAX_VALUE);
        List<Account> others = new ArrayList<>();
        List<Charge> taken = new ArrayList<>();
        for (long part = 100_000; part > 0; ) {
            Account other = Objects.requireNonNull(full.open(null));
            Charge charge = other.charge(Resource.KEPT_BYTES);
            others.add(other);
            taken.add(charge);
            if (!charge.add(part)) {
                part /= 2;
            }
        }
        Account poor = Objects.requireNonNull(full.open(null));
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        Connection waiting = new Connection(own, poor);
        own.pipeline().addLast(waiting);
        own.writeInbound(RawPeer.preface());
        ByteBuf in = frame(Wire.PING, 1, 12_000);
        own.writeInbound(in.readRetainedSlice(8_000));
        assertThat(poor.held(Resource.KEPT_BYTES)).isZero();
        assertThat(waiting.isFrameWaiting()).isTrue();
        taken.forEach(Charge::release);
        others.forEach(Account::close);
        own.writeInbound(in.readRetainedSlice(1));
        assertThat(poor.held(Resource.KEPT_BYTES)).isEqualTo(8 * 1024 + 512);
        waiting.close("of this test");
        closed.clear();
        in.release();
        own.finishAndReleaseAll();
        poor.close();
        assertThat(full.audit()).isEmpty();
    }

    // ---- outgoing

    @Test
    void thePrefaceIsTheWires() {
        connection.sendPreface();
        connection.sendNow(Wire.PING, 1);
        assertThat(HexFormat.of().formatHex(HandPlatform.written(channel)))
                .isEqualTo("5250435801000000" + "050d00000001");
    }

    @Test
    void eachMessageOfOneFrameIsWrittenAsItIs() {
        greet();
        List<Frame> expected = new ArrayList<>();
        for (int size : SIZES) {
            connection.sendNow(new TestMessage("m" + size, size));
            assertThat(told).last().isEqualTo("m" + size);
            expected.add(part(Wire.REPLY, 0, size));
        }
        assertThat(written()).isEqualTo(expected);
        assertThat(told).as("none waits").noneMatch(word -> word.endsWith("begins"));
        // now they are sent together, while a read is under way
        read(frame(Wire.PING, 1, 0));
        for (int size : SIZES) {
            connection.sendNow(new TestMessage("m" + size, size));
        }
        assertThat(written()).isEmpty();
        readComplete();
        assertThat(written()).isEqualTo(expected);
    }

    @Test
    void aLargeMessageGoesInPartsBetweenThoseOfOthersAndBehindSmallOnes() {
        greet();
        read(frame(Wire.PING, 1, 0));
        int max = Wire.MAX_PAYLOAD_BYTES;
        connection.sendNow(new TestMessage("a", 5 * max));
        connection.sendNow(new TestMessage("b", max + 1));
        connection.sendNow(new TestMessage("small", 1));
        assertThat(told).containsExactly("small");
        readComplete();
        assertThat(written())
                .containsExactly(
                        part(Wire.REPLY, 0, 1),
                        part(Wire.REPLY | Wire.MORE, 0, max),
                        part(Wire.REPLY | Wire.MORE, 0, max),
                        part(Wire.PART | Wire.MORE, max, 2 * max),
                        part(Wire.PART, max, max + 1),
                        part(Wire.PART | Wire.MORE, 2 * max, 3 * max),
                        part(Wire.PART | Wire.MORE, 3 * max, 4 * max),
                        part(Wire.PART, 4 * max, 5 * max));
        assertThat(told).containsExactly("small", "a begins", "b begins", "b", "a");
    }

    @Test
    void aLargeMessageWaitsForTheEndOfAnotherOfItsSize() {
        greet();
        read(frame(Wire.PING, 1, 0));
        int max = Wire.MAX_PAYLOAD_BYTES;
        connection.sendNow(new TestMessage("a", 2 * max + 1));
        connection.sendNow(new TestMessage("b", max + 1));
        TestMessage recalled = new TestMessage("recalled", 2 * max);
        connection.sendNow(recalled);
        connection.sendNow(new TestMessage("c", 2 * max));
        connection.recall(recalled);
        readComplete();
        assertThat(written())
                .containsExactly(
                        part(Wire.REPLY | Wire.MORE, 0, max),
                        part(Wire.PART | Wire.MORE, max, 2 * max),
                        part(Wire.PART, 2 * max, 2 * max + 1),
                        part(Wire.REPLY | Wire.MORE, 0, max),
                        part(Wire.PART, max, max + 1),
                        part(Wire.REPLY | Wire.MORE, 0, max),
                        part(Wire.PART, max, 2 * max));
        assertThat(told).containsExactly("a begins", "a", "b begins", "b", "c begins", "c");
        assertThat(recalled.isFirstFragmentWritten).isFalse();
    }

    @Test
    void aMessageThatHasToWaitGoesBehindTheOthers() {
        greet();
        read(frame(Wire.PING, 1, 0));
        TestMessage waits = new TestMessage("waits", 10);
        waits.holdUntilWritable = true;
        connection.sendNow(waits);
        connection.sendNow(new TestMessage("b", 1));
        readComplete();
        assertThat(written()).containsExactly(part(Wire.REPLY, 0, 1), part(Wire.REPLY, 0, 10));
        assertThat(told).containsExactly("b", "waits begins", "waits");
    }

    @Test
    void whatIsDroppedAsItIsSentIsNotWritten() {
        connection.sendNow(new TestMessage("a", 1, false));
        connection.sendNow(new TestMessage("b", 20_000, false));
        assertThat(written()).isEmpty();
        assertThat(told).isEmpty();
    }

    @Test
    void whatIsRecalledGoesNoFurther() {
        channel.config().setWriteBufferWaterMark(new io.netty.channel.WriteBufferWaterMark(1_000, 2_000));
        Deaf deaf = new Deaf();
        channel.pipeline().addFirst(deaf);
        TestMessage large = new TestMessage("a", 600_000);
        connection.sendNow(large);
        assertThat(large.isFirstFragmentWritten).isTrue();
        int left = large.body.readableBytes();
        assertThat(left).as("some of it waits for the socket").isPositive();
        connection.recall(new TestMessage("b", 1));
        connection.recall(large);
        channel.pipeline().remove(deaf);
        channel.flush();
        channel.runPendingTasks();
        assertThat(large.body.readableBytes()).isEqualTo(left);
        assertThat(told).containsExactly("a begins");
    }

    @Test
    void whatWaitsForTheSocketGoesOnWhenItTakesMore() {
        channel.config().setWriteBufferWaterMark(new io.netty.channel.WriteBufferWaterMark(1_000, 2_000));
        Deaf deaf = new Deaf();
        channel.pipeline().addFirst(deaf);
        connection.sendNow(new TestMessage("a", 600_000));
        assertThat(told).containsExactly("a begins");
        assertThat(account.held(Resource.QUEUE_BYTES))
                .as("in the socket's queue")
                .isPositive();
        assertThat(connection.isBacklogged()).isTrue();
        channel.pipeline().remove(deaf);
        channel.flush();
        channel.runPendingTasks();
        assertThat(told).containsExactly("a begins", "a");
        assertThat(account.held(Resource.QUEUE_BYTES))
                .as("nothing is left in the queue")
                .isZero();
        connection.sendNow(Wire.PING, 1);
        assertThat(account.held(Resource.QUEUE_BYTES)).isZero();
        assertThat(connection.isBacklogged()).isFalse();
        ByteBuf all = Unpooled.buffer();
        List<Frame> parts = written();
        for (Frame frame : parts.subList(0, parts.size() - 1)) {
            all.writeBytes(HexFormat.of().parseHex(frame.payload()));
        }
        assertThat(ByteBufUtil.getBytes(all)).isEqualTo(bytes(600_000));
    }

    @Test
    void muchThatIsGatheredIsBehind() {
        greet();
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("a", 1));
        assertThat(connection.isBacklogged()).isFalse();
        for (int i = 0; i < 17; i++) {
            connection.sendNow(new TestMessage("b", 1_000));
        }
        assertThat(connection.isBacklogged()).isTrue();
        readComplete();
        assertThat(connection.isBacklogged()).isFalse();
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("c", 5_000));
        assertThat(connection.isBacklogged())
                .as("it stands in the socket's buffer")
                .isTrue();
        readComplete();
    }

    @Test
    void whatWasGatheredIsChargedWhereItHasGrownUntilItRests() {
        greet();
        read(frame(Wire.PING, 1, 0));
        for (int i = 0; i < 20; i++) {
            connection.sendNow(new TestMessage("a", 1_000));
        }
        readComplete();
        assertThat(account.held(Resource.KEPT_BYTES)).isGreaterThan(16_000);
        connection.trimIdle();
        assertThat(account.held(Resource.KEPT_BYTES)).isZero();
        connection.sendNow(new TestMessage("a", 1_000));
        assertThat(account.held(Resource.KEPT_BYTES))
                .as("little is not counted")
                .isZero();
    }

    @Test
    void buffersThatFindNoRoomAreGivenUp() {
        Ledger full = new Ledger("full", Map.of(Resource.KEPT_BYTES, 0L), Map.of(), Integer.MAX_VALUE);
        Account none = Objects.requireNonNull(full.open(null));
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        WireConnection poor = new WireConnection(own, none) {
            @Override
            public void onPreface(int version) {}

            @Override
            public void onFrame(int head, int id, ByteBuf payload) {}

            @Override
            public int maxBytesTaken() {
                return Integer.MAX_VALUE;
            }

            @Override
            public void beforeRead() {}

            @Override
            public void onClosed(String why) {}
        };
        own.pipeline().addLast(poor);
        own.pipeline().fireChannelRead(RawPeer.preface());
        for (int i = 0; i < 20; i++) {
            poor.sendNow(new TestMessage("a", 1_000));
        }
        own.pipeline().fireChannelReadComplete();
        assertThat(HandPlatform.written(own)).hasSize(20 * 1_007);
        assertThat(none.held(Resource.KEPT_BYTES)).isZero();
        poor.sendNow(new TestMessage("a", 1_000));
        assertThat(HandPlatform.written(own)).hasSize(1_007);
        poor.close("of this test");
        own.finishAndReleaseAll();
        none.close();
        assertThat(full.audit()).isEmpty();
    }

    @Test
    void whatIsQueuedIsSentWithTheLoopsNextTask() {
        connection.send(new TestMessage("a", 1));
        connection.send(new TestMessage("b", 2));
        assertThat(told).isEmpty();
        channel.runPendingTasks();
        assertThat(written()).containsExactly(part(Wire.REPLY, 0, 1), part(Wire.REPLY, 0, 2));
        connection.send(new TestMessage("c", 3));
        connection.sendQueued();
        assertThat(written()).containsExactly(part(Wire.REPLY, 0, 3));
        connection.send(new TestMessage("d", 3));
        channel.runPendingTasks();
        assertThat(told).containsExactly("a", "b", "c", "d");
    }

    @Test
    void whatIsQueuedIsSeenUntilItHasBeenSent() {
        assertThat(connection.isQueueEmpty()).isTrue();
        connection.send(new TestMessage("a", 1));
        assertThat(connection.isQueueEmpty()).isFalse();
        channel.runPendingTasks();
        assertThat(connection.isQueueEmpty()).isTrue();
    }

    @Test
    void whatIsSentTogetherIsOneWrite() {
        connection.sendTogether(() -> {
            connection.sendNow(Wire.PING, 1);
            connection.sendTogether(() -> connection.sendNow(Wire.PING, 2));
            connection.sendNow(Wire.PING, 3);
            assertThat(channel.outboundMessages()).isEmpty();
        });
        ByteBuf one = Objects.requireNonNull(channel.readOutbound());
        assertThat(one.readableBytes()).isEqualTo(3 * (1 + Wire.HEAD_BYTES));
        one.release();
        connection.sendNow(Wire.PING, 4);
        assertThat(written()).containsExactly(new Frame(Wire.PING, 4, ""));
    }

    /** The next task of the loop belongs to another connection. */
    @ParameterizedTest
    @ValueSource(ints = {0, 200})
    void whatTheLoopSendsAtAStretchCountsTheBytesOfWhatIsQueuedAndSomeMoreForEach(int bytes) {
        int each = 256 + bytes;
        int most = (512 * 1024 + each - 1) / each;
        for (int i = 0; i <= most; i++) {
            connection.send(new TestMessage("a", bytes));
        }
        List<Integer> before = new ArrayList<>();
        channel.eventLoop().execute(() -> before.add(told.size()));
        channel.runPendingTasks();
        assertThat(before).containsExactly(most);
        assertThat(told).as("the rest follows by itself").hasSize(most + 1);
    }

    @Test
    void whatTheLoopSendsAtAStretchEndsWithTheFragmentThatFillsIt() {
        // the channel takes everything, so that no write makes it flush in a task of its own
        channel.config().setWriteBufferWaterMark(new io.netty.channel.WriteBufferWaterMark(1 << 20, 2 << 20));
        greet();
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("a", 512 * 1024) {
            @Override
            public void onSent() {
                super.onSent();
                channel.eventLoop().execute(() -> told.add("the task of another"));
            }
        });
        connection.sendNow(new TestMessage("b", 400_000));
        readComplete();
        assertThat(told).containsExactly("a begins", "a", "the task of another", "b begins", "b");
    }

    @Test
    void aConnectionThatCannotAskToGoOnEnds() {
        HandChannel own = new HandChannel(clock);
        Connection poor = new Connection(own, account);
        own.pipeline().addLast(poor);
        onClosed = () -> own.loop.fails = false;
        int most = 512 * 1024 / 256;
        for (int i = 1; i < most; i++) {
            poor.send(new TestMessage("a", 0));
        }
        poor.send(new TestMessage("last", 0) {
            @Override
            public void onSent() {
                super.onSent();
                own.loop.fails = true;
            }
        });
        poor.send(new TestMessage("behind", 0));
        own.runPendingTasks();
        assertThat(told).hasSize(most + 1).endsWith("last", "behind lost");
        assertThat(closed).containsExactly("of the loop, in this test");
        assertThat(poor.memoryWanted()).isEqualTo(closed.get(0));
        assertThat(own.isOpen()).isFalse();
        closed.clear();
        own.finishAndReleaseAll();
    }

    /** A stream whose peer reads as fast as the stream is filled. */
    private class Endless extends TestMessage {
        private static final int ENOUGH = 10_000;

        int rounds;
        boolean isOver;

        Endless(int bytes) {
            super("endless", bytes);
        }

        @Override
        public void onSent() {
            body.readerIndex(0);
            if (!isOver && ++rounds < ENOUGH) {
                connection.send(this);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 16 * 1024, 100_000})
    void whatComesBackToTheQueueLeavesTheLoopToOthersInBetween(int bytes) {
        greet();
        written();
        List<Endless> streams = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Endless stream = new Endless(bytes);
            streams.add(stream);
            connection.send(stream);
        }
        channel.eventLoop().execute(() -> streams.forEach(stream -> stream.isOver = true));
        channel.runPendingTasks();
        for (Endless stream : streams) {
            assertThat(stream.rounds).isLessThan(Endless.ENOUGH);
        }
        assertThat(connection.isQueueEmpty()).isTrue();
    }

    /** Makes its content only when it is sent, as a stream makes its items. */
    private final class Filling extends Endless {
        private final int itemBytes;

        Filling(int bytes) {
            super(bytes);
            itemBytes = bytes;
            body.clear();
        }

        @Override
        public boolean beforeSend() {
            body.setIndex(0, itemBytes);
            return super.beforeSend();
        }

        @Override
        public void onSent() {
            super.onSent();
            body.clear();
        }
    }

    @Test
    void whatIsMadeAsItIsSentCountsToo() {
        greet();
        written();
        // a flush would run the tasks of this channel
        ChannelOutboundHandlerAdapter later = new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {}
        };
        channel.pipeline().addFirst(later);
        Filling stream = new Filling(16 * 1024 - 100);
        connection.send(stream);
        int[] atOnce = {0};
        channel.eventLoop().execute(() -> {
            atOnce[0] = stream.rounds;
            stream.isOver = true;
        });
        channel.runPendingTasks();
        assertThat(atOnce[0]).isBetween(1, 64);
        channel.pipeline().remove(later);
        channel.flush();
    }

    /** Refuses itself when it is sent, as a call whose caller does not read does. */
    private class Refusing extends TestMessage {
        Refusing() {
            super("refusing", 1);
        }

        @Override
        public boolean beforeSend() {
            connection.sendNow(Wire.PONG, 1);
            return false;
        }
    }

    @Test
    void howeverManyRefuseThemselvesAsTheyAreSentBesideALargeOneTheStackIsNoDeeper() {
        greet();
        written();
        connection.send(new TestMessage("large", 3 * Wire.MAX_PAYLOAD_BYTES));
        for (int i = 0; i < 20_000; i++) {
            connection.send(new Refusing());
        }
        channel.runPendingTasks();
        assertThat(closed).isEmpty();
        assertThat(told).contains("large");
        assertThat(connection.isQueueEmpty()).isTrue();
        assertThat(written()).hasSizeGreaterThan(20_000);
    }

    @Test
    void whatComesBackToTheQueueIsNotSentAtOnce() {
        greet();
        // nothing is flushed while the loop reads; in this channel a flush would run the loop's tasks
        read(frame(Wire.PING, 1, 0));
        Endless stream = new Endless(1);
        connection.send(stream);
        connection.sendQueued();
        assertThat(stream.rounds).isEqualTo(1);
        stream.isOver = true;
        readComplete();
        channel.runPendingTasks();
        assertThat(connection.isQueueEmpty()).isTrue();
    }

    @Test
    void whatComesBackToTheQueueEndsAlsoWhereTheLastOfItHasBeenSentWithinAnother() {
        greet();
        written();
        connection.send(new TestMessage("nested", 1) {
            @Override
            public void onSent() {
                super.onSent();
                connection.sendQueued();
            }
        });
        Endless stream = new Endless(200);
        connection.send(stream);
        connection.send(new TestMessage("last", 1));
        // nothing is flushed while the loop reads; in this channel a flush would run the loop's tasks
        onFrame = connection::sendQueued;
        read(frame(Wire.PING, 1, 0));
        assertThat(told).contains("last");
        assertThat(stream.rounds).isBetween(2, Endless.ENOUGH / 2);
        stream.isOver = true;
        readComplete();
        channel.runPendingTasks();
        assertThat(connection.isQueueEmpty()).isTrue();
    }

    @Test
    void whatIsQueuedWhileReadingIsSentWithTheReadsEnd() {
        greet();
        read(frame(Wire.PING, 1, 0));
        connection.send(new TestMessage("a", 1));
        channel.runPendingTasks();
        assertThat(told).containsExactly("a");
        assertThat(written()).isEmpty();
        readComplete();
        assertThat(written()).hasSize(1);
    }

    @Test
    void whatIsQueuedGoesBetweenThePartsOfALargeMessage() {
        onFrame = () -> {
            connection.sendNow(new TestMessage("large", 100_000));
            connection.send(new TestMessage("small", 1));
        };
        greet();
        channel.writeInbound(frame(Wire.PING, 1, 0));
        assertThat(told).containsExactly("small", "large begins", "large");
    }

    @Test
    void whatComesAfterTheEndIsLost() {
        connection.send(new TestMessage("queued", 1));
        TestMessage large = new TestMessage("large", 20_000);
        read(RawPeer.preface());
        connection.sendNow(large);
        connection.close("of this test");
        assertThat(told).as("what waits is its owner's").containsExactly("queued lost");
        connection.sendNow(new TestMessage("now", 1));
        connection.send(new TestMessage("later", 1));
        channel.runPendingTasks();
        assertThat(told).containsExactly("queued lost", "now lost", "later lost");
        assertThat(closed).containsExactly("of this test");
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aPingIsAnswered() {
        connection.answerPing(77);
        assertThat(written()).containsExactly(new Frame(Wire.PONG, 77, ""));
    }

    @Test
    void eachPingHasANumberThatItsPongOrALaterOneAnswers() {
        int first = connection.ping();
        int second = connection.ping();
        assertThat(second).isEqualTo(first + 1);
        assertThat(written()).containsExactly(new Frame(Wire.PING, first, ""), new Frame(Wire.PING, second, ""));
        assertThat(connection.answers(first, first)).isTrue();
        assertThat(connection.answers(second, first)).isTrue();
        assertThat(connection.answers(second, second)).isTrue();
        assertThat(connection.answers(first, second))
                .as("that of an earlier one")
                .isFalse();
        assertThat(connection.answers(second + 1, first)).as("of none").isFalse();
    }

    @Test
    void aSocketStandsStillThatTakesNothingBetweenTwoQuestions() {
        channel.pipeline().addFirst(new Deaf());
        assertThat(connection.isStalled()).isFalse();
        connection.sendNow(new TestMessage("a", 1));
        assertThat(connection.isStalled()).isFalse();
        assertThat(connection.isStalled()).isTrue();
        channel.pipeline().removeFirst();
        channel.flush();
        assertThat(connection.isStalled()).isFalse();
    }

    // ---- the end

    @Test
    void whatIsKeptOfAFrameIsDroppedAtTheEndOrAtTheEndOfTheRead() {
        // this handler keeps the channel open for a while
        channel.pipeline().addFirst(new Deaf());
        greet();
        read(frame(Wire.PING, 1, 12_000).slice(0, 8_000));
        assertThat(connection.isFrameWaiting()).isTrue();
        assertThat(connection.bufferBytes()).isPositive();
        connection.close("of this test");
        readComplete();
        assertThat(connection.isFrameWaiting()).isFalse();
        assertThat(connection.bufferBytes())
                .as("where small frames are gathered")
                .isZero();
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        Connection other = new Connection(own, account);
        own.pipeline().addLast(other);
        own.writeInbound(RawPeer.preface());
        own.writeInbound(frame(Wire.PING, 1, 12_000).slice(0, 8_000));
        assertThat(other.isFrameWaiting()).isTrue();
        other.close("of this test");
        assertThat(other.isFrameWaiting()).isFalse();
        closed.remove(1);
        own.finishAndReleaseAll();
    }

    @Test
    void aFrameThatEndsItsConnectionIsReadToItsEnd() throws Exception {
        greet();
        onFrame = () -> connection.close("of this test");
        ByteBuf in = frame(Wire.PING, 1, 8_000);
        read(in.readRetainedSlice(5_000));
        // the test does not call the pipeline, because the pipeline passes an exception to the connection
        connection.channelRead(channel.pipeline().context(connection), in);
        assertThat(arrived).hasSize(1);
        readComplete();
    }

    @Test
    void repliesDoNotWaitForThePeerOfAConnectionThatIsOver() {
        channel.config().setWriteBufferWaterMark(new io.netty.channel.WriteBufferWaterMark(1_000, 2_000));
        channel.pipeline().addFirst(new Deaf());
        replyBytes = 5_000;
        connection.sendNow(new TestMessage("a", 10_000));
        assertThat(account.held(Resource.UNREAD_REPLY_BYTES)).isEqualTo(8 * 1024);
        connection.close("of this test");
        assertThat(channel.isOpen()).as("its last words wait").isTrue();
        assertThat(account.held(Resource.UNREAD_REPLY_BYTES)).isZero();
    }

    @Test
    void theLastWordsAreChargedWhileTheyWait() {
        channel.pipeline().addFirst(new Deaf());
        greet();
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("a", 10_000));
        assertThat(account.held(Resource.QUEUE_BYTES)).isZero();
        connection.close("of this test");
        assertThat(account.held(Resource.QUEUE_BYTES)).isGreaterThan(10_000);
    }

    /** This is what happens if another thread has no memory left to give the loop its task. */
    @Test
    void whatIsQueuedWithoutTheLoopsKnowledgeIsLostAtTheEnd() {
        HandChannel own = new HandChannel(clock);
        Connection poor = new Connection(own, account);
        own.pipeline().addLast(poor);
        own.loop.fails = true;
        assertThatThrownBy(() -> poor.send(new TestMessage("a", 1))).isInstanceOf(OutOfMemoryError.class);
        own.loop.fails = false;
        own.runPendingTasks();
        assertThat(told).isEmpty();
        poor.close("of this test");
        assertThat(told).containsExactly("a lost");
        closed.clear();
        own.finishAndReleaseAll();
    }

    @Test
    void whatIsThrownByOneThatIsTooLateForTheLoopIsReportedAndTheNextIsTold() {
        HandChannel own = new HandChannel(clock);
        Connection late = new Connection(own, account);
        own.pipeline().addLast(late);
        late.close("of this test");
        own.loop.hasEnded = true;
        List<Throwable> reported = new ArrayList<>();
        IllegalStateException fault = new IllegalStateException("of this test");
        Thread thread = Thread.currentThread();
        Thread.UncaughtExceptionHandler before = thread.getUncaughtExceptionHandler();
        thread.setUncaughtExceptionHandler((of, thrown) -> reported.add(thrown));
        try {
            late.send(new TestMessage("a", 1) {
                @Override
                public void onDropped() {
                    throw fault;
                }
            });
        } finally {
            thread.setUncaughtExceptionHandler(before);
        }
        assertThat(reported).containsExactly(fault);
        late.send(new TestMessage("b", 1));
        assertThat(told).containsExactly("b lost");
        own.loop.hasEnded = false;
        closed.clear();
        own.finishAndReleaseAll();
    }

    @Test
    void whatWasGatheredIsSentBeforeTheEnd() {
        greet();
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("a", 1));
        connection.close("of this test");
        assertThat(written()).hasSize(1);
        assertThat(channel.isOpen()).isFalse();
        assertThat(account.held(Resource.TIMERS)).isZero();
    }

    @Test
    void aPeerThatDoesNotTakeTheLastBytesIsDisconnectedAfterTwoSeconds() {
        Deaf deaf = new Deaf();
        channel.pipeline().addFirst(deaf);
        connection.sendNow(new TestMessage("a", 1));
        connection.close("of this test");
        assertThat(channel.isOpen()).isTrue();
        assertThat(account.held(Resource.TIMERS)).isEqualTo(1);
        assertThat(account.held(Resource.QUEUE_BYTES)).isZero();
        for (int look = 1; look < 4; look++) {
            clock.advance(500, TimeUnit.MILLISECONDS);
            channel.runScheduledPendingTasks();
        }
        clock.advance(499, TimeUnit.MILLISECONDS);
        channel.runScheduledPendingTasks();
        assertThat(channel.isOpen()).isTrue();
        clock.advance(1, TimeUnit.MILLISECONDS);
        channel.runScheduledPendingTasks();
        assertThat(channel.isOpen()).isFalse();
        assertThat(account.held(Resource.TIMERS)).isZero();
    }

    @Test
    void whatItsOwnerThrowsAtTheEndKeepsNothing() {
        onClosed = () -> {
            throw new IllegalStateException("of this test");
        };
        channel.pipeline().addFirst(new Deaf());
        greet();
        channel.writeInbound(frame(Wire.PING, 1, 12_000).slice(0, 8_000));
        connection.sendNow(new TestMessage("a", 10_000));
        connection.send(new TestMessage("queued", 1));
        assertThat(account.held(Resource.KEPT_BYTES)).isPositive();
        assertThat(account.held(Resource.QUEUE_BYTES)).isPositive();
        assertThatThrownBy(() -> connection.close("of this test")).isInstanceOf(IllegalStateException.class);
        assertThat(account.held(Resource.KEPT_BYTES)).isZero();
        assertThat(account.held(Resource.QUEUE_BYTES))
                .as("its last words are still there")
                .isPositive();
        assertThat(account.held(Resource.TIMERS))
                .as("it is left after two seconds")
                .isEqualTo(1);
        assertThat(told).containsExactly("a", "queued lost");
        connection.trimIdle();
        assertThat(account.held(Resource.KEPT_BYTES))
                .as("nothing is charged any more")
                .isZero();
    }

    @Test
    void aFaultAsALargeMessageBeginsEndsTheConnection() {
        connection.send(new TestMessage("a", 20_000) {
            @Override
            public void begins() {
                throw new IllegalStateException("of this test");
            }
        });
        channel.runPendingTasks();
        assertThat(closed).containsExactly("the connection ended because of a fault of this side");
        assertThat(channel.isOpen()).isFalse();
    }

    /** Nothing more may be charged. Bytes in the socket's queue still have a limit. */
    @Test
    void aPeerThatDoesNotReadAndFindsNoRoomIsEnded() {
        Ledger full = new Ledger("full", Map.of(Resource.QUEUE_BYTES, 0L), Map.of(), Integer.MAX_VALUE);
        Account none = Objects.requireNonNull(full.open(null));
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        own.config().setWriteBufferWaterMark(new io.netty.channel.WriteBufferWaterMark(8 << 20, 16 << 20));
        own.pipeline().addFirst(new Deaf());
        Connection poor = new Connection(own, none);
        own.pipeline().addLast(poor);
        poor.sendNow(new TestMessage("a", 3_000));
        own.runPendingTasks();
        assertThat(closed).as("a little costs nobody anything").isEmpty();
        poor.sendNow(new TestMessage("a", 3_000));
        own.runPendingTasks();
        assertThat(closed).containsExactly("the peer does not read what it is sent");
        assertThat(own.isOpen()).isFalse();
        closed.clear();
        own.finishAndReleaseAll();
        none.close();
        assertThat(full.audit()).isEmpty();
    }

    /** If the pool is full, the connection that asks next is not the one that ends. */
    @Test
    void aPeerThatHasNotReadForLongestIsEndedForThoseThatRead() {
        Ledger full = new Ledger("full", Map.of(Resource.QUEUE_BYTES, 100_000L), Map.of(), Integer.MAX_VALUE);
        List<EmbeddedChannel> channels = new ArrayList<>();
        List<Account> accounts = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            Account one = Objects.requireNonNull(full.open(null));
            EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
            own.pipeline().addFirst(new Deaf());
            Connection deaf = new Connection(own, one);
            own.pipeline().addLast(deaf);
            deaf.sendNow(new TestMessage("a", 20_000));
            clock.advance(1, TimeUnit.SECONDS);
            channels.add(own);
            accounts.add(one);
            channels.forEach(EmbeddedChannel::runPendingTasks);
        }
        assertThat(channels).extracting(EmbeddedChannel::isOpen).startsWith(false, false, false, false, false);
        assertThat(channels).extracting(EmbeddedChannel::isOpen).endsWith(true, true, true, true);
        assertThat(full.held(Resource.QUEUE_BYTES)).isBetween(80_000L, 100_000L);
        channels.forEach(EmbeddedChannel::finishAndReleaseAll);
        accounts.forEach(Account::close);
        assertThat(full.audit()).isEmpty();
        closed.clear();
    }

    @Test
    void anAbortDoesNotWait() {
        channel.pipeline().addFirst(new Deaf());
        connection.sendNow(new TestMessage("a", 1));
        connection.abort("of this test");
        assertThat(channel.isOpen()).isFalse();
        assertThat(closed).containsExactly("of this test");
    }

    @Test
    void theEndOfTheChannelIsTheConnections() {
        channel.close();
        assertThat(closed).containsExactly("the connection ended");
        assertThat(connection.isClosed()).isTrue();
    }

    @Test
    void anExceptionOfTheChannelIsTheEnd() {
        channel.pipeline().fireExceptionCaught(new IllegalStateException("of this test"));
        assertThat(closed).containsExactly("of this test");
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aFaultWhileWritingEndsTheConnectionAndTellsThoseBehindIt() {
        connection.send(new TestMessage("a", 1) {
            @Override
            public boolean beforeSend() {
                throw new IllegalStateException("of this test");
            }
        });
        connection.send(new TestMessage("b", 1));
        channel.runPendingTasks();
        assertThat(closed).containsExactly("the connection ended because of a fault of this side");
        assertThat(told).containsExactly("b lost");
        assertThat(channel.isOpen()).isFalse();
    }

    // ---- bounds

    /** Writes small frames with exactly this many bytes in total. */
    private void gather(int bytes) {
        int left = bytes;
        for (; left > 2_000; left -= 1_007) {
            connection.sendNow(new TestMessage("fill", 1_000));
        }
        connection.sendNow(new TestMessage("fill", left - 2 - Wire.HEAD_BYTES));
    }

    @Test
    void aBatchIsSentWithTheByteThatFillsIt() {
        greet();
        connection.sendTogether(() -> {
            gather(256 * 1024 - 6);
            assertThat(channel.outboundMessages()).isEmpty();
            connection.sendNow(Wire.PING, 1);
            assertThat(HandPlatform.written(channel)).hasSize(256 * 1024);
            gather(256 * 1024 - 7);
            connection.sendNow(Wire.PING, 1);
            assertThat(channel.outboundMessages()).isEmpty();
        });
        assertThat(HandPlatform.written(channel)).hasSize(256 * 1024 - 1);
    }

    /** If the peer reads, the channel is writable again after the batch. */
    @Test
    void aBatchThatFillsWithinAReadIsSentBeforeTheReadsEnd() {
        greet();
        read(frame(Wire.PING, 1, 0));
        gather(256 * 1024 - 6);
        assertThat(channel.outboundMessages()).isEmpty();
        connection.sendNow(Wire.PING, 1);
        assertThat(HandPlatform.written(channel)).hasSize(256 * 1024);
        assertThat(channel.isWritable()).isTrue();
        readComplete();
    }

    @Test
    void bodiesThatGoAloneFillABatchToo() {
        greet();
        connection.sendTogether(() -> {
            for (int i = 0; i < 15; i++) {
                connection.sendNow(new TestMessage("a", Wire.MAX_PAYLOAD_BYTES));
            }
            assertThat(channel.outboundMessages()).isEmpty();
            gather(256 * 1024 - 15 * (Wire.MAX_FRAME_BYTES + 3));
            assertThat(HandPlatform.written(channel)).hasSize(256 * 1024);
        });
    }

    @Test
    void aConnectionIsBehindWithTheByteAfterSixteenThousand() {
        greet();
        read(frame(Wire.PING, 1, 0));
        gather(16 * 1024);
        assertThat(connection.isBacklogged()).isFalse();
        connection.sendNow(Wire.PING, 1);
        assertThat(connection.isBacklogged()).isTrue();
        readComplete();
    }

    @Test
    void aBodyGoesAloneFromTheByteAfterFourThousand() {
        greet();
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("a", 4 * 1024));
        assertThat(connection.isBacklogged()).isFalse();
        connection.sendNow(new TestMessage("b", 4 * 1024 + 1));
        assertThat(connection.isBacklogged()).as("in the socket's buffer").isTrue();
        readComplete();
    }

    private int nextCapacity() {
        ByteBuf first = Objects.requireNonNull(channel.readOutbound());
        try {
            return first.capacity();
        } finally {
            first.release();
        }
    }

    /** A buffer that has to grow is copied, so its first capacity has to be sufficient. */
    @Test
    void aLargeMessagesBufferIsTakenOnceWithRoomForWhatComesBehind() {
        greet();
        connection.sendNow(new TestMessage("a", 10_000));
        assertThat(nextCapacity()).isEqualTo(2 + Wire.HEAD_BYTES + 10_000 + 4 * 1024);
        connection.sendNow(new TestMessage("a", 100_000));
        assertThat(nextCapacity()).isEqualTo(3 + Wire.HEAD_BYTES + 100_000 + 4 * 1024);
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("a", 50_000));
        connection.sendNow(new TestMessage("b", 50_000));
        readComplete();
        assertThat(nextCapacity()).isEqualTo(3 + Wire.HEAD_BYTES + 100_000 + 4 * 1024);
        assertThat(channel.outboundMessages()).isEmpty();
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("a", 150_000));
        connection.sendNow(new TestMessage("b", 150_000));
        readComplete();
        assertThat(nextCapacity()).isEqualTo(3 + Wire.HEAD_BYTES + 256 * 1024 + Wire.MAX_FRAME_BYTES);
    }

    @Test
    void theBufferOfAMessageThatFillsABatchHasRoomForAFrameMore() {
        greet();
        connection.sendNow(new TestMessage("a", 256 * 1024));
        assertThat(nextCapacity()).isEqualTo(3 + Wire.HEAD_BYTES + 256 * 1024 + Wire.MAX_FRAME_BYTES);
    }

    /**
     * Messages to a peer that does not read hold at most twice their bytes, and not a whole batch for every two of
     * them.
     */
    @Test
    void whatWaitsUnreadHoldsNotMuchMoreThanItsBytes() {
        greet();
        channel.pipeline().addFirst(new Deaf());
        read(frame(Wire.PING, 1, 0));
        for (int bytes : List.of(4_200, 16_400, 16_400)) {
            connection.sendNow(new TestMessage("a", bytes));
        }
        readComplete();
        channel.pipeline().removeFirst();
        int bytes = 0;
        int capacity = 0;
        channel.flush();
        for (ByteBuf next = channel.readOutbound(); next != null; next = channel.readOutbound()) {
            bytes += next.readableBytes();
            capacity += next.capacity();
            next.release();
        }
        assertThat(bytes).isGreaterThan(4_200 + 2 * 16_400);
        assertThat(capacity).isLessThan(2 * bytes);
    }

    @Test
    void whatIsGatheredGrowsByDoubling() {
        greet();
        read(frame(Wire.PING, 1, 0));
        gather(20_000);
        readComplete();
        assertThat(account.held(Resource.KEPT_BYTES)).isEqualTo(32 * 1024 + 256);
    }

    @Test
    void whatIsGatheredGrowsWithTheByteForWhichThereIsNoRoomAndNotBefore() {
        greet();
        read(frame(Wire.PING, 1, 0));
        gather(2_014);
        connection.sendNow(new TestMessage("a", 2 * 1024 - 2_014 - Wire.MAX_HEADER_BYTES));
        readComplete();
        assertThat(account.held(Resource.KEPT_BYTES)).as("2 KiB are little").isZero();
        read(frame(Wire.PING, 1, 0));
        gather(2_014);
        connection.sendNow(new TestMessage("a", 2 * 1024 - 2_014 - Wire.MAX_HEADER_BYTES + 1));
        readComplete();
        assertThat(account.held(Resource.KEPT_BYTES)).isEqualTo(4 * 1024 + 256);
    }

    @Test
    void buffersOfFourKilobytesAreALittleAndNotCharged() {
        greet();
        read(frame(Wire.PING, 1, 0));
        gather(2_014);
        channel.writeInbound(frame(Wire.PING, 1, 12_000).slice(0, 1_500));
        assertThat(account.held(Resource.KEPT_BYTES)).as("2 KiB each").isZero();
    }

    @Test
    void buffersThatHaveShrunkToFourKilobytesAreChargedNoMore() {
        greet();
        ByteBuf in = frame(Wire.PING, 1, 4_000);
        channel.writeInbound(in.readRetainedSlice(3_000));
        assertThat(account.held(Resource.KEPT_BYTES)).isEqualTo(4 * 1024 + 512);
        read(in);
        // these are just the bytes that remain beside the smallest room for the beginning of a frame
        connection.sendNow(new TestMessage("a", 4 * 1024 - 256 - Wire.MAX_HEADER_BYTES));
        connection.trimIdle();
        assertThat(account.held(Resource.KEPT_BYTES)).isZero();
        readComplete();
        assertThat(account.held(Resource.KEPT_BYTES)).isZero();
    }

    @Test
    void theBeginOfAFrameIsHeldBesideWhatWasGathered() {
        greet();
        read(frame(Wire.PING, 1, 0));
        gather(20_000);
        channel.writeInbound(frame(Wire.PING, 1, 12_000).slice(0, 8_000));
        assertThat(account.held(Resource.KEPT_BYTES)).isEqualTo(32 * 1024 + 8 * 1024);
    }

    @Test
    void buffersThatWereGivenUpAreHeldWhereTheyFindRoomLater() {
        Ledger full = new Ledger("full", Map.of(Resource.KEPT_BYTES, 40_000L), Map.of(), Integer.MAX_VALUE);
        Account little = Objects.requireNonNull(full.open(null));
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        Connection poor = new Connection(own, little);
        own.pipeline().addLast(poor);
        own.pipeline().fireChannelRead(RawPeer.preface());
        for (int i = 0; i < 5; i++) {
            poor.sendNow(new TestMessage("a", 1_000));
        }
        own.pipeline().fireChannelReadComplete();
        assertThat(little.held(Resource.KEPT_BYTES)).isEqualTo(8 * 1024 + 256);
        own.pipeline().fireChannelRead(frame(Wire.PING, 1, 0));
        for (int i = 0; i < 20; i++) {
            poor.sendNow(new TestMessage("a", 1_000));
        }
        own.pipeline().fireChannelReadComplete();
        assertThat(little.held(Resource.KEPT_BYTES)).as("33 kB are too much").isZero();
        own.pipeline().fireChannelRead(frame(Wire.PING, 1, 0));
        for (int i = 0; i < 10; i++) {
            poor.sendNow(new TestMessage("a", 1_000));
        }
        own.pipeline().fireChannelReadComplete();
        assertThat(little.held(Resource.KEPT_BYTES)).isEqualTo(16 * 1024 + 256);
        poor.close("of this test");
        closed.clear();
        own.finishAndReleaseAll();
        little.close();
        assertThat(full.audit()).isEmpty();
    }

    private static int pending(EmbeddedChannel channel) {
        return (int) Objects.requireNonNull(channel.unsafe().outboundBuffer()).totalPendingWriteBytes();
    }

    @Test
    void withoutRoomFourKilobytesMayWaitAndNotOneMore() {
        Ledger full = new Ledger("full", Map.of(Resource.QUEUE_BYTES, 0L), Map.of(), Integer.MAX_VALUE);
        Account none = Objects.requireNonNull(full.open(null));
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        own.config().setWriteBufferWaterMark(new io.netty.channel.WriteBufferWaterMark(8 << 20, 16 << 20));
        own.pipeline().addFirst(new Deaf());
        Connection poor = new Connection(own, none);
        own.pipeline().addLast(poor);
        poor.sendNow(new TestMessage("a", 1_000));
        int most = Outbound.MAX_SMALL_BYTES;
        int each = pending(own);
        poor.sendNow(new TestMessage("a", 1_000));
        // this is what the queue counts for a message beside its bytes
        int overhead = pending(own) - each - 1_007;
        poor.sendNow(new TestMessage("a", most - pending(own) - overhead - 2 - Wire.HEAD_BYTES));
        assertThat(pending(own)).isEqualTo(most);
        own.runPendingTasks();
        assertThat(closed).isEmpty();
        poor.sendNow(Wire.PING, 1);
        own.runPendingTasks();
        assertThat(closed).containsExactly("the peer does not read what it is sent");
        closed.clear();
        own.finishAndReleaseAll();
        none.close();
        assertThat(full.audit()).isEmpty();
    }

    @Test
    void thePrefaceFindsRoomBehindWhatIsGathered() {
        read(RawPeer.preface());
        gather(510);
        connection.sendPreface();
        readComplete();
        assertThat(HandPlatform.written(channel)).hasSize(510 + Wire.PREFACE_BYTES);
    }

    @Test
    void smallFramesAreReadFromTheHeapAndLargeOnesWhereTheyHaveArrived() {
        greet();
        ByteBuf small = Unpooled.directBuffer();
        small.writeBytes(frame(Wire.PING, 1, 10)).writeBytes(frame(Wire.PING, 1, 10_000));
        read(small);
        assertThat(arrived).hasSize(2);
        assertThat(isHeap).as("behind a small one").isTrue();
        read(Unpooled.directBuffer().writeBytes(frame(Wire.PING, 1, 4 * 1024 - Wire.HEAD_BYTES)));
        assertThat(arrived).hasSize(3);
        assertThat(isHeap).as("4,096 bytes").isTrue();
        read(Unpooled.directBuffer().writeBytes(frame(Wire.PING, 1, 4 * 1024 + 1 - Wire.HEAD_BYTES)));
        assertThat(arrived).hasSize(4);
        assertThat(isHeap).as("4,097 bytes").isFalse();
        read(Unpooled.directBuffer().writeBytes(frame(Wire.PING, 1, 10)));
        assertThat(isHeap).isTrue();
        readComplete();
    }

    @Test
    void theBeginOfALargeFrameIsChargedBeforeItIsKeptAndToldOnce() {
        greet();
        ByteBuf in = frame(Wire.PING, 1, 12_000);
        channel.writeInbound(in.readRetainedSlice(4 * 1024));
        assertThat(account.held(Resource.FRAME_BYTES)).isZero();
        assertThat(connection.isFrameWaiting()).isFalse();
        assertThat(begunFrames).isZero();
        channel.writeInbound(in.readRetainedSlice(1));
        assertThat(account.held(Resource.FRAME_BYTES)).isEqualTo(Wire.MAX_FRAME_BYTES + Wire.MAX_HEADER_BYTES);
        assertThat(connection.isFrameWaiting()).isTrue();
        channel.writeInbound(in.readRetainedSlice(100));
        assertThat(begunFrames).isEqualTo(1);
        channel.writeInbound(in);
        assertThat(arrived).hasSize(1);
        assertThat(account.held(Resource.FRAME_BYTES)).isZero();
        assertThat(connection.isFrameWaiting()).isFalse();
        channel.writeInbound(frame(Wire.PING, 1, 12_000).slice(0, 5_000));
        assertThat(begunFrames).isEqualTo(2);
        connection.close("of this test");
        assertThat(account.held(Resource.FRAME_BYTES)).isZero();
    }

    @Test
    void fourKilobytesOfTheNextFrameAreNotChargedAsTheOneBeforeThemWas() {
        greet();
        ByteBuf in = frame(Wire.PING, 1, 12_000);
        channel.writeInbound(in.readRetainedSlice(5_000));
        assertThat(account.held(Resource.FRAME_BYTES)).isPositive();
        channel.writeInbound(Unpooled.buffer().writeBytes(in).writeBytes(frame(Wire.PING, 2, 12_000), 0, 4 * 1024));
        in.release();
        assertThat(arrived).hasSize(1);
        assertThat(account.held(Resource.FRAME_BYTES)).isZero();
        assertThat(connection.isFrameWaiting()).isFalse();
    }

    /** A peer that sends one frame after the other has not kept others waiting since the first of these frames. */
    @Test
    void aFrameHasWaitedSinceItsOwnBeginWhereItsPlaceIsThatOfTheOneBefore() {
        Ledger full = new Ledger("full", Map.of(Resource.FRAME_BYTES, 40_000L), Map.of(), Integer.MAX_VALUE);
        List<EmbeddedChannel> channels = new ArrayList<>();
        List<Account> accounts = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Account one = Objects.requireNonNull(full.open(null));
            EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
            own.pipeline().addLast(new Connection(own, one));
            own.writeInbound(RawPeer.preface());
            channels.add(own);
            accounts.add(one);
        }
        ByteBuf first = frame(Wire.PING, 1, 12_000);
        ByteBuf next = frame(Wire.PING, 2, 12_000);
        channels.get(0).writeInbound(first.readRetainedSlice(5_000));
        clock.advance(1, TimeUnit.SECONDS);
        channels.get(1).writeInbound(next.retainedSlice(0, 5_000));
        clock.advance(1, TimeUnit.SECONDS);
        channels.get(0).writeInbound(Unpooled.buffer().writeBytes(first).writeBytes(next, 0, 5_000));
        clock.advance(1, TimeUnit.SECONDS);
        channels.get(2).writeInbound(next.retainedSlice(0, 5_000));
        channels.forEach(EmbeddedChannel::runPendingTasks);
        assertThat(channels).extracting(EmbeddedChannel::isOpen).containsExactly(true, false, true);
        first.release();
        next.release();
        channels.forEach(EmbeddedChannel::finishAndReleaseAll);
        accounts.forEach(Account::close);
        assertThat(full.audit()).isEmpty();
        closed.clear();
    }

    @Test
    void whereTheBeginOfAFrameFindsNoRoomTheConnectionEndsAndSaysWhy() {
        Ledger full = new Ledger("full", Map.of(Resource.FRAME_BYTES, 0L), Map.of(), Integer.MAX_VALUE);
        Account none = Objects.requireNonNull(full.open(null));
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        Connection poor = new Connection(own, none);
        own.pipeline().addLast(poor);
        own.writeInbound(RawPeer.preface());
        ByteBuf in = frame(Wire.PING, 1, 12_000);
        own.writeInbound(in.readRetainedSlice(1_000));
        assertThat(closed).isEmpty();
        own.writeInbound(in);
        assertThat(arrived).isEmpty();
        assertThat(closed).containsExactly("no room for the first bytes of a frame that has not arrived in full");
        assertThat(poor.memoryWanted()).isEqualTo(closed.get(0));
        closed.clear();
        own.finishAndReleaseAll();
        none.close();
        assertThat(full.audit()).isEmpty();
    }

    @Test
    void anEndForWantOfMemorySaysSoWhoeverSaysThatThereIsNone() {
        connection.exceptionCaught(null, new OutOfMemoryError("of this test"));
        assertThat(closed).containsExactly("of this test");
        assertThat(connection.memoryWanted()).isEqualTo(closed.get(0));
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        Connection poor = new Connection(own, account);
        own.pipeline().addLast(poor);
        own.pipeline().fireUserEventTriggered(SocketQueue.NO_ROOM);
        assertThat(closed).hasSize(1);
        own.close();
        assertThat(closed.remove(1))
                .isEqualTo("no room for the first bytes of a TLS record that has not arrived in full");
    }

    @Test
    void anyOtherEndSaysNothingOfMemory() {
        channel.pipeline().fireUserEventTriggered("something else");
        connection.exceptionCaught(null, new IllegalStateException("of this test"));
        assertThat(closed).containsExactly("of this test");
        assertThat(connection.memoryWanted()).isNull();
    }

    @Test
    void aConnectionThatHasNothingToSayWritesNothingAtItsEnd() {
        connection.close("of this test");
        assertThat(channel.outboundMessages()).allMatch(message -> message == Unpooled.EMPTY_BUFFER);
    }

    @Test
    void anOwnerIsToldThatTheEndBeginsBeforeItIsToldWhy() {
        int[] before = new int[1];
        onClosed = () -> before[0] = closings;
        connection.close("of this test");
        connection.close("once more");
        assertThat(before[0]).isEqualTo(1);
        assertThat(closings).isEqualTo(1);
        assertThat(closed).containsExactly("of this test");
    }

    @Test
    void anOwnerIsToldEachTimeThatTheSocketsQueueHasChanged() {
        channel.pipeline().addFirst(new Deaf());
        connection.sendNow(new TestMessage("a", 5_000));
        assertThat(unsentChanges).isEqualTo(1);
        assertThat(account.held(Resource.QUEUE_BYTES)).isEqualTo(8 * 1024);
        channel.pipeline().removeFirst();
        channel.flush();
        channel.runPendingTasks();
        assertThat(unsentChanges).isEqualTo(2);
        assertThat(account.held(Resource.QUEUE_BYTES)).isZero();
    }

    @Test
    void aConnectionGoesByTheTimeOfItsLoop() {
        clock.advance(77, TimeUnit.SECONDS);
        assertThat(connection.nanoTime()).isEqualTo(clock.nanoTime());
        assertThat(connection.loop()).isSameAs(channel.eventLoop());
    }

    @Test
    void aFaultOfThisSideIsLogged() {
        List<Throwable> logged = new ArrayList<>();
        java.util.logging.Handler handler = new java.util.logging.Handler() {
            @Override
            public void publish(java.util.logging.LogRecord entry) {
                logged.add(entry.getThrown());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        java.util.logging.Logger logger = java.util.logging.Logger.getLogger("dev.rpcx.wire");
        logger.addHandler(handler);
        IllegalStateException fault = new IllegalStateException("of this test");
        try {
            connection.send(new TestMessage("a", 1) {
                @Override
                public boolean beforeSend() {
                    throw fault;
                }
            });
            channel.runPendingTasks();
        } finally {
            logger.removeHandler(handler);
        }
        assertThat(logged).containsExactly(fault);
    }

    @Test
    void aLoggerThatThrowsKeepsNothingFromBeingTold() {
        greet();
        java.util.logging.Handler failing = new java.util.logging.Handler() {
            @Override
            public void publish(java.util.logging.LogRecord entry) {
                throw new IllegalStateException("by the test");
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        java.util.logging.Logger logger = java.util.logging.Logger.getLogger("dev.rpcx.wire");
        logger.addHandler(failing);
        try {
            connection.send(new TestMessage("a", 1) {
                @Override
                public boolean beforeSend() {
                    throw new IllegalStateException("a fault");
                }
            });
            connection.send(new TestMessage("b", 1));
            channel.runPendingTasks();
        } finally {
            logger.removeHandler(failing);
        }
        assertThat(told).contains("b lost");
    }

    @Test
    void whatBecomesWritableWhileReadingIsSentWithTheReadsEnd() {
        greet();
        read(frame(Wire.PING, 1, 0));
        connection.sendNow(new TestMessage("a", 1));
        channel.pipeline().fireChannelWritabilityChanged();
        assertThat(written()).isEmpty();
        readComplete();
        assertThat(written()).hasSize(1);
        connection.recall(new TestMessage("b", 1));
    }
}
