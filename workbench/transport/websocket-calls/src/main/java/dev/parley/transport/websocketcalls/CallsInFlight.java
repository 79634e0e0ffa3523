package dev.parley.transport.websocketcalls;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * One open WebSocket and the calls in flight on it; replies are matched by number. Once lost, it stays lost.
 * Thread-safe.
 */
public abstract class CallsInFlight {
    private final Location to;
    private final ConcurrentHashMap<Long, CompletableFuture<String>> inFlight = new ConcurrentHashMap<>();
    private final AtomicLong ids = new AtomicLong();

    /** Text so far of a message that has not ended. One thread at a time reads. */
    private final StringBuilder parts = new StringBuilder();

    private volatile @Nullable CallException lost;

    protected CallsInFlight(Location to) {
        this.to = to;
    }

    /**
     * Sends one text message after those before it, unless {@code reply} is done by then. Calls {@link #lost} when that
     * fails.
     */
    protected abstract void write(String text, CompletableFuture<String> reply);

    /**
     * Sends a close frame if that can be done soon, and ends the connection. The future always ends without a failure.
     */
    protected abstract CompletableFuture<?> goodbye();

    final boolean isLost() {
        return lost != null;
    }

    /** @param reply completed with the text of the reply, unless its owner ends it before */
    final void send(String operation, Record request, CompletableFuture<String> reply) {
        long id = ids.incrementAndGet();
        String text;
        try {
            text = Envelope.request(id, operation, request);
        } catch (CallException e) {
            reply.completeExceptionally(e);
            return;
        }
        inFlight.put(id, reply);
        reply.whenComplete((done, thrown) -> inFlight.remove(id));
        CallException gone = lost;
        if (gone != null) {
            // lost() may have gone through the table before this call stood in it
            reply.completeExceptionally(gone);
            return;
        }
        write(text, reply);
    }

    /**
     * A part of a message has come.
     *
     * @param last whether the message ends with it
     * @return false if the connection is lost by it, and to be ended
     */
    protected final boolean received(CharSequence part, boolean last) {
        if (parts.length() + part.length() > Envelope.MAX_CHARS) {
            lost("a reply of over " + Envelope.MAX_CHARS + " characters");
            return false;
        }
        parts.append(part);
        if (last) {
            String text = parts.toString();
            parts.setLength(0);
            try {
                CompletableFuture<String> reply = inFlight.get(Envelope.id(text));
                if (reply != null) {
                    reply.complete(text);
                }
            } catch (CallException e) {
                lost(String.valueOf(e.getMessage()));
                return false;
            }
        }
        return true;
    }

    /** The calls in flight end, and so does each that is sent from now on. */
    protected final void lost(String how) {
        CallException gone = new CallException(Code.UNAVAILABLE, to + ": " + how);
        lost = gone;
        inFlight.values().forEach(reply -> reply.completeExceptionally(gone));
    }

    /** The calls in flight end. The future ends when the connection has, and never with a failure. */
    final CompletableFuture<?> leave() {
        lost("client closed");
        return goodbye();
    }
}
