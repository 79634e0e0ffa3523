package dev.rpcx;

import org.jspecify.annotations.Nullable;

/**
 * The part of a server's call that its event loop alone reads and writes. It is an object of its own, so that the lines
 * of the cache that the loop and the handler's thread hand to each other with each call are few.
 */
final class OnLoop {
    boolean receiving;
    boolean handling;

    /** Says whether the call is counted among its connection's running handlers. */
    boolean running;

    /** The caller has its final frame already: whatever the handler brings is dropped. */
    boolean abandoned;

    /** Nothing needs the call any more: its place has been given back, or waits for the next one. */
    boolean isRecycled;

    /** The call is over but for the threads that {@link CallThreads} runs for it. */
    boolean isOverButThreads;

    /** The place of a call that is over but for its threads does not count for its client. */
    boolean isPlaceLent;

    /** The request or the item of which the event loop waits for the rest; null where all that has begun is whole. */
    @Nullable
    UnfinishedMessage unfinished;

    /** The credit was given before there was a sender. */
    long credit;

    /** These are the list in which the call is, and its neighbours there. {@link CallList} alone writes them. */
    @Nullable
    CallList list;

    @Nullable
    ServerCall previous;

    @Nullable
    ServerCall following;

    /** Which one of all that were added to the list the call is. */
    long addition;

    /** So long it waits at most, not begun, for its caller to read replies. */
    long waitsUntilNanos;

    /** The connection looks at this call at this time, while it has no slot. */
    long awayUntilNanos;

    /** A new call. What its connection lists or counts has been undone by the end of the one before. */
    void begin() {
        receiving = false;
        handling = false;
        abandoned = false;
        isRecycled = false;
        unfinished = null;
        credit = 0;
    }
}
