package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks an interface whose methods are calls to a service on a remote server. The names of the attributes come from the
 * paper whose design RPCX follows: Zhang, Pang, Xu and Niu, "High performance microservice communication technology
 * based on modified remote procedure call", Scientific Reports 13, 2023.
 *
 * @see Client#create(Class)
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface RPCXClient {
    /** Returns the name under which the server publishes the service. */
    String remoteServerName();

    /**
     * Returns the host name or IP address of the server. Only {@link Client#create(Class)} uses the address, so the
     * address can be empty if another {@code create} method is called.
     */
    String remoteServerAddress() default "";

    /**
     * Returns the port of the server: 1 to 65535. Only {@link Client#create(Class)} uses the port, so the port can be 0
     * if another {@code create} method is called. The name of this attribute contains "domain" because the paper whose
     * design RPCX follows uses this word for a port.
     */
    int remoteServerDomain() default 0;
}
