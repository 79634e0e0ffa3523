package dev.rpcx.codec;

import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DurationProto;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.EmptyProto;
import com.google.protobuf.TimestampProto;
import com.google.type.DateTimeProto;
import com.google.type.TimeOfDayProto;
import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Collection;
import java.util.Date;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;

/**
 * Converts Java values to the dynamic messages of protobuf-java. It uses only the exported descriptor, and nothing of
 * the codecs.
 */
final class Oracle {
    private final ProtoFile proto = new ProtoFile("oracle");
    private final Map<MessageType, String> names = new HashMap<>();
    private FileDescriptor file;

    void add(MessageType type) {
        names.put(type, proto.message(type));
    }

    ProtoFile proto() {
        return proto;
    }

    static FileDescriptor link(FileDescriptorProto proto) {
        try {
            return FileDescriptor.buildFrom(proto, new FileDescriptor[] {
                TimestampProto.getDescriptor(),
                DurationProto.getDescriptor(),
                EmptyProto.getDescriptor(),
                TimeOfDayProto.getDescriptor(),
                DateTimeProto.getDescriptor(),
                types()
            });
        } catch (DescriptorValidationException e) {
            throw new AssertionError(e);
        }
    }

    private static FileDescriptor types() throws DescriptorValidationException {
        return dev.rpcx.types.Decimal.getDescriptor().getFile();
    }

    Descriptor descriptor(MessageType type) {
        if (file == null) {
            file = link(proto.descriptor());
        }
        return file.findMessageTypeByName(names.get(type));
    }

    DynamicMessage message(MessageType type, Object value) {
        return message(descriptor(type), type, value);
    }

    private DynamicMessage message(Descriptor descriptor, MessageType type, Object value) {
        DynamicMessage.Builder message = DynamicMessage.newBuilder(descriptor);
        for (int i = 0; i < type.fields().size(); i++) {
            FieldType field = type.fields().get(i);
            Object part = part(type, field, i, value);
            if (part != null) {
                set(message, descriptor.findFieldByNumber(field.number()), field, part);
            }
        }
        return message.build();
    }

