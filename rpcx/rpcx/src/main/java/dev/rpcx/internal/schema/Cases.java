package dev.rpcx.internal.schema;

/**
 * Names the cases of a sealed type in its message, and makes the texts of errors about cases. Used by {@link Schema}
 * and by the annotation processor.
 */
public final class Cases {
    private Cases() {}

    /** Returns the name of the field that holds a case: {@code circle} for a class {@code Circle}. */
    public static String field(String simpleName) {
        return Character.toLowerCase(simpleName.charAt(0)) + simpleName.substring(1);
    }

    /**
     * Returns the text of the error for two cases of a sealed type whose fields have the same name. Locks and
     * {@code .proto} files know a case only by that name.
     */
    public static String namesakes(String sealed, String one, String other, String field) {
        return sealed + ": the cases " + one + " and " + other + " would both be named " + field
                + " (expected: simple names that differ in more than the case of their first letter)";
    }

    /**
     * Returns the text of the error for a {@code @Field} on the constant or case that stands for the unknown. Such a
     * constant always has the number 0; such a case has no number on the wire.
     */
    public static String numbered(String type, String unknown) {
        return type + ": " + unknown + " stands for the unknown, which has no number of its own (expected: no @Field)";
    }
}
