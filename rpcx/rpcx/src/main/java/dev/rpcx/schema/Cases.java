package dev.rpcx.schema;

/**
 * How the cases of a sealed type are named in its message, and what is wrong with them. For {@link Schema}, which has
 * classes, and for the annotation processor, which has the compiler's.
 */
public final class Cases {
    private Cases() {}

    /** The name of the field that holds a case: {@code circle} for a class {@code Circle}. */
    public static String field(String simpleName) {
        return Character.toLowerCase(simpleName.charAt(0)) + simpleName.substring(1);
    }

    /**
     * What is wrong with two cases of one name. A lock and a {@code .proto} tell cases apart by their names alone.
     */
    public static String namesakes(String sealed, String one, String other, String field) {
        return sealed + ": the cases " + one + " and " + other + " are both " + field
                + " (expected: simple names that differ in more than the case of their first letter)";
    }

    /** What is wrong with a number for what stands for the unknown: it is never sent as such. */
    public static String numbered(String type, String unknown) {
        return type + ": " + unknown + " stands for the unknown, which has no number of its own (expected: no @Field)";
    }
}
