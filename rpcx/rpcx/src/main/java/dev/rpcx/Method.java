package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Publishes a method of a service, or says which published method a client's method calls. Only {@link #value} applies
 * to services. All other attributes apply to clients, since it is the client that decides how long a call may take and
 * whether the call is retried.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Method {
    /**
     * Published name of the method: 1 to 255 bytes of UTF-8, without NUL. Empty, the default, means the name of the
     * Java method.
     */
    String value() default "";

    /**
     * Maximum time, in milliseconds, of a call of this client's method: at most 3 600 000 (1 h). With 0, the default,
     * the maximum is the client's call timeout ({@link Client.Builder#callTimeout}), or 365 days if the method takes or
     * returns a stream. A limit that is set by {@link CallContext#within} replaces this maximum, even if the limit is
     * longer. A call that a handler makes gets at most the time that remains for the handled call.
     */
    long timeoutMillis() default 0;

    /**
     * Says whether a call of this client's method can be executed several times without harm. If a call fails, the
     * client sends the call again in these cases:
     *
     * <ul>
     *   <li>A connection closed, and the client knows that nothing of the call was sent. The call goes to another
     *       connection, whether or not the method is idempotent. Going to another connection does not count as a retry.
     *   <li>The call ended with {@link RPCXException.Code#UNAVAILABLE}. The client retries the call if the method is
     *       idempotent, or if the call certainly was not executed.
     *   <li>The call ended with {@link RPCXException.Code#OVERLOADED}, and there is another instance. The client
     *       retries the call if the method is idempotent, or if the call certainly was not executed.
     * </ul>
     *
     * <p>A call that fails while it waits for a connection is not retried, whatever its code. A call whose method takes
     * or returns a stream is not retried either. If the call takes a stream that already has its subscriber, the call
     * does not go to another connection. A call of a method without {@link #hedgeMillis} is retried at most twice.
     *
     * <p>For each address, or for each set of instances, the number of retries and hedges together is at most ten plus
     * a tenth of the number of first attempts. The retries that {@link Client#create(Class, Endpoints)} describes are
     * counted separately. No call is retried if the client had no memory for what came back from the server.
     */
    boolean idempotent() default false;

    /**
     * Time in milliseconds after which a call of a client's idempotent method gets a second attempt if it has no answer
     * yet. The second attempt goes to another instance if there is one. The first attempt goes on, and the earlier
     * success counts. A failure counts only if neither attempt succeeds.
     *
     * <p>With 0, the default, there is no second attempt. The value has to be less than the maximum time of the call
     * (see {@link #timeoutMillis}). A value near the 99th percentile of the answer times costs little, and shortens the
     * slowest hundredth of the calls.
     */
    long hedgeMillis() default 0;
}
