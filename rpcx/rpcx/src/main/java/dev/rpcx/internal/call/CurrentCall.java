package dev.rpcx.internal.call;

import dev.rpcx.CallContext;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.io.LoopThread;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the context of each thread: that of the call that the thread handles, or one of {@link CallContext#within}.
 * Many calls are made on event loops, so an event loop has its context in a field of its thread.
 */
public final class CurrentCall {
    private static final ThreadLocal<@Nullable TimedContext> OF_OTHERS = new ThreadLocal<>();

    private CurrentCall() {}

    /**
     * Returns the context of the calling thread; null for none. The cast is safe, because only {@link TimedContext}
     * objects are set.
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
     * Makes {@code context} the context of the calling thread. Returns the previous one, which the caller has to set
     * again.
     */
    static @Nullable TimedContext swap(@Nullable TimedContext context) {
        TimedContext before = get();
        if (before != context) {
            set(context);
        }
        return before;
    }

    /** Runs {@code task} on the calling thread in {@code context}; null for no context. */
    public static void runIn(@Nullable TimedContext context, Runnable task) {
        TimedContext before = swap(context);
        try {
            task.run();
        } finally {
            swap(before);
        }
    }

    /** Implements {@link CallContext#within}. */
    public static <T> T within(Duration time, Supplier<T> calls) {
        Given.notNull(calls, "calls", "a Supplier that makes calls");
        TimedContext outer = get();
        set(TimedContext.within(time, outer));
        try {
            return calls.get();
        } finally {
            set(outer);
        }
    }
}
