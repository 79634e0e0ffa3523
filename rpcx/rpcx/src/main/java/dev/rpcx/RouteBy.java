package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a parameter of a client's method: calls with an equal argument go to the same instance, where the client chooses by
 * {@link Choice#CONSISTENT_HASH}. What counts is {@code hashCode()}: texts, numbers and records of them have the same in every process.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.PARAMETER)
public @interface RouteBy {}
