package dev.rpcx.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** Helper methods for threads. */
public final class ThreadTools {
    /** Handle of {@code Thread.isVirtual}; null on a JDK before 21, which does not have this method. */
    private static final @Nullable MethodHandle IS_VIRTUAL = isVirtual();

    /**
     * Time for which {@link #letOthersRun} parks a thread, in nanoseconds. It is longer than a processor needs to
     * notice that it has nothing else to run.
     */
    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private ThreadTools() {}

    /**
     * Initializes the given classes now, before a thread with too little stack or memory needs them. If the initializer
     * of a class failed on such a thread, the class could not be used in this process any more.
     */
    public static void prepare(List<Class<?>> classes) {
        try {
            for (Class<?> each : classes) {
                Class.forName(each.getName(), true, each.getClassLoader());
            }
        } catch (ClassNotFoundException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static @Nullable MethodHandle isVirtual() {
        if (Runtime.version().feature() < 21) {
            return null;
        }
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /**
     * Throws a {@link StackOverflowError} if the stack of the current thread has no room for the given number of stack
     * frames of this method. These are smaller than most stack frames. A caller calls this method first, so that the
     * error comes before the caller has begun its work.
     *
     * @return {@code frames}
     */
    public static int reserveStack(int frames) {
        return frames == 0 ? 0 : reserveStack(frames - 1) + 1;
    }

    public static boolean isVirtual(Thread thread) {
        MethodHandle isVirtual = IS_VIRTUAL;
        if (isVirtual == null) {
            return false;
        }
        try {
            return (boolean) isVirtual.invokeExact(thread);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Lets other virtual threads run before the current thread goes on. Does nothing if the current thread is not
     * virtual.
     *
     * <p>The thread parks for 100 µs instead of calling {@code Thread.yield}. On a server with one processor, a call of
     * {@code yield} does not help: the thread runs again before new virtual threads that an event loop has started
     * (seen on JDK 25).
     */
    public static void letOthersRun() {
        if (isVirtual(Thread.currentThread())) {
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    /**
     * Interrupts a thread; does nothing if {@code thread} is null. Throws nothing: if a virtual thread cannot be woken
     * for lack of memory, which can happen on JDK 21, the failure is passed to {@link #report}.
     */
    public static void interrupt(@Nullable Thread thread) {
        if (thread == null) {
            return;
        }
        try {
            thread.interrupt();
        } catch (Throwable noMemory) {
            report(noMemory);
        }
    }

    /** Passes an exception to the current thread's handler of uncaught exceptions, which prints it by default. */
    public static void report(Throwable uncaught) {
        Thread thread = Thread.currentThread();
        try {
            thread.getUncaughtExceptionHandler().uncaughtException(thread, uncaught);
        } catch (Throwable ignored) {
            // the JDK itself also ignores what a handler of uncaught exceptions throws
        }
    }
}
