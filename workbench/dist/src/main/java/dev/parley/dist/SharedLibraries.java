package dev.parley.dist;

import dev.parley.lab.LabException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Pattern;

/** The shared libraries of this system that a distribution's programs and native libraries are linked against. */
final class SharedLibraries {
    private static final byte[] ELF = {0x7f, 'E', 'L', 'F'};

    /** This pattern matches the names of native libraries in jars. DuckDB puts the system behind the suffix. */
    private static final Pattern IN_JAR = Pattern.compile(".*\\.so(_\\w+)?");

    /**
     * This pattern finds a library, {@code libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)}, or the loader,
     * {@code /lib64/ld-linux-x86-64.so.2 (0x…)}.
     */
    private static final Pattern FOUND = Pattern.compile("(?:\\S+ => )?(/\\S+) \\(0x\\p{XDigit}+\\)");

    private SharedLibraries() {}

    /**
     * Lists the libraries where the system's loader finds them. What it does not find is part of the distribution, or
     * is needed by a native library for another system.
     *
     * @param root of the distribution
     * @param unpacked a folder, made if need be, for the libraries in its jars
     */
    static SortedSet<Path> of(Path root, Path unpacked) throws IOException, InterruptedException {
        Files.createDirectories(unpacked);
        // The loader says where a library really lies.
        Path own = root.toRealPath();
        List<Path> programs = new ArrayList<>();
        for (Path file : Archive.files(own).values()) {
            if (file.toString().endsWith(".jar")) {
                programs.addAll(inside(file, unpacked));
            } else if (Files.isRegularFile(file)) {
                programs.add(file);
            }
        }
        List<String> command = new ArrayList<>(List.of("ldd"));
        for (Path program : programs) {
            if (isElf(program)) {
                command.add(program.toString());
            }
        }
        SortedSet<Path> libraries = new TreeSet<>();
        if (command.size() > 1) {
            found(said(command)).stream()
                    .filter(library -> !library.startsWith(own))
                    .forEach(libraries::add);
        }
        return libraries;
    }

    private static List<Path> inside(Path jar, Path unpacked) throws IOException {
        List<Path> libraries = new ArrayList<>();
        try (JarFile open = new JarFile(jar.toFile())) {
            for (JarEntry entry : open.stream()
                    .filter(each -> IN_JAR.matcher(each.getName()).matches())
                    .toList()) {
                Path library = Files.createTempFile(unpacked, "", ".so");
                try (InputStream in = open.getInputStream(entry)) {
                    Files.write(library, in.readAllBytes());
                }
                libraries.add(library);
            }
        }
        return libraries;
    }

    private static boolean isElf(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            return Arrays.equals(in.readNBytes(ELF.length), ELF);
        }
    }

    /** Runs ldd. Its exit code says nothing: it is 1 where one of many files is for another system. */
    private static String said(List<String> command) throws InterruptedException {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            process.getOutputStream().close();
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            process.waitFor();
            return said;
        } catch (IOException e) {
            throw new LabException("an image needs ldd, which tells what Java is linked against: " + e.getMessage(), e);
        }
    }

    /** Reads the paths from what ldd has said. */
    static List<Path> found(String said) {
        return FOUND.matcher(said).results().map(line -> Path.of(line.group(1))).toList();
    }
}
