package dev.parley.transport.rest;

import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.transport.restcalls.RestCall;
import java.io.IOException;
import java.net.ProtocolException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** One {@link HttpClient} with its pool of connections to one service. */
final class RestNeighbour implements Neighbour {
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Location to;
    private final Map<String, RestCall<?, ?>> calls;
    /** What each call starts from: address and headers do not change. */
    private final Map<RestCall<?, ?>, HttpRequest.Builder> templates;

    RestNeighbour(Contract contract, Location to) {
        this.to = to;
        this.calls = RestCall.of(contract, to);
        this.templates = new IdentityHashMap<>();
        calls.values()
                .forEach(call -> templates.put(
                        call, HttpRequest.newBuilder(URI.create(call.uri())).header("Accept", call.accept())));
    }

    /**
     * Waits for a future rather than in {@link HttpClient#send}: the client's own timeout ends with the reply's headers, a deadline with
     * its last byte.
     */
    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        RestCall<Q, R> call = RestCall.named(calls, operation, to);
        var exchange = exchange(call, request);
        try {
            return reply(call, exchange.get(timeout.toNanos(), TimeUnit.NANOSECONDS));
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
        RestCall<Q, R> call;
        CompletableFuture<HttpResponse<byte[]>> exchange;
        try {
            call = RestCall.named(calls, operation, to);
            exchange = exchange(call, request);
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
                    return reply(call, response);
                });
    }

    private <Q extends Record> CompletableFuture<HttpResponse<byte[]>> exchange(RestCall<Q, ?> call, Q request) {
        HttpRequest.Builder builder = Objects.requireNonNull(templates.get(call), "one of this neighbour's calls")
                .copy();
        RestCall.Sent sent = call.sent(request);
        byte[] body = sent.bytes();
        if (body == null) {
            builder.GET();
        } else {
            builder.header("Content-Type", sent.mediaType()).POST(HttpRequest.BodyPublishers.ofByteArray(body));
            if (!sent.uri().equals(call.uri())) {
                builder.uri(URI.create(sent.uri()));
            }
        }
        return client.sendAsync(builder.build(), HttpResponse.BodyHandlers.ofByteArray());
    }

    private static <R extends Record> R reply(RestCall<?, R> call, HttpResponse<byte[]> response) {
        return call.reply(
                response.statusCode(),
                name -> response.headers().firstValue(name).orElse(null),
                response.body());
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
        return RestCall.payloadBytes(message);
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
