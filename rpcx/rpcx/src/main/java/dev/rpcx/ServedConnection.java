package dev.rpcx;

/** A connection as its server sees it, whichever wire it speaks. */
interface ServedConnection {
    /** Asks for an end in peace: what is under way is finished, then the connection closes. From any thread. */
    void leave();

    /** Gives back the places for calls that it keeps and that no call has. From any thread. */
    void giveUpIdlePlaces();

    /**
     * The server's time for stopping is over: closes, and interrupts or drops what goes on without the connection. A
     * second time finds what has come meanwhile. From any thread.
     */
    void cutOff();
}
