package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks handlers that wait for news, such as the handler of a long poll. The annotation stands on a service's class or
 * method. A marked handler ends when there is news, or when its caller's time is nearly over. How long the handler
 * takes says nothing about the load, so the server sets no limit for the number of running handlers of the method.
 *
 * <p>The only limit is {@link Server.Builder#maxRunning}, which all handlers of the server share. One client with
 * several connections can use up nearly all of that limit. So if strangers can call marked methods, serve these methods
 * from a separate server.
 *
 * <p>A method whose handlers wait for news also works without the annotation, as long as most of its calls end in time.
 * But the server can lower the method's limit in these cases:
 *
 * <ul>
 *   <li>Many calls end too late.
 *   <li>The method also gets calls that have less time than a long poll takes. The long polls can then count as late.
 * </ul>
 *
 * <p>Methods that take a stream are treated as if they had the annotation. Handlers on the event loop have no limit in
 * any case (see {@link RunOn}).
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface LongPoll {}
