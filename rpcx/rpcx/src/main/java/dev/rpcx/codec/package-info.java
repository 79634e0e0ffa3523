/**
 * Encodes Java values as Protobuf and decodes them, directly between a buffer and the value's own constructor and
 * accessors. Starting points: {@link Codecs} and {@link Codec}; {@link Out} and {@link In} implement the wire format.
 * Codecs are made at start and are thread-safe; nothing here blocks or logs during a call. This package never imports
 * the wire or the client and server.
 */
@NullMarked
package dev.rpcx.codec;

import org.jspecify.annotations.NullMarked;
