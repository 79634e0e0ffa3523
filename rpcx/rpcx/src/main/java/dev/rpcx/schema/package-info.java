/**
 * Maps Java types to Protobuf messages: this package says which component has which number, and which types cannot be
 * mapped. Starting points: {@link Schema}, {@link Field}. All of it runs at start or at build time, and never during a
 * call. It never imports the codec or the wire.
 */
@NullMarked
package dev.rpcx.schema;

import org.jspecify.annotations.NullMarked;
