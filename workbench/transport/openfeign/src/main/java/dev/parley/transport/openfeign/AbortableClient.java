package dev.parley.transport.openfeign;

import feign.Client;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Feign's default client, which remembers what each thread waits for, so that closing can end it. Idle connections are the JDK's, which
 * keeps them for as long as the server's {@code Keep-Alive} header says, unless each is closed after its request.
 */
final class AbortableClient extends Client.Default {
    private static final long ABORT_NS = 1_000_000_000;
    private static final long RETRY_NS = 5_000_000;

    private final ConcurrentHashMap<Thread, HttpURLConnection> waiting = new ConcurrentHashMap<>();

    private final boolean closes;

    /** @param closes whether each connection serves one request only */
    AbortableClient(boolean closes) {
        super(null, null);
        this.closes = closes;
    }

    @Override
    public HttpURLConnection getConnection(URL url) throws IOException {
        HttpURLConnection connection = super.getConnection(url);
        if (closes) {
            // the one value of this header that HttpURLConnection lets a program set
            connection.setRequestProperty("Connection", "close");
        }
        waiting.put(Thread.currentThread(), connection);
        return connection;
    }

    /** The current thread has its reply, or will not have one. */
    void done() {
        waiting.remove(Thread.currentThread());
    }

    /** Ends what threads wait for. A call was seen to outlive one {@code disconnect}: those still waited for are ended anew, for up to a second. */
    void abort() {
        long untilNs = System.nanoTime() + ABORT_NS;
        do {
            waiting.values().forEach(HttpURLConnection::disconnect);
            LockSupport.parkNanos(RETRY_NS);
        } while (!waiting.isEmpty() && System.nanoTime() < untilNs);
    }
}
