package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.lab.Catalog;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class TechnologiesTest {
    @BeforeAll
    static void packagedModules() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("workbench/cli/pom.xml"))) {
            folder = folder.getParent();
        }
        System.setProperty("parley.home", folder.toString());
        assumeTrue(
                !Catalog.read().unbuilt().contains("rpcx"),
                "descriptions come from packaged modules: run mvn verify, not mvn test");
    }

    @Test
    void oneTechnologyIsASheetOfWhatItAsksFor() {
        Typed typed = Typed.line("technologies", "rpcx");

        assertThat(typed.err()).isEmpty();
        assertThat(typed.exitCode()).isZero();
        assertThat(typed.out())
                .startsWith("RPCX")
                .contains("style", "synchronous", "no broker", "a service contains", "who knows whom", "encoding")
                .containsPattern("kB  netty-buffer +4\\.[\\d.]+Final +Apache-2\\.0");
    }

    @Test
    void theListHasEveryNameThatCanBeTypedAndSaysOnceWhatItIs() {
        assumeTrue(Catalog.read().unbuilt().isEmpty(), "every technology describes itself: run mvn verify");
        Typed typed = Typed.line("technologies");

        assertThat(typed.err()).isEmpty();
        assertThat(typed.out().lines())
                .allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(100))
                .filteredOn(line -> Catalog.read().names().contains(line.split(" ", 2)[0]))
                .hasSameSizeAs(Catalog.read().names());
        assertThat(typed.out()).containsPattern("\\nrest +HTTP REST \\(JSON\\) +- ");
    }

    @Test
    void programsGetEverything() {
        Typed typed = Typed.line("technologies", "rpcx", "--json");

        JsonNode rpcx = JsonMapper.builder().build().readTree(typed.out()).get(0);
        assertThat(rpcx.get("name").asString()).isEqualTo("rpcx");
        assertThat(rpcx.get("settings").size()).isGreaterThan(3);
        assertThat(rpcx.get("broker").isNull()).isTrue();
        long bytes = 0;
        for (JsonNode library : rpcx.get("libraries")) {
            bytes += library.get("bytes").asLong();
            assertThat(library.get("licence").asString()).isNotEqualTo("unknown");
        }
        assertThat(rpcx.get("installedBytes").asLong()).isEqualTo(bytes).isPositive();
    }

    @Test
    void anUnknownNameIsSaidInOneLine() {
        Typed typed = Typed.line("technologies", "soap");

        assertThat(typed.exitCode()).isEqualTo(1);
        assertThat(typed.err())
                .startsWith("parley: technology: soap (expected: one of rest")
                .hasLineCount(1);
    }
}
