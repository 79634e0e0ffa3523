package dev.parley.dist;

import com.google.cloud.tools.jib.api.CacheDirectoryCreationException;
import com.google.cloud.tools.jib.api.Containerizer;
import com.google.cloud.tools.jib.api.InvalidImageReferenceException;
import com.google.cloud.tools.jib.api.Jib;
import com.google.cloud.tools.jib.api.RegistryException;
import com.google.cloud.tools.jib.api.TarImage;
import com.google.cloud.tools.jib.api.buildplan.AbsoluteUnixPath;
import com.google.cloud.tools.jib.api.buildplan.FileEntriesLayer;
import com.google.cloud.tools.jib.api.buildplan.FilePermissions;
import com.google.cloud.tools.jib.api.buildplan.Platform;
import dev.parley.lab.LabException;
import dev.parley.process.Packaged;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/**
 * A distribution as a container image in a file, as {@code docker save} writes it. Its base is what the runtime is
 * linked against and nothing else: no shell, no package manager. Java itself is what it starts.
 */
final class Image {
    private static final String HOME = "/opt/parley";

    /** The folder that it starts in, where results go: a user mounts one of their own there. */
    private static final String WORK = "/work";

    /** Every user may write in these folders. */
    private static final Set<String> OPEN = Set.of(WORK, "/tmp");

    private static final String USER = "1000";

    /** Debian has the shared libraries in these packages. Their licences go with them where the system has them. */
    private static final List<String> LICENSED = List.of("libc6", "libgcc-s1", "libstdc++6");

    private Image() {}

    /**
     * Writes one. Needs no container program and no network.
     *
     * @param root of the distribution
     * @param work a folder for what is needed on the way
     */
    static void write(Path root, BuildFacts facts, Path work, Path image) throws IOException, InterruptedException {
        Path base = base(root, work);
        Path cache = Files.createDirectories(work.resolve("cache"));
        try {
            Jib.fromScratch()
                    .setPlatforms(Set.of(new Platform(facts.system().endsWith("-x64") ? "amd64" : "arm64", "linux")))
                    .setFileEntriesLayers(List.of(layer("system", base, "", facts), layer("parley", root, HOME, facts)))
                    .setEntrypoint(entryPoint(root))
                    .setProgramArguments(List.of("--help"))
                    .setEnvironment(Map.of("LANG", "C.UTF-8"))
                    .setWorkingDirectory(AbsoluteUnixPath.get(WORK))
                    .setUser(USER)
                    .setCreationTime(facts.committedAt())
                    .addLabel("org.opencontainers.image.version", facts.version())
                    .addLabel("org.opencontainers.image.revision", facts.commit())
                    .containerize(Containerizer.to(TarImage.at(image).named("parley:" + facts.version()))
                            .setOfflineMode(true)
                            .setBaseImageLayersCache(cache)
                            .setApplicationLayersCache(cache)
                            .setToolName("parley")
                            .setToolVersion(facts.version()));
        } catch (InvalidImageReferenceException
                | RegistryException
                | CacheDirectoryCreationException
                | ExecutionException e) {
            throw new LabException("the image could not be made: " + e.getMessage(), e);
        }
    }

    /** Makes the folder of all that is not the distribution's own. */
    private static Path base(Path root, Path work) throws IOException, InterruptedException {
        Path base = work.resolve("base");
        for (Path library : SharedLibraries.of(root, work.resolve("libraries"))) {
            copy(library, base);
        }
        for (String name : LICENSED) {
            Path licence = Path.of("/usr/share/doc", name, "copyright");
            if (Files.isReadable(licence)) {
                copy(licence, base);
            }
        }
        Path etc = Files.createDirectories(base.resolve("etc"));
        Files.writeString(etc.resolve("passwd"), "parley:x:" + USER + ":" + USER + "::" + WORK + ":\n");
        Files.writeString(etc.resolve("group"), "parley:x:" + USER + ":\n");
        for (String folder : OPEN) {
            Files.createDirectories(base.resolve(folder.substring(1)));
        }
        return base;
    }

    /** Copies a file, or what a link leads to, to the same place below {@code base}. */
    private static void copy(Path file, Path base) throws IOException {
        Path to = base.resolve(file.toString().substring(1));
        Files.createDirectories(to.getParent());
        Files.copy(file, to);
    }

    private static FileEntriesLayer layer(String name, Path folder, String at, BuildFacts facts) throws IOException {
        FileEntriesLayer.Builder layer = FileEntriesLayer.builder().setName(name);
        for (Map.Entry<String, Path> each : Archive.files(folder).entrySet()) {
            String path = at + "/" + each.getKey();
            Path file = each.getValue();
            layer.addEntry(file.toRealPath(), AbsoluteUnixPath.get(path), permissions(path, file), facts.committedAt());
        }
        return layer.build();
    }

    private static FilePermissions permissions(String path, Path file) {
        return FilePermissions.fromOctalString(
                OPEN.contains(path) ? "777" : Archive.isRunOrEntered(file) ? "755" : "644");
    }

    /** Starts what the archive's launcher starts. The launcher is a script, and an image has no shell. */
    private static List<String> entryPoint(Path root) {
        String classPath = Packaged.jars(root, "cli").stream()
                .map(jar -> HOME + "/" + root.relativize(jar))
                .collect(Collectors.joining(":"));
        return List.of(
                HOME + "/runtime/bin/java",
                "@" + HOME + "/" + Packaged.LIBRARIES + "/jvm.options",
                "-Dparley.home=" + HOME,
                "-Dparley.launcher=parley",
                "-cp",
                classPath,
                "dev.parley.cli.Parley");
    }
}
