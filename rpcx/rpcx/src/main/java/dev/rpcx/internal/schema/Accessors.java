package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Lists the names that a field's getter and setter can have: those of JavaBeans, as editors, Lombok and Kotlin write
 * them, and the field's own name. This class also makes the texts of errors about getters, setters and constructors.
 * {@link Schema} and the annotation processor use this class.
 */
public final class Accessors {
    /**
     * Names that {@link #getters} leaves out: those of the public methods of {@link Object} without parameters, and the
     * empty name. A field {@code open} can have a getter {@code isOpen} only if the field's type is {@code boolean}.
     * For any other type, {@code getters} first lists the empty name in place of {@code isOpen}.
     */
    private static final Set<String> OBJECTS =
            Set.of("", "getClass", "hashCode", "toString", "notify", "notifyAll", "wait");

    private Accessors() {}

    /**
     * Returns the text of the error for a field that has a public getter and no public setter, or the other way round.
     *
     * @param isGetter whether the field has the getter; if not, the field has the setter
     */
    public static String alone(boolean isGetter) {
        return (isGetter ? "a public getter and no public setter" : "a public setter and no public getter")
                + " (expected: both; or none, or a transient field, where it is no component"
                + (isGetter ? "; or a constructor that takes all fields with a getter, in their order)" : ")");
    }

    /** Returns the text of the error for a class that RPCX cannot make. */
    public static String withoutConstructor(String type) {
        return type + ": a class needs a constructor without parameters, getters and setters; or getters and a"
                + " constructor that takes their fields in the order of declaration; or make it a record";
    }

    /**
     * Returns the text of the error for a class whose constructor takes the values of its fields, while the class file
     * does not say which parameter is for which field.
     */
    public static String withoutNames(String type) {
        return type + ": the names of its constructor's parameters are not in the class file (expected: javac"
                + " -parameters)";
    }

    /**
     * Returns the text of the error for a class whose constructor has parameters of the types of its fields, by other
     * names or in another order.
     */
    public static String ofOtherNames(String type, List<String> parameters, List<String> fields) {
        return type + ": its constructor takes " + parameters + ", and its fields with a getter are " + fields
                + " (expected: the same names in the same order)";
    }

    /** Returns the text of the error for a final field that has a public setter of its own type. */
    public static String ofFinalField() {
        return "a public setter of a final field (expected: a field that is not final; or neither getter nor setter, or"
                + " a transient field, where it is no component)";
    }

    /** Returns the text of the error for a field whose accessors all have another type than the field. */
    public static String ofOtherType(String accessor) {
        return accessor + "() has another type than the field (expected: its own; or a transient field, where it is no"
                + " component)";
    }

    /**
     * Returns the text of the error for a {@link Field} annotation that {@link Schema} does not use. In a class, such
     * an annotation is on one of these members:
     *
     * <ul>
     *   <li>a setter
     *   <li>an overridden getter
     *   <li>a field or method that belongs to no component
     *   <li>a field whose getter has a {@code @Field} too
     * </ul>
     *
     * <p>In a record, such an annotation is on an accessor, and the component itself has no {@code @Field} or one that
     * is different.
     */
    public static String strayNumber(String in, String member, boolean isMethod) {
        return in + "." + member + (isMethod ? "()" : "")
                + ": @Field where it gives no number (expected: on the record's component; or on a property's field or"
                + " its getter, on one of the two)";
    }

    /** Returns the names that a field's getter can have. The preferred name comes first. */
    public static List<String> getters(String field, boolean isBoolean) {
        String capital = Schema.capital(field);
        return Stream.of("get" + capital, isBoolean ? "is" + capital : "", "get" + field, field)
                .filter(name -> !OBJECTS.contains(name))
                .toList();
    }

    /**
     * Returns the names that a field's setter can have. The preferred name comes first. For a field {@code isOpen} of
     * the type {@code boolean}, the names include {@code setOpen}.
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
