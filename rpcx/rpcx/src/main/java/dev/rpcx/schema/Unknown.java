package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * What a newer peer's value is read as: on an enum's constant, or on a record without components among the cases of a
 * sealed interface; on one of a type at most. An enum's constant {@code UNKNOWN}, {@code UNSPECIFIED} or
 * {@code UNRECOGNIZED} is one without being told so. An enum's unknown has the number 0.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.TYPE})
public @interface Unknown {}
