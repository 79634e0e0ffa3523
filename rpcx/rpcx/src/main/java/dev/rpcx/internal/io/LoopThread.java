package dev.rpcx.internal.io;

import dev.rpcx.CallContext;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Thread of one event loop. Code on this thread must not block. The thread is a daemon, so that a client that nobody
 * has closed does not keep the process alive.
 */
public final class LoopThread extends FastThreadLocalThread {
    /** The {@link CloseWatch} for the sockets of this event loop; null if the loop does not use epoll. */
    @Nullable
    CloseWatch watch;

    /** Buffer for the bytes that {@link WriteTurn} writes on this thread; null before the first write. */
    @Nullable
    ByteBuffer outgoing;

    /**
     * Context of the code that is running on this thread, for example of a handler or of a dependent of a call's
     * future; null for none. Only {@code CurrentCall} uses this field.
     */
    public @Nullable CallContext context;

    /**
     * The {@code VirtualWorkers} object that runs one server's handlers and signals for this event loop on virtual
     * threads; null before its first use. Only the class {@code Threads} uses this field, on this thread.
     */
    public @Nullable Object workers;

    /**
     * The {@code Threads} of the server to which {@link #workers} belongs. Only the class {@code Threads} uses this
     * field, on this thread.
     */
    public @Nullable Object workersOf;

    /**
     * First call in the list of ended calls whose callers could not be told for lack of memory; null if the list is
     * empty.
     */
    private @Nullable Untold untold;

    /**
     * Call that can end while there is too little memory to tell the caller. The caller is then told when there is
     * enough memory again.
     */
    public abstract static class Untold {
        /** Next call in the list of calls whose callers have to be told later; null for the last call. */
        private @Nullable Untold nextUntold;

        /**
         * Tries again to tell the caller that this call has ended. The earlier try has failed for lack of memory.
         *
         * @return false if this try has failed for lack of memory too
         */
        public abstract boolean endUntold();
    }

    public LoopThread(Runnable task, String name) {
        super(task, name);
        setDaemon(true);
    }

    /**
     * Clears the interrupt flag of the calling thread if that thread is an event loop. User code can set the flag, and
     * the thread's next task belongs to another call. Does nothing on any other thread.
     */
    public static void forgetInterrupt() {
        if (Thread.currentThread() instanceof LoopThread) {
            Thread.interrupted();
        }
    }

    /**
     * Keeps an ended call until there is enough memory to tell the call's caller. Must be called on this thread, like
     * {@code hasUntold} and {@code tellUntold}.
     */
    public void tellLater(Untold call) {
        call.nextUntold = untold;
        untold = call;
    }

    boolean hasUntold() {
        return untold != null;
    }

    /**
     * Notifies the callers of the ended calls that {@link #tellLater} has kept. If there is too little memory to notify
     * a caller, stops, and keeps this call and the remaining ones.
     */
    void tellUntold() {
        for (Untold call = untold; call != null; call = untold) {
            // the call is removed from the list first, since endUntold can end other calls and add them to the list
            untold = call.nextUntold;
            call.nextUntold = null;
            if (!call.endUntold()) {
                tellLater(call);
                return;
            }
        }
    }

    /**
     * Throws an exception if the calling thread is an event loop. Called by methods that block, since blocking would
     * hold up all calls of the loop.
     *
     * @throws IllegalStateException if the calling thread is an event loop
     */
    public static void refuseOnLoop(String what, String expected) {
        if (Thread.currentThread() instanceof LoopThread loop) {
            throw new IllegalStateException(
                    what + " on the event loop " + loop.getName() + " would block it (expected: " + expected + ")");
        }
    }
}
