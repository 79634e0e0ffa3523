package dev.rpcx.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** Helpers for threads that do not depend on what a thread runs. */
public final class ThreadTools {
    /** Handle of {@code Thread.isVirtual}; null before JDK 21. */
    private static final @Nullable MethodHandle IS_VIRTUAL = isVirtual();

    /** Length of a pause: longer than a processor takes to find that it has nothing else to run. */
    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private ThreadTools() {}

    /**
     * Initializes these classes now. A class whose initializer fails stays unusable in its process, and without this
     * call the first thread to need such a class may be one whose stack or memory is nearly at its end.
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
     * Recurses this many frames deep and returns, so that the stack is known to have this much room. Otherwise the
     * stack overflows here, before the caller has begun what needs the room.
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
     * On a virtual thread, lets the other virtual threads that wait for its processor run first. Does nothing on any
     * other thread. The thread parks for a moment and does not call {@code Thread.yield}: a thread that yields goes
     * into the queue that its processor looks into first, so on a server of one processor it runs before the threads
     * that event loops have started, for as long as it goes on yielding (seen on JDK 25).
     */
    public static void letOthersRun() {
        if (isVirtual(Thread.currentThread())) {
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    /**
     * Interrupts a thread, if it is not null, and throws nothing. The interrupt of a parked virtual thread hands it to
     * a carrier thread, which may fail for want of memory, on JDK 21 among others.
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

    /** Passes an exception to this thread's handler of uncaught exceptions, which by default prints it. */
    public static void report(Throwable uncaught) {
        Thread thread = Thread.currentThread();
        try {
            thread.getUncaughtExceptionHandler().uncaughtException(thread, uncaught);
        } catch (Throwable ignored) {
            // the JDK too ignores what a handler of uncaught exceptions throws
        }
    }
}
