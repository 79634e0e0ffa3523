package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Sets the kind of thread on which the handlers of a service's class or method run. The annotation of a method takes
 * precedence over that of its class.
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
         * A virtual thread, which serves other calls afterwards. This is the default. A handler may block. On a JDK
         * without virtual threads, handlers run on the pool instead.
         *
         * <p>A handler has to clear its thread-locals: otherwise handlers of other callers find the values. After each
         * handler, RPCX resets the interrupt flag, the name, the priority and the context class loader of the thread.
         * The context class loader is that of the thread that has built the server. No values are inherited from a
         * thread that serves other callers (see {@link InheritableThreadLocal}).
         */
        VIRTUAL_THREAD,
        /**
         * The connection's event loop. For handlers that are quick and never block: all calls of the event loop wait
         * for them.
         */
        EVENT_LOOP,
        /**
         * The server's pool of platform threads, for handlers that keep a processor busy. A handler may block. A call
         * waits for a thread while all threads are busy, or while its connection holds its share of them (see
         * {@link Server.Builder#poolSize}).
         *
         * <p>The signals of a stream, and the tasks given to {@link CallContext#onCancel}, never wait for a handler:
         * they run on additional threads, which {@code poolSize} does not count, one at a time for each stream. So a
         * handler may wait on its thread for the items of its stream.
         */
        POOL
    }
}
