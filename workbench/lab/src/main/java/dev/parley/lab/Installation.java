package dev.parley.lab;

import dev.parley.model.LibraryRow;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The files that one kind of process runs from: the jars of some modules and of all they need at run time, each artifact once. What a
 * service's installation takes is what is published as its installed size.
 */
record Installation(List<Path> jars) {
    private static final Pattern NAME = Pattern.compile(
            "(.+?)-(\\d[\\w.]*(?:-[A-Z]\\w*|-jre|-android|-alpha|-beta|-rc\\d*)?)(-[a-z][\\w-]*)?\\.jar");

    /** @param modules folders below {@code workbench/}; the first that brings an artifact decides its version */
    static Installation of(Path home, List<String> modules) {
        Map<String, Path> byArtifact = new LinkedHashMap<>();
        for (String module : modules) {
            Path target = home.resolve("workbench").resolve(module).resolve("target");
            add(byArtifact, ownJar(target));
            for (String jar : runtimeClassPath(target)) {
                add(byArtifact, Path.of(jar));
            }
        }
        return new Installation(List.copyOf(byArtifact.values()));
    }

    private static void add(Map<String, Path> byArtifact, Path jar) {
        String[] parts = parts(jar);
        byArtifact.putIfAbsent(parts[0] + parts[2], jar);
    }

    private static Path ownJar(Path target) {
        try (Stream<Path> files = Files.list(target)) {
            return files.filter(file -> file.getFileName().toString().matches("parley-.*\\.jar"))
                    .filter(file -> !file.getFileName().toString().matches(".*-(tests|sources|javadoc)\\.jar"))
                    .findFirst()
                    .orElseThrow(() -> new LabException(target + " holds no jar: build again"));
        } catch (IOException e) {
            throw new LabException(target + " is not built: run ./parley, or mvn package", e);
        }
    }

    private static List<String> runtimeClassPath(Path target) {
        try {
            String text = Files.readString(target.resolve("runtime.classpath")).strip();
            return text.isEmpty() ? List.of() : Arrays.asList(text.split(File.pathSeparator));
        } catch (IOException e) {
            throw new LabException(target + " has no runtime.classpath: run ./parley, or mvn package", e);
        }
    }

    /** Artifact, version and classifier (with its hyphen) of a jar; version and classifier are empty where the name has none. */
    static String[] parts(Path jar) {
        String file = jar.getFileName().toString();
        Matcher name = NAME.matcher(file);
        if (!name.matches()) {
            return new String[] {file.replaceFirst("\\.jar$", ""), "", ""};
        }
        String classifier = name.group(3);
        return new String[] {name.group(1), name.group(2), classifier == null ? "" : classifier};
    }

    /** This one, and of the other what it lacks. */
    Installation and(Installation other) {
        Map<String, Path> byArtifact = new LinkedHashMap<>();
        jars.forEach(jar -> add(byArtifact, jar));
        other.jars.forEach(jar -> add(byArtifact, jar));
        return new Installation(List.copyOf(byArtifact.values()));
    }

    String classPath() {
        return String.join(File.pathSeparator, jars.stream().map(Path::toString).toList());
    }

    long bytes() {
        return jars.stream().mapToLong(Installation::size).sum();
    }

    List<LibraryRow> libraries(String technology) {
        return jars.stream()
                .map(jar -> {
                    String[] parts = parts(jar);
                    return new LibraryRow(technology, parts[0] + parts[2], parts[1], Licence.of(jar), size(jar));
                })
                .toList();
    }

    private static long size(Path jar) {
        try {
            return Files.size(jar);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
