package dev.parley.transport.websocketcalls;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Operation;
import java.io.StringWriter;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.ObjectReader;
import tools.jackson.databind.ObjectWriter;

/**
 * The messages: {@code {"id":7,"operation":"onlyText","body":{…}}}, answered by {@code {"id":7,"body":{…}}} or
 * {@code {"id":7,"error":{"code":"INVALID","message":"…"}}}. Properties stand in this order, so that a reader knows the body's type when it
 * comes to it.
 */
public final class Envelope {
    /** Longest message in either direction; as long as the 20 000 000 characters that Jackson allows a string. */
    public static final int MAX_CHARS = 20_000_000;

    /** What a technology says of its serializer. */
    public static final String SERIALIZER =
            "Jackson 3: {\"id\", \"operation\", \"body\"}, answered by {\"id\", \"body\"} or {\"id\", \"error\"}";

    private static final ObjectWriter WRITER = JsonCodec.mapper().writer();
    private static final ObjectReader READER =
            JsonCodec.mapper().reader().without(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private Envelope() {}

    /** @throws CallException {@link Code#TOO_LARGE} above {@link #MAX_CHARS} */
    static String request(long id, String operation, Record body) {
        return written(id, json -> {
            json.writeStringProperty("operation", operation);
            json.writeName("body");
            WRITER.writeValue(json, body);
        });
    }

    /** @throws CallException {@link Code#TOO_LARGE} above {@link #MAX_CHARS} */
    static String reply(long id, Record body) {
        return written(id, json -> {
            json.writeName("body");
            WRITER.writeValue(json, body);
        });
    }

    static String error(long id, CallException error) {
        return written(id, json -> {
            json.writeObjectPropertyStart("error");
            json.writeStringProperty("code", error.code().name());
            json.writeStringProperty("message", String.valueOf(error.getMessage()));
            json.writeEndObject();
        });
    }

    private interface Rest {
        void write(JsonGenerator json);
    }

    private static String written(long id, Rest rest) {
        StringWriter text = new StringWriter();
        try (JsonGenerator json = WRITER.createGenerator(text)) {
            json.writeStartObject();
            json.writeNumberProperty("id", id);
            rest.write(json);
            json.writeEndObject();
        }
        if (text.getBuffer().length() > MAX_CHARS) {
            throw new CallException(
                    Code.TOO_LARGE,
                    "message of " + text.getBuffer().length() + " characters (expected: at most " + MAX_CHARS + ")");
        }
        return text.toString();
    }

    /** @param body null where the operation is unknown */
    record Request(
            long id,
            String operationName,
            @Nullable Operation<?, ?> operation,
            @Nullable Record body) {}

    /**
     * The number of the call, without reading further.
     *
     * @throws CallException {@link Code#PROTOCOL} if the text does not begin as a message does
     */
    static long id(String text) {
        try (JsonParser json = READER.createParser(text)) {
            return id(json);
        } catch (JacksonException e) {
            throw unreadable(e);
        }
    }

    /** @throws CallException {@link Code#PROTOCOL} for anything else than a request, also for a body that is not the operation's */
    static Request request(String text, Contract contract) {
        try (JsonParser json = READER.createParser(text)) {
            long id = id(json);
            expect(json, "operation");
            String name = json.nextStringValue();
            if (name == null) {
                throw new CallException(Code.PROTOCOL, "operation: not a string");
            }
            Operation<?, ?> operation = contract.operations().stream()
                    .filter(known -> known.name().equals(name))
                    .findFirst()
                    .orElse(null);
            if (operation == null) {
                return new Request(id, name, null, null);
            }
            expect(json, "body");
            Record body = body(json, operation.request());
            end(json);
            return new Request(id, name, operation, body);
        } catch (JacksonException e) {
            throw unreadable(e);
        }
    }

    /** @throws CallException the error that the message carries, or {@link Code#PROTOCOL} */
    static <R extends Record> R reply(String text, Class<R> type) {
        try (JsonParser json = READER.createParser(text)) {
            id(json);
            String name = json.nextName();
            if ("error".equals(name)) {
                json.nextToken();
                throw error(READER.forType(Fault.class).readValue(json));
            }
            if (!"body".equals(name)) {
                throw new CallException(Code.PROTOCOL, "a reply with " + name + " (expected: body or error)");
            }
            R reply = body(json, type);
            end(json);
            return reply;
        } catch (JacksonException e) {
            throw unreadable(e);
        }
    }

    private record Fault(String code, String message) {}

    private static CallException error(Fault fault) {
        for (Code code : Code.values()) {
            if (code.name().equals(fault.code())) {
                return new CallException(code, fault.message());
            }
        }
        return new CallException(Code.REMOTE_ERROR, fault.code() + ": " + fault.message());
    }

    private static long id(JsonParser json) {
        if (json.nextToken() != JsonToken.START_OBJECT) {
            throw new CallException(Code.PROTOCOL, "not a message: " + json.currentToken() + " (expected: an object)");
        }
        expect(json, "id");
        if (json.nextToken() != JsonToken.VALUE_NUMBER_INT) {
            throw new CallException(Code.PROTOCOL, "id: not a whole number");
        }
        return json.getLongValue();
    }

    private static void expect(JsonParser json, String property) {
        String name = json.nextName();
        if (!property.equals(name)) {
            throw new CallException(Code.PROTOCOL, "not a message: " + name + " (expected: " + property + ")");
        }
    }

    private static <R extends Record> R body(JsonParser json, Class<R> type) {
        if (json.nextToken() != JsonToken.START_OBJECT) {
            throw new CallException(Code.PROTOCOL, "body: " + json.currentToken() + " (expected: an object)");
        }
        return READER.forType(type).readValue(json);
    }

    private static void end(JsonParser json) {
        if (json.nextToken() != JsonToken.END_OBJECT || json.nextToken() != null) {
            throw new CallException(Code.PROTOCOL, "something follows the body (expected: nothing)");
        }
    }

    private static CallException unreadable(JacksonException e) {
        return new CallException(Code.PROTOCOL, "not a message: " + e.getOriginalMessage(), e);
    }
}
