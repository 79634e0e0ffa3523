package dev.rpcx.internal.call;

import dev.rpcx.CallContext;
import dev.rpcx.Metadata;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.io.LoopThread;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Stores the context of each thread. This is the context of the call that the thread is handling, or a context that
 * {@link CallContext#within} or {@link CallContext#with} has created. Many calls are made on event loops, so an event
 * loop has its context in a field of its thread, which is read faster than a {@code ThreadLocal}.
 *
 * <p>No {@code ScopedValue} has the context, not even on a JDK that has this class. Such a value is set only while a
 * task runs that is passed to it, so each call would need one more object and stack frame. Other threads get the value
 * only if a structured task scope starts them, and such scopes are still a preview in JDK 25. A task of such a scope
 * gets the context by {@link CallContext#wrap}.
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

    /** Does what {@link CallContext#set} describes. */
    public static void setGiven(@Nullable CallContext context) {
        if (context != null && !(context instanceof TimedContext)) {
            throw new IllegalArgumentException(
                    "context: " + context.getClass().getName() + " (expected: one of CallContext.current)");
        }
        set((TimedContext) context);
    }

    /** Returns a task that runs {@code task} with the context that the calling thread has now; none if it has none. */
    public static Runnable wrap(Runnable task) {
        Given.notNull(task, "task", "a Runnable");
        TimedContext context = get();
        return () -> runIn(context, task);
    }

    /** Returns a task that calls {@code task} with the context that the calling thread has now; none if it has none. */
    public static <T> Callable<T> wrap(Callable<T> task) {
        Given.notNull(task, "task", "a Callable");
        TimedContext context = get();
        return () -> {
            TimedContext before = swap(context);
            try {
                return task.call();
            } finally {
                swap(before);
            }
        };
    }

    /** Does what {@link CallContext#wrap(Executor)} describes. */
    public static Executor wrap(Executor place) {
        Given.notNull(place, "place", "an Executor");
        return task -> place.execute(wrap(task));
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
