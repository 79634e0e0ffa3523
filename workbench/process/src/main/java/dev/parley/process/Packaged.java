package dev.parley.process;

import java.io.File;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;

/**
 * A module of this project as the build packaged it, from which a process is started. It lies in a checkout, or in a
 * distribution, which has every jar once and a list of jars for each module.
 */
public final class Packaged {
    /** The folder of a distribution that holds every jar. */
    public static final String LIBRARIES = "lib";

    /** The file beside the jars of a distribution that names the licence of each: a line a jar, with a tab between. */
    public static final String LICENCES = "THIRD-PARTY.txt";

    /** The file of a distribution that says what it was built from. */
    public static final String FACTS = "build.properties";

    /** The key in {@link #FACTS} of the commit that it was built from. */
    public static final String COMMIT = "commit";

    private Packaged() {}

    /**
     * The module's own jar, and then the jars that it needs at run time.
     *
     * @param home the root of the checkout or of the distribution
     * @param module its folder below {@code workbench/}, such as {@code transport/rest}
     * @throws ProcessException where it is not there: says what to do
     */
    public static List<Path> jars(Path home, String module) {
        Path list = list(home, module);
        if (Files.isRegularFile(list)) {
            return listed(home, list);
        }
        if (Files.isRegularFile(home.resolve(FACTS))) {
            throw new ProcessException(list + " is missing: unpack the distribution again");
        }
        return built(home, module);
    }

    /** The file of a distribution that names a module's jars, a line each, its own first. */
    public static Path list(Path home, String module) {
        return home.resolve("modules").resolve(module + ".jars");
    }

    private static List<Path> listed(Path home, Path list) {
        try {
            return Files.readAllLines(list).stream()
                    .map(home.resolve(LIBRARIES)::resolve)
                    .toList();
        } catch (IOException e) {
            throw new ProcessException(list + " cannot be read: unpack the distribution again", e);
        }
    }

    private static List<Path> built(Path home, String module) {
        Path target = target(home, module);
        try (Stream<Path> files = Files.list(target)) {
            Path own = files.filter(file -> file.getFileName().toString().matches("parley-.*\\.jar"))
                    .filter(file -> !file.getFileName().toString().matches(".*-(tests|sources|javadoc)\\.jar"))
                    .findFirst()
                    .orElseThrow(() -> new ProcessException(target + " holds no jar: run ./parley, or mvn package"));
            String libraries = Files.readString(classPathFile(target)).strip();
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

    private static Path target(Path home, String module) {
        return home.resolve("workbench").resolve(module).resolve("target");
    }

    private static Path classPathFile(Path target) {
        return target.resolve("runtime.classpath");
    }

    /** Says whether a process can be started from it: the distribution has it, or the build has packaged it. */
    public static boolean isHere(Path home, String module) {
        return Files.isRegularFile(list(home, module)) || Files.isRegularFile(classPathFile(target(home, module)));
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

    /** The commit that a distribution was built from; empty in a checkout. */
    public static Optional<String> commit(Path home) {
        Path facts = home.resolve(FACTS);
        if (!Files.isRegularFile(facts)) {
            return Optional.empty();
        }
        Properties read = new Properties();
        try (Reader text = Files.newBufferedReader(facts)) {
            read.load(text);
        } catch (IOException e) {
            throw new ProcessException(facts + " cannot be read: unpack the distribution again", e);
        }
        return Optional.ofNullable(read.getProperty(COMMIT));
    }
}
