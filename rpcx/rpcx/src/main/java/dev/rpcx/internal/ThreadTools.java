package dev.rpcx.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** Helpers for threads, independent of what a thread runs. */
public final class ThreadTools {
    /** Handle of {@code Thread.isVirtual}, a method since JDK 21; null on an older JDK. */
    private static final @Nullable MethodHandle IS_VIRTUAL = isVirtual();

    /** Pause in {@code letOthersRun}: longer than a processor takes to find that it has nothing else to run. */
    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private ThreadTools() {}

    /**
     * Initializes these classes now. On a thread whose stack or memory is nearly exhausted, the initializer of a class
     * could fail, and then the class can never be used in this process.
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
     * Makes sure that the stack of this thread has room for this many frames. If not, throws a StackOverflowError here,
     * before the caller has begun its work.
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
     * On a virtual thread, lets other virtual threads run first. Does nothing on any other thread.
     *
     * <p>Parks for 100 µs and does not call {@code Thread.yield}: on a server with one processor, a yielding thread
     * runs again before the threads that event loops have started (seen on JDK 25).
     */
    public static void letOthersRun() {
        if (isVirtual(Thread.currentThread())) {
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    /**
     * Interrupts a thread, if it is not null. Throws nothing: waking a parked virtual thread may fail for lack of
     * memory, for example on JDK 21, and such a failure is passed to {@code report}.
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

    /**
     * Passes an exception to the current thread's handler of uncaught exceptions. By default, the handler prints it.
     */
    public static void report(Throwable uncaught) {
        Thread thread = Thread.currentThread();
        try {
            thread.getUncaughtExceptionHandler().uncaughtException(thread, uncaught);
        } catch (Throwable ignored) {
            // the JDK itself also ignores what a handler of uncaught exceptions throws
        }
    }
}
