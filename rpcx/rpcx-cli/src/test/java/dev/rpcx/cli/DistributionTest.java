package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the script of the distribution, with a jar in its place that has the class path of this test. */
class DistributionTest {
    @TempDir
    private Path folder;

    private Path script;
    private String said = "";

    @BeforeEach
    void unpack() throws Exception {
        Path own = Path.of("src/main/distribution/rpcx");
        assumeThat(Files.isExecutable(own))
                .as("the module's folder is the current one")
                .isTrue();
        Path home = folder.resolve("a folder");
        script = Files.copy(
                own, Files.createDirectories(home.resolve("bin")).resolve("rpcx"), StandardCopyOption.COPY_ATTRIBUTES);
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes()
                .put(
                        Attributes.Name.CLASS_PATH,
                        Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                                .map(entry -> Path.of(entry).toUri().toString())
                                .collect(Collectors.joining(" ")));
        Path jar = Files.createDirectories(home.resolve("lib")).resolve("rpcx-cli-0.jar");
        new JarOutputStream(Files.newOutputStream(jar), manifest).close();
    }

    private int run(String javaHome, Path command, String... args) throws Exception {
        List<String> words = new ArrayList<>(List.of(command.toString()));
        words.addAll(List.of(args));
        ProcessBuilder builder =
                new ProcessBuilder(words).directory(folder.toFile()).redirectErrorStream(true);
        builder.environment().remove("RPCX_CLASSPATH");
        builder.environment().put("JAVA_HOME", javaHome);
        Process process = builder.start();
        said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return process.waitFor();
    }

    private int run(String... args) throws Exception {
        return run(System.getProperty("java.home"), script, args);
    }

    @Test
    void runsWithoutAClone() throws Exception {
        assertThat(run("--version")).as(said).isZero();
        assertThat(said).startsWith("rpcx ").hasLineCount(1);
        assertThat(run("list", "127.0.0.1:1")).isEqualTo(2);
        assertThat(said).contains("UNAVAILABLE");
        assertThat(run("two words")).isEqualTo(1);
        assertThat(said).startsWith("two words: no such command");
    }

    @Test
    void runsByALinkToIt() throws Exception {
        Path link = Files.createSymbolicLink(folder.resolve("rpcx"), script);
        assertThat(run(System.getProperty("java.home"), link, "--version"))
                .as(said)
                .isZero();
    }

    @Test
    void saysThatItNeedsJava() throws Exception {
        assertThat(run("/nowhere", script, "--version")).isEqualTo(1);
        assertThat(said)
                .isEqualTo("rpcx: /nowhere/bin/java: no such program (expected: Java 17 or later on the PATH, or its"
                        + " home in JAVA_HOME)\n");
    }
}
