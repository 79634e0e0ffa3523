package dev.rpcx.schema;

/**
 * Refusal of a Java type that cannot be mapped, or of a number that is missing, wrong or taken. It is thrown at start;
 * its text names the component, or the class and the method.
 */
public final class SchemaException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /** @param message text that names the component, what is wrong with it, and what was expected */
    public SchemaException(String message) {
        super(message);
    }
}
