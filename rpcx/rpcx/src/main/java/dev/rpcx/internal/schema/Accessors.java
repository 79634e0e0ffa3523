package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Names of the getter and the setter of a field: those of JavaBeans, as editors, Lombok and Kotlin write them, or the
 * field's own name. Used by {@link Schema} and by the annotation processor.
 */
public final class Accessors {
    /**
     * Names that are never getters: methods of every class, and the empty name, which {@code getters} uses instead of
     * the {@code is} form if a field is not a boolean.
     */
    private static final Set<String> OBJECTS =
            Set.of("", "getClass", "hashCode", "toString", "notify", "notifyAll", "wait");

    private Accessors() {}

    /**
     * Returns the error message for a property with only one accessor.
     *
     * @param isGetter whether this accessor is the getter; otherwise it is the setter
     */
    public static String alone(boolean isGetter) {
        return (isGetter ? "a public getter and no public setter" : "a public setter and no public getter")
                + " (expected: both; or none, or a transient field, where it is no component)";
    }

    /**
     * Returns the error message for a field whose accessor has another type, and that has no accessor of its own type.
     */
    public static String ofOtherType(String accessor) {
        return accessor + "() has another type than the field (expected: its own; or a transient field, where it is no"
                + " component)";
    }

    /**
     * Returns the error message for a {@link Field} at a place where {@link Schema} does not read it: a setter, a field
     * whose getter has a {@link Field} too, an overridden getter, or a member that is no component.
     */
    public static String strayNumber(String in, String member, boolean isMethod) {
        return in + "." + member + (isMethod ? "()" : "")
                + ": @Field where it gives no number (expected: on the record's component; or on a property's field or"
                + " its getter, on one of the two)";
    }

    /** Returns the possible names of a field's getter, in order of preference. */
    public static List<String> getters(String field, boolean isBoolean) {
        String capital = Schema.capital(field);
        return Stream.of("get" + capital, isBoolean ? "is" + capital : "", "get" + field, field)
                .filter(name -> !OBJECTS.contains(name))
                .toList();
    }

    /**
     * Returns the possible names of a field's setter, in order of preference. For a boolean field {@code isOpen} they
     * include {@code setOpen}.
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
