package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;

class GzipReaderTest {
    /** Number of bytes of a gzip header without further parts. */
    private static final int HEADER_BYTES = 10;

    private static byte[] gzip(byte[] plain) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(out)) {
            gzip.write(plain);
        }
        return out.toByteArray();
    }

    private static byte[] some() {
        byte[] plain = new byte[100_000];
        new Random(7).nextBytes(plain);
        Arrays.fill(plain, 20_000, 80_000, (byte) 'x');
        return plain;
    }

    /** Reads in pieces of this size, and returns what comes out, or fails if the message is not whole. */
    private static byte[] read(byte[] compressed, int pieceBytes) {
        GzipReader reader = new GzipReader();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try {
            for (int at = 0; at < compressed.length; at += pieceBytes) {
                int bytes = Math.min(pieceBytes, compressed.length - at);
                reader.read(Unpooled.wrappedBuffer(compressed, at, bytes), piece -> {
                    out.writeBytes(ByteBufUtil.getBytes(piece));
                    return true;
                });
            }
            assertThat(reader.isWhole()).isTrue();
            return out.toByteArray();
        } finally {
            reader.close();
        }
    }

    @Test
    void aMessageMayBeCutAnywhere() throws IOException {
        byte[] plain = some();
        for (int pieceBytes : new int[] {1, 7, 1_000, 200_000}) {
            assertThat(read(gzip(plain), pieceBytes)).isEqualTo(plain);
        }
        assertThat(read(gzip(new byte[0]), 3)).isEmpty();
    }

    @Test
    void theFurtherPartsOfAHeaderArePassedOver() throws IOException {
        byte[] plain = some();
        byte[] simple = gzip(plain);
        byte[] all = ByteBufUtil.getBytes(Unpooled.buffer()
                .writeBytes(simple, 0, 3)
                // the flags of a checksum, further bytes, a name and a comment
                .writeByte(2 | 4 | 8 | 16)
                .writeBytes(simple, 4, HEADER_BYTES - 4)
                .writeShortLE(3)
                .writeBytes(new byte[] {0, 1, 2})
                .writeBytes(new byte[] {'n', 0})
                .writeBytes(new byte[] {'c', 'd', 0})
                .writeShort(0)
                .writeBytes(simple, HEADER_BYTES, simple.length - HEADER_BYTES));
        assertThat(read(all, 1)).isEqualTo(plain);
        assertThat(read(all, 100_000)).isEqualTo(plain);
    }

    @Test
    void whatIsNoGzipIsAFault() throws IOException {
        byte[] whole = gzip(some());
        for (int index : new int[] {0, 1, 2, 3, 500, whole.length - 1, whole.length - 8}) {
            byte[] broken = whole.clone();
            broken[index] ^= (byte) 0xE0;
            assertThatThrownBy(() -> read(broken, 1_000)).as("byte %s", index).isInstanceOf(WireFault.class);
        }
        assertThatThrownBy(() -> read(Arrays.copyOf(whole, whole.length + 1), 1_000))
                .isInstanceOf(WireFault.class)
                .hasMessageContaining("begin");
    }

    @Test
    void aMessageMayHaveSeveralMembers() throws IOException {
        byte[] plain = some();
        byte[] twice = ByteBufUtil.getBytes(
                Unpooled.buffer().writeBytes(gzip(plain)).writeBytes(gzip(new byte[0])).writeBytes(gzip(plain)));
        byte[] expected =
                ByteBufUtil.getBytes(Unpooled.buffer().writeBytes(plain).writeBytes(plain));
        for (int pieceBytes : new int[] {1, 1_000, 1_000_000}) {
            assertThat(read(twice, pieceBytes)).isEqualTo(expected);
        }
        assertThatThrownBy(() -> read(Arrays.copyOf(twice, twice.length - 1), 1_000))
                .isInstanceOf(AssertionError.class);
    }

    @Test
    void aReaderInflatesNoMoreThanIsWanted() throws IOException {
        byte[] bomb = gzip(new byte[100_000_000]);
        GzipReader reader = new GzipReader();
        int[] bytes = {0};
        reader.read(Unpooled.wrappedBuffer(bomb), piece -> {
            bytes[0] += piece.readableBytes();
            return bytes[0] < 50_000;
        });
        reader.close();
        assertThat(bytes[0]).isLessThan(70_000);
    }
}
