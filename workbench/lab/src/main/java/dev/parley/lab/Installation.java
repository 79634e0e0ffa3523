package dev.parley.lab;

import dev.parley.model.LibraryRow;
import dev.parley.process.Packaged;
import dev.parley.process.ProcessException;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

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
            try {
                Packaged.jars(home, module).forEach(jar -> add(byArtifact, jar));
            } catch (ProcessException e) {
                throw new LabException(String.valueOf(e.getMessage()), e);
            }
        }
        return new Installation(List.copyOf(byArtifact.values()));
    }

    private static void add(Map<String, Path> byArtifact, Path jar) {
        String[] parts = parts(jar);
        byArtifact.putIfAbsent(parts[0] + parts[2], jar);
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
