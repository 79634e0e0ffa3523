package dev.rpcx.internal.client;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Draining connections to one instance, which still have calls in flight or are about to close; the oldest first. They
 * outlive the {@link ClientAddress} that made them if a registry removes the instance and names it again. Thread-safe.
 */
final class DrainingConnections {
    private final ArrayDeque<ClientConnection> oldestFirst = new ArrayDeque<>();

    /** @return connection that has to end, since there are more than {@code most}; null if there are not */
    synchronized @Nullable ClientConnection add(ClientConnection connection, int most) {
        oldestFirst.add(connection);
        return oldestFirst.size() > most ? oldestFirst.remove() : null;
    }

    synchronized void remove(ClientConnection connection) {
        oldestFirst.remove(connection);
    }

    synchronized boolean isEmpty() {
        return oldestFirst.isEmpty();
    }
}
