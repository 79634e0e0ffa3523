package dev.rpcx.tool;

import java.io.PrintStream;
import java.util.HashSet;
import java.util.Set;

/**
 * Prints the notes of one command. A command that asks about names reads the services again after each answer, so a
 * note that has been printed is not printed again.
 */
final class Notes {
    private final PrintStream err;
    private final Set<String> printed = new HashSet<>();

    Notes(PrintStream err) {
        this.err = err;
    }

    void add(String text) {
        if (printed.add(text)) {
            err.println("note: " + text);
        }
    }
}
