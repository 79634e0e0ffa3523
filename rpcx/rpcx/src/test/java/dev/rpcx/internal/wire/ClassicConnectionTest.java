package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.HandPlatform;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXException.Code;
import dev.rpcx.RPCXException.Executed;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayDeque;
import java.util.ArrayList;
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
 * Tests what both sides of the classic wire do with a peer that stands still. The clock is simulated, so times are
 * tested to the nanosecond.
 */
class ClassicConnectionTest {
    private static final long KEEP_ALIVE = TimeUnit.SECONDS.toNanos(8);
    private static final long IDLE = TimeUnit.SECONDS.toNanos(40);

    /** Time between two checks: a fourth of the longest silence, which here is the keepalive time. */
    private static final long LOOK = TimeUnit.SECONDS.toNanos(2);

    private final MockTicker clock = Ticker.newMockTicker();
    private final EmbeddedChannel channel =
            EmbeddedChannel.builder().ticker(clock).build();
    private final Ledger ledger = new Ledger("classic", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final List<Long> looks = new ArrayList<>();
    private final List<RPCXException> ends = new ArrayList<>();
    private final List<Integer> sent = new ArrayList<>();
    private int overs;
    private int frames;
    private boolean busy;
    private Runnable onFrame = () -> {};
    private Runnable onCheck = () -> {};
    private final Connection connection = new Connection(channel, account, KEEP_ALIVE);

    private final class Connection extends ClassicConnection {
        Connection(EmbeddedChannel of, Account by, long keepAliveNanos) {
            super(of, false, by, 4 << 20, 8 << 20, keepAliveNanos, IDLE);
        }

        @Override
        public boolean isBusy() {
            return busy;
        }

        @Override
        public void onCheck(long nowNanos) {
            looks.add(nowNanos);
            onCheck.run();
        }

        @Override
        public void onEnd(RPCXException why) {
            ends.add(why);
        }

        @Override
        public void onOver() {
            overs++;
        }

        @Override
        public boolean reserve(long bytes) {
            return true;
        }

        @Override
        public void frame(byte[] frame, int bytes) {
            frames++;
            onFrame.run();
        }

        @Override
        public void onSkip() {}

        @Override
        public void onSkipped(byte[] begin, int bytes, int length) {
            frames++;
        }
    }

    /** Keeps what is written while it is in the pipeline. */
    private static final class Deaf extends ChannelOutboundHandlerAdapter {
        final ArrayDeque<Runnable> kept = new ArrayDeque<>();

        @Override
        public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
            kept.add(() -> ctx.writeAndFlush(message, promise));
        }
    }

    /** Keeps what is written in the channel's queue, as long as it does not read. */
    private static final class Unread extends ChannelOutboundHandlerAdapter {
        boolean isReading;

        @Override
        public void flush(ChannelHandlerContext ctx) {
            if (isReading) {
                ctx.flush();
            }
        }
    }

    @BeforeEach
    void connect() {
        channel.pipeline().addLast(connection);
    }

    @AfterEach
    void nothingIsLeft() {
        channel.finishAndReleaseAll();
        assertThat(overs).isEqualTo(1);
        assertThat(ends).hasSizeLessThan(2);
        account.close();
        assertThat(ledger.audit()).isEmpty();
        assertThat(channel.runScheduledPendingTasks()).as("no timer is left").isEqualTo(-1);
    }

