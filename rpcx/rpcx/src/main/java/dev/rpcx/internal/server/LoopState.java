package dev.rpcx.internal.server;

import org.jspecify.annotations.Nullable;

/**
 * Part of a server's call that its event loop alone reads and writes. It is an object of its own, so that few cache
 * lines pass between the loop and the handler's thread with each call.
 */
final class LoopState {
    boolean receiving;
    boolean handling;

    /** Whether the call is counted among its connection's running handlers. */
    boolean running;

    /** Whether the caller has its final frame already, so that whatever the handler brings is dropped. */
    boolean abandoned;

    /** Whether nothing needs the call any more: its place has been given back, or waits for the next call. */
    boolean isRecycled;

    /** Whether the call is over but for the threads that {@link CallThreads} runs for it. */
    boolean isOverButThreads;

    /** Whether the call's place does not count for its client, as the call is over but for its threads. */
    boolean isPlaceLent;

    /** Request or item of which the event loop waits for the rest; null where all that has begun is whole. */
    @Nullable
    UnfinishedMessage unfinished;

    /** Credit that was given before there was a sender. */
    long credit;

    /**
     * List in which the call is; the two fields below are its neighbours there. {@link CallList} alone writes the
     * three.
     */
    @Nullable
    CallList list;

    @Nullable
    ServerCall previous;

    @Nullable
    ServerCall following;

    /** Number of the call among all that were added to the list. {@link CallList} alone writes it. */
    long addition;

    /** Time until which the call waits at most, before its handler is started, for its caller to read replies. */
    long waitsUntilNanos;

    /** Time at which the connection checks the call, while it has no slot. */
    long detachedUntilNanos;

    /**
     * Resets the fields for a new call. Those for what the connection lists or counts have been reset at the end of the
     * call before.
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
