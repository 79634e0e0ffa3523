package dev.rpcx.cli;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.OneofDescriptor;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.WireFormat;
import java.io.IOException;
import java.io.PrintStream;
import java.io.Writer;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.exc.StreamConstraintsException;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * Writes encoded messages as JSON by the mapping that Protobuf defines, in the forms that {@link JsonRequest} reads. A
 * field whose absence is a value of its own is left out if it is absent. All other fields are written always.
 *
 * <p>The JSON is written while the message is walked through, and only one message inside the other is decoded at a
 * time: a few bytes of a server may become many lines, and all these lines at once, or a tree of them, may need more
 * memory than there is.
 */
final class JsonReply {
    private static final JsonMapper LINES =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    private static final DateTimeFormatter SECONDS = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss", Locale.ROOT);

    private static final int NANOS_OF_MILLI = 1_000_000;
    private static final int NANOS_OF_MICRO = 1_000;
    private static final int NANOS_OF_SECOND = 1_000_000_000;

    private final JsonGenerator out;

    private JsonReply(JsonGenerator out) {
        this.out = out;
    }

    /**
     * Prints a message. Each of the server's characters that a terminal would obey is printed as an escape. All of the
     * message is printed or nothing, unless the stream itself fails.
     *
     * @param isOnOneLine whether the JSON is one line; otherwise each field has its own
     * @throws IllegalStateException if the bytes are not a message of this type, or if a value has no form in JSON
     */
    static void print(Descriptor type, byte[] message, boolean isOnOneLine, PrintStream to) {
        // This finds what cannot be written before the first line is printed.
        write(type, message, isOnOneLine, Writer.nullWriter());
        write(type, message, isOnOneLine, Printable.writer(to));
        to.println();
    }

    /** Writes a message where the generator stands. Throws as {@link #print} does. */
    static void write(Descriptor type, byte[] message, JsonGenerator out) {
        new JsonReply(out).message(type, ByteString.copyFrom(message));
    }

    private static void write(Descriptor type, byte[] message, boolean isOnOneLine, Writer to) {
        try (JsonGenerator out = (isOnOneLine ? JsonRequest.JSON : LINES).createGenerator(to)) {
            write(type, message, out);
        } catch (StreamConstraintsException e) {
            throw new IllegalStateException("it is too deep (expected: JSON inside JSON up to 500 deep)", e);
        }
    }

    private void message(Descriptor type, ByteString message) {
        if (type.getFullName().equals(JsonRequest.TIMESTAMP)) {
            out.writeString(timestamp(parsed(type, message)));
        } else if (type.getFullName().equals(JsonRequest.DURATION)) {
            out.writeString(duration(parsed(type, message)));
        } else {
            out.writeStartObject();
            UnknownFieldSet fields = parsed(type, message);
            Map<OneofDescriptor, FieldDescriptor> cases = lastCases(type, message);
            for (FieldDescriptor field : type.getFields()) {
                OneofDescriptor oneof = field.getRealContainingOneof();
                if (oneof == null || field.equals(cases.get(oneof))) {
                    field(field, fields.getField(field.getNumber()));
                }
            }
            out.writeEndObject();
        }
    }

    /** Decodes the fields of a message, and not those of the messages inside it. */
    private static UnknownFieldSet parsed(Descriptor type, ByteString message) {
        try {
            return UnknownFieldSet.parseFrom(message);
        } catch (IOException e) {
            throw undecodable(type, e);
        }
    }

