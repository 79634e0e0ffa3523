package dev.rpcx;

/** A connection as its server sees it, whichever wire it speaks. */
interface ServedConnection {
    /** Asks for an end in peace: what is under way is finished, then the connection closes. From any thread. */
    void leave();

    /** Gives back the places for calls that it keeps and that no call has. From any thread. */
    void giveUpIdlePlaces();

    /** Waits for no handler's future any longer, as the timers are about to end. From any thread. */
    void lookLast();
}
