/**
 * Java types as Protobuf messages: which component has which number, and what cannot be mapped. Starting points:
 * {@link Schema}, {@link Field}. Everything here happens at start or at build time, never during a call. Never imports
 * the codec or the wire.
 */
@NullMarked
package dev.rpcx.schema;

import org.jspecify.annotations.NullMarked;
