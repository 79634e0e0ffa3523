package dev.rpcx.internal.wire;

import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Queue of messages with many producers and one consumer. The messages themselves are the links of the queue.
 * {@link #add} consists of one exchange and one store, and never loops. Source: Vyukov, "Intrusive MPSC node-based
 * queue".
 */
public final class Outbox {
    /**
     * Accessor of {@code tail}. It is not a VarHandle: in code that is not compiled yet, a VarHandle calls another
     * method after its exchange, which {@link #add} must avoid.
     */
    private static final AtomicReferenceFieldUpdater<Outbox, Outbound> TAIL =
            AtomicReferenceFieldUpdater.newUpdater(Outbox.class, Outbound.class, "tail");

    private final Outbound stub = Outbound.Control.empty(0, 0);

    /** End of the queue from which the consumer takes messages. */
    private Outbound head = stub;

    /** End of the queue to which producers add messages. */
    private volatile Outbound tail = stub;

    /**
     * Adds a message, which must not be in the queue already. Thread-safe: any thread may call this. First an exchange
     * makes this message the last one of the queue. Then a store links the message before it to this message. If stack
     * or memory is exhausted, this method throws before the exchange. Between the exchange and the store it calls no
     * method, so that nothing can fail there: if the store did not happen, the consumer would never reach this message
     * and those behind it.
     */
    public void add(Outbound message) {
        Outbound.NEXT.setRelease(message, (Outbound) null);
        Outbound before = TAIL.getAndSet(this, message);
        // this is a volatile store, so it cannot be reordered with the caller's next step, a read of the connection's
        // flag "scheduled"
        before.next = message;
    }

    /**
     * Returns the message that was added last. If that message has been taken, returns one that {@link #poll} never
     * returns.
     */
    Outbound last() {
        return tail;
    }

    /**
     * Whether nothing is queued, and no producer is in the middle of {@link #add}, between its exchange and its store.
     * Consumer only.
     */
    boolean isEmpty() {
        return head == stub && tail == stub;
    }

    /**
     * Takes the next message. Returns null if there is none, or if a producer is in the middle of {@link #add}, between
     * its exchange and its store. The message that is returned may be added again. Consumer only.
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
     * Removes the first message, and clears its link. The messages of calls live long: a message that kept its link
     * would keep the messages behind it in memory.
     */
    private Outbound taken(Outbound first, Outbound second) {
        head = second;
        Outbound.NEXT.set(first, (Outbound) null);
        return first;
    }
}
