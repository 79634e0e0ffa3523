package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks what stands for the unknown: a value that only a newer peer knows is read as the marked constant or case. This
 * annotation stands on a constant of an enum, or on a record without components that is a case of a sealed interface,
 * and on at most one constant or case of a type. In an enum without this annotation, the first constant named
 * {@code UNKNOWN}, {@code UNSPECIFIED} or {@code UNRECOGNIZED} stands for the unknown. The constant of an enum that
 * stands for the unknown has the number 0.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.TYPE})
public @interface Unknown {}
