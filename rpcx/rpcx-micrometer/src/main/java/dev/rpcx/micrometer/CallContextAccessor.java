package dev.rpcx.micrometer;

import dev.rpcx.CallContext;
import io.micrometer.context.ThreadLocalAccessor;
import org.jspecify.annotations.Nullable;

/**
 * Lets Micrometer's context propagation carry the {@link CallContext} of a thread to other threads, for example to
 * those of a {@code ContextExecutorService}, of Spring's {@code ContextPropagatingTaskDecorator}, or of Reactor. Calls
 * that are made there have the time and the caller of the handled call. The library
 * {@code io.micrometer:context-propagation} finds this class by itself if the application has that library.
 * Thread-safe.
 */
public final class CallContextAccessor implements ThreadLocalAccessor<CallContext> {
    /** Key of the context in a snapshot of the library. */
    public static final String KEY = "rpcx.call";

    /** Called by the library. */
    public CallContextAccessor() {}

    @Override
    public Object key() {
        return KEY;
    }

    @Override
    public @Nullable CallContext getValue() {
        return CallContext.current().orElse(null);
    }

    @Override
    public void setValue(CallContext value) {
        CallContext.set(value);
    }

    /** Takes the context from the thread. */
    @Override
    public void setValue() {
        CallContext.set(null);
    }
}
