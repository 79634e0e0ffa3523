package dev.rpcx.internal.wire;

import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Queue of outgoing messages, to which many threads add and from which one thread at a time, the consumer, takes. The
 * messages are linked to each other, so adding a message allocates nothing. The algorithm comes from Vyukov, "Intrusive
 * MPSC node-based queue".
 */
public final class Outbox {
    /**
     * Accesses {@code tail} atomically. A VarHandle must not be used here: in code that the JVM has not compiled yet, a
     * VarHandle calls a method after its exchange. {@link #add} must not call any method at that point.
     */
    private static final AtomicReferenceFieldUpdater<Outbox, Outbound> TAIL =
            AtomicReferenceFieldUpdater.newUpdater(Outbox.class, Outbound.class, "tail");

    private final Outbound stub = Outbound.Control.empty(0, 0);

    /** The message that is taken next, or the placeholder {@code stub}. Only the consumer uses this field. */
    private Outbound head = stub;

    /**
     * The message that was added last, or the placeholder {@code stub}. If the queue is empty, the value is always
     * {@code stub}. Any thread that adds a message replaces the value by an atomic exchange, and the consumer reads the
     * value.
     */
    private volatile Outbound tail = stub;

    /**
     * Adds a message, which must not be in the queue already. This method is thread-safe, and never loops. It exchanges
     * {@code tail}, and then stores the message in {@code before.next}. Between these two steps, it must not call any
     * method. If such a call failed, the consumer would never reach this message and those behind it. If the stack or
     * the memory is exhausted, an error is thrown before the exchange.
     */
    public void add(Outbound message) {
        // The link is cleared before the exchange. After the exchange, another thread can add a message behind this
        // one, and this thread would clear the link to that message. Tested by {@code OutboxRace}.
        Outbound.NEXT.setRelease(message, (Outbound) null);
        Outbound before = TAIL.getAndSet(this, message);
        // The store is volatile, because the calling thread next reads the connection's flag "scheduled", and this read
        // must come after the store. The event loop clears the flag before it takes messages. So either the event loop
        // finds this message, or the calling thread finds the flag cleared and wakes the event loop. Otherwise the
        // message could stay in the queue.
        before.next = message;
    }

    /**
     * Returns the message that was added last. If the queue is empty, returns a placeholder, which {@link #poll} never
     * returns. The result can be the placeholder even if the queue is not empty.
     */
    Outbound last() {
        return tail;
    }

    /**
     * Returns true if no message is queued, and no thread is in the middle of {@link #add}. Only the consumer, the
     * thread that takes messages, calls this method.
     */
    boolean isEmpty() {
        return head == stub && tail == stub;
    }

    /**
     * Takes the next message out of the queue; the message can be added again afterwards. Returns null if the queue is
     * empty. The result can also be null while another thread is in the middle of {@link #add}. Only the consumer, the
     * thread that takes messages, calls this method.
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
     * Removes {@code first} from the queue, so that the queue begins with {@code second}. The link from {@code first}
     * to {@code second} is cleared. Otherwise a message that lives long would keep later messages in memory.
     */
    private Outbound taken(Outbound first, Outbound second) {
        head = second;
        Outbound.NEXT.set(first, (Outbound) null);
        return first;
    }
}
