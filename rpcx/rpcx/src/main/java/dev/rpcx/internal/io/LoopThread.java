package dev.rpcx.internal.io;

import dev.rpcx.CallContext;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Thread of an event loop, which may not block. A daemon: a client that nobody closed does not keep the process alive.
 */
public final class LoopThread extends FastThreadLocalThread {
    /** Watch on the sockets that this loop serves; null where the loop does not use epoll. */
    public @Nullable CloseWatch watch;

    /** Buffer for the bytes that {@link WriteTurn} writes; null before it has written from this loop. */
    @Nullable
    ByteBuffer outgoing;

    /**
     * {@link CallContext} of the call whose handler runs here. Only {@code CurrentCall} reads and writes this field.
     */
    public @Nullable CallContext context;

    /**
     * The {@code VirtualWorkers} that run the handlers of this loop at one server. Only {@code Threads}, on this loop,
     * reads and writes this field and {@code workersOf}.
     */
    public @Nullable Object workers;

    /** The server's {@code Threads}, which own {@link #workers}. */
    public @Nullable Object workersOf;

    /** First in the list of calls that are over, and whose callers could not be told for want of memory. */
    private @Nullable Untold untold;

    /** Call whose caller may have to be told of its end later, when there is memory. */
    public abstract static class Untold {
        /** Next in the list of calls whose callers could not be told yet. Only {@link LoopThread} writes this field. */
        private @Nullable Untold nextUntold;

        /**
         * Tells the caller that its call has ended.
         *
         * @return false if there is still too little memory to tell it
         */
        public abstract boolean endUntold();
    }

    public LoopThread(Runnable task, String name) {
        super(task, name);
        setDaemon(true);
    }

    /**
     * Clears the interrupt flag of an event loop, which foreign code that ran here may have left set: what runs next
     * belongs to another call. Does nothing on any other thread, whose flag may belong to the thread's owner.
     */
    public static void forgetInterrupt() {
        if (Thread.currentThread() instanceof LoopThread) {
            Thread.interrupted();
        }
    }

    /** Keeps a call until there is memory to tell its caller of its end. On this thread, as the next two methods. */
    public void tellLater(Untold call) {
        call.nextUntold = untold;
        untold = call;
    }

    boolean hasUntold() {
        return untold != null;
    }

    /** Tells the callers that could not be told before, until memory runs out again. */
    void tellUntold() {
        for (Untold call = untold; call != null; call = untold) {
            // the call is unlinked first, since telling its caller may end other calls, which may be linked here
            untold = call.nextUntold;
            call.nextUntold = null;
            if (!call.endUntold()) {
                tellLater(call);
                return;
            }
        }
    }

    /**
     * Refuses a method that blocks, if the calling thread is an event loop. There the method would hold up every call
     * of the loop, and would never return where it waits for its own loop.
     *
     * @throws IllegalStateException this thread is an event loop
     */
    public static void refuseOnLoop(String what, String expected) {
        if (Thread.currentThread() instanceof LoopThread loop) {
            throw new IllegalStateException(
                    what + " on the event loop " + loop.getName() + " would block it (expected: " + expected + ")");
        }
    }
}
