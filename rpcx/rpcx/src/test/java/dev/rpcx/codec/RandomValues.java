package dev.rpcx.codec;

import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.lang.reflect.Constructor;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.UUID;

/**
 * Makes Java values from a seed, for any schema. Values at the edges of their types come more often than by pure
 * chance.
 */
public final class RandomValues {
    private static final String[] CHARACTERS = {
        "a", "Z", " ", "\0", "\u007f", "\u0080", "ß", "\u07ff", "€", "\uffff", "🙂"
    };

    private static final String[] URIS = {
        "", "#a", "mailto:a@b.c", "http://a", "https://user@ä.b:1/c%20d/ü?e=f&g#h", "urn:isbn:0-395-36341-1", "a/../b"
    };

    private static final String[] ZONES = {"Z", "UTC", "Europe/Paris", "Asia/Kathmandu", "-11:30", "+00:00:01"};

    /** A small set of numbers, within and beyond the range of each type. */
    private static final long[] FEW = {0, 1, 2, -1, 40_000, -40_000, 1L << 40};

    private final Random random;
    private final boolean isFew;

    public RandomValues(long seed) {
        this(new Random(seed), false);
    }

    private RandomValues(Random random, boolean isFew) {
        this.random = random;
        this.isFew = isFew;
    }

    /** Makes short values, and so few different ones that two are often equal. */
    public static RandomValues few(Random random) {
        return new RandomValues(random, true);
    }

    /** Makes arguments for all fields of a method's request. */
    public Object[] arguments(MessageType type) {
        Object[] arguments = new Object[type.arity()];
        for (int i = 0; i < type.fields().size(); i++) {
            arguments[type.positions().get(i)] = field(type.fields().get(i), 1);
        }
        return arguments;
    }

    /** Makes a value of the type, or what its wrapper wraps. */
    public Object message(MessageType type, int depth) {
        if (type.kind() == MessageType.Kind.WRAPPER) {
            return field(type.fields().get(0), depth + 1);
        }
        if (type.kind() == MessageType.Kind.ONEOF) {
            int cases = type.fields().size();
            int chosen = random.nextInt(isFew && type.unknownCase() != null ? cases + 1 : cases);
            return chosen == cases
                    ? type.unknownCase()
                    : message((MessageType) type.fields().get(chosen).shape(), depth + 1);
        }
        Object[] values =
                type.fields().stream().map(field -> field(field, depth + 1)).toArray();
        try {
            Constructor<?> constructor = type.constructor();
            constructor.setAccessible(true);
            if (type.kind() != MessageType.Kind.BEAN) {
                return constructor.newInstance(values);
            }
            Object made = constructor.newInstance();
            for (int i = 0; i < values.length; i++) {
                type.setters().get(i).invoke(made, values[i]);
            }
            return made;
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(type.toString(), e);
        }
    }

    private Object field(FieldType field, int depth) {
        boolean end = depth > 5;
        switch (field.holder()) {
            case NULLABLE -> {
                return end || random.nextInt(3) == 0 ? null : present(field.shape(), depth);
            }
            case OPTIONAL -> {
                return end || random.nextInt(3) == 0 ? Optional.empty() : Optional.of(present(field.shape(), depth));
            }
            case LIST -> {
                List<Object> list = new ArrayList<>();
                elements(end, () -> list.add(present(field.shape(), depth)));
                return list;
            }
            case SET -> {
                Set<Object> set = new LinkedHashSet<>();
                elements(end, () -> set.add(present(field.shape(), depth)));
                return set;
            }
            case MAP -> {
                Map<Object, Object> map = new LinkedHashMap<>();
                elements(end, () -> map.put(present(field.key(), depth), present(field.shape(), depth)));
                return map;
            }
            default -> {
                boolean mayBeNull = field.shape() instanceof MessageType
                        || field.shape() instanceof WellKnown
                        || field.shape() == Scalar.UUID
                        || field.shape() == Scalar.BIG_INTEGER
                        || field.shape() instanceof EnumType type && type.unknown() == null;
                return mayBeNull && (end || random.nextInt(8) == 0) ? null : present(field.shape(), depth);
            }
        }
    }

