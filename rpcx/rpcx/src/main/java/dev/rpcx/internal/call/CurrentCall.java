package dev.rpcx.internal.call;

import dev.rpcx.CallContext;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.io.LoopThread;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Context of each thread: that of the call which the thread handles, or of calls to which {@link CallContext#within}
 * has given a time. Many callers make most of their calls on event loops, so an event loop has its context in a field.
 */
public final class CurrentCall {
    private static final ThreadLocal<@Nullable TimedContext> OF_OTHERS = new ThreadLocal<>();

    private CurrentCall() {}

    /** Returns this thread's context; null for none. No context of another class is ever set. */
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

    /** Makes {@code context} the thread's context. @return the context before, to be set again */
    static @Nullable TimedContext swap(@Nullable TimedContext context) {
        TimedContext before = get();
        if (before != context) {
            set(context);
        }
        return before;
    }

    /** @param context null for none */
    public static void runIn(@Nullable TimedContext context, Runnable task) {
        TimedContext before = swap(context);
        try {
            task.run();
        } finally {
            swap(before);
        }
    }

    /** Does what {@link CallContext#within} says. */
    public static <T> T within(Duration time, Supplier<T> calls) {
        Given.notNull(calls, "calls", "what makes them");
        TimedContext outer = get();
        set(TimedContext.within(time, outer));
        try {
            return calls.get();
        } finally {
            set(outer);
        }
    }
}
