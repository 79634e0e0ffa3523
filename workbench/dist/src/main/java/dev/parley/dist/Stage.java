package dev.parley.dist;

import dev.parley.lab.Inventory;
import dev.parley.lab.LabException;
import dev.parley.process.Packaged;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.commons.compress.archivers.zip.ZipArchiveOutputStream;
import org.apache.commons.compress.archivers.zip.ZipFile;

/** The files of a distribution, but for its runtime, in the folder that is packed afterwards. */
final class Stage {
    private static final String OBSERVING = "docs/observing";

    /** DuckDB's jar has a native library for each system. Their names begin so. */
    private static final String NATIVE = "libduckdb_java.so_";

    private final Path home;
    private final BuildFacts facts;
    private final Path root;

    private Stage(Path home, BuildFacts facts, Path root) {
        this.home = home;
        this.facts = facts;
        this.root = root;
    }

    /**
     * Lays the files into {@code root}.
     *
     * @param home the checkout, built
     * @param modules that processes are started from
     */
    static void lay(Path home, Collection<String> modules, BuildFacts facts, Path root) throws IOException {
        Stage stage = new Stage(home, facts, root);
        stage.libraries(modules);
        stage.observing();
        stage.write("LICENSE", Files.readString(home.resolve("LICENSE")));
        stage.write(Packaged.FACTS, facts.text());
        stage.write(
                "README.txt",
                resource("README.txt")
                        .formatted(facts.version(), facts.system(), facts.commit(), facts.committedAt(), facts.jdk()));
        stage.write(Packaged.LIBRARIES + "/jvm.options", Files.readString(home.resolve("workbench/cli/jvm.options")));
        Path launcher = stage.write("bin/parley", resource("parley"));
        Files.setPosixFilePermissions(launcher, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    /** Lays every jar once, the list of what each module needs of them, and their licences. */
    private void libraries(Collection<String> modules) throws IOException {
        Map<String, Path> jars = new TreeMap<>();
        for (String module : modules) {
            List<String> names = new ArrayList<>();
            for (Path jar : Packaged.jars(home, module)) {
                String name = jar.getFileName().toString();
                Path other = jars.putIfAbsent(name, jar);
                if (other != null && Files.mismatch(other, jar) >= 0) {
                    throw new LabException(other + " and " + jar + " differ (expected: jars of one name that are the"
                            + " same, because a distribution has it once)");
                }
                names.add(name);
            }
            Path list = Packaged.list(root, module);
            Files.createDirectories(list.getParent());
            Files.write(list, names);
        }
        Path libraries = Files.createDirectories(root.resolve(Packaged.LIBRARIES));
        StringBuilder licences = new StringBuilder("# The files beside this one, and their licences as their publishers"
                + " name them. Those of the runtime are in runtime/legal.\n");
        for (Map.Entry<String, Path> jar : jars.entrySet()) {
            copy(jar.getValue(), libraries.resolve(jar.getKey()), facts.system());
            licences.append(jar.getKey())
                    .append('\t')
                    .append(Inventory.licence(jar.getValue()))
                    .append('\n');
        }
        write(Packaged.LIBRARIES + "/" + Packaged.LICENCES, licences.toString());
    }

    /** Copies a jar as it is, but leaves out of DuckDB's, for two thirds, what is for other systems. */
    static void copy(Path jar, Path to, String system) throws IOException {
        if (!jar.getFileName().toString().startsWith("duckdb_jdbc-")) {
            Files.copy(jar, to);
            return;
        }
        String own = NATIVE
                + switch (system) {
                    case "linux-x64" -> "linux_amd64";
                    case "linux-aarch64" -> "linux_arm64";
                    default -> "osx_universal";
                };
        try (ZipFile whole = ZipFile.builder().setPath(jar).get();
                ZipArchiveOutputStream part = new ZipArchiveOutputStream(to.toFile())) {
            if (whole.getEntry(own) == null) {
                throw new LabException(jar + " has no " + own + " (expected: the native library of " + system + ")");
            }
            whole.copyRawEntries(
                    part,
                    entry -> !entry.getName().startsWith(NATIVE)
                            || entry.getName().equals(own));
        }
    }

    /** Lays the configurations that an observed run copies, where it looks for them. */
    private void observing() throws IOException {
        try (Stream<Path> files = Files.list(home.resolve(OBSERVING))) {
            Path folder = Files.createDirectories(root.resolve(OBSERVING));
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Files.copy(file, folder.resolve(file.getFileName()));
            }
        }
    }

    private Path write(String file, String text) throws IOException {
        Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        return Files.writeString(path, text);
    }

    private static String resource(String name) throws IOException {
        try (InputStream text = Stage.class.getResourceAsStream(name)) {
            if (text == null) {
                throw new LabException(name + " is missing from the jar of workbench/dist: build again");
            }
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
