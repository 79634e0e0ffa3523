package dev.rpcx.consul;

import dev.rpcx.VisibleText;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Sends requests to a Consul agent, one at a time, from one thread. Any thread may call {@link #close}, which ends the
 * open request or the pause.
 */
final class ConsulAgent {
    private static final Duration MAX_CONNECT_TIME = Duration.ofSeconds(3);
    private static final long FIRST_PAUSE_MILLIS = 100;
    private static final long MAX_PAUSE_MILLIS = 2_000;

    /** Max characters of the reason in an error, such as why an answer cannot be read. */
    private static final int MAX_TEXT = 500;

    private final URI base;
    private final @Nullable AclToken token;

    /**
     * HTTP client, null before the first request. The thread that sends the requests makes it: the client's threads
     * inherit from that thread, and nothing from the thread that first needed an agent.
     */
    private @Nullable HttpClient client;

    /** Opened by any thread that closes this agent, or by the thread that sends the requests if it is interrupted. */
    private final CountDownLatch closed = new CountDownLatch(1);

    /**
     * The last request; null before the first one. The thread that sends the requests writes this field, and the thread
     * that closes this agent reads it.
     */
    private volatile @Nullable CompletableFuture<HttpResponse<byte[]>> asked;

    ConsulAgent(URI base, @Nullable AclToken token) {
        this.base = base;
        this.token = token;
    }

    static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /**
     * Returns an error whose reason may be text of whoever has answered. It has no cause, since a cause would show that
     * text unescaped.
     */
    static IOException failure(String of, String why) {
        return new IOException(of + ": " + VisibleText.line(why, MAX_TEXT));
    }

    boolean isClosed() {
        return closed.getCount() == 0;
    }

    void close() {
        // This thread opens "closed" before it reads "asked". The thread that sends a request writes "asked" before it
        // looks at "closed". So at least one of them cancels the request. In another order, the request could go on
        // until its time is over.
        closed.countDown();
        CompletableFuture<HttpResponse<byte[]>> question = asked;
        if (question != null) {
            question.cancel(true);
        }
    }

    /**
     * Waits after a failure: 100 ms after the first one in a row, and twice as long after each further one, up to 2 s.
     * Jitter shortens the wait by up to half of it. The wait ends when the agent is closed.
     */
    void pause(int failures) {
        long millis = Math.min(MAX_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << Math.min(failures - 1, 10));
        pauseMillis(ThreadLocalRandom.current().nextLong(millis / 2, millis + 1));
    }

    void pauseMillis(long millis) {
        try {
            boolean isOver = closed.await(millis, TimeUnit.MILLISECONDS);
            assert !isOver || isClosed();
        } catch (InterruptedException e) {
            closed.countDown();
        }
    }

    HttpResponse<byte[]> get(String pathAndQuery, long millis) throws IOException {
        return ask(request(pathAndQuery).GET(), millis);
    }

    HttpResponse<byte[]> put(String path, byte[] body, long millis) throws IOException {
        return ask(request(path).PUT(HttpRequest.BodyPublishers.ofByteArray(body)), millis);
    }

    /** Ends the threads of the HTTP client. The thread that sends the requests calls this after its last one. */
    void end() {
        // A client can be closed from Java 21 on; before that its threads end when it is garbage-collected.
        if (client instanceof AutoCloseable threads) {
            boolean interrupted = Thread.interrupted();
            try {
                // On an interrupted thread close() ends what is open instead of waiting for it.
                Thread.currentThread().interrupt();
                threads.close();
            } catch (Exception e) {
                System.getLogger(ConsulAgent.class.getName()).log(System.Logger.Level.DEBUG, "not closed", e);
            } finally {
                if (Thread.interrupted() && interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    private HttpClient client() {
        HttpClient before = client;
        if (before != null) {
            return before;
        }
        HttpClient made = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(MAX_CONNECT_TIME)
                .build();
        client = made;
        return made;
    }

    private HttpRequest.Builder request(String pathAndQuery) {
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(base + pathAndQuery));
        return token == null ? builder : builder.header("X-Consul-Token", token.secret());
    }

    private HttpResponse<byte[]> ask(HttpRequest.Builder request, long millis) throws IOException {
        CompletableFuture<HttpResponse<byte[]>> question =
                client().sendAsync(request.build(), head -> new LimitedBody());
        asked = question;
        if (isClosed()) {
            // Another thread has closed the agent since the caller's last check, perhaps before "asked" was written.
            question.cancel(true);
        }
        try {
            return question.get(millis, TimeUnit.MILLISECONDS);
        } catch (ExecutionException | CancellationException e) {
            Throwable why = e.getCause() == null ? e : e.getCause();
            throw failure(base.toString(), why.toString());
        } catch (TimeoutException e) {
            question.cancel(true);
            throw new IOException(base + ": no answer within " + millis + " ms", e);
        } catch (InterruptedException e) {
            closed.countDown();
            throw new IOException("interrupted", e);
        }
    }
}
