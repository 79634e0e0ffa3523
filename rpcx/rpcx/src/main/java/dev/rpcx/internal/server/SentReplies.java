package dev.rpcx.internal.server;

import dev.rpcx.internal.wire.Outbound;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Sends the replies that handlers' threads have made for one connection. In this class, a handler's thread is any
 * thread, except the event loop, that has the result of a call. A handler's thread can write a small reply itself,
 * which saves waking the event loop. The event loop writes all other replies.
 *
 * <p>Before a handler's thread writes a reply, it adds the call to a list in this object. The event loop later ends the
 * calls in the list, that is, it frees their slots. Thread-safe, unless a method says otherwise.
 */
final class SentReplies {
    /**
     * Maximum number of calls under way on the connection at which a handler's thread still writes its own reply. With
     * more calls under way, it is cheaper if the event loop writes several replies together.
     */
    private static final int MAX_QUIET_CALLS = 1;

    private final ServerConnection connection;
    private final ServerConnection.UnderWay underWay;

    /**
     * Linked list of calls that the event loop still has to end. A handler's thread has written the reply of each of
     * these calls, or is about to write it. The field holds the call that was added last, or null if the list is empty.
     * {@link Outbound#next} leads to the call that was added before it. Handlers' threads add calls, and the event loop
     * takes all of them at once. Any thread may count the calls.
     */
    private final AtomicReference<@Nullable ServerCall> unseen = new AtomicReference<>();

    /**
     * Whether the client or the server has sent GOAWAY, the frame that announces the end of a connection. After GOAWAY,
     * the event loop has to end each call as soon as the call's reply is written. The event loop writes this field, and
     * handlers' threads read it.
     */
    private volatile boolean isDraining;

    SentReplies(ServerConnection connection, ServerConnection.UnderWay underWay) {
        this.connection = connection;
        this.underWay = underWay;
    }

    /**
     * Sends the reply of a call. Called on the handler's thread, which must not be the event loop.
     *
     * <p>If the handler's thread writes the reply, the event loop releases what the call holds afterwards. Usually it
     * does so only when the client sends its next bytes, which can be much later. So if a call holds charged memory, a
     * stream or a large buffer, the event loop itself writes the reply.
     */
    void send(ServerCall call) {
        if (!maySendHere(call) || !connection.sendHere(call)) {
            connection.send(call);
        }
    }

    private boolean maySendHere(ServerCall call) {
        return underWay.calls <= MAX_QUIET_CALLS && !isDraining && call.isSmall();
    }

    /**
     * Adds a call to the list of calls that the event loop has to end. The handler's thread must add the call before it
     * writes the reply. As soon as the client has the reply, it can use the call's slot for a new request. The event
     * loop has to end the old call before it reads the new request. Tested by
     * {@code ServerHereTest.aLoneReplyIsSentWhileTheLoopIsBusyAndItsSlotIsFree}.
     */
    void add(ServerCall call) {
        ServerCall last;
        do {
            last = unseen.get();
            call.next = last;
        } while (!unseen.compareAndSet(last, call));
        // The flag is read after the call has been added: see drain().
        if (isDraining) {
            connection.inLoopOrHere(this::endUnseen);
        }
    }

    /**
     * Returns the number of calls in the list. A handler's thread has written the reply of each of these calls, or is
     * about to write it, but the event loop has not ended the call yet.
     */
    int count() {
        int count = 0;
        for (Outbound call = unseen.get(); call != null; call = call.next) {
            count++;
        }
        return count;
    }

    /**
     * Makes the event loop write all further replies, because the client has sent GOAWAY or the server is about to send
     * it. Also ends, at once, all calls in the list {@link #unseen}. If a handler's thread adds a call at this moment,
     * a task of the event loop may end that call a little later. Event loop only.
     */
    void drain() {
        isDraining = true;
        // If a handler's thread is adding a call at this moment, either that thread sees isDraining, or the next line
        // finds the call. If the next line came first, the call could stay in the list until the client's next bytes.
        endUnseen();
    }

    /** Ends the calls in the list {@code unseen}, and frees their slots. Event loop only. */
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
                // Ending a call has failed with an exception. The calls that remain go back to the list, and the next
                // endUnseen() ends them. If bytes of the client are being read, the exception closes the connection,
                // which runs endUnseen() again at once.
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
