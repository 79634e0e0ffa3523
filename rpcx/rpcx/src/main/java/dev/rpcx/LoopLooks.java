package dev.rpcx;

/**
 * How much of an event loop the looks at deadlines take. A look passes all slots of a connection, and its client chooses
 * how many those are and how often one is due: thousands of slots, with one among them that is due every five
 * milliseconds, would cost a loop a part of its time for some bytes, and as many such connections all of it. So looks
 * that pass many slots have their turns, one after the other for all connections of a loop, and take a small part of
 * its time together. Where others have theirs first, a call ends later than its time by so much, at its server.
 *
 * <p>Event loop only.
 */
final class LoopLooks {
    /** A look that passes no more costs hardly more than what has made it necessary. */
    static final int FEW = 64;

    /** A slot is passed in 25 to 75 nanoseconds; behind it the next look of the loop comes after this. */
    static final long NANOS_FOR_SLOT = 2_000;

    private boolean hasLooked;

    /** When the turn of the next look is. */
    private long nextNanos;

    /**
     * A look at so many slots takes its turn.
     *
     * @return how long it waits for that; 0 if it may begin, as one at few slots always may
     */
    long nanosUntilTurn(long nowNanos, int slots) {
        if (slots <= FEW) {
            return 0;
        }
        long wait = hasLooked ? Math.max(0, nextNanos - nowNanos) : 0;
        hasLooked = true;
        nextNanos = nowNanos + wait + slots * NANOS_FOR_SLOT;
        return wait;
    }
}
