package dev.rpcx.internal.wire;

import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Queue with many producers and one consumer. The messages themselves are its links. {@link #add} is one exchange and
 * one store, and never loops. Source: Vyukov, "Intrusive MPSC node-based queue".
 */
public final class Outbox {
    /**
     * Accesses {@code tail}. Not a VarHandle: in code that is not compiled yet, a VarHandle calls a method after its
     * exchange, which {@link #add} must avoid.
     */
    private static final AtomicReferenceFieldUpdater<Outbox, Outbound> TAIL =
            AtomicReferenceFieldUpdater.newUpdater(Outbox.class, Outbound.class, "tail");

    private final Outbound stub = Outbound.Control.empty(0, 0);

    /** End of the queue from which the consumer takes messages. */
    private Outbound head = stub;

    /** End of the queue to which producers add messages. */
    private volatile Outbound tail = stub;

    /**
     * Adds a message, which must not be in the queue already. Any thread may call this. If stack or memory is
     * exhausted, throws before the exchange. Between the exchange and the store, no method may be called: if it failed,
     * the consumer would never reach this message and those behind it.
     */
    public void add(Outbound message) {
        Outbound.NEXT.setRelease(message, (Outbound) null);
        Outbound before = TAIL.getAndSet(this, message);
        // a volatile store: the caller's next step, a read of the connection's flag "scheduled", must come after it
        before.next = message;
    }

    /**
     * Returns the message that was added last. May instead return a message that {@link #poll} never returns, and
     * always does so if the queue is empty.
     */
    Outbound last() {
        return tail;
    }

    /** Whether nothing is queued, and no producer is in the middle of {@link #add}. Consumer only. */
    boolean isEmpty() {
        return head == stub && tail == stub;
    }

    /**
     * Takes the next message, which may then be added again. Returns null if there is none, or if a producer is in the
     * middle of {@link #add}. Consumer only.
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
     * Removes the first message. Clears its link, since a long-lived message would otherwise keep the messages behind
     * it in memory.
     */
    private Outbound taken(Outbound first, Outbound second) {
        head = second;
        Outbound.NEXT.set(first, (Outbound) null);
        return first;
    }
}
