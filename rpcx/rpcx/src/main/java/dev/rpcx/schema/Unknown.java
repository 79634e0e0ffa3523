package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks the constant or case that stands for unknown values: those that only a newer peer knows are read as this one.
 * Put it on a constant of an enum, or on a case of a sealed interface that is a record without components. A type has
 * at most one. In an enum without this annotation, the first constant named {@code UNKNOWN}, {@code UNSPECIFIED} or
 * {@code UNRECOGNIZED} is used. The constant has the number 0.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.TYPE})
public @interface Unknown {}
