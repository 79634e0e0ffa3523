package dev.rpcx.cli;

/** What was asked cannot be done as it stands: one line that names the place, the value and what was expected. */
final class Mistake extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** @param text may hold what somebody else has written: it is escaped where it is printed */
    Mistake(String text) {
        super(text);
    }
}
