package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a parameter of a client's method: calls with an equal argument go to the same instance, whatever process makes
 * them, where the client chooses by {@link Choice#CONSISTENT_HASH}. Two arguments are equal if the bytes in which they
 * are sent are equal. A type that contains a {@code Set}, a {@code Map} or a {@code Collection} is refused, since the
 * order of their elements may differ from process to process.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.PARAMETER)
public @interface RouteBy {}
