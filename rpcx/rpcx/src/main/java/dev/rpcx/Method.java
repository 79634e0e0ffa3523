package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Publishes a method of a service, or says which published method a client's method calls. */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Method {
    /** The published name; empty for the method's own. */
    String value() default "";

    /**
     * On a client's method: how long a call may take, in milliseconds; 0 for the client's own time. A call made while another is being
     * handled never has more time than is left of that one.
     */
    long timeoutMillis() default 0;
}
