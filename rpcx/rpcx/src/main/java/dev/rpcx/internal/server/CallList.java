package dev.rpcx.internal.server;

import org.jspecify.annotations.Nullable;

/**
 * Linked list of calls of one connection, in the order in which they were added. Adding or removing a call takes
 * constant time. A call is in at most one list at a time. Used only on the connection's event loop.
 */
final class CallList {
    private @Nullable ServerCall first;
    private @Nullable ServerCall last;
    private int size;

    /**
     * Number of additions to this list so far. Each added call gets the new number as its {@link LoopState#addition}.
     */
    private long additions;

    @Nullable
    ServerCall first() {
        return first;
    }

    public int size() {
        return size;
    }

    boolean isEmpty() {
        return first == null;
    }

    boolean contains(ServerCall call) {
        return call.loopState.list == this;
    }

    /**
     * Returns whether the call is in this list and has not been removed since the addition with the number
     * {@code addition}. If the call has been removed and added again, its {@link LoopState#addition} is greater.
     */
    boolean hasKept(ServerCall call, long addition) {
        return contains(call) && call.loopState.addition == addition;
    }

    /**
     * Adds a call to the end of this list.
     *
     * @throws IllegalStateException if the call is already in a list
     */
    void add(ServerCall call) {
        if (call.loopState.list != null) {
            throw new IllegalStateException("a call that is in a list already (expected: in none)");
        }
        ServerCall before = last;
        call.loopState.list = this;
        call.loopState.previous = before;
        if (before == null) {
            first = call;
        } else {
            before.loopState.following = call;
        }
        call.loopState.addition = ++additions;
        last = call;
        size++;
    }

    /** Removes a call from this list. Does nothing if the call is not in this list. */
    void remove(ServerCall call) {
        if (call.loopState.list != this) {
            return;
        }
        ServerCall before = call.loopState.previous;
        ServerCall after = call.loopState.following;
        if (before == null) {
            first = after;
        } else {
            before.loopState.following = after;
        }
        if (after == null) {
            last = before;
        } else {
            after.loopState.previous = before;
        }
        size--;
        call.loopState.list = null;
        call.loopState.previous = null;
        call.loopState.following = null;
    }
}
