package dev.rpcx.cli;

/**
 * Thrown if what was asked cannot be done as it stands. Its text is one line that says where the mistake is, what was
 * given and what was expected.
 */
final class Mistake extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** @param text may contain what somebody else has written; it is escaped when it is printed */
    Mistake(String text) {
        super(text);
    }
}
