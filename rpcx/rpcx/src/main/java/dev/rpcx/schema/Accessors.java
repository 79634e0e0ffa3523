package dev.rpcx.schema;

import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Names by which a class's field is read and set: those of JavaBeans, as editors, Lombok and Kotlin write them, or the
 * field's own. For {@link Schema}, which has classes, and for the annotation processor, which has the compiler's.
 */
public final class Accessors {
    /** Each class has these, whatever its fields, and none for a boolean's name. */
    private static final Set<String> OBJECTS =
            Set.of("", "getClass", "hashCode", "toString", "notify", "notifyAll", "wait");

    private Accessors() {}

    /** What is wrong with a property that has one accessor. */
    public static String alone(boolean isGetter) {
        return (isGetter ? "a public getter and no public setter" : "a public setter and no public getter")
                + " (expected: both; or none, or a transient field, where it is no component)";
    }

    /** What is wrong with a field that has an accessor of another type, and none of its own. */
    public static String ofOtherType(String accessor) {
        return accessor + "() has another type than the field (expected: its own; or a transient field, where it is no"
                + " component)";
    }

    /**
     * What is wrong with a {@link Field} that Schema does not read: on a setter, on a field beside a getter that has
     * one too, on a getter that is overridden, on what is no component.
     */
    public static String strayNumber(String in, String member, boolean isMethod) {
        return in + "." + member + (isMethod ? "()" : "")
                + ": @Field where it gives no number (expected: on the record's component; or on a property's field or"
                + " its getter, on one of the two)";
    }

    /** Names of a field's getter, the first that there is. */
    public static List<String> getters(String field, boolean isBoolean) {
        String capital = Schema.capital(field);
        return Stream.of("get" + capital, isBoolean ? "is" + capital : "", "get" + field, field)
                .filter(name -> !OBJECTS.contains(name))
                .toList();
    }

    /** Names of a field's setter, the first that there is. A boolean field {@code isOpen} may have {@code setOpen}. */
    public static List<String> setters(String field, boolean isBoolean) {
        String capital = Schema.capital(field);
        boolean hasPrefix =
                isBoolean && field.length() > 2 && field.startsWith("is") && Character.isUpperCase(field.charAt(2));
        return hasPrefix
                ? List.of("set" + capital, "set" + field, "set" + field.substring(2), field)
                : List.of("set" + capital, "set" + field, field);
    }
}
