package dev.rpcx.cli;

import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.io.PrintStream;
import java.io.Writer;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Base64;
import java.util.Collection;
import java.util.Date;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonGenerator;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * Writes a method's result as JSON by the schema with which it came: what was sent and nothing else, in the forms that
 * {@link JsonArguments} reads. The JSON is written while the result is walked through: a few bytes of a server may
 * become many lines, and all these lines at once, or a tree of them, may need more memory than there is.
 */
final class JsonResult {
    private static final JsonMapper JSON =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    private final JsonGenerator out;

    private JsonResult(JsonGenerator out) {
        this.out = out;
    }

    /** Whether methods with this result return nothing. */
    static boolean isVoid(MessageType result) {
        return result.javaClass() == Void.class;
    }

    /**
     * Prints the result, in several lines. Each of the server's characters that a terminal would obey is printed as an
     * escape. All of the result is printed or nothing, unless the stream itself fails.
     *
     * @throws IllegalStateException if a getter of the result fails or is not accessible
     */
    static void print(MessageType result, @Nullable Object value, PrintStream to) {
        // This asks the classes of the result for all that they hold before the first line is printed.
        write(result, value, Writer.nullWriter());
        write(result, value, Printable.writer(to));
        to.println();
    }

    private static void write(MessageType result, @Nullable Object value, Writer to) {
        try (JsonGenerator out = JSON.createGenerator(to)) {
            JsonResult written = new JsonResult(out);
            if (result.kind() == MessageType.Kind.WRAPPER) {
                written.field(result.fields().get(0), value);
            } else {
                written.element(result, value);
            }
        }
    }

    private void field(FieldType field, @Nullable Object value) {
        if (value == null) {
            out.writeNull();
            return;
        }
        switch (field.holder()) {
            case PLAIN, NULLABLE -> element(field.shape(), value);
            case OPTIONAL -> element(field.shape(), ((Optional<?>) value).orElse(null));
            case LIST, SET -> {
                out.writeStartArray();
                ((Collection<?>) value).forEach(element -> element(field.shape(), element));
                out.writeEndArray();
            }
            case MAP -> map(field, (Map<?, ?>) value);
        }
    }

    private void map(FieldType field, Map<?, ?> map) {
        Shape keys = Objects.requireNonNull(field.key());
        if (JsonArguments.isText(keys)) {
            out.writeStartObject();
            map.forEach((key, value) -> {
                out.writeName(text(keys, key));
                element(field.shape(), value);
            });
            out.writeEndObject();
            return;
        }
        out.writeStartArray();
        map.forEach((key, value) -> {
            out.writeStartObject();
            out.writeName("key");
            element(keys, key);
            out.writeName("value");
            element(field.shape(), value);
            out.writeEndObject();
        });
        out.writeEndArray();
    }

    private void element(Shape shape, @Nullable Object value) {
        if (value == null) {
            out.writeNull();
        } else if (shape instanceof MessageType message) {
            message(message, value);
        } else if (shape instanceof Scalar scalar) {
            scalar(scalar, value);
        } else if (shape == WellKnown.DECIMAL) {
            out.writeNumber((BigDecimal) value);
        } else {
            out.writeString(text(shape, value));
        }
    }

    private void scalar(Scalar scalar, Object value) {
        switch (scalar) {
            case BOOL -> out.writeBoolean((Boolean) value);
            case BYTE, SHORT, INT, LONG -> out.writeNumber(((Number) value).longValue());
            case BIG_INTEGER -> out.writeNumber((BigInteger) value);
            case FLOAT, DOUBLE -> {
                if (!Double.isFinite(((Number) value).doubleValue())) {
                    out.writeString(value.toString());
                } else if (value instanceof Float single) {
                    out.writeNumber(single);
                } else {
                    out.writeNumber((Double) value);
                }
            }
            case BYTES, CHAR, STRING, UUID, URI -> out.writeString(text(scalar, value));
        }
    }

    /** Returns a value as the text of a JSON string or of a map's key, whatever it is in Java. */
    private static String text(Shape shape, Object value) {
        if (shape == Scalar.BYTES) {
            return Base64.getEncoder().encodeToString((byte[]) value);
        }
        if (shape == WellKnown.DATE) {
            return ((Date) value).toInstant().toString();
        }
        return shape instanceof EnumType ? ((Enum<?>) value).name() : value.toString();
    }

    private void message(MessageType message, Object value) {
        switch (message.kind()) {
            case RECORD, BEAN, CONSTRUCTED -> {
                out.writeStartObject();
                for (int i = 0; i < message.fields().size(); i++) {
                    FieldType field = message.fields().get(i);
                    out.writeName(field.name());
                    field(field, read(message.getters().get(i), value));
                }
                out.writeEndObject();
            }
            case ONEOF -> oneOf(message, value);
            case WRAPPER -> field(message.fields().get(0), value);
            case PARAMETERS -> throw new IllegalStateException(message + " within a value");
        }
    }

    private void oneOf(MessageType message, Object value) {
        out.writeStartObject();
        FieldType given = message.fields().stream()
                .filter(each -> each.javaClass() == value.getClass())
                .findFirst()
                .orElse(null);
        if (given != null) {
            out.writeName(given.name());
            element(given.shape(), value);
        } else {
            // The object that stands for a newer peer's case holds nothing.
            out.writeName(value.getClass().getSimpleName());
            out.writeStartObject();
            out.writeEndObject();
        }
        out.writeEndObject();
    }

    private static @Nullable Object read(Method getter, Object of) {
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
