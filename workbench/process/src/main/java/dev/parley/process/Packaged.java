package dev.parley.process;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** A module of this project as the build packaged it, from which a process is started. */
public final class Packaged {
    private Packaged() {}

    /**
     * The module's own jar, and then the jars that it needs at run time.
     *
     * @param home the repository's root
     * @param module its folder below {@code workbench/}, such as {@code transport/rest}
     * @throws ProcessException where it was not built yet: says what to run
     */
    public static List<Path> jars(Path home, String module) {
        Path target = home.resolve("workbench").resolve(module).resolve("target");
        try (Stream<Path> files = Files.list(target)) {
            Path own = files.filter(file -> file.getFileName().toString().matches("parley-.*\\.jar"))
                    .filter(file -> !file.getFileName().toString().matches(".*-(tests|sources|javadoc)\\.jar"))
                    .findFirst()
                    .orElseThrow(() -> new ProcessException(target + " holds no jar: run ./parley, or mvn package"));
            String libraries =
                    Files.readString(target.resolve("runtime.classpath")).strip();
            return Stream.concat(
                            Stream.of(own),
                            Arrays.stream(libraries.split(File.pathSeparator))
                                    .filter(jar -> !jar.isEmpty())
                                    .map(Path::of))
                    .toList();
        } catch (IOException e) {
            throw new ProcessException(target + " is not built: run ./parley, or mvn package", e);
        }
    }

    /** The class path of several modules, one after the other. The JVM takes what is there twice from the first. */
    public static String classPath(Path home, List<String> modules) {
        return String.join(
                File.pathSeparator,
                modules.stream()
                        .flatMap(module -> jars(home, module).stream())
                        .map(Path::toString)
                        .distinct()
                        .toList());
    }
}
