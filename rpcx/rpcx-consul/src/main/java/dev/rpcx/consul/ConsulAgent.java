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

/** Asks an agent, one question at a time, from one thread; {@link #close} from any ends question and pause. */
final class ConsulAgent {
    private static final Duration CONNECT_TIME = Duration.ofSeconds(3);
    private static final long FIRST_PAUSE_MILLIS = 100;
    private static final long MOST_PAUSE_MILLIS = 2_000;

    /** Characters of what is said of an answer that cannot be read. */
    private static final int MOST_TEXT = 500;

    private final URI base;
    private final @Nullable AclToken token;

    /**
     * The thread that asks makes it: the client's threads inherit from that one, and nothing from whoever was first to
     * need an agent.
     */
    private @Nullable HttpClient client;

    private final CountDownLatch closed = new CountDownLatch(1);
    private volatile @Nullable CompletableFuture<HttpResponse<byte[]>> asked;

    ConsulAgent(URI base, @Nullable AclToken token) {
        this.base = base;
        this.token = token;
    }

    static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Words that may be those of whoever answers: their line has no cause, which would have them as they are. */
    static IOException failure(String of, String why) {
        return new IOException(of + ": " + VisibleText.line(why, MOST_TEXT));
    }

    boolean isClosed() {
        return closed.getCount() == 0;
    }

    void close() {
        closed.countDown();
        CompletableFuture<HttpResponse<byte[]>> question = asked;
        if (question != null) {
            question.cancel(true);
        }
    }

    /** Waits longer after each failure in a row, with jitter; or until closed. */
    void pause(int failures) {
        long millis = Math.min(MOST_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << Math.min(failures - 1, 10));
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

    /** Ends the threads of the HTTP client. By the thread that asks, when it asks no more. */
    void end() {
        // from Java 21 on; before that they end when the client is collected
        if (client instanceof AutoCloseable threads) {
            boolean interrupted = Thread.interrupted();
            try {
                // interrupted, it ends what is under way instead of waiting for it
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
                .connectTimeout(CONNECT_TIME)
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
            // closed between the last look and the question
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
