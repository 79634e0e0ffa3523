package dev.rpcx.internal.schema;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodType;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.lang.reflect.RecordComponent;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Annotations with the simple name {@code Nullable} that are in a class file, and that the virtual machine does not
 * load. Those of JetBrains and of Android are such annotations. Kotlin writes one for each type with a question mark.
 * Annotations that reflection finds are left out. Source of the format: Java Virtual Machine Specification, chapter 4.
 */
final class FileNullables {
    private static final FileNullables NONE = new FileNullables(Set.of());

    /** Text that each file with such an annotation contains: the end of the descriptor of the annotation's type. */
    private static final String MARK = "Nullable;";

    /**
     * Keys of the members, parameters and record components that have the annotation: see the methods that return keys.
     */
    private final Set<String> keys;

    private FileNullables(Set<String> keys) {
        this.keys = keys;
    }

    /**
     * Reads the file of a class. The result has no annotations if the class loader does not find the file, for example
     * in a native image.
     */
    static FileNullables of(Class<?> type) {
        String name = type.getName();
        String file = name.substring(name.lastIndexOf('.') + 1) + ".class";
        try (InputStream in = type.getResourceAsStream(file)) {
            if (in == null) {
                return NONE;
            }
            byte[] bytes = in.readAllBytes();
            // Most files do not have the text, so that nothing has to be parsed.
            boolean isMarked = new String(bytes, StandardCharsets.ISO_8859_1).contains(MARK);
            return isMarked ? new FileNullables(new Parser(bytes).keys()) : NONE;
        } catch (IOException e) {
            throw new UncheckedIOException("reading " + file + ", the file of " + name, e);
        }
    }

    /**
     * Returns whether an element of the class has the annotation. For a method, this is an annotation of the method or
     * of its result's type. For a field, parameter or record component, it can be one of its type, too.
     */
    boolean isOn(AnnotatedElement element) {
        if (keys.isEmpty()) {
            return false;
        }
        if (element instanceof Parameter parameter) {
            Executable in = parameter.getDeclaringExecutable();
            int index = Arrays.asList(in.getParameters()).indexOf(parameter);
            return keys.contains(parameter(member(in), index));
        }
        if (element instanceof Field field) {
            return keys.contains(member(field.getName(), field.getType().descriptorString()));
        }
        if (element instanceof RecordComponent component) {
            return keys.contains(component(component.getName()));
        }
        return element instanceof Executable member && keys.contains(member(member));
    }

    /** Returns whether the first type argument of a method's result has the annotation. */
    boolean isOnContent(Method method) {
        return keys.contains(content(member(method)));
    }

    private static String member(Executable member) {
        String name = member instanceof Constructor<?> ? "<init>" : member.getName();
        Class<?> result = member instanceof Method method ? method.getReturnType() : void.class;
        MethodType type = MethodType.methodType(result, member.getParameterTypes());
        return member(name, type.toMethodDescriptorString());
    }

    private static String member(String name, String descriptor) {
        return name + " " + descriptor;
    }

    private static String component(String name) {
        return "component " + name;
    }

    private static String parameter(String member, int index) {
        return member + " parameter " + index;
    }

    private static String content(String member) {
        return member + " content";
    }

    /** Parses one class file. */
    private static final class Parser {
        private static final int UTF8 = 1;
        private static final int LONG = 5;
        private static final int DOUBLE = 6;

        /** For the tag of each constant of a fixed size, the number of bytes that follow the tag. */
        private static final Map<Integer, Integer> CONSTANT_BYTES = Map.ofEntries(
                Map.entry(3, 4),
                Map.entry(4, 4),
                Map.entry(LONG, 8),
                Map.entry(DOUBLE, 8),
                Map.entry(7, 2),
                Map.entry(8, 2),
                Map.entry(9, 4),
                Map.entry(10, 4),
                Map.entry(11, 4),
                Map.entry(12, 4),
                Map.entry(15, 3),
                Map.entry(16, 2),
                Map.entry(17, 4),
                Map.entry(18, 4),
                Map.entry(19, 2),
                Map.entry(20, 2));

        // Targets of type annotations on members.
        private static final int METHOD_TYPE_PARAMETER = 0x01;
        private static final int METHOD_TYPE_PARAMETER_BOUND = 0x12;
        private static final int FIELD = 0x13;
        private static final int RESULT = 0x14;
        private static final int RECEIVER = 0x15;
        private static final int FORMAL_PARAMETER = 0x16;
        private static final int THROWS = 0x17;

        /** Path of an annotation on the first type argument. An annotation on the whole type has an empty path. */
        private static final byte[] FIRST_ARGUMENT = {3, 0};

        private final ByteBuffer in;
        private final Set<String> keys = new HashSet<>();

        /** Texts among the constants of the file, by the number of the constant; null for any other constant. */
        private final @Nullable String[] texts;

        Parser(byte[] bytes) {
            in = ByteBuffer.wrap(bytes);
            skip(8);
            texts = new String[u2()];
        }

