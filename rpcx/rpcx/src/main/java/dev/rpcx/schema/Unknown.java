package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks the constant or the case that stands for unknown values. A value is unknown if only a newer peer knows it; such
 * a value is read as this constant or case. The annotation stands on a constant of an enum, or on a record without
 * components that is a case of a sealed interface. A type has at most one such constant or case. In an enum without
 * this annotation, the first constant named {@code UNKNOWN}, {@code UNSPECIFIED} or {@code UNRECOGNIZED} stands for
 * unknown values. A constant that stands for unknown values has the number 0.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.TYPE})
public @interface Unknown {}
