/**
 * Contains what users write on the types of their messages. {@link Field} gives a member its Protobuf number, and
 * {@link Unknown} marks the constant or case that stands for unknown values. {@link SchemaException} says which type
 * cannot be mapped to Protobuf, and why. {@code dev.rpcx.internal.schema} reads these annotations.
 */
@NullMarked
package dev.rpcx.schema;

import org.jspecify.annotations.NullMarked;
