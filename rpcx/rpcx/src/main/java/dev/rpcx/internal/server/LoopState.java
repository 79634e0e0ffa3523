package dev.rpcx.internal.server;

import org.jspecify.annotations.Nullable;

/**
 * State of a call that only the connection's event loop reads and writes. It is kept apart from {@link ServerCall}, so
 * that the event loop and the handler's thread share fewer cache lines.
 */
final class LoopState {
    boolean receiving;
    boolean handling;

    /** Whether the connection counts this call's handler as running. */
    boolean running;

    /** Whether the caller is answered without waiting for the handler. The handler's result is then dropped. */
    boolean abandoned;

    /**
     * Whether nothing uses the call object any more. The room that the connection holds for one call, its place, has
     * then been given back or is kept for the next call.
     */
    boolean isRecycled;

    /** Whether the call is over, except for threads that {@link CallThreads} still runs for it. */
    boolean isOverButThreads;

    /**
     * Whether the call no longer counts against the client's maximum number of calls, because only threads still run
     * for it.
     */
    boolean isPlaceLent;

    /** Progress of a request or stream item of which only some parts have arrived; null if there is none. */
    @Nullable
    UnfinishedMessage unfinished;

    /** Number of stream items that the client allowed the server to send before the call's stream was opened. */
    long credit;

    /** List that contains this call; null if the call is in no list. Only {@link CallList} writes this field. */
    @Nullable
    CallList list;

    /** Call before this one in {@code list}; null if there is none. Only {@link CallList} writes this field. */
    @Nullable
    ServerCall previous;

    /** Call after this one in {@code list}; null if there is none. Only {@link CallList} writes this field. */
    @Nullable
    ServerCall following;

    /**
     * Sequence number that the call got when it was last added to a list. Each list counts its additions from 1, so a
     * call that was removed from a list and added to it again has another number. Only {@link CallList} writes this
     * field.
     */
    long addition;

    /**
     * Time by which a call that waits for its caller to read earlier replies has to start, by the event loop's ticker.
     */
    long waitsUntilNanos;

    /**
     * Time until which a call without a slot in the connection's table may go on, by the event loop's ticker. Then the
     * connection cancels the call. If the call has been cancelled before, the connection gives it up.
     */
    long detachedUntilNanos;

    /** Resets the state for a new call. The fields that are not set here were reset when the previous call ended. */
    void begin() {
        receiving = false;
        handling = false;
        abandoned = false;
        isRecycled = false;
        unfinished = null;
        credit = 0;
    }
}
