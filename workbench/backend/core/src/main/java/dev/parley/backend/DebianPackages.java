package dev.parley.backend;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Debian's packages, unpacked below the user's cache folder: a server without root and without an installation.
 * {@link #onPath} finds a program that is installed, which comes first.
 *
 * @param name of the backend, and of the folder in the cache
 * @param size what is fetched, for a person: {@code 35 MB}
 * @param how what a person can do where the packages cannot be had
 */
record DebianPackages(String name, String size, String how) {
    /** What must be changed in files that have their old place written into them. */
    @FunctionalInterface
    interface Relocation {
        /** @param root where the unpacked folder will be */
        void relocate(Path unpacked, Path root) throws IOException;

        static Relocation none() {
            return (unpacked, root) -> {};
        }
    }

    /** The folder of the listed packages, which are unpacked now or were before. */
    Path unpacked(List<String> packages, Relocation relocation, Consumer<String> told) throws InterruptedException {
        Path root = cache().resolve(name);
        if (!Files.isDirectory(root)) {
            mustHaveTools();
            unpack(root, packages, relocation, told);
        }
        return root;
    }

    /** The folder of one package and of everything that it depends on and this machine does not have. */
    Path unpackedWithDependencies(String wanted, Consumer<String> told) throws InterruptedException {
        Path root = cache().resolve(name);
        if (!Files.isDirectory(root)) {
            mustHaveTools();
            unpack(root, missing(wanted), Relocation.none(), told);
        }
        return root;
    }

    private void mustHaveTools() {
        if (onPath("apt-get").isEmpty() || onPath("dpkg-deb").isEmpty()) {
            throw new BackendUnavailable(name + ": not on the PATH and no Debian packages here: " + how);
        }
    }

    /** What an installation would fetch; asking for it changes nothing and needs no root. */
    private List<String> missing(String wanted) throws InterruptedException {
        List<String> ask =
                List.of("apt-get", "install", "--print-uris", "-qq", "-y", "--no-install-recommends", wanted);
        try {
            Path here = Files.createDirectories(cache());
            Said said = run(here, ask);
            if (!said.trouble().isEmpty()) {
                run(here, List.of("apt-get", "update", "-q"));
                said = run(here, ask);
            }
            // 'http://…/redis-tools_7.0.15-1_amd64.deb' redis-tools_5%3a7.0.15-1_amd64.deb 991988 SHA256:…
            List<String> packages = said.lines().stream()
                    .filter(line -> line.startsWith("'"))
                    .map(line -> line.split(" ")[1])
                    .map(file -> file.substring(0, file.indexOf('_')))
                    .toList();
            if (packages.isEmpty()) {
                throw new BackendUnavailable(
                        name + ": " + wanted + " cannot be fetched (" + said.trouble() + "): " + how);
            }
            return packages;
        } catch (IOException e) {
            throw new BackendUnavailable(name + ": apt-get cannot be asked (" + e.getMessage() + "): " + how, e);
        }
    }

    private void unpack(Path root, List<String> packages, Relocation relocation, Consumer<String> told)
            throws InterruptedException {
        told.accept("fetching " + name + " from Debian's packages (" + size + ", once)");
        try {
            Files.createDirectories(cache());
            Path work = Files.createTempDirectory(cache(), name + "-");
            try {
                fetch(work, packages);
                Path unpacked = Files.createDirectory(work.resolve("root"));
                extract(work, unpacked);
                relocation.relocate(unpacked, root);
                Files.setPosixFilePermissions(unpacked, PosixFilePermissions.fromString("rwxr-xr-x"));
                Files.move(unpacked, root, StandardCopyOption.ATOMIC_MOVE);
            } catch (FileAlreadyExistsException
                    | DirectoryNotEmptyException
                    | AtomicMoveNotSupportedException another) {
                if (!Files.isDirectory(root)) {
                    throw another;
                }
                // another run was quicker
            } finally {
                delete(work);
            }
        } catch (IOException e) {
            throw new BackendUnavailable(
                    name + ": could not be unpacked to " + root + " (" + e.getMessage() + "): " + how, e);
        }
    }

    private void fetch(Path work, List<String> packages) throws IOException, InterruptedException {
        List<String> download = new ArrayList<>(List.of("apt-get", "download", "-q"));
        download.addAll(packages);
        String trouble = run(work, download).trouble();
        if (!trouble.isEmpty()) {
            // this machine has no package lists yet
            run(work, List.of("apt-get", "update", "-q"));
            trouble = run(work, download).trouble();
        }
        if (!trouble.isEmpty()) {
            throw new BackendUnavailable(name + ": its packages could not be fetched (" + trouble + "): " + how);
        }
    }

    private void extract(Path work, Path unpacked) throws IOException, InterruptedException {
        try (Stream<Path> files = Files.list(work)) {
            for (Path file : files.filter(f -> f.toString().endsWith(".deb")).toList()) {
                String trouble = run(work, List.of("dpkg-deb", "-x", file.toString(), unpacked.toString()))
                        .trouble();
                if (!trouble.isEmpty()) {
                    throw new BackendUnavailable(
                            name + ": " + file.getFileName() + " could not be unpacked: " + trouble);
                }
            }
        }
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> inside = Files.walk(folder)) {
            for (Path path : inside.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        }
    }

    /** @param trouble what the command complained about if it failed; empty if it went well */
    private record Said(List<String> lines, String trouble) {}

    private static Said run(Path folder, List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectErrorStream(true)
                .start();
        process.getOutputStream().close();
        List<String> lines = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                .lines()
                .toList();
        String trouble = process.waitFor() == 0
                ? ""
                : lines.stream()
                        .filter(line -> line.startsWith("E:"))
                        .findFirst()
                        .orElse(command.getFirst() + " ended with exit code " + process.exitValue());
        return new Said(lines, trouble);
    }

    /** What programs of an unpacked root need to find their libraries. */
    static Map<String, String> libraries(Path root) {
        try (Stream<Path> usr = Files.list(root.resolve("usr/lib"));
                Stream<Path> base =
                        Files.isDirectory(root.resolve("lib")) ? Files.list(root.resolve("lib")) : Stream.empty()) {
            String folders = Stream.concat(usr, base)
                    .filter(folder -> folder.getFileName().toString().contains("-linux-gnu"))
                    .map(Path::toString)
                    .reduce((first, second) -> first + ":" + second)
                    .orElse("");
            return folders.isEmpty() ? Map.of() : Map.of("LD_LIBRARY_PATH", folders);
        } catch (IOException e) {
            throw new BackendUnavailable(root + " is not whole; remove it and try again", e);
        }
    }

    static Optional<String> onPath(String program) {
        return Arrays.stream(System.getenv().getOrDefault("PATH", "").split(":"))
                // Debian keeps servers in sbin, which is not on everybody's PATH
                .flatMap(folder -> Stream.of(folder, folder.replaceFirst("/bin$", "/sbin")))
                .map(folder -> Path.of(folder, program))
                .filter(Files::isExecutable)
                .map(Path::toString)
                .findFirst();
    }

    private static Path cache() {
        String xdg = System.getenv("XDG_CACHE_HOME");
        Path base = xdg == null || xdg.isEmpty() ? Path.of(System.getProperty("user.home"), ".cache") : Path.of(xdg);
        return base.resolve("parley");
    }
}
