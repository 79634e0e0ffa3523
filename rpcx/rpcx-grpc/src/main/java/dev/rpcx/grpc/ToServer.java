package dev.rpcx.grpc;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import org.jspecify.annotations.Nullable;

/**
 * Gathers the bytes of the native wire that the server's connection is to read. Each method adds whole frames, and then
 * notifies the translator, which hands them over when it may. Event loop only.
 */
final class ToServer {
    /**
     * Settings of a client that reads the metadata of replies. A call without a deadline has the server's largest time.
     */
    private static final Settings CLIENT = new Settings(Wire.MAX_MESSAGE_BYTES, Wire.MAX_SLOTS, Long.MAX_VALUE, true);

    private static final int FIRST_BYTES = 1024;

    private final ByteBufAllocator allocator;
    private final Runnable added;
    private @Nullable ByteBuf gathered;

    /** @param added runs each time that frames have been added */
    ToServer(ByteBufAllocator allocator, Runnable added) {
        this.allocator = allocator;
        this.added = added;
    }

    /** Adds what a native client sends first: its preface and its settings. */
    void greet() {
        ByteBuf settings = Unpooled.buffer();
        CLIENT.write(settings);
        buffer().writeInt(Wire.MAGIC).writeInt(Wire.VERSION << 24);
        frame(Wire.SETTINGS, 0, settings);
    }

    void frame(int head, int id, ByteBuf payload) {
        frame(head, id, payload, Unpooled.EMPTY_BUFFER);
    }

    /** Adds a frame whose payload is the readable bytes of two buffers, which are read. */
    void frame(int head, int id, ByteBuf begin, ByteBuf rest) {
        ByteBuf out = buffer();
        Varint.write(out, Wire.HEAD_BYTES + begin.readableBytes() + rest.readableBytes());
        out.writeByte(head).writeInt(id).writeBytes(begin).writeBytes(rest);
        added.run();
    }

    void empty(int head, int id) {
        frame(head, id, Unpooled.EMPTY_BUFFER);
    }

    void credit(int id, long items) {
        ByteBuf payload = Unpooled.buffer(Varint.size(items));
        Varint.write(payload, items);
        frame(Wire.CREDIT, id, payload);
    }

    private ByteBuf buffer() {
        ByteBuf out = gathered;
        if (out == null) {
            out = gathered = allocator.heapBuffer(FIRST_BYTES);
        }
        return out;
    }

    int bytes() {
        ByteBuf out = gathered;
        return out == null ? 0 : out.readableBytes();
    }

    /** Returns the gathered bytes, which the caller has to release; null if there are none. */
    @Nullable
    ByteBuf take() {
        ByteBuf out = gathered;
        gathered = null;
        return out;
    }

    void drop() {
        ByteBuf out = take();
        if (out != null) {
            out.release();
        }
    }
}
