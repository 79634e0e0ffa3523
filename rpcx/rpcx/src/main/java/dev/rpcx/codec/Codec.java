package dev.rpcx.codec;

import io.netty.buffer.ByteBuf;

/**
 * Encodes values of one Java type as Protobuf messages, and decodes them. Thread-safe: any thread may call these
 * methods, and none of them blocks.
 *
 * @param <T> the Java type; {@code Object[]} for the parameters of a method
 */
public interface Codec<T> {
    /**
     * Encodes the value, and appends its message to the buffer. If that fails, the writer index does not change.
     *
     * @throws CodecException if the value, or a value inside it, is null but must not be, is nested too deep, is too
     *     large, is of a class that is not accepted, or is a string with half a surrogate pair; or if the type's own
     *     code throws an exception
     */
    void write(T value, ByteBuf out);

    /**
     * Decodes the message between the reader index and the writer index of the buffer, and sets the reader index to the
     * writer index.
     *
     * @throws CodecException if the bytes are not a message of this type, if they exceed a limit, or if the type's own
     *     code throws an exception for the values that were read
     */
    T read(ByteBuf in);

    /**
     * Reads a message as {@link #read(ByteBuf)} does, and asks {@code memory} for the bytes that the message and its
     * objects take. The first {@code memory.freeBytes()} bytes, by default {@value In#FREE_BYTES}, are taken without
     * asking. Memory is requested before the objects are created, except for strings beyond ASCII, and for up to 72
     * bytes of each plain value of a message. The default implementation of this method ignores {@code memory}.
     *
     * @throws CodecException for the reasons of {@link #read(ByteBuf)}, and if {@code memory} does not grant the
     *     requested bytes
     */
    default T read(ByteBuf in, Memory memory) {
        return read(in);
    }
}
