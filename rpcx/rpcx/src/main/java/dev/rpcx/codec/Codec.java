package dev.rpcx.codec;

import io.netty.buffer.ByteBuf;

/**
 * Encodes values of one Java type as one Protobuf message, and decodes them. Thread-safe; never blocks.
 *
 * @param <T> the Java type; {@code Object[]} for the parameters of a method
 */
public interface Codec<T> {
    /**
     * Appends the message to the buffer. If this fails, the writer index of the buffer is what it was before.
     *
     * @throws CodecException if a value is null where null is not allowed, is nested too deep, is too large, is of a
     *     class that is not accepted, is a string with half a surrogate pair, or is refused by the type's own code
     */
    void write(T value, ByteBuf out);

    /**
     * Reads the message that reaches from the reader index to the writer index, and sets the reader index to the writer
     * index.
     *
     * @throws CodecException if the bytes are not a message of this type, if they exceed a limit, or if the type's own
     *     code refuses what was read
     */
    T read(ByteBuf in);

    /**
     * Reads a message as {@link #read(ByteBuf)} does, and asks {@code memory} for what the message and its objects
     * take. The first {@value In#FREE_BYTES} bytes, or as many as {@code memory.unasked()} returns, are taken without
     * asking. Memory beyond these is asked for before the objects are created, with two exceptions that are asked for
     * afterwards: a string beyond ASCII, and up to 72 bytes for each plain value of a message. The default
     * implementation ignores {@code memory}.
     *
     * @throws CodecException also if {@code memory} does not grant what the message asks for
     */
    default T read(ByteBuf in, Memory memory) {
        return read(in);
    }
}
