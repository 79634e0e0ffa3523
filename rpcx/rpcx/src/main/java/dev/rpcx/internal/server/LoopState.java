package dev.rpcx.internal.server;

import org.jspecify.annotations.Nullable;

/**
 * Part of a {@link ServerCall} that only the connection's event loop reads and writes. The part is a separate object,
 * so that the event loop and the handler's thread seldom use the same cache line.
 */
final class LoopState {
    boolean receiving;
    boolean handling;

    /** Whether the connection's count of running handlers includes the handler of this call. */
    boolean running;

    /**
     * Whether the caller gets an answer that does not depend on the handler, such as an error at the deadline. If the
     * handler still produces a result, the result is dropped.
     */
    boolean abandoned;

    /**
     * Whether the call has ended completely. Its {@link ServerCall} object is then free, or is just being freed, for a
     * later call or for the garbage collector.
     */
    boolean isRecycled;

    /**
     * Whether the call is over, but the event loop has not yet noticed the end of all threads that {@link CallThreads}
     * counts for the call.
     */
    boolean isOverButThreads;

    /**
     * Whether this call is not counted against the connection's maximum number of calls, so that the client can make
     * another call instead. {@link Admission#lendPlace} sets this field when nothing remains to be sent for the call,
     * but threads that {@link CallThreads} counts still run for it. A cancelled call stays counted. At most as many
     * calls as the maximum are left out of the count at a time.
     */
    boolean isPlaceLent;

    /** Progress of the request or stream item that is arriving in several frames; null if there is none. */
    @Nullable
    UnfinishedMessage unfinished;

    /**
     * Number of stream items that the client allowed in CREDIT frames that arrived before the call's stream was opened.
     */
    long credit;

    /** List that contains this call; null if the call is in no list. Only {@link CallList} writes this field. */
    @Nullable
    CallList list;

    /**
     * Previous call in {@link #list}; null for the first call, or if this call is in no list. Only {@link CallList}
     * writes this field.
     */
    @Nullable
    ServerCall previous;

    /**
     * Next call in {@link #list}; null for the last call, or if this call is in no list. Only {@link CallList} writes
     * this field.
     */
    @Nullable
    ServerCall following;

    /**
     * Number of calls that had been added to {@link #list} when this call was added, including this call. A call that
     * is removed from the list and added to it again gets a higher number. Only {@link CallList} writes this field.
     */
    long addition;

    /**
     * Time by which a postponed call has to be started, in nanoseconds of the event loop's ticker. A call is postponed
     * until both conditions hold: its client has read enough of earlier replies and stream items, and the call is
     * admitted.
     */
    long waitsUntilNanos;

    /**
     * End of the time limit of a call that has no slot in the table of calls any more, in nanoseconds of the event
     * loop's ticker. At this time, the connection cancels the call. If the call has been cancelled already, the
     * connection stops waiting for the call's handler instead. For calls with a slot or without a time limit, the value
     * has no meaning.
     */
    long detachedUntilNanos;

    /**
     * Resets the state for a new call. This method must not reset {@link #running}, which can be true for the new call
     * already. The other fields that are not set here were reset when the previous call ended, or are written before
     * each use.
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
