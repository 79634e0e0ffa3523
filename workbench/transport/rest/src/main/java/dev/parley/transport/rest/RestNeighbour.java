package dev.parley.transport.rest;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import java.io.IOException;
import java.net.ProtocolException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/** One {@link HttpClient} with its pool of connections to one service. */
final class RestNeighbour implements Neighbour {
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Location to;
    /** What each call starts from: method, address and headers do not change. */
    private final Map<String, HttpRequest.Builder> templates;

    RestNeighbour(Contract contract, Location to) {
        this.to = to;
        this.templates = contract.operations().stream()
                .collect(Collectors.toUnmodifiableMap(
                        Operation::name,
                        operation -> HttpRequest.newBuilder(
                                        URI.create("http://" + to + "/" + contract.name() + "/" + operation.name()))
                                .header("Accept", "application/json")));
    }

    /**
     * Waits for a future rather than in {@link HttpClient#send}: the client's own timeout ends with the reply's headers, a deadline with
     * its last byte.
     */
    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        var exchange = exchange(operation, request);
        try {
            return reply(operation, exchange.get(timeout.toNanos(), TimeUnit.NANOSECONDS));
        } catch (TimeoutException e) {
            exchange.cancel(true);
            throw late(timeout);
        } catch (InterruptedException e) {
            exchange.cancel(true);
            Thread.currentThread().interrupt();
            throw new CallException(CallException.Code.UNAVAILABLE, "interrupted while waiting for " + to, e);
        } catch (ExecutionException e) {
            throw failed(e, timeout);
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<HttpResponse<byte[]>> exchange;
        try {
            exchange = exchange(operation, request);
        } catch (CallException e) {
            return CompletableFuture.failedFuture(e);
        }
        return exchange.copy()
                .orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS)
                .handle((response, failure) -> {
                    if (failure != null) {
                        // does nothing to an exchange that has ended
                        exchange.cancel(true);
                        throw failed(failure, timeout);
                    }
                    return reply(operation, response);
                });
    }

    private CompletableFuture<HttpResponse<byte[]>> exchange(Operation<?, ?> operation, Record request) {
        HttpRequest.Builder template = templates.get(operation.name());
        if (template == null) {
            throw new CallException(CallException.Code.NOT_FOUND, "no operation " + operation.name() + " at " + to);
        }
        HttpRequest.Builder builder = template.copy();
        switch (operation.kind()) {
            case FETCH -> builder.GET();
            case QUERY, MUTATION ->
                builder.header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofByteArray(JsonCodec.encode(request)));
        }
        return client.sendAsync(builder.build(), HttpResponse.BodyHandlers.ofByteArray());
    }

    private static <R extends Record> R reply(Operation<?, R> operation, HttpResponse<byte[]> response) {
        if (response.statusCode() == 200) {
            return JsonCodec.decode(response.body(), operation.reply());
        }
        if (response.headers().firstValue("Content-Type").orElse("").startsWith(Problem.MEDIA_TYPE)) {
            throw JsonCodec.decode(response.body(), Problem.class).asException();
        }
        throw new CallException(
                Problem.code(response.statusCode()), "status " + response.statusCode() + " from " + response.uri());
    }

    private CallException failed(Throwable thrown, Duration timeout) {
        Throwable t = thrown;
        while ((t instanceof CompletionException || t instanceof ExecutionException) && t.getCause() != null) {
            t = t.getCause();
        }
        return switch (t) {
            case CallException e -> e;
            case TimeoutException e -> late(timeout);
            case ProtocolException e -> new CallException(CallException.Code.PROTOCOL, to + ": " + e.getMessage(), e);
            case IOException e ->
                new CallException(
                        CallException.Code.UNAVAILABLE,
                        to + ": " + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()),
                        e);
            case CancellationException e -> new CallException(CallException.Code.UNAVAILABLE, to + ": cancelled", e);
            default -> new CallException(CallException.Code.PROTOCOL, to + ": " + t, t);
        };
    }

    private CallException late(Duration timeout) {
        return new CallException(
                CallException.Code.DEADLINE_EXCEEDED, "no reply from " + to + " within " + timeout.toMillis() + " ms");
    }

    @Override
    public long payloadBytes(Record message) {
        return JsonCodec.encode(message).length;
    }

    @Override
    public void close() {
        client.shutdownNow();
        try {
            // its threads end after the calls that were under way have been told
            client.awaitTermination(Duration.ofSeconds(1));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
