package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a client's {@code void} method: the call returns as soon as it is handed to the connection. The server acknowledges that it has
 * taken the call, so that a flood of them is bounded; how it ends is not told. Where there is no connection yet the call is kept for it, and
 * {@link Client#close} waits for that.
 *
 * <p>What is known before the call returns is thrown. What fails later nobody is told: it is a warning in the log, once
 * a minute with a count. So calls are lost which wait for a connection when the first attempt to make one fails, as
 * where the only server is being started anew; who has to know calls a method with a result.
 *
 * <p>The arguments are read before the call returns, and never again. A call that is made again, as
 * {@link Method#idempotent} says, is sent as it was read then; one above some 128 KiB is not made again once it has
 * left.
 *
 * <p>On a service's method it says nothing, but that a stream is refused there too: whether anybody waits for the end
 * of a call, its client says, call by call.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface OneWay {}
