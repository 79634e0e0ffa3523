package dev.rpcx;

import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.FieldType.Holder;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.NumberSource;
import dev.rpcx.internal.schema.Shape;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Decides whether one version of a service has read what another version had written. It compares only the Java values.
 * What both versions know has to be the same. If the reader does not know the constant or case, it has to be the one
 * that stands for the unknown. What only one of the versions has is ignored.
 */
public final class ReadValues {
    private ReadValues() {}

    public static boolean isSame(FieldType writer, @Nullable Object written, FieldType reader, @Nullable Object read) {
        Object one = content(writer, written);
        Object other = content(reader, read);
        if (one == null || other == null) {
            return one == other;
        }
        Holder from = container(writer);
        Holder to = container(reader);
        if (from == Holder.MAP && to == Holder.MAP) {
            return areSameEntries(writer, entries(writer, one), reader, entries(reader, other));
        }
        if (from == Holder.MAP || to == Holder.MAP || (from == Holder.PLAIN) != (to == Holder.PLAIN)) {
            return false;
        }
        if (from != Holder.PLAIN) {
            boolean hasOrder = from == Holder.LIST && to == Holder.LIST;
            return areSame(writer.shape(), elements(writer, one), reader.shape(), elements(reader, other), hasOrder);
        }
        return isSame(writer.shape(), one, reader.shape(), other);
    }

    private static @Nullable Object content(FieldType field, @Nullable Object value) {
        return value instanceof Optional<?> optional && field.holder() == Holder.OPTIONAL
                ? optional.orElse(null)
                : value;
    }

    private static Holder container(FieldType field) {
        return field.holder() == Holder.NULLABLE || field.holder() == Holder.OPTIONAL ? Holder.PLAIN : field.holder();
    }

    /**
     * Returns the elements of a collection. In a set, elements with the same content count as one, although arrays in
     * them make them unequal.
     */
    private static Collection<?> elements(FieldType field, Object value) {
        if (field.holder() != Holder.SET) {
            return (Collection<?>) value;
        }
        List<Object> elements = new ArrayList<>();
        for (Object each : (Collection<?>) value) {
            elements.removeIf(other -> isSame(field.shape(), each, field.shape(), other));
            elements.add(each);
        }
        return elements;
    }