    private void pass(long nanos) {
        clock.advance(nanos, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
    }

    /** Passes the time of this many checks, one after the other. */
    private void passLooks(int count) {
        for (int i = 0; i < count; i++) {
            pass(LOOK);
        }
    }

    private void begin(int length) {
        channel.writeInbound(Unpooled.buffer().writeInt(length));
    }

    private void expectEnd(Code code, Executed executed, String text) {
        assertThat(ends).hasSize(1);
        assertThat(ends.get(0).code()).isEqualTo(code);
        assertThat(ends.get(0).executed()).isEqualTo(executed);
        assertThat(ends.get(0)).hasMessageContaining(text);
        assertThat(connection.isEnding()).isTrue();
    }

    private void write(int bytes) {
        connection.write(new byte[bytes], gone -> sent.add((int) gone));
    }

    @Test
    void itLooksFourTimesInTheLongestSilence() {
        pass(LOOK - 1);
        assertThat(looks).isEmpty();
        pass(1);
        assertThat(looks).hasSize(1);
        passLooks(3);
        assertThat(looks).hasSize(4).doesNotHaveDuplicates();
        assertThat(account.held(Resource.TIMERS)).isEqualTo(1);
        channel.pipeline().fireChannelActive();
        assertThat(account.held(Resource.TIMERS)).as("one timer").isEqualTo(1);
    }

    @Test
    void whereKeepAliveIsLongSilenceIsTenSeconds() {
        EmbeddedChannel other = EmbeddedChannel.builder().ticker(clock).build();
        Connection patient = new Connection(other, account, TimeUnit.SECONDS.toNanos(60));
        other.pipeline().addLast(patient);
        clock.advance(2_499, TimeUnit.MILLISECONDS);
        other.runScheduledPendingTasks();
        assertThat(looks).isEmpty();
        clock.advance(1, TimeUnit.MILLISECONDS);
        other.runScheduledPendingTasks();
        assertThat(looks).hasSize(1);
        other.close();
        assertThat(overs).isEqualTo(1);
        overs = 0;
    }

    @Test
    void silenceWithinAFrameEndsTheConnection() {
        passLooks(1);
        begin(100);
        passLooks(3);
        assertThat(ends).isEmpty();
        assertThat(connection.isEnding()).isFalse();
        assertThat(looks).hasSize(4);
        passLooks(1);
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
        assertThat(looks).as("no look beyond the end").hasSize(4);
        passLooks(10);
        assertThat(looks).hasSize(4);
    }

    @Test
    void callsThatAreUnderWayThenMayHaveBeenExecuted() {
        busy = true;
        begin(100);
        passLooks(4);
        expectEnd(Code.PROTOCOL, Executed.MAYBE, "not ended in time");
    }

    /** A frame of 32 KiB may take two seconds at 16 KiB a second, and eight seconds more. */
    @Test
    void aFrameThatIsTooSlowEndsTheConnection() {
        begin(32 * 1024);
        for (int i = 0; i < 4; i++) {
            passLooks(1);
            channel.writeInbound(Unpooled.buffer().writeByte(0));
        }
        assertThat(ends).isEmpty();
        passLooks(1);
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
    }

    /** A handler on the event loop may not return for long. What has arrived meanwhile is still in the socket. */
    @Test
    void theTimeInWhichTheLoopIsElsewhereDoesNotCountAgainstAFrame() {
        passLooks(2);
        begin(32 * 1024);
        pass(10 * KEEP_ALIVE);
        assertThat(ends).isEmpty();
        channel.writeInbound(Unpooled.buffer().writeByte(0));
        passLooks(3);
        assertThat(ends).isEmpty();
        passLooks(1);
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
    }

    @Test
    void theTimeInWhichTheLoopIsElsewhereIsNotThatOfAFramesRateEither() {
        begin(32 * 1024);
        pass(10 * KEEP_ALIVE);
        for (int i = 0; i < 4; i++) {
            channel.writeInbound(Unpooled.buffer().writeByte(0));
            assertThat(ends).isEmpty();
            passLooks(1);
        }
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
    }

    @Test
    void theTimeInWhichTheLoopIsElsewhereIsCountedOnceWhereThisSideDoesNotReadEither() {
        begin(32 * 1024);
        connection.setReading(false);
        pass(10 * KEEP_ALIVE);
        connection.setReading(true);
        for (int i = 0; i < 5; i++) {
            assertThat(ends).isEmpty();
            channel.writeInbound(Unpooled.buffer().writeByte(0));
            passLooks(1);
        }
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
    }

    @Test
    void theTimeInWhichTheLoopIsElsewhereDoesNotCountAgainstWhoReads() {
        Deaf deaf = new Deaf();
        channel.pipeline().addFirst(deaf);
        write(10);
        pass(10 * KEEP_ALIVE);
        assertThat(ends).isEmpty();
        passLooks(2);
        assertThat(ends).isEmpty();
        passLooks(1);
        expectEnd(Code.UNAVAILABLE, Executed.MAYBE, "read nothing for 8000 ms");
        deaf.kept.forEach(Runnable::run);
    }

    @Test
    void whatIsNotReadIsNotSilent() {
        begin(4 << 20);
        connection.setReading(false);
        passLooks(15);
        assertThat(ends).isEmpty();
        connection.setReading(true);
        passLooks(3);
        assertThat(ends).isEmpty();
        passLooks(1);
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
    }

    /** The peer sends a byte now and then, always at a moment when this side reads. */
    @Test
    void pausesOfReadingGiveAFrameNoMoreThanItsOwnTimeAgain() {
        begin(4 << 20);
        // a frame of 4 MiB may take 256 seconds at 16 KiB a second, and eight seconds more
        int most = 2 * (256 + 8) / 2;
        connection.setReading(false);
        for (int look = 1; look < most; look++) {
            passLooks(1);
            assertThat(ends).isEmpty();
            connection.setReading(true);
            channel.writeInbound(Unpooled.buffer().writeByte(0));
            connection.setReading(false);
        }
        passLooks(1);
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
    }

    /** Four times eight seconds are enough for the slowest reader to take so much that this side reads on. */
    @Test
    void aSmallFrameWaitsForTheEndOfAPauseForAsLongAsThatMayTake() {
        begin(100);
        connection.setReading(false);
        passLooks(15);
        assertThat(ends).isEmpty();
        passLooks(1);
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
    }

    @Test
    void theTimeInWhichTheLoopIsElsewhereIsNotThatOfAFrameInAPauseEither() {
        begin(100);
        connection.setReading(false);
        pass(10 * KEEP_ALIVE);
        assertThat(ends).isEmpty();
        // the first of these checks would have come in time
        passLooks(14);
        assertThat(ends).isEmpty();
        passLooks(1);
        expectEnd(Code.PROTOCOL, Executed.NOT_EXECUTED, "not ended in time");
    }

    @Test
    void betweenFramesAPeerMayBeSilent() {
        begin(0);
        assertThat(frames).isEqualTo(1);
        passLooks(19);
        assertThat(ends).isEmpty();
        passLooks(1);
        expectEnd(Code.UNAVAILABLE, Executed.NOT_EXECUTED, "for 40000 ms");
        assertThat(channel.isOpen()).as("its owner closes it").isTrue();
    }

    @Test
    void aConnectionIsIdleSinceTheLastThatArrivedOrWasUnderWay() {
        passLooks(10);
        begin(0);
        passLooks(19);
        assertThat(ends).isEmpty();
        busy = true;
        passLooks(30);
        assertThat(ends).isEmpty();
        busy = false;
        passLooks(19);
        assertThat(ends).isEmpty();
        passLooks(1);
        expectEnd(Code.UNAVAILABLE, Executed.NOT_EXECUTED, "has had no call");
    }

    /** Fails a write as the channel of a socket does without direct memory for it: only the writer learns of it. */
    private static final class Forgetful extends ChannelOutboundHandlerAdapter {
        int remembers;

        @Override
        public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
            if (remembers-- == 0) {
                ((ByteBuf) message).release();
                promise.setFailure(new OutOfMemoryError("of this test"));
            } else {
                ctx.writeAndFlush(message, promise);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void nothingFollowsAFrameOfWhichAPieceHasNoMemory(int pieces) {
        Forgetful forgetful = new Forgetful();
        forgetful.remembers = pieces;
        channel.pipeline().addFirst(forgetful);
        write(3 * 16 * 1024);
        write(10);
        assertThat(HandPlatform.written(channel).length).isEqualTo(pieces * 16 * 1024);
        assertThat(channel.isOpen()).isFalse();
        assertThat(sent.stream().mapToInt(Integer::intValue).sum())
                .as("each byte is told of")
                .isGreaterThanOrEqualTo(3 * 16 * 1024 + 10);
    }

    /** Fails a write as if there were no memory for its promise: the writer learns nothing. */
    private static final class Failing extends EmbeddedChannel {
        int writes = Integer.MAX_VALUE;

        Failing(Builder builder) {
            super(builder);
        }

        @Override
        public ChannelFuture write(Object message) {
            if (writes-- == 0) {
                ((ByteBuf) message).release();
                throw new OutOfMemoryError("of this test");
            }
            return super.write(message);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void eachByteIsToldOfOnceThoughWritingFailsInTheMidstOfAFrame(int pieces) {
        Failing other = new Failing(EmbeddedChannel.builder().ticker(clock));
        Connection failing = new Connection(other, account, KEEP_ALIVE);
        other.pipeline().addLast(failing);
        other.writes = pieces;
        int frame = 3 * 16 * 1024;
        assertThatThrownBy(() -> failing.write(new byte[frame], gone -> sent.add((int) gone)))
                .isInstanceOf(OutOfMemoryError.class);
        assertThat(other.isOpen()).isFalse();
        assertThat(sent.stream().mapToLong(Integer::longValue).sum()).isEqualTo(ClassicConnection.queuedBytes(frame));
        assertThat(failing.waitingBytes()).isZero();
        other.finishAndReleaseAll();
        assertThat(overs).isEqualTo(1);
        overs = 0;
    }

    /** Messages that wait to be written are given back although they cannot be written. */
    @Test
    void aConnectionIsOverThoughWhatWaitsCannotBeWritten() {
        Failing other = new Failing(EmbeddedChannel.builder().ticker(clock));
        Connection failing = new Connection(other, account, KEEP_ALIVE);
        other.pipeline().addFirst(new Unread()).addLast(failing);
        failing.writeSmall(new byte[10]);
        failing.writeSmall(new byte[10]);
        other.writes = 0;
        other.pipeline().remove(failing);
        assertThat(overs).isEqualTo(1);
        assertThat(account.held(Resource.TIMERS)).as("of the other one").isEqualTo(1);
        assertThatThrownBy(other::checkException).hasRootCauseInstanceOf(OutOfMemoryError.class);
        other.finishAndReleaseAll();
        overs = 0;
    }

    /** Its timer would not run again, and nobody would find that the peer is gone. */
    @Test
    void aConnectionThatCannotBeLookedAtEnds() {
        onCheck = () -> {
            throw new OutOfMemoryError("of this test");
        };
        passLooks(1);
        assertThat(channel.isOpen()).isFalse();
        assertThat(overs).isEqualTo(1);
    }

    @Test
    void aPeerThatTakesNothingLosesItsConnection() {
        passLooks(10);
        Deaf deaf = new Deaf();
        channel.pipeline().addFirst(deaf);
        write(10);
        passLooks(2);
        write(10);
        passLooks(1);
        assertThat(ends).isEmpty();
        assertThat(looks).hasSize(13);
        passLooks(1);
        expectEnd(Code.UNAVAILABLE, Executed.MAYBE, "read nothing for 8000 ms");
        assertThat(channel.isOpen()).isFalse();
        deaf.kept.forEach(Runnable::run);
        int queued = (int) ClassicConnection.queuedBytes(10) - 10;
        assertThat(sent).containsExactly(10 + queued, 10 + queued);
    }

    /** A server is not closed in this way because of its replies; see ClassicClientConnectionTest. */
    @Test
    void aClientThatSendsAndTakesNothingLosesItsConnection() {
        Deaf deaf = new Deaf();
        channel.pipeline().addFirst(deaf);
        write(10);
        for (int i = 0; i < 4; i++) {
            assertThat(ends).isEmpty();
            begin(0);
            passLooks(1);
        }
        expectEnd(Code.UNAVAILABLE, Executed.MAYBE, "read nothing for 8000 ms");
        deaf.kept.forEach(Runnable::run);
    }

    @Test
    void whatWaitsForThePeerIsChargedWhereItIsMoreThanALittle() {
        Unread peer = new Unread();
        channel.pipeline().addFirst(peer);
        write(3_900);
        assertThat(account.held(Resource.QUEUE_BYTES)).isZero();
        write(10_000);
        assertThat(account.held(Resource.QUEUE_BYTES)).isEqualTo(16 * 1024);
        peer.isReading = true;
        channel.flush();
        channel.runPendingTasks();
        assertThat(account.held(Resource.QUEUE_BYTES)).isZero();
    }

    /** Many small replies also make a long queue. */
    @Test
    void aPeerWhoseQueueHasNoRoomLosesItsConnection() {
        Ledger full = new Ledger("full", Map.of(Resource.QUEUE_BYTES, 8192L), Map.of(), Integer.MAX_VALUE);
        Account none = Objects.requireNonNull(full.open(null));
        EmbeddedChannel other = EmbeddedChannel.builder().ticker(clock).build();
        Connection poor = new Connection(other, none, KEEP_ALIVE);
        other.pipeline().addFirst(new Unread()).addLast(poor);
        for (int i = 0; i < 7; i++) {
            poor.write(new byte[1_000], gone -> sent.add((int) gone));
        }
        other.runPendingTasks();
        assertThat(ends).isEmpty();
        poor.write(new byte[1_000], gone -> sent.add((int) gone));
        other.runPendingTasks();
        expectEnded(other);
        none.close();
        assertThat(full.audit()).isEmpty();
    }

    private void expectEnded(EmbeddedChannel other) {
        assertThat(ends).hasSize(1);
        assertThat(ends.get(0)).hasMessageContaining("does not read");
        assertThat(other.isOpen()).isFalse();
        ends.clear();
        overs = 0;
    }

    @Test
    void aPeerThatTakesSlowlyKeepsItsConnectionAndIsNotIdle() {
        Deaf deaf = new Deaf();
        channel.pipeline().addFirst(deaf);
        write(8 * 16 * 1024);
        assertThat(deaf.kept).hasSize(8);
        for (int i = 0; i < 8; i++) {
            passLooks(3);
            deaf.kept.remove().run();
        }
        assertThat(ends).isEmpty();
        passLooks(19);
        assertThat(ends).isEmpty();
        passLooks(3);
        expectEnd(Code.UNAVAILABLE, Executed.NOT_EXECUTED, "has had no call");
    }

    @Test
    void whatStillWaitsAtTheEndIsWaitedForAsLong() {
        Deaf deaf = new Deaf();
        channel.pipeline().addFirst(deaf);
        write(10);
        connection.fail(new RPCXException(Code.PROTOCOL, "the end", Executed.MAYBE, null));
        connection.fail(new RPCXException(Code.PROTOCOL, "the end again", Executed.MAYBE, null));
        passLooks(3);
        assertThat(channel.isOpen()).isTrue();
        passLooks(1);
        assertThat(channel.isOpen()).isFalse();
        expectEnd(Code.PROTOCOL, Executed.MAYBE, "the end");
        deaf.kept.forEach(Runnable::run);
    }

    @Test
    void aFrameIsSentInChunksEachOfWhichIsTold() {
        write(40_000);
        int queued = (int) ClassicConnection.queuedBytes(40_000) - 40_000;
        assertThat(sent)
                .as("its place in the queue with its last byte")
                .containsExactly(16_384, 16_384, 7_232 + queued);
        assertThat(connection.waitingBytes()).isZero();
        for (int bytes : List.of(16_384, 16_384, 7_232)) {
            ByteBuf chunk = channel.readOutbound();
            assertThat(chunk.readableBytes()).isEqualTo(bytes);
        }
        assertThat(channel.<ByteBuf>readOutbound()).isNull();
    }

    @Test
    void whatIsWrittenWhileReadingIsSentWithTheReadsEnd() {
        onFrame = () -> write(5);
        channel.pipeline().fireChannelRead(Unpooled.buffer().writeInt(0));
        assertThat(channel.<ByteBuf>readOutbound()).isNull();
        channel.pipeline().fireChannelReadComplete();
        assertThat(channel.<ByteBuf>readOutbound()).isNotNull();
        write(5);
        assertThat(channel.<ByteBuf>readOutbound())
                .as("at once, as nothing is read")
                .isNotNull();
    }

    @Test
    void whatArrivesIsReleasedAndAfterTheEndNotRead() {
        ByteBuf first = Unpooled.buffer().writeInt(0);
        channel.writeInbound(first);
        assertThat(first.refCnt()).isZero();
        connection.fail(new RPCXException(Code.PROTOCOL, "the end", Executed.MAYBE, null));
        ByteBuf second = Unpooled.buffer().writeInt(0);
        channel.writeInbound(second);
        assertThat(second.refCnt()).isZero();
        assertThat(frames).isEqualTo(1);
    }

    @Test
    void aFaultOfItsReaderEndsTheConnection() {
        onFrame = () -> {
            throw new OutOfMemoryError("of this test");
        };
        begin(0);
        expectEnd(Code.UNAVAILABLE, Executed.MAYBE, "could not be read");
    }

    @Test
    void aFaultOfThePeerEndsTheConnection() {
        begin(-1);
        expectEnd(Code.PROTOCOL, Executed.MAYBE, "-1 bytes (expected: 0 to ");
    }

    @Test
    void aFrameThatIsCutAtTheEndIsForgotten() {
        begin(100);
        connection.fail(new RPCXException(Code.PROTOCOL, "the end", Executed.MAYBE, null));
        passLooks(30);
        expectEnd(Code.PROTOCOL, Executed.MAYBE, "the end");
        assertThat(looks).isEmpty();
    }

    @Test
    void anExceptionOfTheChannelClosesIt() {
        channel.pipeline().fireExceptionCaught(new IllegalStateException("of this test"));
        assertThat(channel.isOpen()).isFalse();
        assertThat(overs).isEqualTo(1);
        assertThat(connection.isEnding()).isTrue();
    }

    @Test
    void aHandlerThatIsTakenOutIsOver() {
        channel.pipeline().remove(connection);
        assertThat(overs).isEqualTo(1);
        assertThat(account.held(Resource.TIMERS)).isZero();
    }

    /** The channel of a client that has not connected yet. */
    private static final class Later extends EmbeddedChannel {
        private boolean connected;

        Later(Builder builder) {
            super(builder);
        }

        @Override
        public boolean isActive() {
            return connected;
        }
    }

    @Test
    void aChannelThatIsNotActiveYetBeginsWhenItIs() {
        Later later = new Later(EmbeddedChannel.builder().ticker(clock));
        later.pipeline().addLast(new Connection(later, account, KEEP_ALIVE));
        assertThat(account.held(Resource.TIMERS)).as("of the other one").isEqualTo(1);
        later.connected = true;
        later.pipeline().fireChannelActive();
        assertThat(account.held(Resource.TIMERS)).isEqualTo(2);
        later.pipeline().fireChannelInactive();
        assertThat(account.held(Resource.TIMERS)).isEqualTo(1);
        assertThat(overs).isEqualTo(1);
        overs = 0;
    }
}
