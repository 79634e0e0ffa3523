package dev.rpcx;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** What is asked of threads, and done to them, whatever runs there. */
final class ThreadTools {
    /** {@code Thread.isVirtual}, from JDK 21 on. */
    private static final @Nullable MethodHandle IS_VIRTUAL = isVirtual();

    /** Longer than a processor takes to find that it has nothing else to do. */
    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private ThreadTools() {}

    /**
     * Has these classes initialized now. A class whose initializer fails stays unusable in its process, and the first
     * to need one of them may be a thread whose stack or memory is nearly at its end.
     */
    static void prepare(List<Class<?>> classes) {
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
     * Goes so many frames down, and comes back: what follows finds that much of the stack, or is not begun.
     *
     * @return how many
     */
    static int reserveStack(int frames) {
        return frames == 0 ? 0 : reserveStack(frames - 1) + 1;
    }

    static boolean isVirtual(Thread thread) {
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
     * Lets the virtual threads that wait for this one's processor run first. Does nothing on any other thread. A pause
     * and no {@code Thread.yield}: a thread that yields goes into the queue that its processor looks into first, so on
     * a server of one processor it comes before what event loops have started, for as long as it goes on yielding (seen
     * on JDK 25).
     */
    static void letOthersRun() {
        if (isVirtual(Thread.currentThread())) {
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    /**
     * Interrupts a thread, if there is one, and throws nothing: a virtual thread that is parked has to be handed to a
     * carrier then, which may fail for want of memory, on JDK 21 for one.
     */
    static void interrupt(@Nullable Thread thread) {
        if (thread == null) {
            return;
        }
        try {
            thread.interrupt();
        } catch (Throwable noMemory) {
            report(noMemory);
        }
    }

    /** Tells this thread's handler of uncaught exceptions, which by default prints them. */
    static void report(Throwable uncaught) {
        Thread thread = Thread.currentThread();
        try {
            thread.getUncaughtExceptionHandler().uncaughtException(thread, uncaught);
        } catch (Throwable ignored) {
            // as the JDK does with a handler that fails itself
        }
    }
}
