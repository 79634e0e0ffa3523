package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Publishes a method of a service. On a client's method, the annotation says which published method is called. On a
 * service's method only the name counts: the client decides how long a call may take, and whether it is retried.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Method {
    /**
     * Published name: 1 to 255 bytes of UTF-8, without NUL. If it is empty, which is the default, the name of the Java
     * method is used.
     */
    String value() default "";

    /**
     * On a client's method: maximum time of a call, in milliseconds, at most 3 600 000 (1 h). With 0, the default, the
     * time is the client's call timeout, or 365 days if the method takes or returns a stream. A call that is made while
     * another call is being handled never has more time than the handled call has remaining.
     */
    long timeoutMillis() default 0;

    /**
     * On a client's method: whether a call may be executed twice without harm.
     *
     * <p>A call is retried if its instance was unavailable ({@link RPCXException.Code#UNAVAILABLE}). It is also retried
     * if its instance was overloaded and there is another instance. A call that may have been executed is retried only
     * if its method is idempotent; a call that certainly was not executed is retried for any method. A call whose
     * method takes or returns a stream is not retried.
     *
     * <p>If the connection of a call closed before anything of the call was sent, and this client knows that, the call
     * goes to another connection, whatever its method. The only exception is a call whose method takes a stream, if
     * that stream has its subscriber already.
     *
     * <p>The number of retries and hedges together is at most a tenth of the number of first attempts. In addition, a
     * client starts with ten retries or hedges for each address, or for each set of instances. The retries that
     * {@link Client#create(Class, Endpoints)} describes are counted separately. No call is retried if this client had
     * no memory for what came back from the server.
     */
    boolean idempotent() default false;

    /**
     * On a client's idempotent method: time in milliseconds after which a call without an answer is hedged. 0, the
     * default, means never. A hedged call gets a second attempt while the first attempt goes on, at another instance if
     * there is one. The answer that comes earlier counts. The value has to be less than the call's time. A value near
     * the 99th percentile of the answer times costs little, and shortens the slowest hundredth of the calls.
     */
    long hedgeMillis() default 0;
}
