package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Calls of one connection that are held back while their caller does not read what the server sends. Their requests
 * have arrived completely, but their handlers are not started. As the caller reads, the calls are started in the order
 * in which they came. Event loop only, unless a method says otherwise.
 *
 * <p>A connection has two objects of this class. One is for calls with a single reply, and considers only replies that
 * the caller has not read. The other is for calls that return streams, and considers unread items of streams too.
 */
final class PostponedCalls {
    /**
     * Number of bytes that the caller may leave unread before calls are held back. It is several times what the queue
     * of a socket holds. So a caller that reads does not notice the limit, except after a larger reply that is sent
     * slowly.
     */
    private static final int MAX_UNREAD_BYTES = 1024 * 1024;

    /**
     * Maximum of {@link #resumed}, the number of calls that were started although the caller had not read nearly
     * everything.
     *
     * <p>Also limits {@link #starting}, the number of started calls that have no thread yet. As long as there are at
     * least this many, {@link #resume} starts no call, however much the caller has read. Otherwise {@code resume} could
     * start calls that then have to wait again.
     */
    private static final int MAX_AT_ONCE = 16;

    private final ServerConnection connection;
    private final LongSupplier unreadBytes;
    private final CallList waiting = new CallList();

    /**
     * Number of calls under way that have waited here, and were started although the caller had not read nearly
     * everything. Calls that {@link #resumeOne} has started are included.
     */
    private int resumed;

    /**
     * Number of calls that have waited here and were started, but whose handlers have no thread yet. The event loop
     * increments it; any thread may decrement it.
     */
    private final AtomicInteger starting = new AtomicInteger();

    private boolean resuming;

    /**
     * Whether a new call has to wait here. It has to if more than {@link #MAX_UNREAD_BYTES} bytes are unread, or if
     * earlier calls wait until fewer bytes are unread. Any thread may set this flag; only the event loop clears it.
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

    /** Returns whether a new call has to wait here instead of being started. Any thread may call this. */
    boolean isCongested() {
        return congested;
    }

    /**
     * Makes new calls wait if too many bytes are unread. Called when the number of unread bytes has grown. Any thread
     * may call this.
     */
    void unreadHasGrown() {
        if (unreadBytes.getAsLong() > MAX_UNREAD_BYTES) {
            congested = true;
        }
    }

    /** Returns whether the call waits here. */
    boolean has(ServerCall call) {
        return waiting.contains(call);
    }

    /** Makes a call wait here until the caller has read enough. */
    void add(ServerCall call) {
        congested = true;
        waiting.add(call);
        resume();
    }

    /**
     * Stops counting a call in {@link #resumed}. Called when the call is over, or when its stream is opened: from then
     * on, the items of the stream are counted.
     */
    void stopCountingResumed(ServerCall call) {
        call.resumed = false;
        resumed--;
    }

    /**
     * Starts calls that have waited here, if the caller has read enough. Called when a handler has ended or the caller
     * has read.
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

    /** Starts as many of the waiting calls as the number of unread bytes allows. */
    private void resume() {
        if (resuming) {
            return;
        }
        resuming = true;
        try {
            // if the caller has read nearly everything, no call needs to wait here; but a call that is started now may
            // come back if many bytes are unread again when its thread starts
            boolean isRead = unreadBytes.getAsLong() <= MAX_UNREAD_BYTES / 4;
            // the flag is set before mayResume() reads the number of unread bytes again: if another thread reduces the
            // number meanwhile, either this thread sees the new number, or the other thread sees the flag
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
     * Starts a call that has waited here, or refuses it.
     *
     * @param isRead whether the caller has read nearly everything that was sent to it
     * @return false if the call has to wait longer, because its handler is not admitted yet
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
     * Stops counting a call in {@link #starting}. Called when the call starts on its thread, is refused, or is taken
     * back. Any thread may call this.
     */
    void notStarted() {
        // the number is decremented first, so that it is right even if the event loop rejects the task
        starting.decrementAndGet();
        connection.inLoopOrHere(this::resumeIfWaiting);
    }

    /**
     * Runs a call that has waited here. The call counts in {@link #starting} until this task starts, is refused or is
     * taken back.
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
