package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks an interface whose methods are calls to a remote server. The attributes have the names that they have in the
 * paper whose design RPCX follows: Zhang, Pang, Xu and Niu, "High performance microservice communication technology
 * based on modified remote procedure call", Scientific Reports 13, 2023.
 *
 * @see Client#create(Class)
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface RPCXClient {
    /** Name under which the server publishes the service. */
    String remoteServerName();

    /**
     * Host name or IP address of the server. It may be empty if {@link Client#create(Class, String, int)} gives the
     * address.
     */
    String remoteServerAddress() default "";

    /**
     * Port of the server: 1 to 65535. The paper whose design RPCX follows calls the port the domain. It may be 0 if
     * {@link Client#create(Class, String, int)} gives the port.
     */
    int remoteServerDomain() default 0;
}
