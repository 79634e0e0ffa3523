package dev.rpcx;

import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The context that each thread has: that of the call which it handles, or of calls which {@link CallContext#within} has
 * given a time. An event loop makes most calls of many callers, and has it in a field.
 */
final class CurrentCall {
    private static final ThreadLocal<@Nullable TimedContext> OF_OTHERS = new ThreadLocal<>();

    private CurrentCall() {}

    /** This thread's context; null for none. No other class of context is ever set. */
    static @Nullable TimedContext get() {
        return Thread.currentThread() instanceof LoopThread loop ? (TimedContext) loop.context : OF_OTHERS.get();
    }

    static boolean isAbsent() {
        return get() == null;
    }

    static void set(@Nullable TimedContext context) {
        if (Thread.currentThread() instanceof LoopThread loop) {
            loop.context = context;
        } else {
            OF_OTHERS.set(context);
        }
    }

    /** Makes this the thread's context. @return the one before, to be set again */
    static @Nullable TimedContext swap(@Nullable TimedContext context) {
        TimedContext before = get();
        if (before != context) {
            set(context);
        }
        return before;
    }

    /** @param context null for none */
    static void runIn(@Nullable TimedContext context, Runnable task) {
        TimedContext before = swap(context);
        try {
            task.run();
        } finally {
            swap(before);
        }
    }

    /** As {@link CallContext#within} says. */
    static <T> T within(Duration time, Supplier<T> calls) {
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
