package dev.rpcx.internal.wire;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.RawPeer;
import dev.rpcx.internal.io.WriteTurn;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what a message keeps of its body for its next use, and how the message is copied for a thread that writes it
 * itself.
 */
class OutboundTest {
    private static Outbound message(int bytes) {
        return new Outbound.Control(Wire.REPLY, 1, Unpooled.buffer(bytes).writeZero(bytes));
    }

    @Test
    void aBodyOfUsualSizeIsKeptEmptyForTheNextUse() {
        Outbound message = message(Outbound.MAX_KEPT_BYTES);
        message.clearBody();
        assertThat(message.body.isReadable()).isFalse();
        assertThat(message.body.capacity()).isEqualTo(Outbound.MAX_KEPT_BYTES);
    }

    @Test
    void aLargerBodyIsGivenUp() {
        Outbound message = message(Outbound.MAX_KEPT_BYTES + 1);
        message.clearBody();
        assertThat(message.body.isReadable()).isFalse();
        assertThat(message.body.capacity()).isEqualTo(Outbound.FIRST_BYTES);
    }

    /** The length takes one byte up to 127, and two bytes from 128 on. */
    @ParameterizedTest
    @ValueSource(
            ints = {0, 1, 0x7F - Wire.HEAD_BYTES, 0x80 - Wire.HEAD_BYTES, WriteTurn.MAX_BYTES - Wire.MAX_HEADER_BYTES})
    void itIsCopiedAsOneFrame(int bytes) {
        Outbound message = new Outbound.Control(
                Wire.REPLY,
                0x1020304,
                Unpooled.buffer().writeByte('-').writeBytes("x".repeat(bytes).getBytes(US_ASCII)));
        message.body.skipBytes(1);
        ByteBuffer frame = ByteBuffer.allocateDirect(WriteTurn.MAX_BYTES);
        message.copyTo(frame);
        assertThat(ByteBufUtil.hexDump(Unpooled.wrappedBuffer(frame.flip())))
                .isEqualTo(ByteBufUtil.hexDump(RawPeer.frame(Wire.REPLY, 0x1020304, message.body)));
        assertThat(message.body.readableBytes()).as("it is unchanged").isEqualTo(bytes);
    }
}
