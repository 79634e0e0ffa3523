package dev.rpcx.internal.schema;

/**
 * Says how the cases of a sealed type are named in its message, and what is wrong with them. {@link Schema} uses this
 * class with loaded classes, and the annotation processor with the compiler's types.
 */
public final class Cases {
    private Cases() {}

    /** Returns the name of the field that holds a case: {@code circle} for a class {@code Circle}. */
    public static String field(String simpleName) {
        return Character.toLowerCase(simpleName.charAt(0)) + simpleName.substring(1);
    }

    /**
     * Returns the text of the error for two cases of a sealed type that have the same name. A lock and a {@code .proto}
     * tell cases apart by their names alone.
     */
    public static String namesakes(String sealed, String one, String other, String field) {
        return sealed + ": the cases " + one + " and " + other + " are both " + field
                + " (expected: simple names that differ in more than the case of their first letter)";
    }

    /**
     * Returns the text of the error for a {@code @Field} on the constant or case that stands for the unknown, which has
     * no number of its own and is never sent under one.
     */
    public static String numbered(String type, String unknown) {
        return type + ": " + unknown + " stands for the unknown, which has no number of its own (expected: no @Field)";
    }
}
