package dev.parley.transport.rest;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.Bulk;
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
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
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
    private final String contract;
    /** What each call starts from: method, address and headers do not change. */
    private final Map<String, HttpRequest.Builder> templates;

    RestNeighbour(Contract contract, Location to) {
        this.to = to;
        this.contract = contract.name();
        this.templates = contract.operations().stream()
                .collect(Collectors.toUnmodifiableMap(
                        Operation::name,
                        operation -> HttpRequest.newBuilder(URI.create(uri(operation)))
                                .header(
                                        "Accept",
                                        Bulk.of(operation.reply()).isPresent()
                                                ? OctetStream.MEDIA_TYPE
                                                : "application/json")));
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
        sendBody(builder, operation, request);
        return client.sendAsync(builder.build(), HttpResponse.BodyHandlers.ofByteArray());
    }

    private <Q extends Record> void sendBody(HttpRequest.Builder builder, Operation<Q, ?> operation, Record request) {
        Optional<Bulk<Q>> bulk = Bulk.of(operation.request());
        if (bulk.isPresent()) {
            Q value = operation.request().cast(request);
            builder.uri(URI.create(uri(operation) + OctetStream.query(bulk.get().words(value))))
                    .header("Content-Type", OctetStream.MEDIA_TYPE)
                    .POST(HttpRequest.BodyPublishers.ofByteArray(bulk.get().content(value)));
            return;
        }
        switch (operation.kind()) {
            case FETCH -> builder.GET();
            case QUERY, MUTATION ->
                builder.header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofByteArray(JsonCodec.encode(request)));
        }
    }

    private String uri(Operation<?, ?> operation) {
        return "http://" + to + "/" + contract + "/" + operation.name();
    }

    private static <R extends Record> R reply(Operation<?, R> operation, HttpResponse<byte[]> response) {
        if (response.statusCode() == 200) {
            Optional<Bulk<R>> bulk = Bulk.of(operation.reply());
            if (bulk.isPresent()) {
                return bulk.get().of(words(bulk.get(), response), response.body());
            }
            return JsonCodec.decode(response.body(), operation.reply());
        }
        if (response.headers().firstValue("Content-Type").orElse("").startsWith(Problem.MEDIA_TYPE)) {
            throw JsonCodec.decode(response.body(), Problem.class).asException();
        }
        throw new CallException(
                Problem.code(response.statusCode()), "status " + response.statusCode() + " from " + response.uri());
    }

    private static Map<String, String> words(Bulk<?> bulk, HttpResponse<?> response) {
        Map<String, String> words = new HashMap<>();
        bulk.wordNames()
                .forEach(word -> response.headers()
                        .firstValue(OctetStream.header(word))
                        .ifPresent(value -> words.put(word, OctetStream.decoded(value))));
        return words;
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
        return bytes(message, message.getClass());
    }

    private static <R extends Record> long bytes(Record message, Class<R> type) {
        return Bulk.of(type)
                .map(bulk -> bulk.content(type.cast(message)).length)
                .orElseGet(() -> JsonCodec.encode(message).length);
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
