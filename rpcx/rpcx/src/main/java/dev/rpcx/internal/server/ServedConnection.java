package dev.rpcx.internal.server;

/**
 * A client's connection as {@link ServerCore} sees it, on the native or the classic wire. The methods can be called on
 * any thread.
 */
public interface ServedConnection {
    /**
     * Starts the orderly end of the connection, which closes when its calls have ended. On the native wire, the client
     * also has to answer GOAWAY first.
     */
    void drain();

    /**
     * Gives unused places back to the server. A place allows one call, and the connection can keep places for later
     * calls.
     */
    void giveUpIdlePlaces();

    /**
     * Closes the connection, because the server's time for stopping is over. Some handlers go on without a connection,
     * for example the handler of a notice. Such a handler is interrupted, or its result is dropped. The server calls
     * this method again later in the stop, for handlers that have lost their connection in the meantime.
     */
    void cutOff();
}
