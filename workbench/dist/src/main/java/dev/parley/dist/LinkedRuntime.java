package dev.parley.dist;

import dev.parley.lab.LabException;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;

/** The Java runtime of a distribution: command line, load generator, services and Kafka's broker all run on it. */
final class LinkedRuntime {
    /**
     * The runtime has all of Java SE, because libraries ask for parts of it by name, where no reference shows them; and
     * it has what the jars use of the JDK beyond that. A test holds the list against what the jars refer to.
     */
    static final List<String> MODULES = List.of(
            "java.se", "jdk.httpserver", "jdk.jfr", "jdk.management", "jdk.net", "jdk.unsupported", "jdk.zipfs");

    private static final List<String> OPTIONS = List.of(
            "--strip-java-debug-attributes",
            "--no-man-pages",
            "--no-header-files",
            "--compress=zip-6",
            // A JDK has such an archive too. Without one, every JVM would take longer to start.
            "--generate-cds-archive",
            // A system may have put its own certificates into the JDK. They do not get into the runtime, see below.
            "--ignore-modified-runtime");

    /** Files of the runtime that nothing here needs. */
    private static final List<String> LEFT_OUT = List.of(
            // These may be the building machine's own. The processes talk to each other only, and trust nobody else.
            "lib/security/cacerts",
            // This archive of classes is for heaps of 32 GB and more.
            "lib/server/classes_nocoops.jsa",
            // These are for windows and sound, and need libraries that a server does not have.
            "lib/libawt_xawt.so",
            "lib/libjawt.so",
            "lib/libjsound.so",
            "lib/libsplashscreen.so");

    private LinkedRuntime() {}

    /**
     * Links one, of the JDK that this JVM is of. Takes some ten seconds.
     *
     * @param runtime a folder that is not there yet
     */
    static void link(Path runtime) throws IOException {
        ToolProvider jlink = ToolProvider.findFirst("jlink")
                .orElseThrow(
                        () -> new LabException(System.getProperty("java.home") + " has no jlink (expected: a JDK)"));
        StringWriter said = new StringWriter();
        PrintWriter log = new PrintWriter(said, true);
        List<String> arguments = new ArrayList<>(OPTIONS);
        arguments.addAll(List.of("--add-modules", String.join(",", MODULES), "--output", runtime.toString()));
        int exitCode = jlink.run(log, log, arguments.toArray(String[]::new));
        if (exitCode != 0) {
            throw new LabException("jlink ended with exit code " + exitCode + ": " + said);
        }
        for (String file : LEFT_OUT) {
            Files.deleteIfExists(runtime.resolve(file));
        }
    }
}
