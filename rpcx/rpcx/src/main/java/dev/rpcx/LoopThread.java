package dev.rpcx;

import io.netty.util.concurrent.FastThreadLocalThread;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** A thread of an event loop, which may not block. Daemon: a client that nobody closed does not keep the process alive. */
final class LoopThread extends FastThreadLocalThread {
    /** Of the sockets that this loop serves; null where the loop is not epoll's. */
    @Nullable
    CloseWatch watch;

    /** {@link WriteTurn} puts what it writes here; null before it has written from this loop. */
    @Nullable
    ByteBuffer outgoing;

    /** The {@link CallContext} of the call whose handler runs here. {@code CurrentCall} alone reads and writes this. */
    @Nullable
    CallContext context;

    /** What runs the handlers of the loop at one server, which alone writes this and the next. */
    @Nullable
    Object workers;

    /** The owner of {@link #workers}. */
    @Nullable
    Object workersOf;

    /** Calls that are over, and whose callers could not be told for want of memory. */
    private @Nullable Untold untold;

    /** A call whose caller may have to be told later of its end. */
    abstract static class Untold {
        /** Link of those that could not be told yet. {@link LoopThread} alone writes it. */
        private @Nullable Untold nextUntold;

        /** @return false if there is still no memory for it */
        abstract boolean endUntold();
    }

    LoopThread(Runnable task, String name) {
        super(task, name);
        setDaemon(true);
    }

    /**
     * The code of others has run here, and may have left the flag that says that this thread has been interrupted: what
     * runs next belongs to somebody else. Does nothing on any other thread, whose flag may be its owner's.
     */
    static void forgetInterrupt() {
        if (Thread.currentThread() instanceof LoopThread) {
            Thread.interrupted();
        }
    }

    /** Keeps a call until there is memory to tell its caller of its end. On this thread, as what follows. */
    void tellLater(Untold call) {
        call.nextUntold = untold;
        untold = call;
    }

    boolean hasUntold() {
        return untold != null;
    }

    /** Tells those who could not be told before, as many as there is memory for. */
    void tellUntold() {
        for (Untold call = untold; call != null; call = untold) {
            // first: what it is told may end other calls
            untold = call.nextUntold;
            call.nextUntold = null;
            if (!call.endUntold()) {
                tellLater(call);
                return;
            }
        }
    }

    /**
     * For whatever waits. On an event loop it would hold up every call of the loop, and wait for itself for ever where the loop is its own.
     *
     * @throws IllegalStateException this thread is an event loop
     */
    static void refuse(String what, String expected) {
        if (Thread.currentThread() instanceof LoopThread loop) {
            throw new IllegalStateException(
                    what + " on the event loop " + loop.getName() + " would block it (expected: " + expected + ")");
        }
    }
}