        Set<String> keys() {
            readTexts();
            skip(6);
            skip(2 * u2());
            readMembers();
            readMembers();
            for (int attributes = u2(); attributes > 0; attributes--) {
                boolean hasComponents = text().equals("Record");
                int end = in.getInt() + in.position();
                for (int components = hasComponents ? u2() : 0; components > 0; components--) {
                    String name = text();
                    skip(2);
                    readAttributes(component(name), 0);
                }
                in.position(end);
            }
            return keys;
        }

        private void readTexts() {
            for (int i = 1; i < texts.length; i++) {
                int tag = u1();
                if (tag == UTF8) {
                    byte[] text = new byte[u2()];
                    in.get(text);
                    // A class file writes NUL and characters beyond U+FFFF in another way than UTF-8. Such names are
                    // not found then.
                    texts[i] = new String(text, StandardCharsets.UTF_8);
                    continue;
                }
                Integer bytes = CONSTANT_BYTES.get(tag);
                if (bytes == null) {
                    throw new IllegalStateException("a constant of kind " + tag
                            + " in a class file (expected: one that the virtual machines of Java 17 to 25 know)");
                }
                skip(bytes);
                if (tag == LONG || tag == DOUBLE) {
                    // such a constant counts as two
                    i++;
                }
            }
        }

        /** Reads the fields or the methods. */
        private void readMembers() {
            for (int members = u2(); members > 0; members--) {
                skip(2);
                String name = text();
                String descriptor = text();
                readAttributes(member(name, descriptor), parameters(descriptor));
            }
        }

        /** Returns how many parameters a descriptor has; 0 for that of a field. */
        private static int parameters(String descriptor) {
            int count = 0;
            int end = descriptor.indexOf(')');
            for (int i = 1; i < end; i++) {
                while (descriptor.charAt(i) == '[') {
                    i++;
                }
                if (descriptor.charAt(i) == 'L') {
                    i = descriptor.indexOf(';', i);
                }
                count++;
            }
            return count;
        }

        /**
         * Reads the attributes of a member or a record component.
         *
         * @param key key of the member or component
         * @param parameters how many parameters it has
         */
        private void readAttributes(String key, int parameters) {
            for (int attributes = u2(); attributes > 0; attributes--) {
                String attribute = text();
                int end = in.getInt() + in.position();
                switch (attribute) {
                    case "RuntimeInvisibleAnnotations" -> readAnnotations(key);
                    case "RuntimeInvisibleParameterAnnotations" -> {
                        int annotated = u1();
                        // The first parameters are left out if the compiler has added them, as for a constructor of an
                        // inner class.
                        for (int i = parameters - annotated; i < parameters; i++) {
                            readAnnotations(parameter(key, i));
                        }
                    }
                    case "RuntimeInvisibleTypeAnnotations" -> {
                        for (int annotations = u2(); annotations > 0; annotations--) {
                            readTypeAnnotation(key);
                        }
                    }
                    default -> {
                        // other attributes have no annotations that the virtual machine leaves out
                    }
                }
                in.position(end);
            }
        }

        private void readAnnotations(String key) {
            for (int annotations = u2(); annotations > 0; annotations--) {
                if (isNullable()) {
                    keys.add(key);
                }
            }
        }

        private void readTypeAnnotation(String key) {
            int target = u1();
            String whole = key;
            switch (target) {
                case FIELD, RESULT, RECEIVER -> {
                    // nothing follows the target
                }
                case FORMAL_PARAMETER -> whole = parameter(key, u1());
                case METHOD_TYPE_PARAMETER -> skip(1);
                case METHOD_TYPE_PARAMETER_BOUND, THROWS -> skip(2);
                default ->
                    throw new IllegalStateException("a type annotation of target " + target
                            + " on a member (expected: one that the virtual machines of Java 17 to 25 know)");
            }
            byte[] path = new byte[2 * u1()];
            in.get(path);
            boolean isNullable = isNullable();
            boolean isOnValue = target == FIELD || target == RESULT || target == FORMAL_PARAMETER;
            if (isNullable && isOnValue && path.length == 0) {
                keys.add(whole);
            } else if (isNullable && target == RESULT && Arrays.equals(path, FIRST_ARGUMENT)) {
                keys.add(content(key));
            }
        }

        /** Reads an annotation, and returns whether its simple name is {@code Nullable}. */
        private boolean isNullable() {
            String type = text();
            for (int values = u2(); values > 0; values--) {
                skip(2);
                skipValue();
            }
            return type.endsWith('/' + MARK) || type.endsWith('$' + MARK) || type.equals('L' + MARK);
        }

        private void skipValue() {
            switch (u1()) {
                case '@' -> isNullable();
                case '[' -> {
                    for (int values = u2(); values > 0; values--) {
                        skipValue();
                    }
                }
                case 'e' -> skip(4);
                default -> skip(2);
            }
        }

        private String text() {
            String text = texts[u2()];
            if (text == null) {
                throw new IllegalStateException("a name in a class file is no text");
            }
            return text;
        }

        private int u1() {
            return Byte.toUnsignedInt(in.get());
        }

        private int u2() {
            return Short.toUnsignedInt(in.getShort());
        }

        private void skip(int bytes) {
            in.position(in.position() + bytes);
        }
    }
}
