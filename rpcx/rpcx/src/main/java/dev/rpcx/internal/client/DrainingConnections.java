package dev.rpcx.internal.client;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Draining connections to one instance, the oldest first. If a registry removes the instance and names it again, they
 * stay, although the instance has a new {@link ClientAddress}. Thread-safe.
 */
final class DrainingConnections {
    private final ArrayDeque<ClientConnection> oldestFirst = new ArrayDeque<>();

    /**
     * Adds a connection, which becomes the newest.
     *
     * @return the oldest connection, which has been removed and has to end, if there are more than {@code max}
     *     connections now; otherwise null
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