    /** Returns the field of each oneof that counts: the last one that has come. */
    private static Map<OneofDescriptor, FieldDescriptor> lastCases(Descriptor type, ByteString message) {
        Map<OneofDescriptor, FieldDescriptor> last = new HashMap<>();
        if (type.getRealOneofs().isEmpty()) {
            return last;
        }
        try {
            CodedInputStream in = message.newCodedInput();
            for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
                FieldDescriptor field = type.findFieldByNumber(WireFormat.getTagFieldNumber(tag));
                if (field != null && field.getRealContainingOneof() != null) {
                    last.put(field.getRealContainingOneof(), field);
                }
                in.skipField(tag);
            }
            return last;
        } catch (IOException e) {
            throw undecodable(type, e);
        }
    }

    private static IllegalStateException undecodable(Descriptor type, IOException why) {
        return new IllegalStateException(
                "a message of " + type.getFullName() + " cannot be decoded: " + why.getMessage(), why);
    }

    private void field(FieldDescriptor field, UnknownFieldSet.Field found) {
        if (field.isMapField()) {
            map(field, found);
        } else if (field.isRepeated()) {
            out.writeName(field.getJsonName());
            out.writeStartArray();
            values(field, found).forEach(value -> value(field, value));
            out.writeEndArray();
        } else {
            Object value = last(field, found);
            if (value != null) {
                out.writeName(field.getJsonName());
                value(field, value);
            }
        }
    }

    /** Writes a map. Of several entries with one key, the last one counts. */
    private void map(FieldDescriptor field, UnknownFieldSet.Field found) {
        Descriptor type = field.getMessageType();
        FieldDescriptor key = type.findFieldByNumber(1);
        FieldDescriptor value = type.findFieldByNumber(2);
        Map<String, Object> entries = new LinkedHashMap<>();
        for (Object entry : values(field, found)) {
            UnknownFieldSet fields = parsed(type, (ByteString) entry);
            entries.put(
                    text(key, orStandard(key, last(key, fields.getField(1)))),
                    orStandard(value, last(value, fields.getField(2))));
        }
        out.writeName(field.getJsonName());
        out.writeStartObject();
        entries.forEach((name, written) -> {
            out.writeName(name);
            value(value, written);
        });
        out.writeEndObject();
    }

    /** Returns what a field of a map's entry is if it is absent: the standard value of its type. */
    private static Object orStandard(FieldDescriptor field, @Nullable Object value) {
        return value == null ? standard(field) : value;
    }

    /**
     * Returns the value of a field that is no array. If several have come, it is the last one, but messages are merged.
     * Returns null if the field is absent, and its absence is a value of its own.
     */
    private static @Nullable Object last(FieldDescriptor field, UnknownFieldSet.Field found) {
        List<Object> values = values(field, found);
        if (values.isEmpty()) {
            return field.hasPresence() ? null : standard(field);
        }
        // Messages are merged if their bytes stand one behind the other. Source: Protobuf, "Encoding", "Last One Wins".
        return field.getJavaType() == FieldDescriptor.JavaType.MESSAGE
                ? ByteString.copyFrom(found.getLengthDelimitedList())
                : values.get(values.size() - 1);
    }

    private static Object standard(FieldDescriptor field) {
        return switch (wireType(field)) {
            case VARINT, FIXED64 -> 0L;
            case FIXED32 -> 0;
            case LENGTH_DELIMITED -> ByteString.EMPTY;
        };
    }

    private enum WireType {
        VARINT,
        FIXED32,
        FIXED64,
        LENGTH_DELIMITED
    }

    private static WireType wireType(FieldDescriptor field) {
        return switch (field.getType()) {
            case FIXED32, SFIXED32, FLOAT -> WireType.FIXED32;
            case FIXED64, SFIXED64, DOUBLE -> WireType.FIXED64;
            case STRING, BYTES, MESSAGE, GROUP -> WireType.LENGTH_DELIMITED;
            case INT32, INT64, UINT32, UINT64, SINT32, SINT64, BOOL, ENUM -> WireType.VARINT;
        };
    }

    /**
     * Returns the values of a field as they are on the wire: {@code Long}, {@code Integer} or {@code ByteString}.
     * Numbers may have come packed.
     */
    private static List<Object> values(FieldDescriptor field, UnknownFieldSet.Field found) {
        return switch (wireType(field)) {
            case VARINT -> numbers(found.getVarintList(), found, CodedInputStream::readUInt64);
            case FIXED32 -> numbers(found.getFixed32List(), found, CodedInputStream::readFixed32);
            case FIXED64 -> numbers(found.getFixed64List(), found, CodedInputStream::readFixed64);
            case LENGTH_DELIMITED -> List.copyOf(found.getLengthDelimitedList());
        };
    }

    private interface Reader {
        Object read(CodedInputStream in) throws IOException;
    }

    private static List<Object> numbers(List<?> unpacked, UnknownFieldSet.Field found, Reader reader) {
        List<Object> numbers = new ArrayList<>(unpacked);
        for (ByteString packed : found.getLengthDelimitedList()) {
            try {
                CodedInputStream in = packed.newCodedInput();
                while (!in.isAtEnd()) {
                    numbers.add(reader.read(in));
                }
            } catch (IOException e) {
                throw new IllegalStateException("packed numbers cannot be decoded: " + e.getMessage(), e);
            }
        }
        return numbers;
    }

    private void value(FieldDescriptor field, Object value) {
        switch (field.getType()) {
            case BOOL -> out.writeBoolean((Long) value != 0);
            case INT32, SINT32, SFIXED32, UINT32, FIXED32 -> out.writeNumber(text(field, value));
            case FLOAT -> real(Float.intBitsToFloat((Integer) value));
            case DOUBLE -> real(Double.longBitsToDouble((Long) value));
            case ENUM -> {
                EnumValueDescriptor named = field.getEnumType().findValueByNumber(((Long) value).intValue());
                if (named == null) {
                    out.writeNumber(((Long) value).intValue());
                } else {
                    out.writeString(named.getName());
                }
            }
            case BYTES -> out.writeString(Base64.getEncoder().encodeToString(((ByteString) value).toByteArray()));
            case MESSAGE, GROUP -> message(field.getMessageType(), (ByteString) value);
            case STRING, INT64, SINT64, SFIXED64, UINT64, FIXED64 -> out.writeString(text(field, value));
        }
    }

    private void real(Number number) {
        if (Double.isFinite(number.doubleValue())) {
            out.writeNumber(number.toString());
        } else {
            out.writeString(number.toString());
        }
    }

    /** Returns a string, a whole number or a boolean as the text of a JSON string, of a number or of a map's key. */
    private static String text(FieldDescriptor field, Object value) {
        return switch (field.getType()) {
            case STRING -> {
                ByteString bytes = (ByteString) value;
                if (!bytes.isValidUtf8()) {
                    throw new IllegalStateException(field.getFullName() + " is not UTF-8");
                }
                yield bytes.toStringUtf8();
            }
            case BOOL -> String.valueOf((Long) value != 0);
            case INT32 -> String.valueOf(((Long) value).intValue());
            case SINT32 -> String.valueOf(CodedInputStream.decodeZigZag32(((Long) value).intValue()));
            case UINT32 -> Integer.toUnsignedString(((Long) value).intValue());
            case FIXED32 -> Integer.toUnsignedString((Integer) value);
            case SINT64 -> String.valueOf(CodedInputStream.decodeZigZag64((Long) value));
            case UINT64, FIXED64 -> Long.toUnsignedString((Long) value);
            default -> value.toString();
        };
    }

    private static long seconds(UnknownFieldSet time) {
        List<Long> all = time.getField(1).getVarintList();
        return all.isEmpty() ? 0 : all.get(all.size() - 1);
    }

    private static int nanos(UnknownFieldSet time) {
        List<Long> all = time.getField(2).getVarintList();
        return all.isEmpty() ? 0 : all.get(all.size() - 1).intValue();
    }

    private static String timestamp(UnknownFieldSet time) {
        long seconds = seconds(time);
        int nanos = nanos(time);
        if (seconds < JsonRequest.MIN_SECONDS
                || seconds > JsonRequest.MAX_SECONDS
                || nanos < 0
                || nanos >= NANOS_OF_SECOND) {
            throw new IllegalStateException("a time of " + seconds + " s and " + nanos
                    + " ns since 1970, which has no form in JSON (expected: the years 1 to 9999)");
        }
        return SECONDS.format(LocalDateTime.ofEpochSecond(seconds, 0, ZoneOffset.UTC)) + fraction(nanos) + "Z";
    }

    private static String duration(UnknownFieldSet time) {
        long seconds = seconds(time);
        int nanos = nanos(time);
        if (seconds < -JsonRequest.MAX_DURATION_SECONDS
                || seconds > JsonRequest.MAX_DURATION_SECONDS
                || nanos <= -NANOS_OF_SECOND
                || nanos >= NANOS_OF_SECOND
                || Long.signum(seconds) * Integer.signum(nanos) < 0) {
            throw new IllegalStateException("a duration of " + seconds + " s and " + nanos
                    + " ns, which has no form in JSON (expected: at most " + JsonRequest.MAX_DURATION_SECONDS
                    + " s, both with one sign)");
        }
        return (seconds < 0 || nanos < 0 ? "-" : "") + Math.abs(seconds) + fraction(Math.abs(nanos)) + "s";
    }

    /** Returns a fraction of a second with no, three, six or nine digits. */
    private static String fraction(int nanos) {
        if (nanos == 0) {
            return "";
        }
        if (nanos % NANOS_OF_MILLI == 0) {
            return String.format(Locale.ROOT, ".%03d", nanos / NANOS_OF_MILLI);
        }
        if (nanos % NANOS_OF_MICRO == 0) {
            return String.format(Locale.ROOT, ".%06d", nanos / NANOS_OF_MICRO);
        }
        return String.format(Locale.ROOT, ".%09d", nanos);
    }
}
