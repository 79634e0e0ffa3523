package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a client's {@code void} method: a call returns as soon as it is handed to the connection. The server acknowledges
 * that it has taken the call, which bounds a flood of such calls; how the call ends is not told. Where there is no
 * connection yet, the call is kept until there is one, and {@link Client#close} waits for that.
 *
 * <p>A failure that is known before the call returns is thrown. The caller is not told of a later failure, which is
 * only a warning in the log, once a minute with a count. So calls that wait for a connection are lost if the first
 * attempt to connect fails, such as while the only server is being restarted. A caller that has to know the outcome
 * calls a method with a result.
 *
 * <p>The arguments are read before the call returns, and never again. A call that is retried, as
 * {@link Method#idempotent} says, is sent with the arguments as they were then. A call above some 128 KiB is not
 * retried once it has left.
 *
 * <p>On a service's method the annotation has no effect, except that a stream is refused there too: the client decides
 * for each call whether anybody waits for its end.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface OneWay {}
