package dev.parley.model;

import java.io.File;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a person types to start the workbench. Every message that quotes a command takes it from here: {@code ./parley}
 * in a checkout, {@code bin/parley} in a distribution, {@code parley} where a folder of the PATH holds it.
 */
public final class Launcher {
    /** Launchers set this system property to their own path, as it was typed. */
    private static final String PROPERTY = "parley.launcher";

    private static final String CHECKOUT = "./parley";

    private Launcher() {}

    /** Its name as a shell reads it; that of a checkout's launcher where none says how it was typed, as in tests. */
    public static String name() {
        return name(System.getProperty(PROPERTY, CHECKOUT), System.getenv().getOrDefault("PATH", ""));
    }

    static String name(String typed, String path) {
        Path launcher = Path.of(typed);
        List<String> folders = Arrays.asList(path.split(File.pathSeparator, -1));
        // a shell that finds a script by its name alone starts it by its absolute path
        boolean isByName = launcher.isAbsolute() && folders.contains(String.valueOf(launcher.getParent()));
        return quoted(isByName ? launcher.getFileName().toString() : typed);
    }

    /** A whole command in a form that a shell reads: {@code ./parley run --resume DIR}. */
    public static String command(List<String> words) {
        return Stream.concat(Stream.of(name()), words.stream().map(Launcher::quoted))
                .collect(Collectors.joining(" "));
    }

    public static String command(String... words) {
        return command(List.of(words));
    }

    private static String quoted(String word) {
        return word.matches("[\\w@%+=:,./-]+") ? word : "'" + word.replace("'", "'\\''") + "'";
    }
}
