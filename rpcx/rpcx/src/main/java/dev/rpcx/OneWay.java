package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a client's {@code void} method: a call returns as soon as it is handed to the connection. The server acknowledges
 * that it has taken the call, but does not report how the call ends. A call is in flight until it has been
 * acknowledged. So the limit on calls in flight also bounds a flood of one-way calls. If there is no connection yet,
 * the call is kept until there is one, and {@link Client#close} waits for that.
 *
 * <p>If a failure is known before the call returns, the call throws it. A later failure does not reach the caller. It
 * only causes a warning in a log, at most one a minute, with the number of warnings that were left out. The client logs
 * the warning if the server has not acknowledged the call yet; otherwise the server does. For example, the first
 * attempt to connect may fail while the only server is being restarted: then all calls that wait for that connection
 * are lost. A caller that has to know the outcome has to call a method with a result.
 *
 * <p>The arguments are read before the call returns, and never again. A call that is retried, as
 * {@link Method#idempotent} says, is sent with the arguments that were read then. A call of more than about 128 KiB is
 * not retried once it has been sent.
 *
 * <p>On a service's method the annotation has no effect, since the client decides for each call whether anybody waits
 * for its end. A method that takes or returns a stream must not have the annotation, neither in a client's interface
 * nor in a service.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface OneWay {}
