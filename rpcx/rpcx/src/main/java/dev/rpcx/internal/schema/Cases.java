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
     * Returns the text of the error for a wrong {@code @Field}. The error is one of two:
     *
     * <ul>
     *   <li>A case stands for the unknown values of its sealed type, and has a {@code @Field}. Such a case has no
     *       number on the wire.
     *   <li>A constant stands for the unknown values of its enum, and has a {@code @Field} with a number other than 0.
     *       Such a constant always has the number 0.
     * </ul>
     *
     * @param type name of the sealed type or of the enum
     * @param unknown name of the case or of the constant
     */
    public static String numbered(String type, String unknown) {
        return type + ": " + unknown + " stands for the unknown, which has no number of its own (expected: no @Field)";
    }
}
