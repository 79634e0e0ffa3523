package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a client's {@code void} method: a call returns as soon as it is handed to the connection. The server acknowledges
 * that it has taken the call, which bounds a flood of such calls. It does not report how the call ends. If there is no
 * connection yet, the call is kept until there is one, and {@link Client#close} waits for that.
 *
 * <p>If a failure is known before the call returns, the call throws it. The caller learns nothing of a later failure,
 * which is only a warning in the log, once a minute, with a count. Until the server has acknowledged the call, it is
 * the log of the client, and then that of the server. So calls that wait for a connection are lost if the first attempt
 * to connect fails, for example while the only server is being restarted. A caller that has to know the outcome has to
 * call a method with a result.
 *
 * <p>The arguments are read before the call returns, and never again. A call that is retried, as
 * {@link Method#idempotent} says, is sent with the arguments as they were then. A call of more than about 128 KiB is
 * not retried once it has been sent.
 *
 * <p>On a service's method the annotation has no effect, except that a method that takes or brings a stream is refused
 * there as it is at a client: the client decides for each call whether anybody waits for its end.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface OneWay {}
