package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Makes the Javadoc of all modules, with the options of {@code rpcx/javadoc}, under which a warning is an error. */
@Timeout(180)
class JavadocSiteTest {
    private static final Path RPCX = Path.of("..");

    /** Released modules that have no public types. */
    private static final List<String> WITHOUT_TYPES = List.of("rpcx-grpc", "rpcx-cli");

    @TempDir
    private Path folder;

    @Test
    void theJavadocOfAllModulesIsMadeWithoutAWarning() throws Exception {
        Process javadoc = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "javadoc")
                                .toString(),
                        "@javadoc.options",
                        "-cp",
                        System.getProperty("java.class.path"),
                        "-d",
                        folder.toString())
                .directory(RPCX.toFile())
                .redirectErrorStream(true)
                .start();
        String said = new String(javadoc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(javadoc.waitFor()).as(said).isZero();
        assertThat(said).isEmpty();
        assertThat(folder.resolve("dev/rpcx/Client.html")).exists();
        assertThat(folder.resolve("dev/rpcx/spring/RPCXProperties.html")).exists();
    }

    @Test
    void theOptionsHaveAllModulesThatTheBomLists() throws Exception {
        String options = Files.readString(RPCX.resolve("javadoc.options"));
        List<String> modules = Pattern.compile("<artifactId>(rpcx[a-z-]*)</artifactId><version>")
                .matcher(Files.readString(RPCX.resolve("rpcx-bom/pom.xml")))
                .results()
                .map(module -> module.group(1))
                .filter(module -> !WITHOUT_TYPES.contains(module))
                .toList();
        assertThat(modules).hasSizeGreaterThan(5);
        assertThat(modules).allSatisfy(module -> assertThat(options).contains(module + "/src/main/java"));
    }
}
