package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Sets the kind of thread on which a service's handlers run. The annotation stands on the service's class or on one of
 * its methods. The annotation of a method takes precedence over the annotation of the class.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface RunOn {
    /** Returns the kind of thread on which the handlers run. */
    Place value();

    /** Kind of thread on which a handler runs. */
    enum Place {
        /**
         * The handler runs on a virtual thread, and is allowed to block. This is the default. On a JDK without virtual
         * threads, the handler runs on the server's pool instead, as with {@link #POOL}.
         *
         * <p>A virtual thread runs several handlers, one after another. A handler has to clear its thread-locals:
         * otherwise handlers of other callers find the values. After each handler, RPCX itself resets the interrupt
         * flag, the name, the priority and the context class loader of the thread. The context class loader is that of
         * the thread that has built the server. A virtual thread inherits no values from a thread that serves other
         * callers (see {@link InheritableThreadLocal}).
         */
        VIRTUAL_THREAD,
        /**
         * The handler runs on the event loop of the connection. Use this only for handlers that are quick and never
         * block. While such a handler runs, the calls of all connections that share the event loop wait.
         */
        EVENT_LOOP,
        /**
         * The handler runs on the server's pool of platform threads, and is allowed to block. Use this for handlers
         * that keep a processor busy. A call waits while all threads of the pool are busy. A call also waits while its
         * connection holds as many of these threads as {@link Server.Builder#poolSize} allows one connection.
         *
         * <p>A handler can wait on its thread for the items of its stream. The signals of a stream, and the tasks given
         * to {@link CallContext#onCancel}, run on additional threads, which {@code poolSize} does not count. For each
         * stream, only one signal runs at a time.
         */
        POOL
    }
}
