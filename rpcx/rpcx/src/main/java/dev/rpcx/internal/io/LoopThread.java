package dev.rpcx.internal.io;

import dev.rpcx.CallContext;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Daemon thread of an event loop, so that a client that nobody has closed does not keep the process alive. Code on this
 * thread must not block.
 */
public final class LoopThread extends FastThreadLocalThread {
    /** Epoll handler that watches the sockets of this loop; null if the loop does not use epoll. */
    public @Nullable CloseWatch watch;

    /** Buffer for the bytes that {@link WriteTurn} writes; null until it has written from this loop. */
    @Nullable
    ByteBuffer outgoing;

    /** {@link CallContext} of the call whose handler runs on this thread. Used only by {@code CurrentCall}. */
    public @Nullable CallContext context;

    /**
     * The {@code VirtualWorkers} that run the handlers of this loop at one server. Only {@code Threads} reads and
     * writes this field and {@code workersOf}, on this loop.
     */
    public @Nullable Object workers;

    /** The {@code Threads} of the server to which {@link #workers} belong. */
    public @Nullable Object workersOf;

    /** First call in the list of calls that have ended but whose callers could not be notified for lack of memory. */
    private @Nullable Untold untold;

    /** Call whose caller may have to be told of its end later, when there is memory again. */
    public abstract static class Untold {
        /** Next call in the list that begins with {@code untold}. Used only by {@link LoopThread}. */
        private @Nullable Untold nextUntold;

        /**
         * Notifies the caller that its call has ended.
         *
         * @return false if there is still too little memory
         */
        public abstract boolean endUntold();
    }

    public LoopThread(Runnable task, String name) {
        super(task, name);
        setDaemon(true);
    }

    /**
     * Clears the interrupt flag of the calling thread if it is an event loop: user code may have set the flag, and the
     * next task belongs to another call. Does nothing on any other thread.
     */
    public static void forgetInterrupt() {
        if (Thread.currentThread() instanceof LoopThread) {
            Thread.interrupted();
        }
    }

    /**
     * Keeps a call until there is memory to notify its caller. Only this thread may call this method, {@code hasUntold}
     * and {@code tellUntold}.
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
            // removed from the list first, since endUntold may end other calls and add them to the list
            untold = call.nextUntold;
            call.nextUntold = null;
            if (!call.endUntold()) {
                tellLater(call);
                return;
            }
        }
    }

    /**
     * Throws if the calling thread is an event loop. Called by methods that block, which would hold up all calls of the
     * loop.
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
