package dev.rpcx.cli;

import dev.rpcx.schema.EnumType;
import dev.rpcx.schema.FieldType;
import dev.rpcx.schema.MessageType;
import dev.rpcx.schema.Scalar;
import dev.rpcx.schema.Shape;
import dev.rpcx.schema.WellKnown;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/** A method's result as JSON, by the schema that it came by: what was sent and nothing else, in the forms that {@link JsonArguments} reads. */
final class JsonResult {
    private static final JsonMapper JSON =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private JsonResult() {}

    /** Of the methods that bring nothing. */
    static boolean isVoid(MessageType result) {
        return result.javaClass() == Void.class;
    }

    /**
     * In lines, with each of the server's characters that a terminal would obey as an escape.
     *
     * @throws IllegalStateException a class of the result does not give what it holds
     */
    static String text(MessageType result, @Nullable Object value) {
        JsonNode node = result.kind() == MessageType.Kind.WRAPPER
                ? field(result.fields().get(0), value)
                : element(result, value);
        return Printable.lines(JSON.writeValueAsString(node));
    }

    private static JsonNode field(FieldType field, @Nullable Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        return switch (field.holder()) {
            case PLAIN, NULLABLE -> element(field.shape(), value);
            case OPTIONAL -> element(field.shape(), ((Optional<?>) value).orElse(null));
            case LIST, SET -> {
                ArrayNode array = NODES.arrayNode();
                ((Collection<?>) value).forEach(element -> array.add(element(field.shape(), element)));
                yield array;
            }
            case MAP -> map(field, (Map<?, ?>) value);
        };
    }

    private static JsonNode map(FieldType field, Map<?, ?> map) {
        Shape keys = Objects.requireNonNull(field.key());
        ObjectNode object = NODES.objectNode();
        ArrayNode pairs = NODES.arrayNode();
        map.forEach((k, v) -> {
            JsonNode key = element(keys, k);
            JsonNode value = element(field.shape(), v);
            if (JsonArguments.isText(keys)) {
                object.set(key.isString() ? key.stringValue() : key.toString(), value);
            } else {
                ObjectNode pair = NODES.objectNode();
                pair.set("key", key);
                pair.set("value", value);
                pairs.add(pair);
            }
        });
        return JsonArguments.isText(keys) ? object : pairs;
    }

    private static JsonNode element(Shape shape, @Nullable Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        if (shape instanceof Scalar scalar) {
            return scalar(scalar, value);
        }
        if (shape instanceof EnumType) {
            return NODES.stringNode(((Enum<?>) value).name());
        }
        if (shape instanceof MessageType message) {
            return message(message, value);
        }
        return shape == WellKnown.DECIMAL ? NODES.numberNode((BigDecimal) value) : NODES.stringNode(value.toString());
    }

    private static JsonNode scalar(Scalar scalar, Object value) {
        return switch (scalar) {
            case BOOL -> NODES.booleanNode((Boolean) value);
            case BYTE, SHORT, INT, LONG -> NODES.numberNode(((Number) value).longValue());
            case BIG_INTEGER -> NODES.numberNode((BigInteger) value);
            case FLOAT, DOUBLE -> {
                double number = ((Number) value).doubleValue();
                yield !Double.isFinite(number)
                        ? NODES.stringNode(value.toString())
                        : value instanceof Float single ? NODES.numberNode(single) : NODES.numberNode(number);
            }
            case BYTES -> NODES.stringNode(Base64.getEncoder().encodeToString((byte[]) value));
            case CHAR, STRING, UUID -> NODES.stringNode(value.toString());
        };
    }

    private static JsonNode message(MessageType message, Object value) {
        ObjectNode object = NODES.objectNode();
        switch (message.kind()) {
            case RECORD, BEAN -> {
                for (int i = 0; i < message.fields().size(); i++) {
                    FieldType field = message.fields().get(i);
                    object.set(field.name(), field(field, got(message.getters().get(i), value)));
                }
            }
            case ONEOF -> {
                for (FieldType each : message.fields()) {
                    if (each.javaClass() == value.getClass()) {
                        return object.set(each.name(), element(each.shape(), value));
                    }
                }
                // what stands for a newer peer's case holds nothing
                return object.set(value.getClass().getSimpleName(), NODES.objectNode());
            }
            case WRAPPER -> {
                return field(message.fields().get(0), value);
            }
            case PARAMETERS -> throw new IllegalStateException(message + " within a value");
        }
        return object;
    }

    private static @Nullable Object got(Method getter, Object of) {
        try {
            getter.setAccessible(true);
            return getter.invoke(of);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(getter.getName() + " of the result failed: " + e.getCause(), e);
        } catch (IllegalAccessException | InaccessibleObjectException e) {
            throw new IllegalStateException(getter + " cannot be read", e);
        }
    }
}
