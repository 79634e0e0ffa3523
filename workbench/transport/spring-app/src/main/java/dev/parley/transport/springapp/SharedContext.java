package dev.parley.transport.springapp;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * An application context that several clients share, as they would in an application: begins with the first, ends with the last. Thread-safe.
 */
public final class SharedContext {
    private final Supplier<ConfigurableApplicationContext> start;

    /** Guarded by this. */
    private @Nullable ConfigurableApplicationContext context;

    /** Guarded by this. */
    private int users;

    public SharedContext(Supplier<ConfigurableApplicationContext> start) {
        this.start = start;
    }

    /** The running context, started if need be. Each {@code enter} wants one {@link #leave}. */
    public synchronized ConfigurableApplicationContext enter() {
        ConfigurableApplicationContext running = context == null ? start.get() : context;
        context = running;
        users++;
        return running;
    }

    /** The last one to leave closes the context. */
    public synchronized void leave() {
        if (--users == 0 && context != null) {
            context.close();
            context = null;
        }
    }
}
