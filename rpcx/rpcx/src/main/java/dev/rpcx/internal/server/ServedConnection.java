package dev.rpcx.internal.server;

/** Connection as its server sees it, on either wire. Thread-safe: any thread may call its methods. */
public interface ServedConnection {
    /** Asks the connection to end. The connection closes when the calls under way have ended. */
    void drain();

    /** Gives back the unused places that the connection keeps for later calls. */
    void giveUpIdlePlaces();

    /**
     * Closes the connection, because the server's time for stopping is over. Handlers that would go on without the
     * connection are interrupted, or their results are dropped. May be called again, for handlers that have lost their
     * connection since.
     */
    void cutOff();
}
