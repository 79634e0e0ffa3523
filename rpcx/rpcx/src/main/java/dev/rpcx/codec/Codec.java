package dev.rpcx.codec;

import io.netty.buffer.ByteBuf;

/**
 * Encodes values of one Java type as Protobuf messages, and decodes them. Codecs are thread-safe, and their methods
 * never block.
 *
 * @param <T> the Java type; {@code Object[]} for the parameters of a method
 */
public interface Codec<T> {
    /**
     * Encodes a value, and appends the encoded message to the buffer. If encoding fails, the writer index of the buffer
     * does not change.
     *
     * @throws CodecException if the value cannot be encoded; {@link CodecException#code()} returns the reason
     */
    void write(T value, ByteBuf out);

    /**
     * Decodes the message between the reader index and the writer index of the buffer. If this succeeds, the reader
     * index equals the writer index afterwards.
     *
     * @throws CodecException if the bytes cannot be decoded; {@link CodecException#code()} returns the reason
     */
    T read(ByteBuf in);

    /**
     * Decodes a message as {@link #read(ByteBuf)} does, and asks {@code memory} for the bytes that the message and its
     * objects take. The first {@link Memory#freeBytes()} bytes are taken without asking. The default implementation
     * ignores {@code memory}.
     *
     * <p>The memory of an object is requested before the object is created, with four exceptions:
     *
     * <ul>
     *   <li>For each single value, such as a date, up to 72 bytes may be requested afterwards.
     *   <li>For a string with characters beyond ASCII, additional memory is requested after the string has been
     *       created, because its size is known only then.
     *   <li>Room for the elements of a list may be allocated before the memory of this room is requested. For all lists
     *       of a message together, the room has at most about the size of the message.
     *   <li>The memory of the outermost object is never requested. The memory of the objects to which it refers is.
     * </ul>
     *
     * @throws CodecException if the bytes cannot be decoded, or if {@code memory} does not grant the requested memory;
     *     {@link CodecException#code()} returns the reason
     */
    default T read(ByteBuf in, Memory memory) {
        return read(in);
    }
}
