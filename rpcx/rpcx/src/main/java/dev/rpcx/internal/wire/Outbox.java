package dev.rpcx.internal.wire;

import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Queue with many producers and one consumer, whose links are the messages themselves. Source: Vyukov, "Intrusive MPSC
 * node-based queue". {@link #add} is one exchange and one store, never a loop.
 */
public final class Outbox {
    /**
     * Accessor of {@code tail}. It is not a VarHandle, which in code that is not compiled yet calls another method
     * after its exchange: see {@link #add}.
     */
    private static final AtomicReferenceFieldUpdater<Outbox, Outbound> TAIL =
            AtomicReferenceFieldUpdater.newUpdater(Outbox.class, Outbound.class, "tail");

    private final Outbound stub = Outbound.Control.empty(0, 0);

    /** The consumer's end. */
    private Outbound head = stub;

    /** The producers' end. */
    private volatile Outbound tail = stub;

    /**
     * Adds a message. From any thread. A message is in the queue at most once at a time. If stack or memory is
     * exhausted, this method throws before the exchange: no method is called between the exchange and the store of the
     * link, without which the queue would be cut for ever.
     */
    public void add(Outbound message) {
        Outbound.NEXT.setRelease(message, (Outbound) null);
        Outbound before = TAIL.getAndSet(this, message);
        // a volatile store, so that it cannot be reordered with the read of the connection's flag that follows
        before.next = message;
    }

    /** Returns the message that was added last, or, if that has been taken, one that {@link #poll} never returns. */
    Outbound last() {
        return tail;
    }

    /** Whether nothing is queued and no producer is between its two steps. Called by the consumer. */
    boolean isEmpty() {
        return head == stub && tail == stub;
    }

    /**
     * Takes the next message; null if there is none or its producer is between its two steps. The message may be added
     * again.
     */
    public @Nullable Outbound poll() {
        Outbound first = head;
        Outbound second = first.next;
        if (first == stub) {
            if (second == null) {
                return null;
            }
            head = second;
            first = second;
            second = first.next;
        }
        if (second != null) {
            return taken(first, second);
        }
        if (first != tail) {
            return null;
        }
        add(stub);
        second = first.next;
        return second == null ? null : taken(first, second);
    }

    /**
     * Unlinks a message that is taken. Messages of calls live long: one that kept its link would keep the messages
     * behind it in memory.
     */
    private Outbound taken(Outbound first, Outbound second) {
        head = second;
        Outbound.NEXT.set(first, (Outbound) null);
        return first;
    }
}
