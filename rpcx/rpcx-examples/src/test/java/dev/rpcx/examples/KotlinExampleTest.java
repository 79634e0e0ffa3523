package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Compiles and runs the program of the page on Kotlin, and the mistake of which the page warns. */
@Timeout(180)
class KotlinExampleTest {
    private static final String CLASS_PATH = System.getProperty("java.class.path");

    /** A class that is no data class. Its constructor has no names in the class file. */
    private static final String MISTAKE = """
            package com.acme

            import dev.rpcx.Client
            import dev.rpcx.RPCXClient

            class Point(val x: Int, val y: Int)

            @RPCXClient(remoteServerName = "map")
            interface MapClient {
                fun nearest(point: Point): String
            }

            fun main() {
                try {
                    Client.standard().use { it.create(MapClient::class.java, "127.0.0.1", 9000) }
                } catch (e: IllegalArgumentException) {
                    println(e)
                }
            }
            """;

    @TempDir
    private Path folder;

    private static String run(String classPath, String... command) throws Exception {
        List<String> whole = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp", classPath));
        whole.addAll(List.of(command));
        Path errors = Files.createTempFile("kotlin", ".txt");
        try {
            Process process =
                    new ProcessBuilder(whole).redirectError(errors.toFile()).start();
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(process.waitFor()).as(Files.readString(errors)).isZero();
            return said.strip();
        } finally {
            Files.delete(errors);
        }
    }

    private Path compiled(String... sources) throws Exception {
        String compiler = Arrays.stream(CLASS_PATH.split(File.pathSeparator))
                .filter(entry -> new File(entry).getName().matches("(kotlin|trove4j-|annotations-).*"))
                .collect(Collectors.joining(File.pathSeparator));
        Path classes = folder.resolve("classes");
        List<String> command = new ArrayList<>(List.of(
                "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
                "-no-stdlib",
                "-no-reflect",
                "-jvm-target",
                "17",
                "-classpath",
                CLASS_PATH,
                "-d",
                classes.toString()));
        command.addAll(List.of(sources));
        run(compiler, command.toArray(String[]::new));
        return classes;
    }

    @Test
    void theProgramRunsAndTheMistakeIsTold() throws Exception {
        Path mistake = Files.writeString(folder.resolve("Mistake.kt"), MISTAKE);
        Path classes = compiled("src/main/kotlin/dev/rpcx/examples/kotlin/Shop.kt", mistake.toString());
        String classPath = classes + File.pathSeparator + CLASS_PATH;
        String page = GuidePages.text("kotlin");
        String said = run(classPath, "dev.rpcx.examples.kotlin.ShopKt");
        assertThat(said).startsWith("Ann orders 1 items, note null").endsWith("Bob orders 0 items, note ring twice");
        assertThat(said.lines()).allSatisfy(line -> assertThat(page).contains("`" + line + "`"));
        assertThat(GuidePages.blocks(page, "text").stream().map(GuidePages::onOneLine))
                .containsExactly(GuidePages.onOneLine(run(classPath, "com.acme.MistakeKt")));
    }
}