    private void elements(boolean end, Runnable add) {
        int n = end ? 0 : !isFew && random.nextInt(10) == 0 ? 40 : random.nextInt(4);
        for (int i = 0; i < n; i++) {
            add.run();
        }
    }

    private Object present(Shape shape, int depth) {
        if (shape instanceof MessageType type) {
            return message(type, depth);
        }
        if (shape instanceof EnumType type) {
            return type.constants()[random.nextInt(type.constants().length)];
        }
        return shape instanceof WellKnown wellKnown ? wellKnown(wellKnown) : scalar((Scalar) shape);
    }

    /** Makes a number. Each width is equally likely. */
    private long number() {
        if (isFew) {
            return FEW[random.nextInt(FEW.length)];
        }
        return random.nextInt(6) == 0 ? 0 : random.nextLong() >> random.nextInt(64);
    }

    private Object scalar(Scalar scalar) {
        return switch (scalar) {
            case BOOL -> random.nextBoolean();
            case BYTE -> (byte) number();
            case SHORT -> (short) number();
            case CHAR -> (char) number();
            case INT -> (int) number();
            case LONG -> number();
            case FLOAT -> new float[] {0, -0f, Float.NaN, Float.MIN_VALUE, random.nextFloat()}[random.nextInt(5)];
            case DOUBLE -> new double[] {0, -0d, Double.NaN, Double.MAX_VALUE, random.nextDouble()}[random.nextInt(5)];
            case STRING -> string();
            case BYTES -> {
                byte[] bytes = new byte[random.nextInt(isFew ? 3 : 200)];
                random.nextBytes(bytes);
                yield bytes;
            }
            case BIG_INTEGER -> integer();
            case UUID -> new UUID(number(), number());
            case URI -> URI.create(URIS[random.nextInt(URIS.length)]);
        };
    }

    private String string() {
        if (isFew) {
            return new String[] {"", "a", "ß"}[random.nextInt(3)];
        }
        int n = random.nextInt(20) == 0 ? 5_000 : random.nextInt(3) == 0 ? random.nextInt(300) : random.nextInt(20);
        boolean ascii = random.nextBoolean();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < n; i++) {
            text.append(CHARACTERS[random.nextInt(ascii ? 5 : CHARACTERS.length)]);
        }
        return text.toString();
    }

    private BigInteger integer() {
        BigInteger v = BigInteger.valueOf(number());
        return !isFew && random.nextInt(3) == 0 ? v.multiply(new BigInteger(random.nextInt(2_000), random)) : v;
    }

    private Object wellKnown(WellKnown wellKnown) {
        long seconds =
                isFew ? random.nextInt(3) : random.nextInt(5) == 0 ? 0 : random.nextLong() % 31_556_889_864_403_199L;
        int nanos = isFew || random.nextInt(3) == 0 ? 0 : random.nextInt(1_000_000_000);
        return switch (wellKnown) {
            case INSTANT -> Instant.ofEpochSecond(seconds, nanos);
            case DURATION -> Duration.ofSeconds(number(), nanos);
            case DECIMAL -> new BigDecimal(integer(), (int) number() % 10_000);
            case LOCAL_DATE -> LocalDate.ofEpochDay(seconds / 86_400);
            case LOCAL_DATE_TIME -> LocalDateTime.ofEpochSecond(seconds, nanos, ZoneOffset.UTC);
            case DATE -> new Date(isFew ? 1000 * seconds : number());
            case LOCAL_TIME -> LocalTime.of((int) Math.floorMod(seconds, 24L), random.nextInt(60), 0, nanos);
            case OFFSET_DATE_TIME ->
                OffsetDateTime.of(
                        LocalDateTime.ofEpochSecond(seconds, nanos, ZoneOffset.UTC),
                        ZoneOffset.ofTotalSeconds(random.nextInt(3) * 900 - random.nextInt(2)));
            case ZONED_DATE_TIME ->
                ZonedDateTime.ofInstant(
                        Instant.ofEpochSecond(seconds / 2, nanos), ZoneId.of(ZONES[random.nextInt(ZONES.length)]));
        };
    }
}
