package dev.rpcx.schema;

/**
 * Thrown at start if a Java type cannot be mapped, or if a number is missing, wrong or taken. The message names the
 * component, or the class and the method.
 */
public final class SchemaException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message text that names the component, what is wrong with it, and what was expected
     */
    public SchemaException(String message) {
        super(message);
    }
}
