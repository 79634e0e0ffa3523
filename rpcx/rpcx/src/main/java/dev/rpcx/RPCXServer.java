package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks a class whose {@link Method} methods are published under the given name. The name of the class itself never
 * leaves the process. The annotation holds for subclasses too, such as the proxies that a framework makes.
 *
 * @see RegistryServer
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface RPCXServer {
    /** The published name: 1 to 255 characters. */
    String value();
}
