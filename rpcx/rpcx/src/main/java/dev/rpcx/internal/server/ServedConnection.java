package dev.rpcx.internal.server;

/** A connection as its server sees it, whichever wire it speaks. */
public interface ServedConnection {
    /** Asks the connection to end: what is under way is finished, then the connection closes. Any thread. */
    void drain();

    /** Gives back the places that the connection keeps and that no call has. Any thread. */
    void giveUpIdlePlaces();

    /**
     * Closes the connection, as the server's time for stopping is over, and interrupts or drops what goes on without
     * the connection. A second time it finds what has come meanwhile. Any thread.
     */
    void cutOff();
}
