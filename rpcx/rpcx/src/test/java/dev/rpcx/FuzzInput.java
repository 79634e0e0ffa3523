package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;

/** Reads the input of a fuzzer from its beginning. After its end, all bytes are zero. */
final class FuzzInput {
    final byte[] bytes;
    private int at;

    FuzzInput(byte[] bytes) {
        this.bytes = bytes;
    }

    boolean hasMore() {
        return at < bytes.length;
    }

    int next() {
        return at < bytes.length ? bytes[at++] & 0xFF : 0;
    }

    /** Takes as many of the next bytes as there are, but at most {@code most}, which is 0 or more. */
    byte[] take(int most) {
        byte[] taken = java.util.Arrays.copyOfRange(bytes, at, at + Math.min(most, bytes.length - at));
        at += taken.length;
        return taken;
    }

    /**
     * Makes a frame from the next bytes, which are its head, id and payload. Id 0 is the connection's. Other ids have
     * the slots 0 to 7 and the generations 0 to 31.
     */
    ByteBuf frame() {
        int head = next();
        int which = next();
        int id = which == 0 ? 0 : (which >>> 3) << 16 | which & 7;
        return RawPeer.frame(head, id, Unpooled.wrappedBuffer(take(next())));
    }
}
