package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * On a service's class or method: its handlers wait for news, and end when there is some or when their caller's time is
 * nearly over. How long they take then says nothing of how much there is to do, so a server learns no limit from it.
 * The number of such handlers has the bounds that all have together: {@link Server.Builder#maxRunning} at once, of
 * which a connection holds half of what the others leave. Several connections of one address may hold nearly all of
 * them: where strangers call, a server of its own for such methods keeps the others apart.
 *
 * <p>Without it, such a method is served as well as long as most of its calls end in time. But its limit can sink where
 * many of them end too late, or where callers give other calls of the same method less time than these take.
 *
 * <p>Methods that take a stream are held so without it: their callers decide how long a call lasts. Handlers on the
 * event loop have no limit in any case; see {@link RunOn}.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface LongPoll {}
