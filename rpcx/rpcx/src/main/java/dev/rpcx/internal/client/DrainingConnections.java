package dev.rpcx.internal.client;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Lists the connections on the native wire to one instance that get no new calls, and only finish their present ones.
 * If a registry removes the instance and names it again later, a new {@link ClientAddress} is created, but this list is
 * kept if it still has connections. This class is thread-safe.
 */
final class DrainingConnections {
    private final ArrayDeque<ClientConnection> oldestFirst = new ArrayDeque<>();

    /**
     * Adds a connection to the list. If the list has become too long, removes the oldest connection.
     *
     * @param max maximum number of connections in the list
     * @return the removed connection, which the caller has to end; null if none was removed
     */
    synchronized @Nullable ClientConnection add(ClientConnection connection, int max) {
        oldestFirst.add(connection);
        return oldestFirst.size() > max ? oldestFirst.remove() : null;
    }

    synchronized void remove(ClientConnection connection) {
        oldestFirst.remove(connection);
    }

    synchronized boolean isEmpty() {
        return oldestFirst.isEmpty();
    }
}
