package dev.rpcx;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Locale;

/**
 * Chooses between two forms of tests that prove more if they run longer: a short form for the suite, and a long form
 * for {@code -Drpcx.long=true}. It also writes down the figures that such tests find.
 */
public final class LongForm {
    /** Says whether the long form was asked for. */
    public static final boolean ON = Boolean.getBoolean("rpcx.long");

    /** {@code rpcx/reliability} reads this file, and writes down the figures. */
    private static final Path FIGURES = Path.of("target", "reliability.txt");

    private LongForm() {}

    public static int of(int brief, int whole) {
        return ON ? whole : brief;
    }

    /** @param line the line of what a company asks for, as numbered in docs/results/reliability.md */
    public static synchronized void figure(int line, String text, Object... figures) {
        String told = line + "\t" + String.format(Locale.ROOT, text, figures);
        System.out.println("trust " + told);
        try {
            Files.createDirectories(FIGURES.getParent());
            Files.writeString(FIGURES, told + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
