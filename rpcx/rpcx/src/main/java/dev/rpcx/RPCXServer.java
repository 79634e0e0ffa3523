package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks the class of a service. The server publishes the class's methods that have the annotation {@link Method}, under
 * the service name that {@link #value} gives. The name of the class itself is never sent to a client. Subclasses, such
 * as the proxies that a framework creates, inherit this annotation. They are published if {@link RegistryServer} is
 * given them or their objects; the index and a scan find only classes that have the annotation themselves.
 *
 * @see RegistryServer
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface RPCXServer {
    /** Returns the published name of the service: 1 to 255 bytes of UTF-8, without NUL. */
    String value();
}
