package dev.rpcx.internal.server;

import dev.rpcx.internal.wire.Outbound;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Replies of one connection on their way from threads of handlers. It decides whether such a thread writes its reply
 * itself, which saves a wake-up of the event loop, or leaves it to the event loop. What a thread has written is kept
 * here until the event loop has learnt of it. Any thread, where nothing else is said.
 */
final class SentReplies {
    /**
     * Maximum number of calls under way with which handlers' threads send their replies themselves. With more,
     * gathering replies gains more than a wake-up of the event loop costs.
     */
    private static final int QUIET_CALLS = 1;

    private final ServerConnection connection;
    private final ServerConnection.UnderWay underWay;

    /**
     * Calls whose replies were sent by their handlers' threads and which the event loop has not seen since; the last
     * one first, linked by {@link Outbound#next}.
     */
    private final AtomicReference<@Nullable ServerCall> unseen = new AtomicReference<>();

    /** Whether one side is about to leave, so that the event loop has to learn of each reply at once. */
    private volatile boolean isLeaving;

    SentReplies(ServerConnection connection, ServerConnection.UnderWay underWay) {
        this.connection = connection;
        this.underWay = underWay;
    }

    /**
     * Sends a reply from its handler's thread, which is not the event loop. Where that thread writes it, the event loop
     * learns of that when the client's next bytes come, which may be late, so a call that holds more than its slot is
     * left to the event loop.
     */
    void send(ServerCall call) {
        if (!mayLeaveHere(call) || !connection.sendHere(call)) {
            connection.send(call);
        }
    }

    private boolean mayLeaveHere(ServerCall call) {
        return underWay.calls <= QUIET_CALLS && !isLeaving && call.isSmall();
    }

    /**
     * Notes a reply that is about to leave from its handler's thread. The client may use the slot again once it has the
     * reply, so the event loop has to know of the reply before it sees the next request.
     */
    void add(ServerCall call) {
        ServerCall last;
        do {
            last = unseen.get();
            call.next = last;
        } while (!unseen.compareAndSet(last, call));
        if (isLeaving) {
            connection.inLoopOrHere(this::learn);
        }
    }

    /** Number of calls whose replies have left and which the event loop has not seen since. */
    int count() {
        int count = 0;
        for (Outbound call = unseen.get(); call != null; call = call.next) {
            count++;
        }
        return count;
    }

    /** Has the event loop send all replies from here on, as one side is about to leave. Event loop only. */
    void leave() {
        isLeaving = true;
        // a handler's thread that has just sent a reply either sees that a side leaves, or its reply is seen here
        learn();
    }

    /** Ends the calls whose replies handlers' threads have sent. Event loop only. */
    void learn() {
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
                // what was thrown ends the connection, whose end calls this method for the remaining replies
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
