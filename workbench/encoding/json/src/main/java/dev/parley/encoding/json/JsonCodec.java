package dev.parley.encoding.json;

import dev.parley.spi.CallException;
import java.io.InputStream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.MapperFeature;
import tools.jackson.databind.cfg.CoercionAction;
import tools.jackson.databind.cfg.CoercionInputShape;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.type.LogicalType;

/**
 * Writes records as JSON and reads them back with one shared Jackson mapper, as its documentation advises. Reading is
 * strict: an unknown, missing or null property, a number in quotes, a fraction for a whole number and anything after
 * the value are errors. Thread-safe, blocks only on the stream it is given.
 *
 * <p>A string may have 20 000 000 characters and a number 1 000, a document any length: these are Jackson's default
 * {@code StreamReadConstraints}.
 */
public final class JsonCodec {
    private static final JsonMapper MAPPER = JsonMapper.builder()
            .enable(
                    DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES,
                    DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES,
                    DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES,
                    DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES,
                    DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
            // the order of the record's components, which is the order a person reads in the contract
            .disable(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY, MapperFeature.ALLOW_COERCION_OF_SCALARS)
            .withCoercionConfig(
                    LogicalType.Textual,
                    text -> text.setCoercion(CoercionInputShape.Integer, CoercionAction.Fail)
                            .setCoercion(CoercionInputShape.Float, CoercionAction.Fail)
                            .setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail))
            .build();

    private JsonCodec() {}

    /** The mapper itself, for technologies whose messages hold a record among other things. */
    public static JsonMapper mapper() {
        return MAPPER;
    }

    /**
     * @throws CallException {@link CallException.Code#PROTOCOL} if the record cannot be written, such as one with a
     *     cycle
     */
    public static byte[] encode(Record value) {
        try {
            return MAPPER.writeValueAsBytes(value);
        } catch (JacksonException e) {
            throw new CallException(
                    CallException.Code.PROTOCOL,
                    value.getClass().getSimpleName() + " cannot be written as JSON: " + e.getOriginalMessage(),
                    e);
        }
    }

    /** @throws CallException {@link CallException.Code#PROTOCOL} if the bytes are not exactly one {@code type} */
    public static <R extends Record> R decode(byte[] json, Class<R> type) {
        try {
            return present(MAPPER.readValue(json, type), type);
        } catch (JacksonException e) {
            throw unreadable(type, e);
        }
    }

    /**
     * Reads to the end of the stream and closes it.
     *
     * @throws CallException {@link CallException.Code#PROTOCOL} if the bytes are not exactly one {@code type}
     */
    public static <R extends Record> R decode(InputStream json, Class<R> type) {
        try {
            return present(MAPPER.readValue(json, type), type);
        } catch (JacksonException e) {
            throw unreadable(type, e);
        }
    }

    /** Jackson takes JSON's {@code null} for a value; a contract does not. */
    private static <R extends Record> R present(@org.jspecify.annotations.Nullable R value, Class<R> type) {
        if (value == null) {
            throw new CallException(
                    CallException.Code.PROTOCOL, "not a " + type.getSimpleName() + ": null (expected: a JSON object)");
        }
        return value;
    }

    private static CallException unreadable(Class<?> type, JacksonException e) {
        return new CallException(
                CallException.Code.PROTOCOL, "not a " + type.getSimpleName() + ": " + e.getOriginalMessage(), e);
    }
}
