package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CatalogTest {
    private final Catalog catalog =
            Catalog.parse("# comment\nrest = transport/rest\ngrpc=transport/grpc\ngrpc-tuned = transport/grpc\n");

    @Test
    void allIsEveryTechnologyOutOfTheBoxInOrder() {
        assertThat(catalog.select("all")).containsExactly("rest", "grpc");
        assertThat(catalog.select("grpc, rest")).containsExactly("grpc", "rest");
    }

    @Test
    void thePapersOwnTechnologiesCanBeAskedForAlone() {
        Catalog marked = Catalog.parse("rest = transport/rest\nrsocket = transport/rsocket, beyond the papers\n");

        assertThat(marked.select("papers")).containsExactly("rest");
        assertThat(marked.select("all")).containsExactly("rest", "rsocket");
        assertThat(marked.module("rsocket")).isEqualTo("transport/rsocket");
        assertThatThrownBy(() -> Catalog.parse("rest = transport/rest, best of all"))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("beyond the papers");
    }

    @Test
    void aVariantWithAModuleOfItsOwnIsTakenByItsNameOnly() {
        Catalog marked = Catalog.parse("rest = transport/rest\nrest-h2 = transport/rest-h2, a variant\n");

        assertThat(marked.select("all")).containsExactly("rest");
        assertThat(marked.select("papers")).containsExactly("rest");
        assertThat(marked.select("rest-h2")).containsExactly("rest-h2");
        assertThat(marked.isBeyondPapers("rest-h2")).isFalse();
    }

    @ParameterizedTest
    @ValueSource(strings = {"soap", "", "rest,rest", "rest,,grpc"})
    void whatIsUnknownOrDoubledIsNamed(String text) {
        assertThatThrownBy(() -> catalog.select(text))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("expected");
    }

    @Test
    void theNearestTechnologyIsNamed() {
        assertThatThrownBy(() -> catalog.select("rest,grcp"))
                .hasMessage("technology: grcp (did you mean grpc? expected: one of rest, grpc, grpc-tuned)");
    }

    @ParameterizedTest
    @CsvSource({
        "netty-handler-4.2.18.Final.jar, netty-handler, 4.2.18.Final, ''",
        "netty-transport-native-epoll-4.2.18.Final-linux-x86_64.jar, netty-transport-native-epoll, 4.2.18.Final, -linux-x86_64",
        "guava-33.4.8-jre.jar, guava, 33.4.8-jre, ''",
        "parley-spi-0.1.0-SNAPSHOT.jar, parley-spi, 0.1.0-SNAPSHOT, ''",
        "odd.jar, odd, '', ''"
    })
    void jarsAreArtifactVersionAndClassifier(String file, String artifact, String version, String classifier) {
        assertThat(Installation.parts(Path.of(file))).containsExactly(artifact, version, classifier);
    }
}
