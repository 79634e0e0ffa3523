package dev.parley.transport.openfeign;

import feign.Client;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Feign's default client, which remembers what each thread waits for, so that closing can end it. Idle connections are the JDK's, which
 * keeps them for as long as the server's {@code Keep-Alive} header says.
 */
final class AbortableClient extends Client.Default {
    private final ConcurrentHashMap<Thread, HttpURLConnection> waiting = new ConcurrentHashMap<>();

    AbortableClient() {
        super(null, null);
    }

    @Override
    public HttpURLConnection getConnection(URL url) throws IOException {
        HttpURLConnection connection = super.getConnection(url);
        waiting.put(Thread.currentThread(), connection);
        return connection;
    }

    /** The current thread has its reply, or will not have one. */
    void done() {
        waiting.remove(Thread.currentThread());
    }

    void abort() {
        waiting.values().forEach(HttpURLConnection::disconnect);
    }
}