    private static Object part(MessageType type, FieldType field, int i, Object value) {
        try {
            switch (type.kind()) {
                case WRAPPER -> {
                    return value;
                }
                case PARAMETERS -> {
                    return ((Object[]) value)[i];
                }
                case ONEOF -> {
                    return field.javaClass().isInstance(value) ? value : null;
                }
                default -> {
                    Method getter = type.getters().get(i);
                    getter.setAccessible(true);
                    return getter.invoke(value);
                }
            }
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private void set(DynamicMessage.Builder message, FieldDescriptor to, FieldType field, Object value) {
        switch (field.holder()) {
            case PLAIN, NULLABLE -> message.setField(to, one(to, field.shape(), value));
            case OPTIONAL -> ((Optional<?>) value).ifPresent(v -> message.setField(to, one(to, field.shape(), v)));
            case LIST, SET ->
                ((Collection<?>) value).forEach(v -> message.addRepeatedField(to, one(to, field.shape(), v)));
            case MAP ->
                ((Map<?, ?>) value).forEach((k, v) -> {
                    Descriptor entry = to.getMessageType();
                    FieldDescriptor key = entry.findFieldByNumber(1);
                    FieldDescriptor inner = entry.findFieldByNumber(2);
                    message.addRepeatedField(
                            to,
                            DynamicMessage.newBuilder(entry)
                                    .setField(key, one(key, field.key(), k))
                                    .setField(inner, one(inner, field.shape(), v))
                                    .build());
                });
        }
    }

    private Object one(FieldDescriptor to, Shape shape, Object value) {
        if (shape instanceof MessageType type) {
            return message(to.getMessageType(), type, value);
        }
        if (shape instanceof EnumType type) {
            return to.getEnumType().findValueByNumber(type.numbers().get(((Enum<?>) value).ordinal()));
        }
        return shape instanceof WellKnown wellKnown
                ? wellKnown(to.getMessageType(), wellKnown, value)
                : scalar((Scalar) shape, value);
    }

    private static Object scalar(Scalar scalar, Object value) {
        return switch (scalar) {
            case BYTE, SHORT -> ((Number) value).intValue();
            case CHAR -> (int) (Character) value;
            case BYTES -> ByteString.copyFrom((byte[]) value);
            case BIG_INTEGER -> ByteString.copyFrom(((BigInteger) value).toByteArray());
            case URI -> value.toString();
            case UUID ->
                ByteString.copyFrom(ByteBuffer.allocate(16)
                        .putLong(((UUID) value).getMostSignificantBits())
                        .putLong(((UUID) value).getLeastSignificantBits())
                        .array());
            default -> value;
        };
    }

    private static DynamicMessage wellKnown(Descriptor type, WellKnown wellKnown, Object value) {
        return switch (wellKnown) {
            case INSTANT -> moment(type, (Instant) value);
            case DATE -> moment(type, ((Date) value).toInstant());
            case DURATION -> {
                Duration duration = (Duration) value;
                boolean up = duration.isNegative() && duration.getNano() > 0;
                yield pair(type, duration.getSeconds() + (up ? 1 : 0), duration.getNano() - (up ? 1_000_000_000 : 0));
            }
            case DECIMAL -> {
                BigDecimal decimal = (BigDecimal) value;
                boolean zero = decimal.signum() == 0;
                byte[] unscaled = zero ? new byte[0] : decimal.unscaledValue().toByteArray();
                yield pair(type, ByteString.copyFrom(unscaled), decimal.scale());
            }
            case LOCAL_DATE ->
                DynamicMessage.newBuilder(type)
                        .setField(type.findFieldByNumber(1), ((LocalDate) value).toEpochDay())
                        .build();
            case LOCAL_DATE_TIME ->
                pair(type, ((LocalDateTime) value).toEpochSecond(ZoneOffset.UTC), ((LocalDateTime) value).getNano());
            case LOCAL_TIME -> {
                DynamicMessage.Builder message = DynamicMessage.newBuilder(type);
                time(message, 1, (LocalTime) value);
                yield message.build();
            }
            case OFFSET_DATE_TIME -> {
                OffsetDateTime time = (OffsetDateTime) value;
                FieldDescriptor offset = type.findFieldByNumber(8);
                DynamicMessage.Builder message = DynamicMessage.newBuilder(type)
                        .setField(type.findFieldByNumber(1), time.getYear())
                        .setField(type.findFieldByNumber(2), time.getMonthValue())
                        .setField(type.findFieldByNumber(3), time.getDayOfMonth());
                time(message, 4, time.toLocalTime());
                long seconds = time.getOffset().getTotalSeconds();
                yield message.setField(offset, pair(offset.getMessageType(), seconds, 0))
                        .build();
            }
            case ZONED_DATE_TIME -> {
                ZonedDateTime time = (ZonedDateTime) value;
                Descriptor moment = type.findFieldByNumber(1).getMessageType();
                yield pair(
                        type, moment(moment, time.toInstant()), time.getZone().getId());
            }
        };
    }

    private static DynamicMessage moment(Descriptor type, Instant value) {
        return pair(type, value.getEpochSecond(), value.getNano());
    }

    private static void time(DynamicMessage.Builder message, int first, LocalTime time) {
        Descriptor type = message.getDescriptorForType();
        message.setField(type.findFieldByNumber(first), time.getHour())
                .setField(type.findFieldByNumber(first + 1), time.getMinute())
                .setField(type.findFieldByNumber(first + 2), time.getSecond())
                .setField(type.findFieldByNumber(first + 3), time.getNano());
    }

    private static DynamicMessage pair(Descriptor type, Object first, Object second) {
        return DynamicMessage.newBuilder(type)
                .setField(type.findFieldByNumber(1), first)
                .setField(type.findFieldByNumber(2), second)
                .build();
    }
}
