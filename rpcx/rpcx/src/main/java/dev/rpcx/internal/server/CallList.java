package dev.rpcx.internal.server;

import org.jspecify.annotations.Nullable;

/**
 * List of calls of one connection, in the order in which they were added. Adding and removing a call take constant
 * time. A call is in at most one list at a time. Event loop only.
 */
final class CallList {
    private @Nullable ServerCall first;
    private @Nullable ServerCall last;
    private int size;

    /** Number of calls that have ever been added to this list. */
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
     * Returns whether the call has been in this list since a certain addition.
     *
     * @param addition value that {@code LoopState.addition} of the call had after that addition
     */
    boolean hasKept(ServerCall call, long addition) {
        return contains(call) && call.loopState.addition == addition;
    }

    /**
     * Adds a call at the end of this list.
     *
     * @throws IllegalStateException the call is already in a list
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

    /** Removes a call from this list. Does nothing if the call is not in it. */
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
