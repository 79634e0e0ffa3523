package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Names that the getter and the setter of a class's field may have. These are the names of JavaBeans, as editors,
 * Lombok and Kotlin write them, or the field's own name. {@link Schema} uses this class for loaded classes, and the
 * annotation processor uses it for the compiler's types.
 */
public final class Accessors {
    /**
     * Names that never count as the name of a getter. These are the names of methods that every class has, whatever its
     * fields are, and the empty name. {@code getters} uses the empty name instead of the {@code is} form for a field
     * that is not a boolean.
     */
    private static final Set<String> OBJECTS =
            Set.of("", "getClass", "hashCode", "toString", "notify", "notifyAll", "wait");

    private Accessors() {}

    /**
     * Returns the text of the error for a property that has only one accessor.
     *
     * @param isGetter whether this one accessor is the getter; otherwise it is the setter
     */
    public static String alone(boolean isGetter) {
        return (isGetter ? "a public getter and no public setter" : "a public setter and no public getter")
                + " (expected: both; or none, or a transient field, where it is no component)";
    }

    /**
     * Returns the text of the error for a field that has an accessor of a type other than the field's, but no accessor
     * of the field's type.
     */
    public static String ofOtherType(String accessor) {
        return accessor + "() has another type than the field (expected: its own; or a transient field, where it is no"
                + " component)";
    }

    /**
     * Returns the text of the error for a {@link Field} that gives no number, because {@link Schema} does not read it
     * at its place. Such places are a setter, a field whose getter has a {@link Field} too, a getter that is
     * overridden, and a member that is no component.
     */
    public static String strayNumber(String in, String member, boolean isMethod) {
        return in + "." + member + (isMethod ? "()" : "")
                + ": @Field where it gives no number (expected: on the record's component; or on a property's field or"
                + " its getter, on one of the two)";
    }

    /** Returns the names that a field's getter may have. The first of them that a class has is the getter. */
    public static List<String> getters(String field, boolean isBoolean) {
        String capital = Schema.capital(field);
        return Stream.of("get" + capital, isBoolean ? "is" + capital : "", "get" + field, field)
                .filter(name -> !OBJECTS.contains(name))
                .toList();
    }

    /**
     * Returns the names that a field's setter may have. The first of them that a class has is the setter. The setter of
     * a boolean field {@code isOpen} may also be {@code setOpen}.
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
