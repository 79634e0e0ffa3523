/**
 * Maps Java types to Protobuf messages: which component has which number, which types cannot be mapped, what a lock
 * file keeps, and which changes break a peer. All of it runs at start or at build time, and never during a call. It
 * knows the annotations of {@code dev.rpcx.schema}, and neither the codec nor any other room.
 */
@NullMarked
package dev.rpcx.internal.schema;

import org.jspecify.annotations.NullMarked;
