package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarOutputStream;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the script {@code rpcx}, in a tree of its own with the classes that are under test. */
class ScriptTest {
    @TempDir
    private Path folder;

    private Path script;
    private Path here;
    private Path ran;

    /** Makes a tree with the script, and a folder of which a class runs if it gets on Java's own class path. */
    @BeforeEach
    void prepare() throws Exception {
        Path own = Path.of("rpcx").toAbsolutePath();
        assumeThat(Files.isExecutable(own))
                .as("the module's folder is the current one")
                .isTrue();
        Path home = folder.resolve("home");
        Path module = Files.createDirectories(home.resolve("rpcx/rpcx-cli"));
        script = Files.copy(own, module.resolve("rpcx"), java.nio.file.StandardCopyOption.COPY_ATTRIBUTES);
        Files.createDirectories(home.resolve("build"));
        Files.copy(own.resolve("../../../build/preamble.sh").normalize(), home.resolve("build/preamble.sh"));
        Files.writeString(home.resolve("rpcx/pom.xml"), "");
        Files.createDirectories(home.resolve("rpcx/rpcx/src/main"));
        Files.createDirectories(module.resolve("src/main"));
        Path target = Files.createDirectories(module.resolve("target"));
        // Surefire's own class path may end with an empty entry. Maven writes none into this file.
        String classPath = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> !entry.isEmpty())
                .collect(Collectors.joining(File.pathSeparator));
        Files.writeString(target.resolve("runtime.classpath"), classPath);
        try (JarOutputStream jar = new JarOutputStream(Files.newOutputStream(target.resolve("rpcx-cli-0.jar")))) {
            jar.finish();
        }
        here = Files.createDirectories(folder.resolve("here"));
        ran = folder.resolve("ran");
        Path source = Files.writeString(here.resolve("Evil.java"), """
                public class Evil extends System.LoggerFinder {
                    public System.Logger getLogger(String name, Module module) {
                        try {
                            java.nio.file.Files.writeString(java.nio.file.Path.of("%s"), "ran");
                        } catch (java.io.IOException e) {
                            throw new java.io.UncheckedIOException(e);
                        }
                        return java.lang.System.getLogger(name);
                    }
                }
                """.formatted(ran));
        Path service = Files.writeString(here.resolve("Greetings.java"), """
                @dev.rpcx.RPCXServer("greeter")
                public class Greetings {
                    @dev.rpcx.Method
                    public String greet(String name) {
                        return name;
                    }
                }
                """);
        assertThat(ToolProvider.getSystemJavaCompiler()
                        .run(
                                null,
                                null,
                                null,
                                "-proc:none",
                                "-parameters",
                                "-cp",
                                classPath,
                                source.toString(),
                                service.toString()))
                .isZero();
        Path services = Files.createDirectories(here.resolve("META-INF/services"));
        Files.writeString(services.resolve("java.lang.System$LoggerFinder"), "Evil\n");
    }

    private String run(String classPath, String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of(script.toString()));
        command.addAll(List.of(args));
        ProcessBuilder builder =
                new ProcessBuilder(command).directory(here.toFile()).redirectErrorStream(true);
        builder.environment().remove("RPCX_CLASSPATH");
        if (classPath != null) {
            builder.environment().put("RPCX_CLASSPATH", classPath);
        }
        Process process = builder.start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return said;
    }

    @Test
    void noClassOfTheCurrentDirectoryRuns() throws Exception {
        assertThat(run(null, "list", "127.0.0.1:1")).contains("UNAVAILABLE");
        assertThat(ran).doesNotExist();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", ":", "/nowhere:", ":/nowhere", "/nowhere::/nowhere/too"})
    void norWhereTheClassPathHasEmptyEntries(String given) throws Exception {
        String classPath = given.replace(":", File.pathSeparator);
        assertThat(run(classPath, "list", "127.0.0.1:1")).contains("UNAVAILABLE");
        assertThat(ran).doesNotExist();
        assertThat(run(classPath, "proto", "com.acme", "Greetings"))
                .contains("Greetings: no such class on the class path");
    }

    @Test
    void whatIsNamedIsOnTheClassPath() throws Exception {
        String classPath = String.join(File.pathSeparator, List.of("/nowhere", here.toString()));
        assertThat(run(classPath, "proto", "com.acme", "Greetings")).contains("service Greeter", "rpc Greet(");
    }
}
