package dev.parley.transport.restspring;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.records.Photo;
import dev.parley.transport.springweb.Photos;
import dev.parley.transport.springweb.Problems;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.http.HttpClient;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.MediaType;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;
import tools.jackson.databind.json.JsonMapper;

/**
 * Calls one service with {@link RestClient}. The read timeout is a property of Spring's request factory, so there is a client for each
 * timeout asked for, over one pool of connections.
 */
final class RestSpringNeighbour implements Neighbour {
    private final String contract;
    private final Location to;
    private final HttpClient http;
    private final ConcurrentHashMap<Duration, RestClient> clients = new ConcurrentHashMap<>();

    RestSpringNeighbour(Contract contract, Location to, boolean tuned) {
        this.contract = contract.name();
        this.to = to;
        HttpClient.Builder builder = HttpClient.newBuilder();
        this.http = (tuned ? builder.version(HttpClient.Version.HTTP_1_1) : builder).build();
    }

    private RestClient client(Duration timeout) {
        JdkClientHttpRequestFactory factory = new JdkClientHttpRequestFactory(http);
        factory.setReadTimeout(timeout);
        return RestClient.builder()
                .requestFactory(factory)
                .baseUrl("http://" + to.host() + ":" + to.port())
                .defaultStatusHandler(HttpStatusCode::isError, (request, response) -> {
                    throw Problems.read(
                            response.getStatusCode().value(), response.getBody().readAllBytes());
                })
                .build();
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        RestClient client = clients.computeIfAbsent(timeout, this::client);
        String path = "/" + contract + "/" + operation.name();
        try {
            RestClient.RequestHeadersSpec<?> spec = switch (request) {
                case Photo photo ->
                    client.post()
                            .uri(path + "?name={name}", photo.name())
                            .contentType(MediaType.APPLICATION_OCTET_STREAM)
                            .body(photo.content());
                case Record nothing
                when operation.kind() == Operation.Kind.FETCH -> client.get().uri(path);
                default ->
                    client.post()
                            .uri(path)
                            .contentType(MediaType.APPLICATION_JSON)
                            .body(request);
            };
            if (operation.reply() == Photo.class) {
                return operation
                        .reply()
                        .cast(Photos.read(
                                spec.accept(MediaType.APPLICATION_OCTET_STREAM, MediaType.APPLICATION_PROBLEM_JSON)
                                        .retrieve()
                                        .toEntity(byte[].class)));
            }
            R reply = spec.accept(MediaType.APPLICATION_JSON).retrieve().body(operation.reply());
            if (reply == null) {
                throw new CallException(Code.PROTOCOL, to + " answered without a body");
            }
            return reply;
        } catch (ResourceAccessException e) {
            throw unreached(e.getCause(), timeout);
        } catch (RestClientException e) {
            throw e.getCause() instanceof IOException cause
                    ? unreached(cause, timeout)
                    : new CallException(Code.PROTOCOL, to + ": " + e.getMessage(), e);
        }
    }

    private CallException unreached(@Nullable Throwable cause, Duration timeout) {
        if (cause instanceof HttpTimeoutException || cause instanceof InterruptedIOException) {
            return new CallException(
                    Code.DEADLINE_EXCEEDED, to + " did not answer within " + timeout.toMillis() + " ms", cause);
        }
        return new CallException(Code.UNAVAILABLE, to + " cannot be reached: " + cause, cause);
    }

    @Override
    public long payloadBytes(Record message) {
        return message instanceof Photo photo
                ? photo.content().length
                : JsonMapper.shared().writeValueAsBytes(message).length;
    }

    @Override
    public void close() {
        http.shutdownNow();
    }
}
