package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks handlers that wait for news. The annotation stands on a service's class or method. Such a handler ends when
 * there is news, or when its caller's time is nearly over. The time that it takes does not depend on the load, so the
 * server learns no limit from it. The only limit for such handlers is the one for all handlers of the server together:
 * at most {@link Server.Builder#maxRunning} run at a time. One connection can run about half as many handlers as the
 * other connections leave room for. Several connections of one address together can take nearly all of this room. So if
 * strangers can call such methods, serve these methods from a separate server: that protects the other methods.
 *
 * <p>A method whose handlers wait for news works without the annotation too, as long as most of its calls end in time.
 * But the limit that the server learns for the method can sink if many of its calls end too late. It can also sink if
 * the method gets other calls beside the long polls, and their callers give these less time than a long poll takes.
 *
 * <p>Methods that take a stream are treated as if they had the annotation, since their callers decide how long a call
 * lasts. Handlers on the event loop have no limit in any case; see {@link RunOn}.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface LongPoll {}
