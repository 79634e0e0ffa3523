package dev.rpcx.internal.server;

import org.jspecify.annotations.Nullable;

/**
 * Part of the state of a server's call that only the event loop reads and writes. It is a separate object, so that few
 * cache lines move between the event loop's processor and the processor of the handler's thread with each call.
 */
final class LoopState {
    boolean receiving;
    boolean handling;

    /** Whether the connection counts the call among its running handlers. */
    boolean running;

    /**
     * Whether the caller gets its final frame without waiting for the handler. A result that the handler brings later
     * is then dropped.
     */
    boolean abandoned;

    /** Whether nothing uses the call any more. If so, its place has been given back, or is kept for the next call. */
    boolean isRecycled;

    /** Whether the call is over, but some threads that {@link CallThreads} runs for it have not ended. */
    boolean isOverButThreads;

    /**
     * Whether the call's place does not count against the client's maximum number of calls at the moment, because the
     * call is over and only threads of it still run.
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
     * Number that the call got when it was last added to a list. Each list numbers its additions from 1. Only
     * {@link CallList} writes this field.
     */
    long addition;

    /** Time until which the call may wait for its caller to read replies, before the call's handler is started. */
    long waitsUntilNanos;

    /**
     * Time until which the call may go on after it has lost its slot, for example because it is a notice, or because
     * its caller is gone. After this time, the connection cancels the call, or gives it up if it has been cancelled
     * already.
     */
    long detachedUntilNanos;

    /**
     * Resets fields for a new call. The fields by which the connection lists and counts calls have been reset at the
     * end of the previous call.
     */
    void begin() {
        receiving = false;
        handling = false;
        abandoned = false;
        isRecycled = false;
        unfinished = null;
        credit = 0;
    }
}
