package dev.parley.dist;

import dev.parley.cli.Packager;
import dev.parley.lab.Catalog;
import dev.parley.lab.Inventory;
import dev.parley.lab.Lab;
import dev.parley.lab.LabException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The workbench with everything that it runs on: laid into a folder, started once, packed. */
public final class Distribution implements Packager {
    private static final String RUNTIME = "runtime";

    /** The name of a folder that a distribution is made in begins so; the id of the process that makes it follows. */
    private static final String MAKING = "making-";

    @Override
    public List<String> make(String version, Path out, boolean isImage) throws InterruptedException {
        BuildFacts facts = BuildFacts.here(version);
        try {
            Path folder = Files.createDirectories(out);
            removeAbandoned(folder);
            Path work = Files.createTempDirectory(
                    folder, MAKING + ProcessHandle.current().pid() + "-");
            try {
                return made(facts, folder, work, isImage);
            } finally {
                delete(work);
            }
        } catch (IOException | UncheckedIOException e) {
            throw new LabException("no distribution could be made in " + out + ": " + e, e);
        }
    }

    /** Removes what processes that were killed have left: some hundred megabytes each. */
    static void removeAbandoned(Path folder) throws IOException {
        try (DirectoryStream<Path> all = Files.newDirectoryStream(folder, MAKING + "*")) {
            for (Path making : all) {
                String pid = making.getFileName().toString().split("-", 3)[1];
                if (pid.matches("[0-9]{1,18}")
                        && ProcessHandle.of(Long.parseLong(pid)).isEmpty()) {
                    delete(making);
                }
            }
        }
    }

    private static List<String> made(BuildFacts facts, Path folder, Path work, boolean isImage)
            throws IOException, InterruptedException {
        Path root = Files.createDirectory(work.resolve(facts.name()));
        Stage.lay(Lab.home(), Inventory.modules(Catalog.read()), facts, root);
        LinkedRuntime.link(root.resolve(RUNTIME));
        Duration boot = boot(root);
        Path packed = work.resolve(facts.name() + (isImage ? "-image.tar" : ".tar.gz"));
        if (isImage) {
            Image.write(root, facts, work, packed);
        } else {
            Archive.write(root, facts.committedAt(), packed);
        }
        Path kept = folder.resolve(packed.getFileName());
        Files.move(packed, kept, StandardCopyOption.REPLACE_EXISTING);
        return List.of(
                kept + ": " + megabytes(Files.size(kept)) + "; runtime " + megabytes(bytes(root.resolve(RUNTIME))),
                String.format(
                        Locale.ROOT,
                        "unpacked %s; says its version in %.1f s; commit %s",
                        megabytes(bytes(root)),
                        boot.toMillis() / 1e3,
                        facts.commit()));
    }

    /** Starts the command line as its users will, and has it say its version. */
    private static Duration boot(Path root) throws IOException, InterruptedException {
        long beganNs = System.nanoTime();
        Process process = new ProcessBuilder(root.resolve("bin/parley").toString(), "--version")
                .redirectErrorStream(true)
                .start();
        process.getOutputStream().close();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int exitCode = process.waitFor();
        if (exitCode != 0) {
            throw new LabException("what was made does not start: bin/parley --version ended with exit code " + exitCode
                    + ": " + said);
        }
        return Duration.ofNanos(System.nanoTime() - beganNs);
    }

    private static String megabytes(long bytes) {
        return Math.round(bytes / 1e6) + " MB";
    }

    private static long bytes(Path folder) throws IOException {
        long bytes = 0;
        for (Path file : Archive.files(folder).values()) {
            bytes += Files.isRegularFile(file) ? Files.size(file) : 0;
        }
        return bytes;
    }

    private static void delete(Path folder) throws IOException {
        List<Path> files = new ArrayList<>(Archive.files(folder).values());
        // What is in a folder goes before the folder.
        for (Path file : files.reversed()) {
            Files.delete(file);
        }
        Files.delete(folder);
    }
}
