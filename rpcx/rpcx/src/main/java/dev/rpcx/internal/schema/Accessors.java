package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Names of the methods that read and set a class's field: the names of JavaBeans, as editors, Lombok and Kotlin write
 * them, or the field's own name. {@link Schema} uses this class with loaded classes, and the annotation processor with
 * the compiler's types.
 */
public final class Accessors {
    /**
     * Names that are never a getter's: each class has these methods, whatever its fields are. The empty name stands for
     * the {@code is} form of a field that is not a boolean.
     */
    private static final Set<String> OBJECTS =
            Set.of("", "getClass", "hashCode", "toString", "notify", "notifyAll", "wait");

    private Accessors() {}

    /**
     * Returns the text of the error for a property that has only one accessor.
     *
     * @param isGetter whether the accessor that it has is the getter
     */
    public static String alone(boolean isGetter) {
        return (isGetter ? "a public getter and no public setter" : "a public setter and no public getter")
                + " (expected: both; or none, or a transient field, where it is no component)";
    }

    /** Returns the text of the error for a field that has an accessor of another type, and none of its own type. */
    public static String ofOtherType(String accessor) {
        return accessor + "() has another type than the field (expected: its own; or a transient field, where it is no"
                + " component)";
    }

    /**
     * Returns the text of the error for a {@link Field} that {@link Schema} does not read: on a setter, on a field
     * whose getter has one too, on a getter that is overridden, or on what is no component.
     */
    public static String strayNumber(String in, String member, boolean isMethod) {
        return in + "." + member + (isMethod ? "()" : "")
                + ": @Field where it gives no number (expected: on the record's component; or on a property's field or"
                + " its getter, on one of the two)";
    }

    /** Returns the possible names of a field's getter, of which the first that exists counts. */
    public static List<String> getters(String field, boolean isBoolean) {
        String capital = Schema.capital(field);
        return Stream.of("get" + capital, isBoolean ? "is" + capital : "", "get" + field, field)
                .filter(name -> !OBJECTS.contains(name))
                .toList();
    }

    /**
     * Returns the possible names of a field's setter, of which the first that exists counts. A boolean field
     * {@code isOpen} may have {@code setOpen}.
     */
    public static List<String> setters(String field, boolean isBoolean) {
        String capital = Schema.capital(field);
        boolean hasPrefix =
                isBoolean && field.length() > 2 && field.startsWith("is") && Character.isUpperCase(field.charAt(2));
        return hasPrefix
                ? List.of("set" + capital, "set" + field, "set" + field.substring(2), field)
                : List.of("set" + capital, "set" + field, field);
    }
}
