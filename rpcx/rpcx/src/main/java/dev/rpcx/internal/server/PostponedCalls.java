package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Calls of one connection whose requests are whole and whose handlers have not been started, because what goes to their
 * caller waits to be read. They are not counted among the running handlers, and are started in the order in which they
 * came, as the caller reads. A connection has one such object for calls with one reply, whose replies wait, and one for
 * streams, whose items wait too. Event loop only, where nothing else is said.
 */
final class PostponedCalls {
    /**
     * Maximum number of unread bytes with which calls are started: a caller that does not read has no more made for it.
     * It is several times what a socket's queue takes, so a caller that reads does not notice it, except behind a reply
     * that is larger than this by itself and leaves slowly.
     */
    private static final int MAX_UNREAD_BYTES = 1024 * 1024;

    /**
     * Maximum number of calls under way that have waited, while their caller still has much to read. Nor does
     * {@code resume} start more while this many such calls wait for their handlers' threads, whatever their caller has
     * read: what the first calls bring holds back the others, and those that had to wait again would have been started
     * for nothing.
     */
    private static final int MAX_AT_ONCE = 16;

    private final ServerConnection connection;
    private final LongSupplier unreadBytes;
    private final CallList waiting = new CallList();

    /** Number of calls under way that were started after they had waited, while their caller still had much to read. */
    private int resumed;

    /**
     * Number of calls that were started after they had waited, and to which no thread of a handler has come. The event
     * loop counts up, any thread counts back.
     */
    private final AtomicInteger starting = new AtomicInteger();

    private boolean resuming;

    /**
     * Whether more than {@link #MAX_UNREAD_BYTES} are unread, or calls wait for that to end. Any thread sets it, the
     * event loop clears it.
     */
    private volatile boolean congested;

    /** @param unreadBytes gives the number of bytes that the caller has not read, on any thread */
    PostponedCalls(ServerConnection connection, LongSupplier unreadBytes) {
        this.connection = connection;
        this.unreadBytes = unreadBytes;
    }

    /** Says whether a call has to wait before it is started. Any thread may ask. */
    boolean isCongested() {
        return congested;
    }

    /** Called when more is unread than before. Any thread. */
    void unreadHasGrown() {
        if (unreadBytes.getAsLong() > MAX_UNREAD_BYTES) {
            congested = true;
        }
    }

    /** Whether the call waits here. */
    boolean has(ServerCall call) {
        return waiting.contains(call);
    }

    /** Makes a call wait, instead of starting it. */
    void add(ServerCall call) {
        congested = true;
        waiting.add(call);
        resume();
    }

    /**
     * Notes that a call which was started after it had waited is over, or that its stream is open: what it brings is
     * counted elsewhere.
     */
    void resumedHasEnded(ServerCall call) {
        call.resumed = false;
        resumed--;
    }

    /** Starts calls that have waited, where a handler has ended or the caller has read. */
    void resumeIfWaiting() {
        if (congested || !waiting.isEmpty()) {
            resume();
        }
    }

    /**
     * Starts one call because the caller has read a part of what is unread, however much is left: other calls that
     * always have more to send than the caller can read do not keep the call from starting for ever.
     */
    void resumeOne() {
        ServerCall call = waiting.first();
        if (call != null && resumed < MAX_AT_ONCE && !connection.isClosed()) {
            begin(call, false);
        }
    }

    /**
     * Starts calls that have waited, as far as the caller has read. A call that is started gives the caller more to
     * read, and comes back here at its end.
     */
    private void resume() {
        if (resuming) {
            return;
        }
        resuming = true;
        try {
            // a caller that has read nearly all is not to be held back; a call that is started now may wait again
            boolean isRead = unreadBytes.getAsLong() <= MAX_UNREAD_BYTES / 4;
            // set before the next look at what is unread: where another thread makes that less, the look sees it, or
            // that thread sees the flag
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

    /** @return false if the call waits on, until it is admitted */
    private boolean begin(ServerCall call, boolean isRead) {
        // made first: a call that waits no longer has to be started
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

    /** Notes that a call which was about to start has been taken back, or starts. Any thread. */
    void notStarted() {
        // done first, so that it is done also where the loop cannot be told
        starting.decrementAndGet();
        connection.inLoopOrHere(this::resumeIfWaiting);
    }

    /** Task that runs a call which has waited; until then the call counts among those that start. */
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
