package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks the class of a service. Its methods that have the annotation {@link Method} are published, under the name that
 * {@link #value} gives to the service. The name of the class itself is never sent to a peer. The annotation also holds
 * for subclasses, such as the proxies that a framework makes.
 *
 * @see RegistryServer
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface RPCXServer {
    /** Published name of the service: 1 to 255 bytes of UTF-8, without NUL. */
    String value();
}
