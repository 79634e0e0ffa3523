package dev.rpcx;

import dev.rpcx.schema.Field;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks an exception that arrives at the caller as itself. The service's method and the client's method both declare
 * the exception in their {@code throws}. Client and service may have the same class, or two classes of one name and the
 * same state:
 *
 * <pre>
 * &#64;RPCXError
 * public class NotEnough extends Exception {
 *     private final long missing;
 *
 *     public NotEnough(long missing) {
 *         super(missing + " cents are missing");
 *         this.missing = missing;
 *     }
 *
 *     public long missing() {
 *         return missing;
 *     }
 * }
 * </pre>
 *
 * <p>The state of the exception is what its constructor takes, as for a record. The rules are:
 *
 * <ul>
 *   <li>The class is not abstract, and has exactly one constructor.
 *   <li>For each parameter of the constructor there is a public method without parameters that returns the value, such
 *       as {@code missing()} or {@code getMissing()} for {@code missing}. A {@code String message} is what
 *       {@code getMessage()} returns, and can be null.
 *   <li>The types of the parameters are such as the components of a record have. Their Protobuf numbers come from
 *       {@link Field} on the parameters, from the lock file or from the order of declaration.
 *   <li>The class file has the names of the parameters: {@code javac -parameters}.
 * </ul>
 *
 * <p>The annotation processor refuses an exception that breaks one of the first three rules, and the start of a client
 * or a server refuses one that breaks any. A method of a client's interface may not declare a checked exception without
 * this annotation, since such an exception never comes from a server. It may declare one of the JDK, because an
 * interceptor may throw it. A service's method may declare any exception. One without this annotation arrives as
 * {@link RPCXException.Code#HANDLER_FAILED}.
 *
 * <p>The cause, the stack trace and the suppressed exceptions stay at the server, which logs an exception that has a
 * cause. A future and a stream fail with the exception itself. An asynchronous method need not declare the exception: a
 * method with the same published name in the same interface does, such as the method's blocking form.
 *
 * <p>The exception arrives as an {@link RPCXException} with the code {@link RPCXException.Code#HANDLER_FAILED} in these
 * cases:
 *
 * <ul>
 *   <li>One of the two methods does not declare it.
 *   <li>The handler has thrown an object of a subclass.
 *   <li>Its state cannot be sent or read, or has more than {@link RPCXException#MAX_DETAIL_BYTES}.
 *   <li>One of the two sides has an earlier version of RPCX.
 * </ul>
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface RPCXError {
    /**
     * Name of the exception on the wire: 1 to 255 bytes of UTF-8. Empty, the default, means the simple name of the
     * class.
     */
    String value() default "";
}
