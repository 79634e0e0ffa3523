package dev.rpcx.internal.io;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ThreadFactory;
import org.jspecify.annotations.Nullable;

/**
 * Creates threads that inherit no {@link InheritableThreadLocal}, context class loader or priority from the creating
 * thread. The creating thread usually serves a request, whose values must not reach later requests.
 */
public final class ThreadFactories {
    /**
     * Holds the factory of virtual threads in a separate class. If the initialization of this class fails, platform
     * threads can still be created.
     */
    private static final class Virtual {
        /** Factory of virtual threads; null if the JDK is older than JDK 21. */
        private static final @Nullable ThreadFactory FACTORY = virtual();
    }

    private ThreadFactories() {}

    /**
     * Creates a platform thread that is a daemon and has not been started.
     *
     * @param loader context class loader of the thread
     */
    public static Thread platform(Runnable task, String name, @Nullable ClassLoader loader) {
        Thread made = new Thread(null, task, name, 0, false);
        made.setDaemon(true);
        made.setPriority(Thread.NORM_PRIORITY);
        made.setContextClassLoader(loader);
        return made;
    }

    public static boolean hasVirtual() {
        return Virtual.FACTORY != null;
    }

    /**
     * Creates a virtual thread that has not been started.
     *
     * @param loader context class loader of the thread
     * @throws UnsupportedOperationException if this JDK has no virtual threads, see {@link #hasVirtual}
     */
    public static Thread virtual(Runnable task, @Nullable ClassLoader loader) {
        ThreadFactory factory = Virtual.FACTORY;
        if (factory == null) {
            throw new UnsupportedOperationException("virtual threads (expected: JDK 21 or later)");
        }
        Thread made = factory.newThread(task);
        made.setContextClassLoader(loader);
        return made;
    }

    /**
     * Creates a thread for an event loop. Netty's thread class inherits values from the thread that calls its
     * constructor. So the constructor is called on a new platform thread, which has no such values.
     */
    static LoopThread loop(Runnable task, String name) {
        FutureTask<LoopThread> made = new FutureTask<>(() -> new LoopThread(task, name));
        platform(made, name, ThreadFactories.class.getClassLoader()).start();
        boolean isInterrupted = false;
        try {
            while (true) {
                try {
                    return made.get();
                } catch (InterruptedException e) {
                    isInterrupted = true;
                }
            }
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw new IllegalStateException("no thread for an event loop", e.getCause());
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static @Nullable ThreadFactory virtual() {
        if (Runtime.version().feature() < 21) {
            return null;
        }
        try {
            Class<?> builder = Class.forName("java.lang.Thread$Builder$OfVirtual");
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            MethodHandle ofVirtual = lookup.findStatic(Thread.class, "ofVirtual", MethodType.methodType(builder));
            MethodHandle inherit = lookup.findVirtual(
                    builder, "inheritInheritableThreadLocals", MethodType.methodType(builder, boolean.class));
            MethodHandle factory = lookup.findVirtual(builder, "factory", MethodType.methodType(ThreadFactory.class));
            return (ThreadFactory) factory.invoke(inherit.invoke(ofVirtual.invoke(), false));
        } catch (Throwable e) {
            throw new ExceptionInInitializerError(e);
        }
    }
}
