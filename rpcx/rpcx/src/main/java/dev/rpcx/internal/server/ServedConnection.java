package dev.rpcx.internal.server;

/** Connection as its server sees it, on either wire. Thread-safe: any thread may call its methods. */
public interface ServedConnection {
    /** Asks the connection to end. Calls that are under way are finished; then the connection closes. */
    void drain();

    /** Gives back the places that the connection keeps for later calls, and does not use at the moment. */
    void giveUpIdlePlaces();

    /**
     * Closes the connection, because the server's time for stopping is over. If a handler would go on without the
     * connection, it is interrupted, or its result is dropped. A second call of this method does the same for handlers
     * that have lost their connection since the first call.
     */
    void cutOff();
}
