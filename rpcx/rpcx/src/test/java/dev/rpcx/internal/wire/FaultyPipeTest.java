package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.testing.Faults;
import dev.rpcx.testing.FaultyLink;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests a simulated bad network within a connection, without a client or a server. */
@Timeout(60)
class FaultyPipeTest {
    private static final String PREFACE = "5250435801000000";
    private static final String PING = FaultyFramesTest.frame(Wire.PING, 7, "");
    private static final String A = FaultyFramesTest.frame(Wire.REQUEST, 1, "aa");
    private static final String B = FaultyFramesTest.frame(Wire.REQUEST, 2, "bb");
    private static final String INACTIVE = "inactive";
    private static final Faults SLOW = Faults.seeded(1).delaying(1, Duration.ofMinutes(1));

    /** A connection that records what it reads, and releases it. */
    private static final class Reading extends ChannelInboundHandlerAdapter {
        final List<String> read = new ArrayList<>();

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object message) {
            ByteBuf bytes = (ByteBuf) message;
            read.add(ByteBufUtil.hexDump(bytes));
            bytes.skipBytes(bytes.readableBytes()).release();
        }

        @Override
        public void channelInactive(ChannelHandlerContext ctx) {
            read.add(INACTIVE);
        }
    }

    private Reading reading = new Reading();

    private EmbeddedChannel channel(Faults faults) {
        reading = new Reading();
        return new EmbeddedChannel(new FaultyPipe(faults, 0), reading);
    }

    private static ByteBuf bytes(String... hex) {
        return Unpooled.wrappedBuffer(ByteBufUtil.decodeHexDump(String.join("", hex)));
    }

    private static List<String> written(EmbeddedChannel channel) {
        List<String> written = new ArrayList<>();
        for (ByteBuf next = channel.readOutbound(); next != null; next = channel.readOutbound()) {
            written.add(ByteBufUtil.hexDump(next));
            next.release();
        }
        return written;
    }

    @Test
    void aFrameThatArrivesTwiceIsTheSameBothTimes() {
        channel(Faults.seeded(1).duplicating(1)).writeInbound(bytes(PREFACE, A));
        assertThat(reading.read).containsExactly(PREFACE, A, A);
    }

    @Test
    void framesOfOneWriteThatStandBeforeACutAreSent() {
        EmbeddedChannel channel = channel(Faults.seeded(1).cutting(1));
        channel.writeOutbound(bytes(PREFACE, PING, A, B));
        assertThat(channel.isOpen()).isFalse();
        assertThat(written(channel)).containsExactly(PREFACE, PING);
    }

    @Test
    void whatIsDelayedPassesBeforeTheLastWriteAndOnlyThen() {
        EmbeddedChannel channel = channel(SLOW);
        channel.writeOutbound(bytes(PREFACE, A, PING));
        channel.writeOutbound(bytes(B));
        assertThat(written(channel)).containsExactly(PREFACE);
        assertThat(channel.writeOutbound(Unpooled.EMPTY_BUFFER)).isTrue();
        assertThat(written(channel)).containsExactly(A, PING, B, "");
    }

    @Test
    void whatIsDelayedPassesBeforeTheEndOfTheChannel() {
        EmbeddedChannel channel = channel(SLOW);
        channel.writeInbound(bytes(PREFACE, A));
        channel.writeInbound(bytes(PING));
        assertThat(reading.read).containsExactly(PREFACE);
        channel.close();
        assertThat(reading.read).containsExactly(PREFACE, A, PING, INACTIVE);
    }

    @Test
    void aCutEndsBothDirections() {
        Faults faults = LongStream.range(0, 1000)
                .mapToObj(seed ->
                        Faults.seeded(seed).delaying(1, Duration.ofMinutes(1)).cutting(0.5))
                .filter(each -> each.fate(each.random(0, true)).isCut()
                        && !each.fate(each.random(0, false)).isCut())
                .findFirst()
                .orElseThrow();
        EmbeddedChannel channel = channel(faults);
        channel.writeInbound(bytes(PREFACE, A));
        channel.writeOutbound(bytes(PREFACE, A));
        channel.pipeline().writeAndFlush(Unpooled.EMPTY_BUFFER);
        assertThat(reading.read).containsExactly(PREFACE, INACTIVE);
        assertThat(written(channel)).containsExactly(PREFACE);
    }

    @Test
    void whatIsDelayedPassesInItsTime() {
        EmbeddedChannel channel = channel(Faults.seeded(1).delaying(1, Duration.ofMillis(1)));
        channel.writeOutbound(bytes(PREFACE, A, B));
        List<String> written = new ArrayList<>();
        while (written.size() < 3) {
            channel.runPendingTasks();
            written.addAll(written(channel));
            Thread.onSpinWait();
        }
        assertThat(written).containsExactly(PREFACE, A, B);
    }

    /** Returns frames of calls, with a PING after every fourth. */
    private static String frames() {
        StringBuilder frames = new StringBuilder(PREFACE);
        for (int i = 1; i <= 64; i++) {
            frames.append(FaultyFramesTest.frame(Wire.REQUEST, i, "00".repeat(i)));
            if (i % 4 == 0) {
                frames.append(PING);
            }
        }
        return frames.toString();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void theSameFramesPassOverASocket(long seed) throws Exception {
        Faults faults = Faults.seeded(seed)
                .losing(0.1)
                .duplicating(0.1)
                .reordering(0.1)
                .cutting(0.02)
                .delaying(0.1, Duration.ofMillis(1));
        EmbeddedChannel up = channel(faults);
        up.writeOutbound(bytes(frames()));
        up.pipeline().writeAndFlush(Unpooled.EMPTY_BUFFER);
        assertThat(sentOverALink(faults, true)).isEqualTo(String.join("", written(up)));
        EmbeddedChannel down = channel(faults);
        down.writeInbound(bytes(frames()));
        down.close();
        reading.read.remove(INACTIVE);
        assertThat(sentOverALink(faults, false)).isEqualTo(String.join("", reading.read));
    }

    private static String sentOverALink(Faults faults, boolean isUp) throws IOException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                FaultyLink link = FaultyLink.to("127.0.0.1", server.getLocalPort(), faults);
                Socket client = new Socket("127.0.0.1", link.port());
                Socket served = server.accept()) {
            return isUp ? sent(client, served) : sent(served, client);
        }
    }

    /**
     * Returns what arrives up to the end of the stream. Unless the link has cut the connection before, the end comes
     * after all that was sent.
     */
    private static String sent(Socket from, Socket to) throws IOException {
        try {
            from.getOutputStream().write(ByteBufUtil.decodeHexDump(frames()));
            from.shutdownOutput();
        } catch (IOException e) {
            // the link has cut the connection while this was being sent
        }
        return ByteBufUtil.hexDump(to.getInputStream().readAllBytes());
    }
}
