/**
 * The contracts' records as Protobuf: messages generated from the {@code .proto} files of this module, and converters
 * between them and the records.
 *
 * <p>Starting point: {@link dev.parley.encoding.protobuf.ProtobufCodec}. A new work adds a {@code .proto} and a class
 * of conversions. Thread-safe. Never imports a transport.
 */
@NullMarked
package dev.parley.encoding.protobuf;

import org.jspecify.annotations.NullMarked;
