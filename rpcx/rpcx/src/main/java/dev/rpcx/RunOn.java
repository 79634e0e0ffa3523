package dev.rpcx;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** On a service's class or method: the thread its handlers run on. The method's word goes before the class's. */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface RunOn {
    /** Where handlers run. */
    Place value();

    /** Where a handler runs. */
    enum Place {
        /**
         * A virtual thread, which serves other calls afterwards; on a JDK without them the pool. The default. A handler
         * may block. What it leaves in thread-locals meets other callers' handlers, so it has to clear them; the
         * interrupt flag, the context class loader, the name and the priority of its thread are put right for it. The
         * context class loader is that of the thread which has built the server, and nothing is inherited of a thread
         * that serves others (see {@link InheritableThreadLocal}).
         */
        VIRTUAL_THREAD,
        /** The connection's event loop: only for handlers that are quick and never block, since every call of the loop waits for them. */
        EVENT_LOOP,
        /**
         * The server's pool of platform threads: for handlers that keep a processor busy. A handler may block. It waits
         * for a thread while all are taken, or while its connection holds its share of them (see
         * {@link Server.Builder#poolSize}); a connection that holds few always finds one as soon as one is free.
         *
         * <p>What belongs to a stream, and what a handler has given to {@link CallContext#onCancel}, never waits for a
         * handler: it has threads beside those of {@code poolSize}, made as they are needed, one at a time for each
         * stream. So a handler may keep its thread until the items of its stream have come.
         */
        POOL
    }
}
