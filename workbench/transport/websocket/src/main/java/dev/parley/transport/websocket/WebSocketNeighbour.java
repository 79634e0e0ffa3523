package dev.parley.transport.websocket;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Calls one service over one WebSocket. The first call opens it, and the first call after a loss opens it again. */
final class WebSocketNeighbour implements Neighbour {
    private final Location to;
    private final URI uri;
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** Null before the first call and after a loss. Guarded by this. */
    private @Nullable CompletableFuture<ClientConnection> connection;

    /** Guarded by this. */
    private boolean closed;

    WebSocketNeighbour(Location to) {
        this.to = to;
        this.uri = URI.create("ws://" + to.host() + ":" + to.port() + WebSocketTransport.PATH);
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<String> reply = exchange(operation, request);
        try {
            return Envelope.reply(reply.get(timeout.toNanos(), TimeUnit.NANOSECONDS), operation.reply());
        } catch (ExecutionException e) {
            throw fault(e);
        } catch (TimeoutException e) {
            reply.cancel(false);
            throw late(timeout);
        } catch (InterruptedException e) {
            reply.cancel(false);
            Thread.currentThread().interrupt();
            throw new CallException(Code.UNAVAILABLE, "interrupted while waiting for " + to, e);
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        return exchange(operation, request)
                .orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS)
                .handle((text, thrown) -> {
                    if (thrown == null) {
                        return Envelope.reply(text, operation.reply());
                    }
                    throw thrown instanceof TimeoutException ? late(timeout) : fault(thrown);
                });
    }

    /** The reply's text. Cancelling or ending it in any way takes the call out of the table of those in flight. */
    private CompletableFuture<String> exchange(Operation<?, ?> operation, Record request) {
        CompletableFuture<String> reply = new CompletableFuture<>();
        connection().whenComplete((open, thrown) -> {
            if (thrown == null) {
                open.send(operation.name(), request, reply);
            } else {
                reply.completeExceptionally(thrown);
            }
        });
        return reply;
    }

    private synchronized CompletableFuture<ClientConnection> connection() {
        if (closed) {
            return CompletableFuture.failedFuture(
                    new CallException(Code.UNAVAILABLE, "the client of " + to + " is closed"));
        }
        if (connection == null || lost(connection)) {
            connection = ClientConnection.open(http, uri, to);
        }
        return connection;
    }

    private static boolean lost(CompletableFuture<ClientConnection> connection) {
        return connection.isCompletedExceptionally()
                || connection.isDone() && connection.join().isLost();
    }

    private CallException late(Duration timeout) {
        return new CallException(Code.DEADLINE_EXCEEDED, to + " did not answer within " + timeout.toMillis() + " ms");
    }

    private CallException fault(Throwable thrown) {
        Throwable cause = thrown;
        while ((cause instanceof CompletionException || cause instanceof ExecutionException)
                && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause instanceof CallException call
                ? call
                : new CallException(Code.UNAVAILABLE, to + " cannot be reached: " + cause, cause);
    }

    @Override
    public long payloadBytes(Record message) {
        return JsonCodec.encode(message).length;
    }

    @Override
    public void close() {
        CompletableFuture<ClientConnection> open;
        synchronized (this) {
            closed = true;
            open = connection;
        }
        if (open != null && open.isDone() && !open.isCompletedExceptionally()) {
            open.join().close();
        }
        http.shutdownNow();
        try {
            // its threads end after the calls that were under way have been told
            http.awaitTermination(Duration.ofSeconds(1));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
