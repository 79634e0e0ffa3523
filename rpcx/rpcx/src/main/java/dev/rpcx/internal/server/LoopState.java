package dev.rpcx.internal.server;

import org.jspecify.annotations.Nullable;

/**
 * State of a server's call that only the event loop reads and writes. It is a separate object, so that the event loop
 * and the handler's thread share fewer cache lines.
 */
final class LoopState {
    boolean receiving;
    boolean handling;

    /** Whether the connection counts the call among its running handlers. */
    boolean running;

    /**
     * Whether the caller gets its final frame without waiting for the handler. The handler's result is then dropped.
     */
    boolean abandoned;

    /** Whether nothing uses the call any more. If so, its place has been given back, or is kept for the next call. */
    boolean isRecycled;

    /** Whether the call is over, but some threads that {@link CallThreads} runs for it have not ended. */
    boolean isOverButThreads;

    /**
     * Whether the call's place does not count against the client's maximum number of calls, because only threads of the
     * call still run.
     */
    boolean isPlaceLent;

    /** Request or item of which some parts have not arrived yet; null if no message is unfinished. */
    @Nullable
    UnfinishedMessage unfinished;

    /** Credit, in items, that the client gave before the call had a sender for its stream. */
    long credit;

    /** List that contains the call; null if it is in none. Only {@link CallList} writes this field. */
    @Nullable
    CallList list;

    /** Previous call in {@code list}; null if there is none. Only {@link CallList} writes this field. */
    @Nullable
    ServerCall previous;

    /** Next call in {@code list}; null if there is none. Only {@link CallList} writes this field. */
    @Nullable
    ServerCall following;

    /**
     * Number that the call got when it was last added to a list, from 1 in each list. Only {@link CallList} writes this
     * field.
     */
    long addition;

    /** Time until which the call may wait, before its handler starts, for its caller to read replies. */
    long waitsUntilNanos;

    /**
     * Time until which the call may go on after it has lost its slot. After this time, the connection cancels the call.
     * If the call has been cancelled already, the connection gives it up.
     */
    long detachedUntilNanos;

    /** Resets the fields for a new call, except those that the end of the previous call has reset. */
    void begin() {
        receiving = false;
        handling = false;
        abandoned = false;
        isRecycled = false;
        unfinished = null;
        credit = 0;
    }
}
