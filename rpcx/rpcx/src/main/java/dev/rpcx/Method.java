package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Publishes a method of a service, or tells which published method a client's method calls. On a service's method only
 * the name counts: the client decides how long a call may take, and whether it is retried.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Method {
    /** The published name; empty for the name of the Java method. */
    String value() default "";

    /**
     * On a client's method: longest time of a call, in milliseconds. 0 stands for the client's call timeout, or for 365
     * days where the method takes or brings a stream. A call that is made while another call is being handled never has
     * more time than is left of the handled call.
     */
    long timeoutMillis() default 0;

    /**
     * On a client's method: whether executing a call twice does no harm.
     *
     * <p>A call is retried where its instance was unavailable ({@link RPCXException.Code#UNAVAILABLE}), and, if there
     * is another instance, where its instance was overloaded. A call that may have been executed is retried only if its
     * method is idempotent; a call that certainly was not executed is retried for any method. A call that takes or
     * brings a stream is not retried.
     *
     * <p>A call of which this client knows that nothing has left, since its connection closed first, goes to another
     * connection in any case, unless it takes a stream that has its subscriber already.
     *
     * <p>Retries and hedges together are at most a tenth of the first attempts, and ten more with which a client begins
     * at each address, or at each set of instances. The second tries that {@link Client#create(Class, Endpoints)}
     * describes are counted apart. No call is retried where this client had no memory for what came back.
     */
    boolean idempotent() default false;

    /**
     * On a client's idempotent method: milliseconds after which a call without an answer is hedged; 0 for never. A
     * second attempt is then made beside the first, at another instance where there is one, and the first answer
     * counts. The value has to be less than the call's time. A value near the 99th percentile of the answer times costs
     * little and shortens the slowest hundredth of the calls.
     */
    long hedgeMillis() default 0;
}
