package dev.rpcx.codec;

import io.netty.buffer.ByteBuf;

/**
 * Encodes one Java type as one Protobuf message. Thread-safe; never blocks.
 *
 * @param <T> the type; {@code Object[]} for a method's parameters
 */
public interface Codec<T> {
    /**
     * Appends the message to the buffer. If this fails the buffer's writer index stands where it stood.
     *
     * @throws CodecException a value is null where it cannot be, is nested too deep or is too large
     */
    void write(T value, ByteBuf out);

    /**
     * Reads the message that reaches from the reader index to the writer index, and leaves the reader index at the
     * writer index.
     *
     * @throws CodecException the bytes are no such message, or go beyond a limit
     */
    T read(ByteBuf in);

    /**
     * Reads like {@link #read(ByteBuf)}, within a memory. What a message takes beyond its first {@value In#FREE_BYTES}
     * bytes is asked for before it is made.
     *
     * @throws CodecException also where the memory is not granted
     */
    default T read(ByteBuf in, Memory memory) {
        return read(in);
    }
}
