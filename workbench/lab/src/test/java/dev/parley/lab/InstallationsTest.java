package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class InstallationsTest {
    private static final Path WORKBENCH = TinyRun.home().resolve("workbench");

    /** A distribution has these modules and no others. */
    @Test
    void everyModuleThatAProcessIsStartedFromIsKnown() throws IOException {
        Set<String> modules = Installations.modules(Catalog.read());

        assertThat(modules)
                .contains("cli", "service", "load", "observed", "backend/kafka-server", "transport/rest")
                .allSatisfy(module ->
                        assertThat(WORKBENCH.resolve(module).resolve("pom.xml")).isRegularFile());
        for (String provided : new String[] {"dev.parley.spi.TransportProvider", "dev.parley.spi.Work"}) {
            assertThat(providers(provided)).isNotEmpty().isSubsetOf(modules);
        }
    }

    /** The modules, below the folders of transports and works, that provide a service. */
    private static Set<String> providers(String service) throws IOException {
        try (Stream<Path> files =
                Stream.concat(Files.list(WORKBENCH.resolve("transport")), Files.list(WORKBENCH.resolve("work")))) {
            return files.filter(module -> Files.exists(module.resolve("src/main/resources/META-INF/services")
                            .resolve(service)))
                    .map(module -> WORKBENCH.relativize(module).toString())
                    .collect(Collectors.toSet());
        }
    }
}
