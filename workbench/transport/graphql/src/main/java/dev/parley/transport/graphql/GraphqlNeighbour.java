package dev.parley.transport.graphql;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JavaType;

/** Calls one service. The text of each query is written once; what differs from call to call travels as variables. */
final class GraphqlNeighbour implements Neighbour {
    private final Location to;
    private final URI uri;
    private final Map<String, Prepared> prepared = new HashMap<>();
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** @param replyType the JSON of the whole response */
    private record Prepared(String text, JavaType replyType) {}

    private final Selection selection;

    GraphqlNeighbour(Contract contract, Location to, Selection selection) {
        this.to = to;
        this.selection = selection;
        this.uri = URI.create("http://" + to.host() + ":" + to.port() + Wire.PATH);
        for (Operation<?, ?> operation : contract.operations()) {
            prepared.put(operation.name(), prepare(operation));
        }
    }

    private Prepared prepare(Operation<?, ?> operation) {
        Class<?> reply = operation.reply().getRecordComponents().length > 0 ? operation.reply() : Boolean.class;
        return new Prepared(
                selection == Selection.READ ? QueryText.of(operation, operation.read()) : QueryText.of(operation),
                Wire.JSON.getTypeFactory().constructParametricType(Wire.Reply.class, reply));
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<HttpResponse<byte[]>> exchange = exchange(operation, request);
        try {
            return reply(operation, exchange.get(timeout.toNanos(), TimeUnit.NANOSECONDS));
        } catch (ExecutionException e) {
            throw fault(e.getCause());
        } catch (TimeoutException e) {
            exchange.cancel(true);
            throw CallException.late(to, timeout);
        } catch (InterruptedException e) {
            exchange.cancel(true);
            Thread.currentThread().interrupt();
            throw new CallException(Code.UNAVAILABLE, "interrupted while waiting for " + to, e);
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<HttpResponse<byte[]>> exchange = exchange(operation, request);
        return exchange.copy()
                .orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS)
                .handle((response, thrown) -> {
                    if (thrown == null) {
                        return reply(operation, response);
                    }
                    Throwable cause = thrown instanceof CompletionException && thrown.getCause() != null
                            ? thrown.getCause()
                            : thrown;
                    if (cause instanceof TimeoutException) {
                        exchange.cancel(true);
                        throw CallException.late(to, timeout);
                    }
                    throw fault(cause);
                });
    }

    private CompletableFuture<HttpResponse<byte[]>> exchange(Operation<?, ?> operation, Record request) {
        Prepared known = prepared.get(operation.name());
        if (known == null) {
            // the server says what it thinks of an operation that its contract does not have
            known = prepare(operation);
        }
        Map<String, Object> variables =
                request.getClass().getRecordComponents().length > 0 ? Map.of(ContractSchema.INPUT, request) : Map.of();
        byte[] body = Wire.JSON.writeValueAsBytes(new Wire.Request(known.text(), operation.name(), variables));
        return http.sendAsync(
                HttpRequest.newBuilder(uri)
                        .header("Content-Type", Wire.REQUEST_TYPE)
                        .header("Accept", Wire.ACCEPTED)
                        .POST(BodyPublishers.ofByteArray(body))
                        .build(),
                BodyHandlers.ofByteArray());
    }

    private <R extends Record> R reply(Operation<?, R> operation, HttpResponse<byte[]> response) {
        Prepared known = prepared.get(operation.name());
        Wire.Reply<?> reply;
        try {
            reply = (selection == Selection.READ ? Wire.PARTIAL : Wire.JSON)
                    .readValue(response.body(), (known == null ? prepare(operation) : known).replyType());
        } catch (JacksonException e) {
            throw new CallException(
                    Code.PROTOCOL,
                    to + " answered HTTP " + response.statusCode() + " with something else than a GraphQL response: "
                            + e.getOriginalMessage(),
                    e);
        }
        if (reply.errors() != null && !reply.errors().isEmpty()) {
            Wire.Fault fault = reply.errors().getFirst();
            throw new CallException(code(fault), fault.message());
        }
        Object value = reply.data() == null ? null : reply.data().get(operation.name());
        if (value == null) {
            throw new CallException(
                    Code.PROTOCOL,
                    to + " answered HTTP " + response.statusCode() + " without data." + operation.name());
        }
        return operation.reply().cast(value instanceof Boolean ? empty(operation.reply()) : value);
    }

    private static Object empty(Class<?> record) {
        return Wire.JSON.convertValue(Map.of(), record);
    }

    private static Code code(Wire.Fault fault) {
        Object code = fault.extensions() == null ? null : fault.extensions().get(GraphqlEngine.CODE);
        for (Code known : Code.values()) {
            if (known.name().equals(code)) {
                return known;
            }
        }
        return Code.REMOTE_ERROR;
    }

    private CallException fault(@Nullable Throwable thrown) {
        return switch (thrown) {
            case CallException call -> call;
            case HttpTimeoutException e -> new CallException(Code.DEADLINE_EXCEEDED, to + ": " + e.getMessage(), e);
            case IOException e -> new CallException(Code.UNAVAILABLE, to + " cannot be reached: " + described(e), e);
            case null, default -> new CallException(Code.UNAVAILABLE, to + ": " + thrown, thrown);
        };
    }

    private static String described(Throwable thrown) {
        // a refused connection has no message of its own in java.net.http
        return thrown.getMessage() == null ? thrown.getClass().getSimpleName() : thrown.getMessage();
    }

    @Override
    public long payloadBytes(Record message) {
        return Wire.JSON.writeValueAsBytes(message).length;
    }

    @Override
    public void close() {
        http.shutdownNow();
        try {
            // its threads end after the calls that were under way have been told
            http.awaitTermination(Duration.ofSeconds(1));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
