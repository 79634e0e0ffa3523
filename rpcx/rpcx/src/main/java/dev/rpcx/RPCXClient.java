package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks an interface whose methods are called at a remote server. Its attributes carry the paper's names.
 *
 * @see Client#create(Class)
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface RPCXClient {
    /** The name under which the server publishes the service. */
    String remoteServerName();

    /** Host name or address of the server; empty where {@link Client#create(Class, String, int)} gives it. */
    String remoteServerAddress() default "";

    /** The server's port, its domain in the paper; 0 where {@link Client#create(Class, String, int)} gives it. */
    int remoteServerDomain() default 0;
}