    private static List<Map.Entry<?, ?>> entries(FieldType field, Object value) {
        Shape key = Objects.requireNonNull(field.key(), "a map has a key");
        List<Map.Entry<?, ?>> entries = new ArrayList<>();
        for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
            entries.removeIf(other -> isSame(key, each.getKey(), key, other.getKey()));
            entries.add(each);
        }
        return entries;
    }

    private static boolean areSame(
            Shape writer, Collection<?> written, Shape reader, Collection<?> read, boolean hasOrder) {
        if (written.size() != read.size()) {
            return false;
        }
        List<Object> left = new ArrayList<>(read);
        for (Object each : written) {
            boolean isFound = false;
            for (Iterator<Object> i = left.iterator(); i.hasNext() && !isFound; ) {
                isFound = isSame(writer, each, reader, i.next());
                if (isFound) {
                    i.remove();
                } else if (hasOrder) {
                    return false;
                }
            }
            if (!isFound) {
                return false;
            }
        }
        return true;
    }

    private static boolean areSameEntries(
            FieldType writer, List<Map.Entry<?, ?>> written, FieldType reader, List<Map.Entry<?, ?>> read) {
        Shape from = Objects.requireNonNull(writer.key(), "a map has a key");
        Shape to = Objects.requireNonNull(reader.key(), "a map has a key");
        return written.size() == read.size()
                && written.stream()
                        .allMatch(each -> read.stream()
                                .anyMatch(other -> isSame(from, each.getKey(), to, other.getKey())
                                        && isSame(writer.shape(), each.getValue(), reader.shape(), other.getValue())));
    }

    private static boolean isSame(Shape writer, Object written, Shape reader, Object read) {
        if (writer instanceof EnumType from && reader instanceof EnumType to) {
            return isSameConstant(from, (Enum<?>) written, to, (Enum<?>) read);
        }
        if (writer instanceof MessageType from && reader instanceof MessageType to) {
            if (from.kind() == MessageType.Kind.WRAPPER && to.kind() == MessageType.Kind.WRAPPER) {
                return isSame(from.fields().get(0), written, to.fields().get(0), read);
            }
            if (isObject(from) && isObject(to)) {
                return areSameComponents(from, written, to, read);
            }
            return from.kind() == MessageType.Kind.ONEOF
                    && to.kind() == MessageType.Kind.ONEOF
                    && isSameCase(from, written, to, read);
        }
        if (writer instanceof EnumType || writer instanceof MessageType) {
            return false;
        }
        return plain(written) instanceof byte[] bytes
                ? plain(read) instanceof byte[] others && Arrays.equals(bytes, others)
                : plain(written).equals(plain(read));
    }

    private static boolean isObject(MessageType type) {
        return switch (type.kind()) {
            case RECORD, BEAN, CONSTRUCTED -> true;
            case ONEOF, WRAPPER, PARAMETERS -> false;
        };
    }

    /** Converts whole numbers of all widths to {@code long}, and texts to their bytes. */
    private static Object plain(Object value) {
        if (value instanceof Byte || value instanceof Short || value instanceof Integer) {
            return ((Number) value).longValue();
        }
        if (value instanceof Character c) {
            return (long) c;
        }
        return value instanceof String text ? text.getBytes(StandardCharsets.UTF_8) : value;
    }

    private static boolean areSameComponents(MessageType from, Object written, MessageType to, Object read) {
        for (int i = 0; i < from.fields().size(); i++) {
            FieldType field = from.fields().get(i);
            int there = placeOf(from, field, to);
            if (there >= 0
                    && !isSame(
                            field,
                            get(from.getters().get(i), written),
                            to.fields().get(there),
                            get(to.getters().get(there), read))) {
                return false;
            }
        }
        return true;
    }

    /** A name is the same for ever, and so is a number that an annotation gives. */
    private static int placeOf(MessageType from, FieldType field, MessageType to) {
        boolean isByNumber = isByNumber(from.source(), to.source());
        for (int i = 0; i < to.fields().size(); i++) {
            FieldType other = to.fields().get(i);
            if (isByNumber ? other.number() == field.number() : other.name().equals(field.name())) {
                return i;
            }
        }
        return -1;
    }

    private static boolean isByNumber(NumberSource one, NumberSource other) {
        return one == NumberSource.ANNOTATION && other == NumberSource.ANNOTATION;
    }

    private static @Nullable Object get(Method getter, Object from) {
        try {
            getter.setAccessible(true);
            return getter.invoke(from);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static boolean isSameConstant(EnumType from, Enum<?> written, EnumType to, Enum<?> read) {
        boolean isByNumber = isByNumber(from.source(), to.source()) && written != from.unknown();
        int number = from.numbers().get(written.ordinal());
        for (Enum<?> each : to.constants()) {
            boolean isThis = isByNumber
                    ? to.numbers().get(each.ordinal()) == number && each != to.unknown()
                    : each.name().equals(written.name());
            if (isThis) {
                return read == each;
            }
        }
        return to.unknown() != null && read == to.unknown();
    }

    private static boolean isSameCase(MessageType from, Object written, MessageType to, Object read) {
        String name = written.getClass().getSimpleName();
        boolean isUnknown = from.unknownCase() != null
                && written.getClass() == from.unknownCase().getClass();
        Object unknown = to.unknownCase();
        FieldType writer = isUnknown ? null : caseOf(from, written);
        for (FieldType reader : to.fields()) {
            boolean isThis = writer != null && isByNumber(from.source(), to.source())
                    ? reader.number() == writer.number()
                    : reader.javaClass().getSimpleName().equals(name);
            if (isThis) {
                return read.getClass() == reader.javaClass()
                        && writer != null
                        && isSame(writer.shape(), written, reader.shape(), read);
            }
        }
        return unknown != null && read.getClass() == unknown.getClass();
    }

    private static FieldType caseOf(MessageType type, Object value) {
        return type.fields().stream()
                .filter(each -> each.javaClass() == value.getClass())
                .findFirst()
                .orElseThrow();
    }
}
