package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks the parameter of a client's method by which {@link Choice#CONSISTENT_HASH} chooses the instance to call. Calls
 * with equal arguments go to the same instance, even if different processes make the calls. Two arguments are equal if
 * they are sent as the same bytes.
 *
 * <p>A method has at most one such parameter. The type of the parameter must not contain a {@code Set}, a {@code Map}
 * or a {@code Collection}, since the order of the elements can differ from process to process.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.PARAMETER)
public @interface RouteBy {}
