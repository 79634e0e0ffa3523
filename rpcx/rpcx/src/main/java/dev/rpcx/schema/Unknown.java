package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks the constant of an enum, or the case of a sealed interface, that stands for unknown values. A peer with a newer
 * version of the type can send a value that this version does not have. The value is then read as the marked constant
 * or case.
 *
 * <p>An enum has at most one marked constant. In an enum without a marked constant, the first constant named
 * {@code UNKNOWN}, {@code UNSPECIFIED} or {@code UNRECOGNIZED} stands for unknown values. The constant that stands for
 * unknown values has the Protobuf number 0.
 *
 * <p>A sealed interface has at most one marked case. The case has to be a record without components.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.TYPE})
public @interface Unknown {}
