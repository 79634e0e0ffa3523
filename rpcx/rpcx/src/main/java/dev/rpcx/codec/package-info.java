/**
 * Java values to Protobuf bytes and back, straight between a buffer and the value's own constructor and accessors.
 * Starting points: {@link Codecs}, {@link Codec}; {@link Out} and {@link In} hold the wire format. Codecs are made at
 * start and are thread-safe; nothing here blocks or logs during a call. Never imports the wire or the client and
 * server.
 */
@NullMarked
package dev.rpcx.codec;

import org.jspecify.annotations.NullMarked;
