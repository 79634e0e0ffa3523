package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.FailingAllocator;
import dev.rpcx.HandPlatform;
import dev.rpcx.RawPeer;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what both sides of the native wire do with what they send, on a channel that a test can stop and end. */
@Timeout(60)
class WireConnectionTest {
    /** Size of a message of whole fragments, of which the last one fills a batch of 256 KiB. */
    private static final int BATCH_BYTES = 16 * Wire.MAX_PAYLOAD_BYTES;

    private final Ledger ledger = new Ledger("wire", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = java.util.Objects.requireNonNull(ledger.open(null));
    private final List<String> told = new ArrayList<>();

    /** Whether this channel runs its tasks within each write. An event loop runs them after its current work. */
    private boolean runsTasks = true;

    private final EmbeddedChannel channel = new EmbeddedChannel() {
        @Override
        public void runPendingTasks() {
            if (runsTasks) {
                super.runPendingTasks();
            }
        }
    };

    private final Connection connection = new Connection(channel, account);

    private final class Connection extends WireConnection {
        private String reason = "";

        Connection(EmbeddedChannel channel, Account account) {
            super(channel, account);
        }

        @Override
        public void onPreface(int version) {}

        @Override
        public void onFrame(int head, int id, ByteBuf payload) {
            if (head == Wire.PING) {
                answerPing(id);
            }
        }

        @Override
        public int maxBytesTaken() {
            return Integer.MAX_VALUE;
        }

        @Override
        public void beforeRead() {}

        @Override
        public void onClosed(String why) {
            told.add("closed");
            reason = why;
        }
    }

    private final class TestMessage extends Outbound {
        TestMessage(int bytes) {
            super(Unpooled.buffer().writeZero(bytes));
            head = Wire.REPLY;
            id = 1 << 16;
        }

        @Override
        public boolean beforeSend() {
            return true;
        }

        @Override
        public void onSent() {
            told.add("left");
        }

        @Override
        public void onDropped() {
            told.add("lost");
        }
    }

    @AfterEach
    void end() {
        connection.close("the test is over");
        channel.runPendingTasks();
        channel.finishAndReleaseAll();
        assertThat(ledger.held(Resource.QUEUE_BYTES)).isZero();
        assertThat(ledger.held(Resource.KEPT_BYTES)).isZero();
        account.close();
    }

    /**
     * Ends the connection within the flush of this number. A socket does the same when it finds that its peer has gone.
     */
    private void closeAtFlush(int number) {
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            private int flushes;

            @Override
            public void flush(ChannelHandlerContext ctx) {
                ctx.flush();
                if (++flushes == number) {
                    connection.close("the peer is gone");
                }
            }
        });
    }

    @Test
    void aMessageWhoseConnectionEndsWhileItIsWrittenIsNotToldAnythingAfterThat() {
        closeAtFlush(1);
        // the last byte of this message fills the batch
        connection.sendNow(new TestMessage(BATCH_BYTES));
        assertThat(told).containsExactly("left", "closed");
    }

    @Test
    void smallMessagesThatFillABatchHaveBeenSentBeforeItIsWritten() {
        closeAtFlush(1);
        channel.pipeline().addLast(connection);
        // nothing is flushed before the batch is full
        connection.sendTogether(() -> {
            for (int i = 0; i < 1_000 && !connection.isClosed(); i++) {
                connection.sendNow(new TestMessage(1_000));
            }
        });
        assertThat(connection.isClosed()).isTrue();
        assertThat(told).endsWith("closed").doesNotContain("lost");
        assertThat(told.indexOf("closed")).isEqualTo(told.size() - 1);
    }

    /** Sends a message as the callback of a handler's future does: nobody learns of its errors. */
    private void sendUnheard(Outbound message) {
        try {
            connection.sendNow(message);
        } catch (OutOfMemoryError unheard) {
            // the error does not end the connection
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {5_000, 3 * Wire.MAX_PAYLOAD_BYTES})
    void noBytesOfOthersBecomeTheBodyOfAFrameForWhichThereIsNoMemory(int bytes) {
        FailingAllocator memory = new FailingAllocator();
        channel.config().setAllocator(memory);
        channel.pipeline().addLast(connection);
        memory.failAtNext(1);
        sendUnheard(new TestMessage(bytes));
        assertThat(memory.hasFailed()).isTrue();
        sendUnheard(new Outbound.Control(Wire.ERROR, 1 << 16, Unpooled.buffer().writeZero(100)));
        connection.sendNow(Wire.PING, 7);
        assertThat(HandPlatform.written(channel)).isEmpty();
        assertThat(told).containsExactly("closed");
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void whatWasGatheredBeforeAFrameForWhichThereIsNoMemoryIsSentWhole() {
        FailingAllocator memory = new FailingAllocator();
        channel.config().setAllocator(memory);
        channel.pipeline().addLast(connection);
        connection.channelRead(
                channel.pipeline().context(connection), Unpooled.buffer().writeBytes(RawPeer.preface()));
        connection.sendNow(Wire.PING, 7);
        memory.failAtNext(1);
        sendUnheard(new TestMessage(5_000));
        connection.channelReadComplete(channel.pipeline().context(connection));
        assertThat(HandPlatform.written(channel))
                .isEqualTo(ByteBufUtil.getBytes(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER)));
        assertThat(channel.isOpen()).isFalse();
    }

    /** A stream whose peer reads as fast as it is sent. */
    private final class Endless extends Outbound {
        private long sentBytes;

        Endless() {
            super(Unpooled.buffer());
            head = Wire.ITEM;
            id = 1 << 16;
        }

        @Override
        public boolean beforeSend() {
            body.clear().writeZero(8_000);
            return true;
        }

        @Override
        public void onSent() {
            sentBytes += 8_000;
            if (!connection.isClosed()) {
                connection.send(this);
            }
        }

        @Override
        public void onDropped() {}
    }

    /** Nothing follows the batch that would make the connection check its charges. */
    @Test
    void aBatchThatFillsWithinAReadAndIsNotSentIsCharged() {
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                // the socket takes nothing
            }
        });
        channel.pipeline().addLast(connection);
        ChannelHandlerContext context = channel.pipeline().context(connection);
        connection.channelRead(context, Unpooled.buffer().writeBytes(RawPeer.preface()));
        long sent = 0;
        while (channel.unsafe().outboundBuffer().totalPendingWriteBytes() == 0) {
            connection.sendNow(new TestMessage(15_900));
            sent += 15_900;
        }
        connection.channelReadComplete(context);
        assertThat(ledger.held(Resource.QUEUE_BYTES)).isGreaterThanOrEqualTo(sent);
    }

    /** The other connections of the loop wait until all that was read has been handled. */
    @Test
    void whatIsSentWhileManyFramesAreReadIsNoMoreThanATurn() {
        Endless stream = new Endless();
        runsTasks = false;
        channel.pipeline().addLast(connection);
        connection.channelRead(
                channel.pipeline().context(connection), Unpooled.buffer().writeBytes(RawPeer.preface()));
        connection.send(stream);
        ByteBuf frames = Unpooled.buffer();
        for (int i = 0; i < 5_000; i++) {
            frames.writeBytes(RawPeer.frame(Wire.END, 5, Unpooled.EMPTY_BUFFER));
        }
        connection.channelRead(channel.pipeline().context(connection), frames);
        assertThat(stream.sentBytes).isBetween(500_000L, 600_000L);
        connection.channelReadComplete(channel.pipeline().context(connection));
        assertThat(stream.sentBytes).as("with what leaves at the end").isLessThan(1_200_000);
        runsTasks = true;
    }

    /** The text may contain bytes of a peer, and calls that end with the connection copy it. */
    @Test
    void theTextOfWhatThePipelineThrowsIsCut() {
        channel.pipeline().addLast(connection);
        channel.pipeline().fireExceptionCaught(new IllegalStateException("a".repeat(33_000)));
        assertThat(connection.reason).startsWith("aaa").hasSizeLessThan(600);
    }

    @Test
    void aPeerThatPingsAndDoesNotReadIsOwedOnePong() {
        channel.config().setWriteBufferWaterMark(new WriteBufferWaterMark(1_000, 2_000));
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                // the socket takes nothing
            }
        });
        channel.pipeline().addLast(connection);
        connection.channelRead(
                channel.pipeline().context(connection), Unpooled.buffer().writeBytes(RawPeer.preface()));
        connection.channelReadComplete(channel.pipeline().context(connection));
        for (int i = 0; i < 20_000; i++) {
            connection.channelRead(
                    channel.pipeline().context(connection), RawPeer.frame(Wire.PING, i, Unpooled.EMPTY_BUFFER));
            connection.channelReadComplete(channel.pipeline().context(connection));
        }
        long waiting = channel.unsafe().outboundBuffer().totalPendingWriteBytes();
        assertThat(waiting).isLessThan(10_000);
        assertThat(ledger.held(Resource.QUEUE_BYTES)).isLessThan(20_000);
        channel.pipeline().removeFirst();
        channel.flush();
        channel.runPendingTasks();
        byte[] written = HandPlatform.written(channel);
        ByteBuf last = Unpooled.wrappedBuffer(written, written.length - 6, 6);
        assertThat(last.readByte()).isEqualTo((byte) 5);
        assertThat(last.readByte()).isEqualTo((byte) Wire.PONG);
        assertThat(last.readInt())
                .as("the last ping is answered when the peer reads again")
                .isEqualTo(19_999);
    }
}
