package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks the parameter of a client's method that decides which instance is called, if the client chooses by
 * {@link Choice#CONSISTENT_HASH}. Calls with an equal argument go to the same instance, whatever process makes them.
 * Two arguments are equal if the bytes in which they are sent are equal. A method has at most one such parameter. Its
 * type must not contain a {@code Set}, a {@code Map} or a {@code Collection}, since the order of their elements may
 * differ from process to process.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.PARAMETER)
public @interface RouteBy {}
