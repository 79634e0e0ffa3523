package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.CodedOutputStream;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.junit.jupiter.api.Test;

/** Tests the SETTINGS frame against protobuf-java. */
class SettingsTest {
    private static ByteBuf byProtobuf(long maxMessage, long maxCalls, long defaultMicros) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        CodedOutputStream out = CodedOutputStream.newInstance(bytes);
        out.writeInt64(1, maxMessage);
        out.writeInt64(2, maxCalls);
        out.writeInt64(3, defaultMicros);
        out.flush();
        return Unpooled.wrappedBuffer(bytes.toByteArray());
    }

    private static Settings read(long maxMessage, long maxCalls, long defaultMicros) throws IOException {
        return Settings.read(byProtobuf(maxMessage, maxCalls, defaultMicros));
    }

    @Test
    void settingsHaveTheBytesThatProtobufGivesThem() throws IOException {
        ByteBuf out = Unpooled.buffer();
        new Settings(100, 200, 300_000_000_000L).write(out);
        assertThat(ByteBufUtil.getBytes(out)).isEqualTo(ByteBufUtil.getBytes(byProtobuf(100, 200, 300_000_000_000L)));
        assertThat(Settings.read(out)).isEqualTo(new Settings(100, 200, 300_000_000_000L));
    }

    @Test
    void whatIsNotSaidOrSaidToBeZeroHasTheProtocolsValue() throws IOException {
        assertThat(Settings.read(Unpooled.EMPTY_BUFFER)).isEqualTo(Settings.INITIAL);
        assertThat(read(0, 0, 0)).isEqualTo(Settings.INITIAL);
        assertThat(Settings.INITIAL).isEqualTo(new Settings(4 << 20, Wire.MAX_SLOTS, 10_000_000));
        assertThat(read(1, 0, 0)).isEqualTo(new Settings(1, Wire.MAX_SLOTS, 10_000_000));
        assertThat(read(0, 1, 0).maxCalls()).isEqualTo(1);
        assertThat(read(0, 0, 1).defaultMicros()).isEqualTo(1);
    }

    /** A server adds metadata to its replies only for a client that says so. */
    @Test
    void aClientReadsMetadataOfRepliesOnlyIfItSaysSo() throws IOException {
        ByteBuf out = Unpooled.buffer();
        new Settings(100, 200, 300, true).write(out);
        assertThat(ByteBufUtil.hexDump(out)).endsWith("2001");
        assertThat(Settings.read(out)).isEqualTo(new Settings(100, 200, 300, true));
        assertThat(read(1, 1, 1).readsReplyMetadata()).isFalse();
        assertThat(Settings.INITIAL.readsReplyMetadata()).isFalse();
    }

    @Test
    void whatIsBeyondAnyLimitIsTheLimit() throws IOException {
        assertThat(read(Integer.MAX_VALUE, Wire.MAX_SLOTS, Long.MAX_VALUE))
                .isEqualTo(new Settings(Integer.MAX_VALUE, Wire.MAX_SLOTS, Long.MAX_VALUE));
        assertThat(read(Integer.MAX_VALUE + 1L, Wire.MAX_SLOTS + 1, 0))
                .isEqualTo(new Settings(Integer.MAX_VALUE, Wire.MAX_SLOTS, 10_000_000));
        // as unsigned numbers, these are larger than any other
        assertThat(read(-1, -1, -1)).isEqualTo(new Settings(Integer.MAX_VALUE, Wire.MAX_SLOTS, Long.MAX_VALUE));
    }

    @Test
    void whatIsUnknownIsPassedOver() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        CodedOutputStream out = CodedOutputStream.newInstance(bytes);
        out.writeString(1, "of another type");
        out.writeInt64(9, Long.MAX_VALUE);
        out.writeFixed32(10, 7);
        out.writeInt64(2, 5);
        out.writeFixed64(3, 8);
        out.writeString(11, "text");
        out.flush();
        assertThat(Settings.read(Unpooled.wrappedBuffer(bytes.toByteArray())))
                .isEqualTo(new Settings(Settings.INITIAL.maxMessageBytes(), 5, 10_000_000));
    }
}
