package dev.parley.dist;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/** A built checkout of two modules with jars of a few bytes, and the distribution of it with a script for a runtime. */
final class MadeUp {
    static final BuildFacts FACTS = new BuildFacts(
            "1.2.3", "0123456789ab", Instant.parse("2026-01-02T03:04:05Z"), "linux-x64", "Temurin 25.0.1+8");

    static final List<String> MODULES = List.of("cli", "transport/soap");

    private MadeUp() {}

    /** Two modules that share the jar {@code shared-1.jar}. */
    static Path checkout(Path folder) throws IOException {
        Path shared = jar(folder.resolve("repository/org/a/shared/1/shared-1.jar"), Map.of("A.class", "a"));
        Path soap = jar(folder.resolve("repository/org/a/soap/2/soap-2.jar"), Map.of("S.class", "s"));
        jar(folder.resolve("workbench/cli/target/parley-cli-1.jar"), Map.of("C.class", "c"));
        write(folder, "workbench/cli/target/runtime.classpath", shared.toString());
        write(folder, "workbench/cli/jvm.options", "-Xmx1g\n");
        jar(folder.resolve("workbench/transport/soap/target/parley-transport-soap-1.jar"), Map.of("T.class", "t"));
        write(folder, "workbench/transport/soap/target/runtime.classpath", soap + ":" + shared);
        write(
                folder,
                "repository/org/a/soap/2/soap-2.pom",
                "<project><licenses><license><name>The MIT License</name></license></licenses></project>");
        write(folder, "docs/observing/prometheus.yml", "scrape\n");
        write(folder, "LICENSE", "a licence\n");
        return folder;
    }

    /** The runtime is a script that prints its arguments, a line each. */
    static Path staged(Path checkout, Path root) throws IOException {
        Stage.lay(checkout, MODULES, FACTS, root);
        Path java = write(root, "runtime/bin/java", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
        Files.setPosixFilePermissions(java, PosixFilePermissions.fromString("rwxr-xr-x"));
        return root;
    }

    static Path write(Path folder, String file, String text) throws IOException {
        Path path = folder.resolve(file);
        Files.createDirectories(path.getParent());
        return Files.writeString(path, text);
    }

    static Path jar(Path file, Map<String, String> entries) throws IOException {
        Files.createDirectories(file.getParent());
        try (ZipOutputStream jar = new ZipOutputStream(Files.newOutputStream(file))) {
            for (Map.Entry<String, String> each : new TreeMap<>(entries).entrySet()) {
                ZipEntry entry = new ZipEntry(each.getKey());
                entry.setLastModifiedTime(FileTime.from(FACTS.committedAt()));
                jar.putNextEntry(entry);
                jar.write(each.getValue().getBytes(StandardCharsets.UTF_8));
            }
        }
        return file;
    }
}
