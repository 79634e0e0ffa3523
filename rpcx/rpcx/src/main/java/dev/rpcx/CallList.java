package dev.rpcx;

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

    int size() {
        return size;
    }

    boolean isEmpty() {
        return first == null;
    }

    boolean contains(ServerCall call) {
        return call.onLoop.list == this;
    }

    /** @return whether the call has been in this list ever since the addition with this number */
    boolean hasKept(ServerCall call, long addition) {
        return contains(call) && call.onLoop.addition == addition;
    }

    /** Adds a call behind the last one. */
    void add(ServerCall call) {
        if (call.onLoop.list != null) {
            throw new IllegalStateException("a call that is in a list already (expected: in none)");
        }
        ServerCall before = last;
        call.onLoop.list = this;
        call.onLoop.previous = before;
        if (before == null) {
            first = call;
        } else {
            before.onLoop.following = call;
        }
        call.onLoop.addition = ++additions;
        last = call;
        size++;
    }

    /** Takes a call out of this list, if it is there. */
    void remove(ServerCall call) {
        if (call.onLoop.list != this) {
            return;
        }
        ServerCall before = call.onLoop.previous;
        ServerCall after = call.onLoop.following;
        if (before == null) {
            first = after;
        } else {
            before.onLoop.following = after;
        }
        if (after == null) {
            last = before;
        } else {
            after.onLoop.previous = before;
        }
        size--;
        call.onLoop.list = null;
        call.onLoop.previous = null;
        call.onLoop.following = null;
    }
}
