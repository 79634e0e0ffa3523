package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.testing.Faults;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A bad network within a connection, without a client or a server. */
class FaultyPipeTest {
    /** A connection reads what it gets, and gives it back. */
    private static final class Reading extends ChannelInboundHandlerAdapter {
        final List<String> read = new ArrayList<>();

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object message) {
            ByteBuf bytes = (ByteBuf) message;
            read.add(ByteBufUtil.hexDump(bytes));
            bytes.skipBytes(bytes.readableBytes()).release();
        }
    }

    @Test
    void aFrameThatArrivesTwiceIsTheSameBothTimes() {
        Reading reading = new Reading();
        EmbeddedChannel channel =
                new EmbeddedChannel(new FaultyPipe(new Faults(1, 0, Duration.ZERO, 0, 1, 0, 0), 0), reading);
        ByteBuf arrived = Unpooled.buffer().writeZero(Wire.PREFACE_BYTES);
        // its length, its head, the id of its call, and a payload
        String frame = "07" + "02" + "00010000" + "abcd";
        arrived.writeBytes(ByteBufUtil.decodeHexDump(frame));
        channel.writeInbound(arrived);
        assertThat(reading.read).hasSize(3).endsWith(frame, frame);
    }
}
