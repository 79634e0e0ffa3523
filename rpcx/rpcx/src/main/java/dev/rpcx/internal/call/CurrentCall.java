package dev.rpcx.internal.call;

import dev.rpcx.CallContext;
import dev.rpcx.Metadata;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.io.LoopThread;
import java.time.Duration;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Stores the context of each thread. This is the context of the call that the thread is handling, or a context that
 * {@link CallContext#within} or {@link CallContext#with} has created. Many calls are made on event loops, so an event
 * loop has its context in a field of its thread, which is read faster than a {@code ThreadLocal}.
 */
public final class CurrentCall {
    private static final ThreadLocal<@Nullable TimedContext> OF_OTHERS = new ThreadLocal<>();

    private CurrentCall() {}

    /**
     * Returns the context of the calling thread, or null if the thread has none. The cast is safe, because {@link #set}
     * takes only {@link TimedContext} objects.
     */
    public static @Nullable TimedContext get() {
        return Thread.currentThread() instanceof LoopThread loop ? (TimedContext) loop.context : OF_OTHERS.get();
    }

    public static boolean isAbsent() {
        return get() == null;
    }

    public static void set(@Nullable TimedContext context) {
        if (Thread.currentThread() instanceof LoopThread loop) {
            loop.context = context;
        } else {
            OF_OTHERS.set(context);
        }
    }

    /**
     * Sets the context of the calling thread, and returns the previous context. The caller has to restore the previous
     * context afterwards.
     */
    static @Nullable TimedContext swap(@Nullable TimedContext context) {
        TimedContext before = get();
        if (before != context) {
            set(context);
        }
        return before;
    }

    /** Runs {@code task} on the calling thread with the given context; null for no context. */
    public static void runIn(@Nullable TimedContext context, Runnable task) {
        TimedContext before = swap(context);
        try {
            task.run();
        } finally {
            swap(before);
        }
    }

    /** Returns the metadata that a call carries which the calling thread makes now. Interceptors can add to them. */
    public static Metadata outgoing() {
        TimedContext context = get();
        return context == null ? Metadata.EMPTY : context.outgoing();
    }

    /** Does what {@link CallContext#within} describes: runs {@code calls} with a time limit, and returns its result. */
    public static <T> T within(Duration time, Supplier<T> calls) {
        Given.notNull(calls, "calls", "a Supplier that makes calls");
        TimedContext outer = get();
        return callIn(TimedContext.within(time, outer), outer, calls);
    }

    /**
     * Does what {@link CallContext#with} and {@link CallContext#onReply} describe: runs {@code calls} with other
     * metadata for the calls that it makes, and returns its result.
     *
     * @param change makes these metadata of those that calls of this thread carry now
     */
    public static <T> T sending(UnaryOperator<Metadata> change, Supplier<T> calls) {
        Given.notNull(calls, "calls", "a Supplier that makes calls");
        TimedContext outer = get();
        return callIn(TimedContext.sending(change.apply(outgoing()), outer), outer, calls);
    }

    private static <T> T callIn(TimedContext inner, @Nullable TimedContext outer, Supplier<T> calls) {
        set(inner);
        try {
            return calls.get();
        } finally {
            set(outer);
        }
    }
}
