package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks a {@code void} method of a client's interface whose calls do not wait for the handler. Such a method returns as
 * soon as the call is handed to the connection. If there is no connection yet, the client keeps the call until there is
 * one. The server acknowledges that it has taken the call, but does not report how the call ends. Until the server has
 * acknowledged the call, the call counts towards the limit on calls in flight, and {@link Client#close} waits for the
 * acknowledgement, up to 5 s. On the classic wire, the acknowledgement is the reply, which comes when the handler has
 * ended.
 *
 * <p>A failure is reported in one of three ways, depending on when it is known:
 *
 * <ul>
 *   <li>Before the method returns: the method throws the exception.
 *   <li>Later, but before the server has acknowledged the call: the client logs a warning, at most one a minute.
 *   <li>After the server has acknowledged the call: the server logs a warning, at most one a minute.
 * </ul>
 *
 * <p>For example, if the try to connect fails because the only server is being restarted, all calls that wait for
 * the connection are lost. A caller that has to know the outcome of a call has to use a method with a result.
 *
 * <p>The arguments are read before the method returns, and never again, even if the call is retried (see
 * {@link Method#idempotent}). After the client has sent a call, the client can retry the call only if the call has at
 * most about 128 KiB, or had to wait for a connection. The client does not keep the arguments of other calls.
 *
 * <p>On a service's method this annotation has no effect. A method that takes or returns a stream cannot have this
 * annotation, whether the method belongs to a client's interface or to a service.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface OneWay {}
