package dev.parley.transport.restcalls;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.Bulk;
import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * One operation of one service as HTTP has it, whichever client sends it. Immutable.
 *
 * @param uri without a query
 * @param accept the media type of a reply
 */
public record RestCall<Q extends Record, R extends Record>(Operation<Q, R> operation, String uri, String accept) {

    /**
     * A request's body and what goes with it.
     *
     * @param uri with the words about a large content as its query
     * @param mediaType of the body; empty where there is none
     * @param bytes null for a request without a body, which is a GET; all others are POST
     */
    public record Sent(String uri, String mediaType, byte @Nullable [] bytes) {}

    /** The calls of a contract by the names of their operations. */
    public static Map<String, RestCall<?, ?>> of(Contract contract, Location to) {
        return contract.operations().stream()
                .map(operation -> of(operation, "http://" + to + "/" + contract.name() + "/" + operation.name()))
                .collect(Collectors.toUnmodifiableMap(call -> call.operation().name(), call -> call));
    }

    private static <Q extends Record, R extends Record> RestCall<Q, R> of(Operation<Q, R> operation, String uri) {
        return new RestCall<>(
                operation, uri, Bulk.of(operation.reply()).isPresent() ? OctetStream.MEDIA_TYPE : "application/json");
    }

    /** One of these operations, by the name of one that a caller has. */
    @SuppressWarnings("unchecked") // an operation's call has the operation's records
    public static <Q extends Record, R extends Record> RestCall<Q, R> named(
            Map<String, RestCall<?, ?>> calls, Operation<Q, R> operation, Location to) {
        RestCall<?, ?> call = calls.get(operation.name());
        if (call == null) {
            throw new CallException(CallException.Code.NOT_FOUND, "no operation " + operation.name() + " at " + to);
        }
        return (RestCall<Q, R>) call;
    }

    public Sent sent(Q request) {
        Optional<Bulk<Q>> bulk = Bulk.of(operation.request());
        if (bulk.isPresent()) {
            return new Sent(
                    uri + OctetStream.query(bulk.get().words(request)),
                    OctetStream.MEDIA_TYPE,
                    bulk.get().content(request));
        }
        return switch (operation.kind()) {
            case FETCH -> new Sent(uri, "", null);
            case QUERY, MUTATION -> new Sent(uri, "application/json", JsonCodec.encode(request));
        };
    }

    /**
     * What a response says.
     *
     * @param header a response's first header of a name, null for none
     * @throws CallException the error that the response carries, or what its status means
     */
    public R reply(int status, Function<String, @Nullable String> header, byte[] body) {
        if (status == 200) {
            Optional<Bulk<R>> bulk = Bulk.of(operation.reply());
            return bulk.isPresent()
                    ? bulk.get().of(words(bulk.get(), header), body)
                    : JsonCodec.decode(body, operation.reply());
        }
        String mediaType = header.apply("Content-Type");
        if (mediaType != null && mediaType.startsWith(Problem.MEDIA_TYPE)) {
            throw JsonCodec.decode(body, Problem.class).asException();
        }
        throw new CallException(Problem.code(status), "status " + status + " from " + uri);
    }

    private static Map<String, String> words(Bulk<?> bulk, Function<String, @Nullable String> header) {
        Map<String, String> words = new HashMap<>();
        for (String word : bulk.wordNames()) {
            String value = header.apply(OctetStream.header(word));
            if (value != null) {
                words.put(word, OctetStream.decoded(value));
            }
        }
        return words;
    }

    /** How many bytes a message's body takes. */
    public static long payloadBytes(Record message) {
        return bytes(message, message.getClass());
    }

    private static <T extends Record> long bytes(Record message, Class<T> type) {
        return Bulk.of(type)
                .map(bulk -> bulk.content(type.cast(message)).length)
                .orElseGet(() -> JsonCodec.encode(message).length);
    }
}
