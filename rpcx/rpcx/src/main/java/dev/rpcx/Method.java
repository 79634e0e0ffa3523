package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Publishes a method of a service, or says which published method a client's method calls. All attributes except the
 * name apply to clients only: the client decides how long a call may take, and whether it is retried.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Method {
    /** Published name: 1 to 255 bytes of UTF-8, without NUL. Empty, the default, means the name of the Java method. */
    String value() default "";

    /**
     * On a client's method: maximum time of a call, in milliseconds, at most 3 600 000 (1 h). With 0, the default, the
     * time is the client's call timeout, or 365 days if the method takes or returns a stream. A call that a handler
     * makes gets at most the time that remains for the handled call.
     */
    long timeoutMillis() default 0;

    /**
     * On a client's method: whether a call may be executed twice without harm.
     *
     * <p>A call is retried if its instance was unavailable ({@link RPCXException.Code#UNAVAILABLE}), or was overloaded
     * and there is another instance. A call that may have been executed is retried only if its method is idempotent. A
     * call that certainly was not executed is retried whatever its method. A call whose method takes or returns a
     * stream is not retried.
     *
     * <p>If a connection closes, and this client knows that nothing of a call was sent, the call goes to another
     * connection, whatever its method. The only exception is a call that takes a stream which already has its
     * subscriber.
     *
     * <p>Retries and hedges together are at most a tenth of the first attempts, plus ten for each address, or for each
     * set of instances. The retries that {@link Client#create(Class, Endpoints)} describes are counted separately. No
     * call is retried if this client had no memory for what came back from the server.
     */
    boolean idempotent() default false;

    /**
     * On a client's idempotent method: time in milliseconds after which a call without an answer gets a second attempt,
     * at another instance if there is one. The first attempt goes on, and the earlier answer counts. 0, the default,
     * means never. The value has to be less than the call's time. A value near the 99th percentile of the answer times
     * costs little, and shortens the slowest hundredth of the calls.
     */
    long hedgeMillis() default 0;
}
