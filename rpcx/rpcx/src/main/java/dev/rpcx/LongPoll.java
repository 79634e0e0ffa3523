package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a service's class or method: marks handlers that wait for news, and end when there is news or when their caller's
 * time is nearly over. The time that they take says nothing of the load, so a server learns no limit from it. The
 * number of such handlers has only the bounds that all handlers have together: at most
 * {@link Server.Builder#maxRunning} run at once, and one connection holds half of those that the others leave. Several
 * connections of one address may hold nearly all of them: where strangers call, a server of its own for such methods
 * protects the other methods.
 *
 * <p>A method of this kind works without the annotation too, as long as most of its calls end in time. But its limit
 * can sink where many of its calls end too late, or where callers give other calls of the same method less time than
 * long polls take.
 *
 * <p>Methods that take a stream are treated in this way without the annotation, since their callers decide how long a
 * call lasts. Handlers on the event loop have no limit in any case; see {@link RunOn}.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface LongPoll {}
