package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Holds back calls of one connection while their caller does not read what is sent to it. The requests of these calls
 * have arrived completely, but their handlers have not been started, and do not count as running. As the caller reads,
 * the calls are started in the order in which they came. A connection has two objects of this class. One is for calls
 * with a single reply; they wait until replies have been read. The other is for calls whose methods return streams;
 * they wait until items of streams have been read too. Event loop only, unless a method says otherwise.
 */
final class PostponedCalls {
    /**
     * If more bytes than this are unread, no call is started, so that nothing more is produced for a caller that does
     * not read. The number is several times what the queue of a socket holds. So a caller that reads does not notice
     * the limit, except after a single reply that is larger than this and is sent slowly.
     */
    private static final int MAX_UNREAD_BYTES = 1024 * 1024;

    /**
     * Maximum of {@code resumed}: the number of calls under way that have waited, and were started before their caller
     * had read nearly everything. What these calls send adds to the unread bytes, and so delays the calls that still
     * wait.
     *
     * <p>This number also limits {@code starting}: the number of calls that have waited and were started, and whose
     * handlers have no thread yet. While {@code starting} is at least this number, {@code resume} starts no call,
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
     * Number of calls that were started after they had waited, and whose handlers have no thread yet. Only the event
     * loop increments this number; any thread may decrement it.
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
     * Stops counting a call that was started after it had waited. Called when the call is over, or when its stream has
     * been opened: what the stream sends is then counted as items of the stream.
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
     * Starts the call that has waited longest, because the caller has read some bytes. The call is started however many
     * bytes are still unread. Otherwise, if other calls always had more to send than the caller can read, this call
     * might never start.
     */
    void resumeOne() {
        ServerCall call = waiting.first();
        if (call != null && resumed < MAX_AT_ONCE && !connection.isClosed()) {
            begin(call, false);
        }
    }

    /**
     * Starts as many of the waiting calls as the caller's reading allows. This method is called again when a call that
     * was started here ends: that call's reply may have changed the number of unread bytes.
     */
    private void resume() {
        if (resuming) {
            return;
        }
        resuming = true;
        try {
            // if the caller has read nearly everything, its calls need not wait; a call that is started for this reason
            // may have to wait again if many bytes are unread when its thread begins
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
        // the task is created first: once the call no longer waits, it has to be started, and nothing may fail before
        // that
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
     * Called when a call that counts in {@code starting} starts, or has been taken back before it started. Any thread
     * may call this.
     */
    void notStarted() {
        // the number is decremented first, so that it is right even if the task cannot be handed to the event loop
        starting.decrementAndGet();
        connection.inLoopOrHere(this::resumeIfWaiting);
    }

    /**
     * Task that runs a call which has waited. The call counts in {@code starting} until the task runs or is refused.
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
