package dev.rpcx;

import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Queue of many producers and one consumer whose links are the messages themselves. Source: Vyukov, "Intrusive MPSC node-based queue".
 * {@link #add} is one exchange and one store, never a loop.
 */
final class Outbox {
    /**
     * Not a VarHandle, which in code that is not compiled yet calls another method after its exchange: see
     * {@link #add}.
     */
    private static final AtomicReferenceFieldUpdater<Outbox, Outbound> TAIL =
            AtomicReferenceFieldUpdater.newUpdater(Outbox.class, Outbound.class, "tail");

    private final Outbound stub = Outbound.Control.empty(0, 0);

    /** The consumer's end. */
    private Outbound head = stub;

    /** The producers' end. */
    private volatile Outbound tail = stub;

    /**
     * From any thread. A message is in the queue at most once at a time. What this throws, where the stack or the
     * memory is at its end, is thrown before the exchange: no method is called between that and the link, without which
     * the queue would be cut for ever.
     */
    void add(Outbound message) {
        Outbound.NEXT.setRelease(message, (Outbound) null);
        Outbound before = TAIL.getAndSet(this, message);
        // volatile, so that it cannot pass the look at the connection's flag that follows
        before.next = message;
    }

    /** What was added last, or something that {@link #poll} never brings, if that has been taken. */
    Outbound last() {
        return tail;
    }

    /** Nothing is queued, nor between the two steps of a producer. The consumer asks. */
    boolean isEmpty() {
        return head == stub && tail == stub;
    }

    /** The next message, or null if there is none or its producer is between its two steps. The message is free to be added again. */
    @Nullable
    Outbound poll() {
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

    /** Messages of calls are there for long: one that kept its link would keep what came behind it, and so on. */
    private Outbound taken(Outbound first, Outbound second) {
        head = second;
        Outbound.NEXT.set(first, (Outbound) null);
        return first;
    }
}
