package dev.rpcx.schema;

/**
 * Thrown at start if a Java type cannot be mapped to Protobuf, or if a Protobuf number is missing, wrong or taken. The
 * message names the component of a record or class, or the class and the method. Also thrown if a lock file cannot be
 * parsed, or contradicts another lock file. The message then names the lock file.
 */
public final class SchemaException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception with this message.
     *
     * @param message text that names the component, what is wrong with the component, and what was expected
     */
    public SchemaException(String message) {
        super(message);
    }
}
