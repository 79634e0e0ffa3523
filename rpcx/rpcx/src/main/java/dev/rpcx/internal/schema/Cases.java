package dev.rpcx.internal.schema;

/**
 * Names the message fields for the cases of a sealed type, that is, for the classes that it permits directly or through
 * another sealed type. This class also makes the texts of errors about cases. {@link Schema} and the annotation
 * processor use this class.
 */
public final class Cases {
    private Cases() {}

    /** Returns the name of the message field that holds a case: {@code circle} for a class {@code Circle}. */
    public static String field(String simpleName) {
        return Character.toLowerCase(simpleName.charAt(0)) + simpleName.substring(1);
    }

    /**
     * Returns the text of the error for two cases of a sealed type whose message fields would have the same name. Lock
     * files and {@code .proto} files identify a case only by the name of this field.
     */
    public static String namesakes(String sealed, String one, String other, String field) {
        return sealed + ": the cases " + one + " and " + other + " would both be named " + field
                + " (expected: simple names that differ in more than the case of their first letter)";
    }

    /**
     * Returns the text of the error for a {@code @Field} on the case of a sealed type that stands for unknown values.
     * This case has no number on the wire. Also returns the text for the enum constant that stands for unknown values,
     * if its {@code @Field} has another number than 0. This constant always has the number 0.
     */
    public static String numbered(String type, String unknown) {
        return type + ": " + unknown + " stands for the unknown, which has no number of its own (expected: no @Field)";
    }
}
