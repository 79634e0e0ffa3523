package dev.rpcx.grpc;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.zip.GZIPOutputStream;

/** Compresses messages for clients that send in gzip themselves. */
final class Gzip {
    private static final int COMPRESSED = 1;

    private Gzip() {}

    /**
     * Returns a compressed copy of a message, and releases the message. Both have their prefix.
     *
     * @param message message that is not compressed
     */
    static ByteBuf compressed(ByteBuf message, ByteBufAllocator allocator) {
        ByteBuf out = allocator.buffer(message.readableBytes());
        boolean isWhole = false;
        try {
            out.writeZero(GrpcCall.PREFIX_BYTES);
            try (GZIPOutputStream gzip = new GZIPOutputStream(new ByteBufOutputStream(out))) {
                message.skipBytes(GrpcCall.PREFIX_BYTES).readBytes(gzip, message.readableBytes());
            }
            out.setByte(0, COMPRESSED).setInt(1, out.readableBytes() - GrpcCall.PREFIX_BYTES);
            isWhole = true;
            return out;
        } catch (IOException e) {
            // buffers in memory do not fail
            throw new UncheckedIOException(e);
        } finally {
            message.release();
            if (!isWhole) {
                out.release();
            }
        }
    }
}
