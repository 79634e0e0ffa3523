package dev.rpcx.schema;

/**
 * A Java type that cannot be carried, or a number that is missing, wrong or taken. Thrown at start; its text names the
 * component, or the class and the method.
 */
public final class SchemaException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /** @param message names the component, what is wrong with it, and what was expected */
    public SchemaException(String message) {
        super(message);
    }
}
