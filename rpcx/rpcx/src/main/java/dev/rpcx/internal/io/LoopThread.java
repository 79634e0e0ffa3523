package dev.rpcx.internal.io;

import dev.rpcx.CallContext;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Thread of an event loop. Code that runs on it may not block. It is a daemon thread, so that a client which nobody has
 * closed does not keep the process alive.
 */
public final class LoopThread extends FastThreadLocalThread {
    /** Epoll handler that watches the sockets of this loop; null if the loop does not use epoll. */
    public @Nullable CloseWatch watch;

    /** Buffer for the bytes that {@link WriteTurn} writes; null until it has written from this loop. */
    @Nullable
    ByteBuffer outgoing;

    /**
     * {@link CallContext} of the call whose handler runs on this thread. Only {@code CurrentCall} reads and writes this
     * field.
     */
    public @Nullable CallContext context;

    /**
     * The {@code VirtualWorkers} that run the handlers of this loop at one server. Only {@code Threads} reads and
     * writes this field and {@code workersOf}, on this loop.
     */
    public @Nullable Object workers;

    /** The {@code Threads} of the server to which {@link #workers} belong. */
    public @Nullable Object workersOf;

    /** First in the list of calls that are over, but whose callers could not be told for want of memory. */
    private @Nullable Untold untold;

    /** Call whose caller may have to be told of its end later, when there is memory again. */
    public abstract static class Untold {
        /** Next in the list of calls whose callers could not be told yet. Only {@link LoopThread} writes this field. */
        private @Nullable Untold nextUntold;

        /**
         * Tells the caller that its call has ended.
         *
         * @return false if there is still too little memory to tell the caller
         */
        public abstract boolean endUntold();
    }

    public LoopThread(Runnable task, String name) {
        super(task, name);
        setDaemon(true);
    }

    /**
     * Clears the interrupt flag if the calling thread is an event loop. Foreign code that ran there may have set the
     * flag, and what runs next belongs to another call. Does nothing on any other thread, whose flag may belong to the
     * thread's owner.
     */
    public static void forgetInterrupt() {
        if (Thread.currentThread() instanceof LoopThread) {
            Thread.interrupted();
        }
    }

    /**
     * Keeps a call until there is memory to tell its caller of its end. Only this thread may call this method,
     * {@code hasUntold} and {@code tellUntold}.
     */
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
            // the call is unlinked before its caller is told: telling the caller may end other calls, which may then be
            // added to this list
            untold = call.nextUntold;
            call.nextUntold = null;
            if (!call.endUntold()) {
                tellLater(call);
                return;
            }
        }
    }

    /**
     * Throws an exception if the calling thread is an event loop. A method calls this before it blocks: if it blocked
     * an event loop, it would hold up all calls that this loop serves, and would never return if it waited for
     * something that the loop has to do.
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
