package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks handlers that wait for news. The annotation stands on a service's class or method. Such a handler ends when
 * there is news, or when its caller's time is nearly over. The time that it takes says nothing about the load, so the
 * server sets no limit for the method. The only limit is {@link Server.Builder#maxRunning}, which all handlers of the
 * server share. One client with several connections can use up nearly all of it. So if strangers can call such methods,
 * serve these methods from a separate server.
 *
 * <p>A method whose handlers wait for news works without the annotation too, as long as most of its calls end in time.
 * But the server may lower the method's limit if many calls end too late, or if other calls of the method have less
 * time than a long poll takes.
 *
 * <p>Methods that take a stream are treated as if they had the annotation. Handlers on the event loop have no limit in
 * any case; see {@link RunOn}.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface LongPoll {}
