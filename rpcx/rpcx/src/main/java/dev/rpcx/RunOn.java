package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Sets the kind of thread on which handlers run. The annotation stands on a service's class or method. The annotation
 * of a method takes precedence over that of its class.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface RunOn {
    /** Kind of thread on which the handlers run. */
    Place value();

    /** Kind of thread on which a handler runs. */
    enum Place {
        /**
         * A virtual thread, which serves other calls afterwards. On a JDK without virtual threads, handlers run on the
         * pool instead. This is the default. A handler may block. It has to clear its thread-locals: otherwise handlers
         * of other callers find the values. After each handler, RPCX resets the interrupt flag, the context class
         * loader, the name and the priority of the thread. The context class loader is that of the thread that has
         * built the server. No values are inherited from a thread that serves other callers (see
         * {@link InheritableThreadLocal}).
         */
        VIRTUAL_THREAD,
        /**
         * The connection's event loop. It is only for handlers that are quick and never block, since all calls of the
         * event loop wait for them.
         */
        EVENT_LOOP,
        /**
         * The server's pool of platform threads. It is for handlers that keep a processor busy. A handler may block. A
         * call waits for a thread while all threads are busy, or while its connection holds its share of them (see
         * {@link Server.Builder#poolSize}). A connection that holds few threads gets one as soon as one is free.
         *
         * <p>The signals of a stream, and the tasks that a handler has given to {@link CallContext#onCancel}, never
         * wait for a handler. They run on additional threads, which {@code poolSize} does not count. These are made as
         * they are needed, one at a time for each stream. So a handler may keep its thread until the items of its
         * stream have come.
         */
        POOL
    }
}
