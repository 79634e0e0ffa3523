package dev.rpcx.codec;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;

/**
 * Makes records, enums and sealed interfaces from a seed, and compiles them in memory. They are like types that users
 * write, but stranger.
 */
public final class RandomTypes {
    private static final String[] SIMPLE = {
        "boolean",
        "byte",
        "short",
        "char",
        "int",
        "long",
        "float",
        "double",
        "String",
        "byte[]",
        "BigInteger",
        "UUID",
        "BigDecimal",
        "Instant",
        "Date",
        "Duration",
        "LocalDate",
        "LocalDateTime",
        "LocalTime",
        "OffsetDateTime",
        "ZonedDateTime",
        "URI"
    };
    private static final String[] OBJECTS = {
        "Boolean",
        "Byte",
        "Short",
        "Character",
        "Integer",
        "Long",
        "Float",
        "Double",
        "String",
        "byte[]",
        "BigInteger",
        "UUID",
        "BigDecimal",
        "Instant",
        "Date",
        "Duration",
        "LocalDate",
        "LocalDateTime",
        "LocalTime",
        "OffsetDateTime",
        "ZonedDateTime",
        "URI"
    };
    private static final String[] KEYS = {
        "String",
        "Integer",
        "Long",
        "Boolean",
        "Short",
        "Character",
        "UUID",
        "Double",
        "E0",
        "LocalDate",
        "BigInteger",
        "Date",
        "LocalTime",
        "OffsetDateTime",
        "ZonedDateTime",
        "URI"
    };
    private static final int ENUMS = 6;
    private static final int SEALED = 6;

    private final Random random;
    private final int records;

    private RandomTypes(long seed, int records) {
        this.random = new Random(seed);
        this.records = records;
    }

    /** Compiles the records R0 to R(n-1). */
    public static List<Class<?>> records(long seed, int records) throws ClassNotFoundException {
        String source = new RandomTypes(seed, records).source();
        ClassLoader loader = CompiledSources.loader(Map.of("random.Types", source));
        List<Class<?>> classes = new ArrayList<>();
        for (int i = 0; i < records; i++) {
            classes.add(loader.loadClass("random.Types$R" + i));
        }
        return classes;
    }

    /** Returns the source of class {@code random.Types}, which contains the records R0 to R(n-1). */
    public static String source(long seed, int records) {
        return new RandomTypes(seed, records).source();
    }

    private String source() {
        StringBuilder text =
                new StringBuilder("package random;\nimport java.math.*; import java.net.URI; import java.time.*;"
                        + " import java.util.*; import dev.rpcx.schema.*;\npublic class Types {\n"
                        + "@java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy.RUNTIME) @interface Nullable {}\n"
                        + "record G<A, B>(A a, List<B> b, Map<String, A> c) {}\n");
        for (int i = 0; i < ENUMS; i++) {
            text.append("enum E" + i + " { A, B, " + (i % 2 == 0 ? "UNKNOWN" : "C") + " }\n");
        }
        for (int i = 0; i < SEALED; i++) {
            text.append("sealed interface S" + i + " permits S" + i + "A, S" + i + "B, S" + i + "C {}\n");
            text.append("record S" + i + "A(" + components() + ") implements S" + i + " {}\n");
            text.append("record S" + i + "B(" + components() + ") implements S" + i + " {}\n");
            text.append("@Unknown record S" + i + "C() implements S" + i + " {}\n");
        }
        for (int i = 0; i < records; i++) {
            text.append(random.nextInt(4) == 0 ? "private " : "")
                    .append("record R" + i + "(" + components() + ") {}\n");
        }
        return text.append("}\n").toString();
    }

    private String components() {
        int n = random.nextInt(12);
        boolean numbered = random.nextBoolean();
        TreeSet<Integer> taken = new TreeSet<>();
        List<String> components = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            String annotations = random.nextInt(6) == 0 ? "@Nullable " : "";
            if (numbered) {
                int number;
                do {
                    number = 1
                            + random.nextInt(
                                    switch (random.nextInt(4)) {
                                        case 0 -> 18_000;
                                        case 1 -> 300;
                                        default -> 20;
                                    });
                } while (!taken.add(number));
                annotations += "@Field(" + number + ") ";
            }
            components.add(annotations + type(2) + " c" + i);
        }
        return String.join(", ", components);
    }

    private String type(int depth) {
        return random.nextInt(2) == 0 ? SIMPLE[random.nextInt(SIMPLE.length)] : composed(depth);
    }

    private String object(int depth) {
        return depth == 0 || random.nextInt(2) == 0 ? OBJECTS[random.nextInt(OBJECTS.length)] : composed(depth);
    }

    private String composed(int depth) {
        int inner = depth - 1;
        if (inner < 0) {
            return OBJECTS[random.nextInt(OBJECTS.length)];
        }
        return switch (random.nextInt(9)) {
            case 0 -> "List<" + object(inner) + ">";
            case 1 -> "Set<" + KEYS[random.nextInt(KEYS.length)] + ">";
            case 2 -> "Map<" + KEYS[random.nextInt(KEYS.length)] + ", " + object(inner) + ">";
            case 3 -> "E" + random.nextInt(ENUMS);
            case 4 -> "S" + random.nextInt(SEALED);
            case 5 -> "G<" + object(inner) + ", " + object(inner) + ">";
            case 6 -> depth == 2 ? "Optional<" + object(inner) + ">" : "String";
            case 7 -> OBJECTS[random.nextInt(OBJECTS.length)];
            default -> "R" + random.nextInt(records);
        };
    }
}
