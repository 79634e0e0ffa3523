package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Holds back calls of one connection while their caller does not read what the server sends. The requests of these
 * calls have arrived completely, but their handlers are not started. As the caller reads, the calls are started in the
 * order in which they were held back. Event loop only, unless a method says otherwise.
 *
 * <p>A connection has two objects of this class. The first is for calls with a single reply, and counts unread replies
 * and the bytes in the queue of the socket. The second is for calls that return streams, and also counts items of
 * streams that wait to be put into that queue.
 */
final class PostponedCalls {
    /**
     * Number of bytes that the caller may leave unread before calls are held back. While a caller reads, usually at
     * most the bytes in the queue of the socket are unread. This number is several times what the queue holds, so no
     * call of such a caller is held back. An exception is a reply that is larger than this number and is sent slowly.
     */
    private static final int MAX_UNREAD_BYTES = 1024 * 1024;

    /**
     * Limit for each of two numbers:
     *
     * <ul>
     *   <li>{@link #resumed}, the number of calls that were started before the caller had read nearly everything that
     *       was sent.
     *   <li>{@link #starting}, the number of started calls that have no thread yet. At this limit or above,
     *       {@link #resume} starts no call, however much the caller has read. Otherwise {@code resume} could start many
     *       calls that have to be held back again when they get their threads. {@link #resumeOne} does not check this
     *       number.
     * </ul>
     */
    private static final int MAX_AT_ONCE = 16;

    private final ServerConnection connection;
    private final LongSupplier unreadBytes;
    private final CallList waiting = new CallList();

    /**
     * Number of unfinished calls that were held back, and then started early, that is, before the caller had read
     * nearly everything. Calls that {@link #resumeOne} has started are included. A call that returns a stream is
     * included only until this stream has been opened.
     */
    private int resumed;

    /**
     * Number of calls that were held back and have been started, but whose handlers have no thread yet. The event loop
     * increments this number; any thread may decrement it.
     */
    private final AtomicInteger starting = new AtomicInteger();

    private boolean resuming;

    /**
     * Whether new calls are held back. The flag is set if more than {@link #MAX_UNREAD_BYTES} bytes are unread. While
     * earlier calls are held back, the flag is set if more than a quarter of {@code MAX_UNREAD_BYTES} is unread. Any
     * thread may set this flag; only the event loop clears it. Threads that run handlers or subscribe to publishers
     * read it too.
     */
    private volatile boolean congested;

    /**
     * Creates an object that holds no call back yet.
     *
     * @param unreadBytes returns the number of bytes that the caller has not read; any thread may call it
     */
    PostponedCalls(ServerConnection connection, LongSupplier unreadBytes) {
        this.connection = connection;
        this.unreadBytes = unreadBytes;
    }

    /**
     * Returns whether a new call has to be held back instead of being started. Only a call for which
     * {@link ServerCall#mayWait} returns true can be held back. Any thread may call this.
     */
    boolean isCongested() {
        return congested;
    }

    /**
     * Begins to hold back new calls if the caller has left too many bytes unread. Called when the number of unread
     * bytes has grown or may have grown. Any thread may call this.
     */
    void unreadHasGrown() {
        if (unreadBytes.getAsLong() > MAX_UNREAD_BYTES) {
            congested = true;
        }
    }

    /** Returns whether the call is held back. */
    boolean has(ServerCall call) {
        return waiting.contains(call);
    }

    /**
     * Holds a call back until the caller has read enough and the handler of the call is admitted. If both are true
     * already, starts the call at once.
     */
    void add(ServerCall call) {
        congested = true;
        waiting.add(call);
        resume();
    }

    /**
     * Stops counting a call in {@link #resumed}, the number of calls that were started although much was unread. Called
     * when the call is over. For a call that returns a stream, called already when the stream is opened, since the
     * unsent items of the stream count as unread bytes from then on.
     */
    void stopCountingResumed(ServerCall call) {
        call.resumed = false;
        resumed--;
    }

    /**
     * Starts calls that are held back, if the caller has read enough. Called when more calls may have room, for example
     * when a handler has ended, the caller has read, or a call that was started has got its thread.
     */
    void resumeIfWaiting() {
        if (congested || !waiting.isEmpty()) {
            resume();
        }
    }

    /**
     * Starts the call that has been held back longest if its handler is admitted and {@link #resumed} is below
     * {@link #MAX_AT_ONCE}. It does not matter how many bytes are still unread. Used only for calls that return
     * streams, when the channel has become writable. Without this method, a call that is held back might never start
     * while the streams of other calls always have more to send.
     */
    void resumeOne() {
        ServerCall call = waiting.first();
        if (call != null && resumed < MAX_AT_ONCE && !connection.isClosed()) {
            begin(call, false);
        }
    }

    /**
     * Starts as many of the held-back calls as the number of unread bytes, {@link #MAX_AT_ONCE} and the admission of
     * handlers allow.
     */
    private void resume() {
        if (resuming) {
            return;
        }
        resuming = true;
        try {
            // If at most a quarter of the limit is unread, no call needs to be held back. A call that is started in
            // this case may be held back again, if too many bytes are unread when the call's thread starts.
            boolean isRead = unreadBytes.getAsLong() <= MAX_UNREAD_BYTES / 4;
            // The flag is set before mayResume() reads the number of unread bytes again. A thread that subscribes to a
            // publisher may reduce that number at the same time, and then read the flag: see ServerConnection.opened().
            // Either this thread sees the reduced number, or the other thread sees the flag and makes the event loop
            // call this method again. Otherwise calls could stay held back.
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
     * Starts a call that is held back, refuses it, or goes on holding it back.
     *
     * @param isRead whether it is known that the caller has read nearly everything that was sent. If false, a call that
     *     is started counts in {@link #resumed}
     * @return false if the call is still held back, because its handler is not admitted yet
     */
    private boolean begin(ServerCall call, boolean isRead) {
        // The task is created before the call is removed from the waiting calls. If creating the task failed after
        // that, the call would neither wait nor start.
        Begun begun = new Begun(call);
        if (!connection.enterPostponed(call)) {
            return false;
        }
        if (!waiting.contains(call)) {
            // The call does not wait any more, because enterPostponed() has refused the call.
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
     * Stops counting a call in {@link #starting}, the number of started calls that have no thread yet. Called when the
     * call starts on its thread, is refused, or is withdrawn while it still waits for its thread. Any thread may call
     * this.
     */
    void notStarted() {
        // The number is decremented before the event loop gets a task, so that the number is right even if the event
        // loop rejects the task.
        starting.decrementAndGet();
        connection.inLoopOrHere(this::resumeIfWaiting);
    }

    /**
     * Runs a call that was held back. The call counts in {@link #starting}, the number of started calls that have no
     * thread yet, until this task starts, is refused or is taken back.
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
