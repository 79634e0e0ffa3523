package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the tasks of the page on messages that change, where the machine has a Gradle and a Java on which it runs. */
class GradleTasksTest {
    private static final Pattern TASKS = Pattern.compile("```groovy\n(.*?)```", Pattern.DOTALL);

    /** First version of Gradle in which the main class of a JavaExec is called {@code mainClass}. */
    private static final int[] MAIN_CLASS_SINCE = {6, 4};

    private record Ended(int exitCode, String said) {}

    @TempDir
    private Path folder;

    private Path project;
    private Path lock;
    private String gradle;
    private Path javaHome;

    @BeforeEach
    void prepare() throws Exception {
        String named = System.getenv("GRADLE");
        Optional<String> found = named != null
                ? Optional.of(named)
                : Stream.of(System.getenv("PATH").split(File.pathSeparator))
                        .map(entry -> Path.of(entry, "gradle"))
                        .filter(Files::isExecutable)
                        .map(Path::toString)
                        .findFirst();
        assumeThat(found).as("a Gradle on the PATH, or named by GRADLE").isPresent();
        gradle = found.orElseThrow();
        project = Files.createDirectories(folder.resolve("orders"));
        lock = project.resolve("src/main/resources/META-INF/rpcx/schema.lock");
        Files.writeString(project.resolve("settings.gradle"), "rootProject.name = 'orders'\n");
        Files.writeString(project.resolve("build.gradle"), "apply plugin: 'java'\n");
        Optional<Path> java = Optional.empty();
        for (Path home : javaHomes()) {
            javaHome = home;
            if (gradle("help").exitCode == 0) {
                java = Optional.of(home);
                break;
            }
        }
        assumeThat(java).as("a Java of 17 or later on which this Gradle runs").isPresent();
        Files.writeString(project.resolve("build.gradle"), buildFile());
    }

    /** Returns the homes of this Java and of those in the folder of Debian. */
    private static List<Path> javaHomes() throws IOException {
        List<Path> homes = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"))));
        Path others = Path.of("/usr/lib/jvm");
        if (Files.isDirectory(others)) {
            try (Stream<Path> all = Files.list(others)) {
                all.filter(home -> home.getFileName().toString().matches(".*\\b(17|21|25)\\b.*"))
                        .filter(home -> Files.isExecutable(home.resolve("bin/javac")))
                        .sorted()
                        .forEach(homes::add);
            }
        }
        return homes;
    }

    private String buildFile() throws Exception {
        Matcher tasks = TASKS.matcher(Files.readString(Path.of("guide/schema.md")));
        assertThat(tasks.find()).isTrue();
        String jars = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(entry -> "'" + entry + "'")
                .collect(Collectors.joining(", "));
        String ofPage = tasks.group(1);
        return "apply plugin: 'java'\ndependencies { implementation files(" + jars + ") }\n"
                + "compileJava.options.compilerArgs += ['--release', '17']\n"
                + (hasMainClass() ? ofPage : ofPage.replace("mainClass =", "main ="));
    }

    private boolean hasMainClass() throws Exception {
        Matcher version = Pattern.compile("Gradle (\\d+)\\.(\\d+)").matcher(gradle("--version").said);
        assertThat(version.find()).isTrue();
        int major = Integer.parseInt(version.group(1));
        int minor = Integer.parseInt(version.group(2));
        return major > MAIN_CLASS_SINCE[0] || major == MAIN_CLASS_SINCE[0] && minor >= MAIN_CLASS_SINCE[1];
    }

    private Ended gradle(String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                gradle,
                "--no-daemon",
                "--offline",
                "--console=plain",
                "-g",
                folder.resolve("gradle").toString()));
        command.addAll(List.of(args));
        ProcessBuilder builder =
                new ProcessBuilder(command).directory(project.toFile()).redirectErrorStream(true);
        builder.environment().put("JAVA_HOME", javaHome.toString());
        Process process = builder.start();
        process.getOutputStream().close();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ended(process.waitFor(), said);
    }

    private void write(String components) throws IOException {
        Path source = project.resolve("src/main/java/shop/Orders.java");
        Files.createDirectories(source.getParent());
        Files.writeString(source, """
                package shop;

                import dev.rpcx.*;

                @RPCXServer("orders")
                public class Orders {
                    public record Order(%s) {}

                    @Method
                    public void place(Order order) {}
                }
                """.formatted(components));
    }

    private String task(boolean isGood, String... args) throws Exception {
        Ended ended = gradle(args);
        assertThat(ended.exitCode == 0).as(ended.said).isEqualTo(isGood);
        return ended.said;
    }

    @Test
    void theTasksWriteTheLockAndCheckIt() throws Exception {
        write("String id, int count");
        assertThat(task(false, "checkSchema")).contains("(`rpcx lock` writes it)");
        task(true, "lockSchema");
        assertThat(Files.readString(lock)).contains("message shop.Orders$Order\n  1 id string\n  2 count int\n");
        task(true, "check");
        String before = Files.readString(lock);
        write("String id, int total");
        assertThat(task(false, "lockSchema")).contains("count is gone and total is new", "--rename count=total");
        assertThat(lock).hasContent(before);
        task(true, "lockSchema", "-Panswers=--rename count=total");
        assertThat(Files.readString(lock)).contains("  1 id string\n  2 total int\n");
        task(true, "check");
    }
}
