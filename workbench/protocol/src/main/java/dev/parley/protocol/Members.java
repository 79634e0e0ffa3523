package dev.parley.protocol;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Records as the members of JSON objects, and back. One rule serves every message, so that both sides of a line
 * agree: a component is an int, a long, a double, a boolean, a text, an enum constant (its name), bytes (Base64), a
 * record (an object), a list of these, or a map from text to text. An empty Optional has no member.
 */
final class Members {
    private Members() {}

    /** The components of a record in their order. */
    static Map<String, Object> of(Record record) {
        Map<String, Object> members = new LinkedHashMap<>();
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            String name = component.getName();
            Object value = component(record, component);
            if (!(value instanceof Optional<?> optional)) {
                members.put(name, json(value));
            } else if (optional.isPresent()) {
                members.put(name, json(optional.get()));
            }
        }
        return members;
    }

    private static Object component(Record record, RecordComponent component) {
        try {
            return Objects.requireNonNull(component.getAccessor().invoke(record), component.getName());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(component + " cannot be read", e);
        }
    }

    private static Object json(Object value) {
        if (value instanceof Record record) {
            return of(record);
        }
        if (value instanceof List<?> list) {
            List<Object> elements = new ArrayList<>(list.size());
            for (Object element : list) {
                elements.add(json(element));
            }
            return elements;
        }
        if (value instanceof byte[] bytes) {
            return Base64.getEncoder().encodeToString(bytes);
        }
        return value instanceof Enum<?> constant ? constant.name() : value;
    }

    /**
     * The record of these members.
     *
     * @throws IllegalArgumentException naming a member that is missing, unknown or of another type, or a value that the
     *     record refuses
     */
    static Object record(Class<?> type, Map<?, ?> members) {
        RecordComponent[] components = type.getRecordComponents();
        Class<?>[] types = new Class<?>[components.length];
        Object[] values = new Object[components.length];
        Set<Object> unknown = new LinkedHashSet<>(members.keySet());
        for (int i = 0; i < components.length; i++) {
            String name = components[i].getName();
            types[i] = components[i].getType();
            values[i] = component(type.getSimpleName() + "." + name, components[i].getGenericType(), members.get(name));
            unknown.remove(name);
        }
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException(
                    type.getSimpleName() + ": " + unknown + " (expected: its components alone)");
        }
        try {
            return type.getDeclaredConstructor(types).newInstance(values);
        } catch (InvocationTargetException e) {
            throw new IllegalArgumentException(type.getSimpleName() + " refuses its values: " + e.getCause(), e);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(type + " cannot be made", e);
        }
    }

    private static Object component(String name, Type type, @Nullable Object json) {
        if (type instanceof ParameterizedType generic && generic.getRawType() == Optional.class) {
            return json == null
                    ? Optional.empty()
                    : Optional.of(value(name, generic.getActualTypeArguments()[0], json));
        }
        if (json == null) {
            throw new IllegalArgumentException(name + ": missing (expected: " + type.getTypeName() + ")");
        }
        return value(name, type, json);
    }

    private static Object value(String name, Type type, Object json) {
        if (type instanceof ParameterizedType generic) {
            if (generic.getRawType() == List.class && json instanceof List<?> list) {
                Type element = generic.getActualTypeArguments()[0];
                return list.stream().map(one -> value(name, element, one)).toList();
            }
            if (generic.getRawType() == Map.class && json instanceof Map<?, ?>) {
                return json;
            }
        } else if (type instanceof Class<?> plain) {
            if (plain.isRecord() && json instanceof Map<?, ?> members) {
                return record(plain, members);
            }
            if (plain.isEnum() && json instanceof String constant) {
                return constant(name, plain, constant);
            }
            if (plain == byte[].class && json instanceof String text) {
                return Base64.getDecoder().decode(text);
            }
            if (plain == String.class && json instanceof String
                    || plain == boolean.class && json instanceof Boolean
                    || plain == long.class && json instanceof Long) {
                return json;
            }
            if (plain == int.class && json instanceof Long whole && whole == whole.intValue()) {
                return whole.intValue();
            }
            if (plain == double.class && json instanceof Number number) {
                return number.doubleValue();
            }
            if (plain == double.class && json instanceof String text) {
                return Double.valueOf(text);
            }
        }
        throw new IllegalArgumentException(name + ": " + json + " (expected: " + type.getTypeName() + ")");
    }

    private static Object constant(String name, Class<?> type, String constant) {
        return Arrays.stream(type.getEnumConstants())
                .filter(one -> ((Enum<?>) one).name().equals(constant))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(name + ": " + constant + " (expected: one of "
                        + Arrays.toString(type.getEnumConstants()) + ")"));
    }
}
