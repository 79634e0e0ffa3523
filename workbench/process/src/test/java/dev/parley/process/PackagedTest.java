package dev.parley.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PackagedTest {
    @TempDir
    Path home;

    private Path write(String file, String text) throws IOException {
        Path path = home.resolve(file);
        Files.createDirectories(path.getParent());
        return Files.writeString(path, text);
    }

    @Test
    void aModuleOfACheckoutIsItsJarAndThoseOfItsClassPath() throws IOException {
        Path own = write("workbench/transport/soap/target/parley-transport-soap-1.jar", "");
        write("workbench/transport/soap/target/parley-transport-soap-1-tests.jar", "");
        write("workbench/transport/soap/target/runtime.classpath", "/a/one.jar" + File.pathSeparator + "/b/two.jar\n");

        assertThat(Packaged.jars(home, "transport/soap"))
                .containsExactly(own, Path.of("/a/one.jar"), Path.of("/b/two.jar"));
        assertThat(Packaged.isHere(home, "transport/soap")).isTrue();
        assertThat(Packaged.commit(home)).isEmpty();
    }

    @Test
    void aModuleOfADistributionIsTheJarsOfItsList() throws IOException {
        write("modules/transport/soap.jars", "parley-transport-soap-1.jar\none.jar\n");
        write("modules/service.jars", "parley-service-1.jar\none.jar\n");

        assertThat(Packaged.jars(home, "transport/soap"))
                .containsExactly(home.resolve("lib/parley-transport-soap-1.jar"), home.resolve("lib/one.jar"));
        assertThat(Packaged.isHere(home, "transport/soap")).isTrue();
        assertThat(Packaged.isHere(home, "transport/rest")).isFalse();
        assertThat(Packaged.classPath(home, List.of("service", "transport/soap")))
                .isEqualTo(String.join(
                        File.pathSeparator,
                        home.resolve("lib/parley-service-1.jar").toString(),
                        home.resolve("lib/one.jar").toString(),
                        home.resolve("lib/parley-transport-soap-1.jar").toString()));
    }

    @Test
    void aDistributionSaysWhatItWasBuiltFrom() throws IOException {
        write("build.properties", "version=1\ncommit=0123456789ab-dirty\n");

        assertThat(Packaged.commit(home)).contains("0123456789ab-dirty");
    }

    @Test
    void aModuleThatADistributionLacksIsNotOneToBuild() throws IOException {
        write("build.properties", "version=1\n");

        assertThatThrownBy(() -> Packaged.jars(home, "transport/soap"))
                .isInstanceOf(ProcessException.class)
                .hasMessage(home.resolve("modules/transport/soap.jars") + " is missing: unpack the distribution again");
    }

    @Test
    void aModuleThatIsNotBuiltSaysWhatToRun() {
        assertThat(Packaged.isHere(home, "transport/soap")).isFalse();
        assertThatThrownBy(() -> Packaged.jars(home, "transport/soap"))
                .isInstanceOf(ProcessException.class)
                .hasMessageContaining("workbench/transport/soap/target is not built: run ./parley");
    }
}
