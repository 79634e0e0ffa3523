package dev.parley.transport.contract;

import java.lang.reflect.Constructor;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** Values of any contract's records, drawn from a seed: what travels whatever it means. */
final class Samples {
    private static final String[] TEXTS = {"", "a", "ąčęė ' OR 1=1; -- \"", "日本語 \uD83D\uDE00", "line\nbreak\ttab\\"};
    private static final int LARGE_BYTES = 900_000;

    private final Random random;

    private Samples(long seed) {
        this.random = new Random(seed);
    }

    static <R extends Record> R of(Class<R> type, long seed) {
        return type.cast(new Samples(seed).record(type));
    }

    private Object record(Class<?> type) {
        RecordComponent[] components = type.getRecordComponents();
        Object[] values = new Object[components.length];
        for (int i = 0; i < components.length; i++) {
            values[i] = value(components[i].getGenericType());
        }
        try {
            Constructor<?> canonical = type.getDeclaredConstructor(
                    Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new));
            return canonical.newInstance(values);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(type + " refuses " + Arrays.toString(values), e);
        }
    }

    private Object value(Type type) {
        if (type instanceof ParameterizedType list && list.getRawType() == List.class) {
            List<Object> items = new ArrayList<>();
            for (int i = random.nextInt(4); i > 0; i--) {
                items.add(value(list.getActualTypeArguments()[0]));
            }
            return items;
        }
        if (!(type instanceof Class<?> plain)) {
            throw new IllegalArgumentException(type + " has no sample");
        }
        if (plain.isRecord()) {
            return record(plain);
        }
        if (plain == byte[].class) {
            byte[] bytes = new byte[random.nextInt(4) == 0 ? LARGE_BYTES : random.nextInt(100)];
            random.nextBytes(bytes);
            return bytes;
        }
        return switch (plain.getName()) {
            case "java.lang.String" -> TEXTS[random.nextInt(TEXTS.length)];
            case "boolean" -> random.nextBoolean();
            case "int" -> random.nextInt();
            case "long" -> random.nextLong();
            case "java.util.UUID" -> new java.util.UUID(random.nextLong(), random.nextLong());
            default -> throw new IllegalArgumentException(type + " has no sample");
        };
    }
}
