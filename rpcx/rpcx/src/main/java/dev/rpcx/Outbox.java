package dev.rpcx;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * Queue of many producers and one consumer whose links are the messages themselves. Source: Vyukov, "Intrusive MPSC node-based queue".
 * {@link #add} is one exchange and one store, never a loop.
 */
final class Outbox {
    private static final VarHandle TAIL;

    static {
        try {
            TAIL = MethodHandles.lookup().findVarHandle(Outbox.class, "tail", Outbound.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final Outbound stub = Outbound.Control.empty(0, 0);

    /** The consumer's end. */
    private Outbound head = stub;

    /** The producers' end. */
    private volatile Outbound tail = stub;

    /** From any thread. A message is in the queue at most once at a time. */
    void add(Outbound message) {
        Outbound.NEXT.setRelease(message, (Outbound) null);
        Outbound before = (Outbound) TAIL.getAndSet(this, message);
        // volatile, so that it cannot pass the look at the connection's flag that follows
        before.next = message;
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
            head = second;
            return first;
        }
        if (first != tail) {
            return null;
        }
        add(stub);
        second = first.next;
        if (second != null) {
            head = second;
            return first;
        }
        return null;
    }
}
