package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Calls of one connection whose handlers are not started while the caller does not read what is sent to it. The
 * requests of these calls have arrived completely. As the caller reads, the calls are started in the order in which
 * they came. Event loop only, unless a method says otherwise.
 *
 * <p>A connection has two objects of this class: one for calls with a single reply, which wait for replies to be read,
 * and one for calls that return streams, which wait for items of streams to be read too.
 */
final class PostponedCalls {
    /**
     * While more bytes than this are unread, no call is started. The number is several times what the queue of a socket
     * holds, so that a caller that reads does not notice the limit, except after a larger reply that is sent slowly.
     */
    private static final int MAX_UNREAD_BYTES = 1024 * 1024;

    /**
     * Maximum of {@code resumed}.
     *
     * <p>Also limits {@code starting}: while {@code starting} is at least this number, {@code resume} starts no call,
     * however much the caller has read. Otherwise {@code resume} could start calls that then have to wait again.
     */
    private static final int MAX_AT_ONCE = 16;

    private final ServerConnection connection;
    private final LongSupplier unreadBytes;
    private final CallList waiting = new CallList();

    /**
     * Number of calls under way that have waited here, and were started before their caller had read nearly everything,
     * or were started by {@code resumeOne}.
     */
    private int resumed;

    /**
     * Number of calls that have waited and were started, but whose handlers have no thread yet. Incremented on the
     * event loop, decremented by any thread.
     */
    private final AtomicInteger starting = new AtomicInteger();

    private boolean resuming;

    /**
     * Whether more than {@link #MAX_UNREAD_BYTES} bytes are unread, or calls wait until fewer bytes are unread. Any
     * thread may set this flag; only the event loop clears it.
     */
    private volatile boolean congested;

    /**
     * Creates an object in which no call waits.
     *
     * @param unreadBytes returns the number of bytes that the caller has not read; any thread may call it
     */
    PostponedCalls(ServerConnection connection, LongSupplier unreadBytes) {
        this.connection = connection;
        this.unreadBytes = unreadBytes;
    }

    /** Returns whether a call has to wait before it is started. Any thread may call this. */
    boolean isCongested() {
        return congested;
    }

    /** Called when the number of unread bytes has grown. Any thread may call this. */
    void unreadHasGrown() {
        if (unreadBytes.getAsLong() > MAX_UNREAD_BYTES) {
            congested = true;
        }
    }

    /** Returns whether the call waits here. */
    boolean has(ServerCall call) {
        return waiting.contains(call);
    }

    /** Makes a call wait instead of starting it. */
    void add(ServerCall call) {
        congested = true;
        waiting.add(call);
        resume();
    }

    /**
     * Stops counting a call in {@code resumed}. Called when the call is over, or when its stream is opened: the items
     * of the stream are counted instead.
     */
    void stopCountingResumed(ServerCall call) {
        call.resumed = false;
        resumed--;
    }

    /**
     * Starts calls that have waited, if the caller has read enough. Called when a handler has ended or the caller has
     * read.
     */
    void resumeIfWaiting() {
        if (congested || !waiting.isEmpty()) {
            resume();
        }
    }

    /**
     * Starts the call that has waited longest, however many bytes are still unread. Called when the caller has read
     * some bytes. Without this method, the call might never start while other calls always have more to send.
     */
    void resumeOne() {
        ServerCall call = waiting.first();
        if (call != null && resumed < MAX_AT_ONCE && !connection.isClosed()) {
            begin(call, false);
        }
    }

    /** Starts as many of the waiting calls as the caller's reading allows. */
    private void resume() {
        if (resuming) {
            return;
        }
        resuming = true;
        try {
            // if the caller has read nearly everything, no call needs to wait; a call that is started now may have to
            // wait again if many bytes are unread when its thread starts
            boolean isRead = unreadBytes.getAsLong() <= MAX_UNREAD_BYTES / 4;
            // the flag is set before the unread bytes are read again: if another thread reduces their number, either
            // this thread sees the new number, or the other thread sees the flag
            if (isRead) {
                congested = false;
            } else if (!waiting.isEmpty()) {
                congested = true;
            }
            while (!connection.isClosed() && mayResume(isRead)) {
                ServerCall call = waiting.first();
                if (call == null) {
                    congested = false;
                    return;
                }
                if (!begin(call, isRead)) {
                    return;
                }
            }
        } finally {
            resuming = false;
        }
    }

    private boolean mayResume(boolean isRead) {
        return starting.get() < MAX_AT_ONCE
                && (isRead || resumed < MAX_AT_ONCE && unreadBytes.getAsLong() <= MAX_UNREAD_BYTES);
    }

    /**
     * Starts a call that has waited, or refuses it.
     *
     * @param isRead whether the caller has read nearly everything
     * @return false if the call has to wait longer, because it is not admitted yet
     */
    private boolean begin(ServerCall call, boolean isRead) {
        // the task is created first: nothing may fail between the end of the call's wait and its start
        Begun begun = new Begun(call);
        if (!connection.enterPostponed(call)) {
            return false;
        }
        if (!waiting.contains(call)) {
            // the call has been refused
            return true;
        }
        waiting.remove(call);
        if (!isRead) {
            call.resumed = true;
            resumed++;
        }
        if (connection.start(call, begun)) {
            starting.incrementAndGet();
        }
        return true;
    }

    /**
     * Called when a call that counts in {@code starting} starts, is refused, or is taken back. Any thread may call
     * this.
     */
    void notStarted() {
        // decremented first, so that the number is right even if the event loop rejects the task
        starting.decrementAndGet();
        connection.inLoopOrHere(this::resumeIfWaiting);
    }

    /**
     * Runs a call that has waited. The call counts in {@code starting} until it starts, is refused or is taken back.
     */
    private final class Begun implements PoolShares.Task {
        private final ServerCall call;

        Begun(ServerCall call) {
            this.call = call;
        }

        @Override
        public void run() {
            try {
                notStarted();
            } finally {
                call.run();
            }
        }

        @Override
        public void refused(Throwable noThread) {
            try {
                notStarted();
            } finally {
                call.refused(noThread);
            }
        }
    }
}
