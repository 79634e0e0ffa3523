package dev.rpcx.internal.server;

import dev.rpcx.internal.wire.Outbound;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Sends the replies of one connection that come from handlers' threads. Either the handler's thread writes the reply
 * itself, which saves a wake-up of the event loop, or the event loop writes it. Replies that handlers' threads have
 * written are kept here until the event loop has seen them. Thread-safe, unless a method says otherwise.
 */
final class SentReplies {
    /**
     * If more calls than this are under way, the event loop sends their replies: sending several replies together saves
     * more than a wake-up costs.
     */
    private static final int QUIET_CALLS = 1;

    private final ServerConnection connection;
    private final ServerConnection.UnderWay underWay;

    /**
     * Calls whose replies handlers' threads have sent, and which the event loop has not seen yet; null if there are
     * none. The field refers to the last call, and {@link Outbound#next} leads to the ones before it.
     */
    private final AtomicReference<@Nullable ServerCall> unseen = new AtomicReference<>();

    /** Whether one side has sent GOAWAY. The event loop then has to see each reply immediately. */
    private volatile boolean isLeaving;

    SentReplies(ServerConnection connection, ServerConnection.UnderWay underWay) {
        this.connection = connection;
        this.underWay = underWay;
    }

    /**
     * Sends a reply. Called on the handler's thread, which is not the event loop. If the handler's thread writes the
     * reply, the event loop sees it only with the client's next bytes, which may be late, and releases what the call
     * holds only then. So the event loop itself sends the reply of a call that holds more than its slot.
     */
    void send(ServerCall call) {
        if (!maySendHere(call) || !connection.sendHere(call)) {
            connection.send(call);
        }
    }

    private boolean maySendHere(ServerCall call) {
        return underWay.calls <= QUIET_CALLS && !isLeaving && call.isSmall();
    }

    /**
     * Adds a call whose reply its handler's thread is about to write. The call has to be added before the write: once
     * the client has the reply, it may use the slot again, and the event loop must find the call before it reads the
     * next request.
     */
    void add(ServerCall call) {
        ServerCall last;
        do {
            last = unseen.get();
            call.next = last;
        } while (!unseen.compareAndSet(last, call));
        if (isLeaving) {
            connection.inLoopOrHere(this::endUnseen);
        }
    }

    /**
     * Returns the number of calls whose replies handlers' threads have sent, and which the event loop has not seen yet.
     */
    int count() {
        int count = 0;
        for (Outbound call = unseen.get(); call != null; call = call.next) {
            count++;
        }
        return count;
    }

    /**
     * Makes the event loop send all replies from now on, because one side has sent GOAWAY. The event loop also sees at
     * once a reply that a handler's thread is just writing. Event loop only.
     */
    void leave() {
        isLeaving = true;
        // if a handler's thread has just sent a reply, either that thread sees the flag, or the next line finds the
        // reply
        endUnseen();
    }

    /** Ends the calls whose replies handlers' threads have sent. Event loop only. */
    void endUnseen() {
        if (unseen.get() == null) {
            return;
        }
        ServerCall call = unseen.getAndSet(null);
        try {
            while (call != null) {
                ServerCall replied = call;
                call = (ServerCall) replied.next;
                connection.handled(replied);
                connection.replied(replied);
            }
        } finally {
            if (call != null) {
                // the exception ends the connection, which calls this method again for the remaining replies
                restore(call);
            }
        }
    }

    private void restore(ServerCall first) {
        Outbound end = first;
        while (end.next != null) {
            end = end.next;
        }
        ServerCall last;
        do {
            last = unseen.get();
            end.next = last;
        } while (!unseen.compareAndSet(last, first));
    }
}
