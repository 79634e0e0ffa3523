package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.codec.CodecFuzz;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Runs each fuzzer with the inputs that were found before: the folder {@code src/test/resources/dev/rpcx/corpus} has a
 * folder for each fuzzer. With {@code -Pfuzz -Drpcx.fuzz.seconds=60}, Jazzer looks for new inputs, for 60 s with each
 * fuzzer, in a process of its own. It leaves what it finds in {@code target/fuzz}.
 */
@Timeout(3600)
class FuzzersTest {
    private static final Path FOUND = Path.of("target", "fuzz");
    private static final String EXECUTED = "number_of_executed_units";

    static List<Class<?>> fuzzers() {
        return List.of(
                ServerFuzz.class,
                ClientFuzz.class,
                ClassicServerFuzz.class,
                ClassicClientFuzz.class,
                CodecFuzz.class,
                TokenFuzz.class,
                DnsFuzz.class);
    }

    @ParameterizedTest
    @MethodSource("fuzzers")
    void noInputOfTheCorpusDoesHarm(Class<?> fuzzer) throws Exception {
        Method fuzz = fuzzer.getMethod("fuzzerTestOneInput", byte[].class);
        List<Path> inputs = inputs(corpus(fuzzer));
        assertThat(inputs).isNotEmpty();
        for (Path input : inputs) {
            try {
                fuzz.invoke(null, (Object) Files.readAllBytes(input));
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(fuzzer.getSimpleName() + ", input " + input.getFileName(), e.getCause());
            }
        }
    }

    private static List<Path> inputs(Path corpus) {
        try (Stream<Path> files = Files.list(corpus)) {
            return files.sorted().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Path corpus(Class<?> fuzzer) throws URISyntaxException {
        return Path.of(Objects.requireNonNull(
                        FuzzersTest.class.getResource("corpus/" + fuzzer.getSimpleName()), fuzzer.getSimpleName())
                .toURI());
    }

    @ParameterizedTest
    @MethodSource("fuzzers")
    @EnabledIfSystemProperty(named = "rpcx.fuzz.seconds", matches = "[1-9][0-9]*")
    void noInputThatJazzerFindsDoesHarm(Class<?> fuzzer) throws Exception {
        Path found = Files.createDirectories(FOUND.resolve(fuzzer.getSimpleName()));
        Path log = FOUND.resolve(fuzzer.getSimpleName() + ".log");
        String classPath = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        Process jazzer = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx1g",
                        "--enable-native-access=ALL-UNNAMED",
                        "-Dio.netty.leakDetection.level=disabled",
                        "-cp",
                        classPath,
                        "com.code_intelligence.jazzer.Jazzer",
                        "--target_class=" + fuzzer.getName(),
                        "--instrumentation_includes=dev.rpcx.**",
                        "--custom_hook_includes=dev.rpcx.**",
                        "-max_total_time=" + System.getProperty("rpcx.fuzz.seconds"),
                        "-rss_limit_mb=3000",
                        "-timeout=20",
                        "-artifact_prefix=" + FOUND + "/" + fuzzer.getSimpleName() + "-",
                        "-print_final_stats=1",
                        found.toString(),
                        corpus(fuzzer).toString())
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        int exit;
        try {
            exit = jazzer.waitFor();
        } finally {
            jazzer.destroyForcibly();
        }
        List<String> lines = Files.readAllLines(log);
        assertThat(exit)
                .as(String.join("\n", lines.subList(Math.max(0, lines.size() - 60), lines.size())))
                .isZero();
        LongForm.figure(
                2,
                "%s: %s inputs tried by Jazzer in %s s, and %d that are kept: none does harm",
                fuzzer.getSimpleName(),
                lines.stream()
                        .filter(line -> line.contains(EXECUTED))
                        .map(line -> line.substring(line.lastIndexOf(' ') + 1))
                        .findFirst()
                        .orElseThrow(),
                System.getProperty("rpcx.fuzz.seconds"),
                inputs(corpus(fuzzer)).size());
    }
}
