/**
 * What users write on the types of their messages: {@link Field} gives a component its number, {@link Unknown} marks
 * the constant of an enum for values that this version does not have, and {@link SchemaException} says which type
 * cannot be mapped, and why. {@code dev.rpcx.internal.schema} reads them.
 */
@NullMarked
package dev.rpcx.schema;

import org.jspecify.annotations.NullMarked;
