package dev.rpcx.versions;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A Java of another version on this machine, with or without a compiler. An environment variable names it, or it is
 * found in one of the usual folders.
 */
record Jdk(int version, Path java) {
    private static final List<String> FOLDERS = List.of(
            "/usr/lib/jvm",
            "/usr/java",
            "/opt/java",
            "/opt",
            "/Library/Java/JavaVirtualMachines",
            System.getProperty("user.home") + "/.sdkman/candidates/java",
            System.getProperty("user.home") + "/.jdks");

    static Jdk own() {
        return new Jdk(Runtime.version().feature(), Path.of(System.getProperty("java.home"), "bin", "java"));
    }

    static Optional<Jdk> find(int version) {
        if (version == Runtime.version().feature()) {
            return Optional.of(own());
        }
        List<Path> homes = new ArrayList<>();
        System.getenv().forEach((name, value) -> {
            if (name.startsWith("JAVA_HOME") || name.equals("JDK_" + version)) {
                homes.add(Path.of(value));
            }
        });
        for (String folder : FOLDERS) {
            try (Stream<Path> inside = Files.list(Path.of(folder))) {
                inside.sorted(Comparator.naturalOrder()).forEach(home -> {
                    homes.add(home);
                    homes.add(home.resolve("Contents/Home"));
                });
            } catch (IOException notThere) {
                // the loop tries the next folder
            }
        }
        return homes.stream()
                .filter(home -> is(version, home.resolve("release")))
                .map(home -> home.resolve("bin/java"))
                .filter(Files::isExecutable)
                .findFirst()
                .map(java -> new Jdk(version, java));
    }

    private static boolean is(int version, Path release) {
        try {
            return Files.readString(release)
                    .lines()
                    .anyMatch(line -> line.matches("JAVA_VERSION=\"" + version + "[.\"].*"));
        } catch (IOException notThere) {
            return false;
        }
    }
}
