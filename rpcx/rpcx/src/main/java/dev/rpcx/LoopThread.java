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

    /** The context of the call whose handler runs here; see {@link CallContext}. */
    @Nullable
    CallContext context;

    /** Those of the loop at one server; see {@link Threads}. */
    @Nullable
    VirtualWorkers workers;

    /** The server's, whose {@link #workers} those are. */
    @Nullable
    Threads workersOf;

    /** Calls that are over, and whose callers could not be told for want of memory; linked by {@link AsyncCall#nextUntold}. */
    private @Nullable AsyncCall untold;

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
    void tellLater(AsyncCall call) {
        call.nextUntold = untold;
        untold = call;
    }

    boolean hasUntold() {
        return untold != null;
    }

    /** Tells those who could not be told before, as many as there is memory for. */
    void tellUntold() {
        for (AsyncCall call = untold; call != null; call = untold) {
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
