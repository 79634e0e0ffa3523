package dev.rpcx;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Calls of one connection that are whole and not begun, because what goes to their caller waits to be read. They have no
 * place of a running handler, and are begun in the order in which they came, as the caller reads. A connection has one
 * of these for calls with one reply, whose replies wait, and one for streams, whose items wait too. Event loop only,
 * where nothing else is said.
 */
final class PostponedCalls {
    /**
     * Calls wait while more than this is unread: a caller that does not read has no more made for it. It is several
     * times what a socket's queue takes, so a caller that reads does not notice, but behind a reply that is larger than
     * this by itself and leaves slowly.
     */
    private static final int MAX_UNREAD_BYTES = 1024 * 1024;

    /**
     * So many calls that have waited are under way at most while their caller still has much to read. And so many wait
     * for their handlers' threads at most, whatever it has read: what the first bring holds back the others, and those
     * that had to wait again would have been begun for nothing.
     */
    private static final int MAX_AT_ONCE = 16;

    private final ServerConnection connection;
    private final LongSupplier unreadBytes;
    private final CallList waiting = new CallList();

    /** Calls under way that were begun after they had waited, while their caller still had much to read. */
    private int resumed;

    /**
     * Calls that were begun after they had waited, and to which no thread of a handler has come. Any thread counts
     * back.
     */
    private final AtomicInteger starting = new AtomicInteger();

    private boolean resuming;

    /**
     * The flag says that more than {@link #MAX_UNREAD_BYTES} are unread, or that calls wait for that to end. Any thread
     * sets it, the event loop clears it.
     */
    private volatile boolean congested;

    /** @param unreadBytes what is to be looked at, on any thread: bytes that the caller has not read */
    PostponedCalls(ServerConnection connection, LongSupplier unreadBytes) {
        this.connection = connection;
        this.unreadBytes = unreadBytes;
    }

    /** Says whether a call has to wait before it is begun. Any thread may ask. */
    boolean isCongested() {
        return congested;
    }

    /** More is unread than before. Any thread may say so. */
    void unreadHasGrown() {
        if (unreadBytes.getAsLong() > MAX_UNREAD_BYTES) {
            congested = true;
        }
    }

    /** Whether the call waits here. */
    boolean has(ServerCall call) {
        return waiting.contains(call);
    }

    /** A call waits, instead of being begun. */
    void add(ServerCall call) {
        congested = true;
        waiting.add(call);
        resume();
    }

    /** A call that was begun after it had waited is over, or its stream is open: what it brings is counted elsewhere. */
    void resumedHasEnded(ServerCall call) {
        call.resumed = false;
        resumed--;
    }

    /** Begins what has waited, where a handler has ended or the caller has read. */
    void resumeIfWaiting() {
        if (congested || !waiting.isEmpty()) {
            resume();
        }
    }

    /**
     * The caller has read a part of what is unread, and one call is begun for that, however much is left: others that
     * always have more to send than the caller can read do not keep it from beginning for ever.
     */
    void resumeOne() {
        ServerCall call = waiting.first();
        if (call != null && resumed < MAX_AT_ONCE && !connection.isClosed()) {
            begin(call, false);
        }
    }

    /**
     * Begins what has waited, as far as the caller has read. What is begun makes it read more first, and comes back
     * here at its end.
     */
    private void resume() {
        if (resuming) {
            return;
        }
        resuming = true;
        try {
            // a caller that has read nearly all is none to be held back; what begins now may wait again
            boolean isRead = unreadBytes.getAsLong() <= MAX_UNREAD_BYTES / 4;
            // before the next look at what is unread: what another thread makes less is seen by it, or that thread sees
            // the flag
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

    /** @return false if the call waits on, for a place of a handler */
    private boolean begin(ServerCall call, boolean isRead) {
        // made first: a call that waits no longer is begun
        Begun begun = new Begun(call);
        if (!connection.enterPostponed(call)) {
            return false;
        }
        if (!waiting.contains(call)) {
            // it has been refused
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

    /** One that was about to start has been taken back, or starts. Any thread. */
    void notStarted() {
        // first: also where the loop cannot be told
        starting.decrementAndGet();
        connection.inLoopOrHere(this::resumeIfWaiting);
    }

    /** What runs a call that has waited, and counts among those that start until then. */
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
