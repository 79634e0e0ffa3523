package dev.rpcx.internal.server;

import org.jspecify.annotations.Nullable;

/**
 * A list of calls of one connection, in the order in which they came. The links are the calls' own, so adding and
 * removing cost the same however many calls there are, and a call is in one list at most. Event loop only.
 */
final class CallList {
    private @Nullable ServerCall first;
    private @Nullable ServerCall last;
    private int size;

    /** Number of calls that have been added so far. */
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

    /** @return whether the call has been in this list ever since the addition with this number */
    boolean hasKept(ServerCall call, long addition) {
        return contains(call) && call.loopState.addition == addition;
    }

    /** Adds a call behind the last one. */
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

    /** Takes a call out of this list, if it is there. */
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
