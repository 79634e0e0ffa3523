package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a client's {@code void} method: a call returns as soon as it is handed to the connection, without waiting for its
 * end. If there is no connection yet, the call is kept until there is one. The server acknowledges that it has taken
 * the call, but does not report how the call ends. A call that has not been acknowledged counts towards the limit on
 * calls in flight, and {@link Client#close} waits for it.
 *
 * <p>If a failure is known before the call returns, the call throws it. A later failure only causes a warning, at most
 * one a minute: in the client's log if the server has not acknowledged the call yet, otherwise in the server's. For
 * example, all calls that wait for a connection are lost if the attempt to connect fails because the only server is
 * being restarted. A caller that has to know the outcome has to call a method with a result.
 *
 * <p>The arguments are read before the call returns, and never again, even if the call is retried (see
 * {@link Method#idempotent}). A call of more than about 128 KiB is not retried once it has been sent.
 *
 * <p>On a service's method the annotation has no effect. A method that takes or returns a stream must not have it,
 * neither in a client's interface nor in a service.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface OneWay {}
