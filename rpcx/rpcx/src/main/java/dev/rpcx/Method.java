package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Publishes a method of a service, or says which published method a client's method calls. On a service's method only
 * the name counts: how long a call may take, and whether it is made again, its client says.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Method {
    /** The published name; empty for the method's own. */
    String value() default "";

    /**
     * On a client's method: how long a call may take, in milliseconds; 0 for the client's own time, and for 365 days
     * where the method takes or brings a stream. A call made while another is being handled never has more time than is
     * left of that one.
     */
    long timeoutMillis() default 0;

    /**
     * On a client's method: executing a call twice does no harm. A call is made again where its instance was not to be
     * had ({@link RPCXException.Code#UNAVAILABLE}) and, where there is another instance, where it was overloaded. One
     * that may have been executed is so only for such a method, one that certainly was not for any; never one that
     * takes or brings a stream. One of which this client knows that nothing has left it, since its connection closed
     * first, goes to another connection in any case, but for one that takes a stream which has its subscriber already.
     * Second calls are at most a tenth of the first ones, and ten that a client begins with; those that an instance
     * refuses as {@link Client#create(Class, Endpoints)} says are apart from that. None is made again where this client
     * had no memory for what came back.
     */
    boolean idempotent() default false;

    /**
     * On a client's idempotent method: a call without an answer after so many milliseconds is made a second time, at
     * another instance where there is one, and whichever is answered first counts; 0 for never. Less than the call's
     * time. A value near the slowest hundredth of the answers costs little and cuts that hundredth short.
     */
    long hedgeMillis() default 0;
}
