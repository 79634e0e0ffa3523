package dev.parley.transport.openfeign;

import feign.Client;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Feign's default client, which can be closed: it remembers what each thread waits for, and enough of what is done with to close the
 * connections that the JDK keeps idle, of which each {@link HttpURLConnection#disconnect} closes one.
 */
final class AbortableClient extends Client.Default {
    /** The JDK's default of {@code http.maxConnections}: how many idle connections it keeps for a host. */
    private static final int KEPT = 5;

    private final ConcurrentHashMap<Thread, HttpURLConnection> waiting = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<String, Finished> finished = new ConcurrentHashMap<>();

    AbortableClient() {
        super(null, null);
    }

    /** The last few that had their reply from one host. */
    private static final class Finished {
        private final AtomicReferenceArray<@Nullable HttpURLConnection> ring = new AtomicReferenceArray<>(KEPT);
        private final AtomicInteger next = new AtomicInteger();

        void add(HttpURLConnection connection) {
            ring.set(Math.floorMod(next.getAndIncrement(), KEPT), connection);
        }

        void close() {
            for (int i = 0; i < KEPT; i++) {
                HttpURLConnection connection = ring.getAndSet(i, null);
                if (connection != null) {
                    connection.disconnect();
                }
            }
        }
    }

    @Override
    public HttpURLConnection getConnection(URL url) throws IOException {
        HttpURLConnection connection = super.getConnection(url);
        waiting.put(Thread.currentThread(), connection);
        return connection;
    }

    /** The current thread has its reply, or will not have one. */
    void done() {
        HttpURLConnection connection = waiting.remove(Thread.currentThread());
        if (connection != null) {
            finished.computeIfAbsent(connection.getURL().getAuthority(), host -> new Finished())
                    .add(connection);
        }
    }

    /** Ends the calls in flight and closes the idle connections. */
    void abort() {
        waiting.values().forEach(HttpURLConnection::disconnect);
        finished.values().forEach(Finished::close);
    }
}
