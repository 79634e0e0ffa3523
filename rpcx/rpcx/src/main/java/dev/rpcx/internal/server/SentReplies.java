package dev.rpcx.internal.server;

import dev.rpcx.internal.wire.Outbound;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Sends the replies of one connection that come from threads of handlers. This class decides who writes such a reply:
 * the handler's thread, which saves a wake-up of the event loop, or the event loop. Until the event loop has been
 * notified of the replies that handlers' threads have written, this class keeps those replies. Thread-safe, unless a
 * method says otherwise.
 */
final class SentReplies {
    /**
     * If more calls than this are under way, the event loop sends their replies, and no handler's thread does. Sending
     * several replies together then saves more than the wake-up of the event loop costs.
     */
    private static final int QUIET_CALLS = 1;

    private final ServerConnection connection;
    private final ServerConnection.UnderWay underWay;

    /**
     * Calls whose replies handlers' threads have sent, and of which the event loop has not been notified yet. The last
     * call is stored here, and {@link Outbound#next} of each call is the call before it. Null if there is none.
     */
    private final AtomicReference<@Nullable ServerCall> unseen = new AtomicReference<>();

    /**
     * Whether one side has announced by GOAWAY that it ends the connection. The event loop then has to be notified of
     * each reply immediately.
     */
    private volatile boolean isLeaving;

    SentReplies(ServerConnection connection, ServerConnection.UnderWay underWay) {
        this.connection = connection;
        this.underWay = underWay;
    }

    /**
     * Sends a reply. Called on the handler's thread, which is not the event loop. If the handler's thread writes the
     * reply, the event loop is notified of it only when the client's next bytes come, which may be late. What the call
     * holds would be held until then. So the reply of a call that holds more than its slot is sent by the event loop.
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
     * Adds a reply that its handler's thread is about to write. The client may use the slot again once it has the
     * reply. So the call is added before its reply is written: then the event loop finds the call before it reads the
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
     * Returns the number of calls whose replies handlers' threads have sent, and of which the event loop has not been
     * notified yet.
     */
    int count() {
        int count = 0;
        for (Outbound call = unseen.get(); call != null; call = call.next) {
            count++;
        }
        return count;
    }

    /**
     * Has the event loop send all replies from now on, because one side has announced by GOAWAY that it ends the
     * connection. If a handler's thread is just writing a reply, the event loop is notified of that reply immediately.
     * Event loop only.
     */
    void leave() {
        isLeaving = true;
        // if a handler's thread has just sent a reply, either that thread sees the flag, or the next line finds the
        // reply
        endUnseen();
    }

    /**
     * Ends the calls whose replies handlers' threads have sent, and which have been added since the last call of this
     * method. Event loop only.
     */
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
                // what was thrown ends the connection, and the end of the connection calls this method again for the
                // remaining replies
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
