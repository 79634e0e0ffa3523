package dev.rpcx;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * The connections to one instance that are being left and still have calls under way, or are about to close; the oldest
 * first. They outlive the {@link ClientAddress} that made them, where a registry takes the instance away and names it
 * again. Thread-safe.
 */
final class LeftConnections {
    private final ArrayDeque<ClientConnection> oldestFirst = new ArrayDeque<>();

    /** @return one that has to end, since there are more than so many; null if there is none */
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
