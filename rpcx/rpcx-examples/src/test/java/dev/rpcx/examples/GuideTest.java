package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests that the guide shows what is compiled, and that there is something where it points. */
class GuideTest {
    private static final Pattern CODE = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
    private static final Pattern LINK = Pattern.compile("]\\(([^)#]+)\\)");

    static List<Path> pages() throws IOException {
        try (Stream<Path> files = Files.list(Path.of("guide"))) {
            return Stream.concat(files, Stream.of(Path.of("README.md"), Path.of("../README.md")))
                    .sorted()
                    .toList();
        }
    }

    private static String onOneLine(String code) {
        return code.replaceAll("\\s+", " ").strip();
    }

    private static String sources() throws IOException {
        try (Stream<Path> files = Files.walk(Path.of("src/main/java"))) {
            List<String> texts = new ArrayList<>();
            for (Path file : files.filter(f -> f.toString().endsWith(".java")).toList()) {
                texts.add(onOneLine(Files.readString(file)));
            }
            return String.join("\n", texts);
        }
    }

    @ParameterizedTest
    @MethodSource("pages")
    void everyLinkLeadsSomewhere(Path page) throws IOException {
        List<String> lost = LINK.matcher(Files.readString(page))
                .results()
                .map(link -> link.group(1))
                .filter(link -> !link.startsWith("http"))
                .filter(link -> !Files.exists(page.resolveSibling(link)))
                .collect(Collectors.toList());
        assertThat(lost).isEmpty();
    }

    @Test
    void thePageOnSpringNamesTheVersionsOfTheBuild() throws IOException {
        String page = Files.readString(Path.of("guide/spring.md"));
        Matcher versions = Pattern.compile(
                        "<(netty|spring-boot|spring-boot\\.netty|spring-boot3)\\.version>([0-9][^<]*)<")
                .matcher(Files.readString(Path.of("../pom.xml")));
        int named = 0;
        while (versions.find()) {
            assertThat(page).as(versions.group()).contains(versions.group(2));
            named++;
        }
        assertThat(named).isEqualTo(4);
    }

    @Test
    void theCodeOfTheGuideIsThatOfTheExamples() throws IOException {
        String sources = sources();
        int compared = 0;
        for (Path page : pages()) {
            if (page.startsWith("guide")) {
                Matcher code = CODE.matcher(Files.readString(page));
                while (code.find()) {
                    assertThat(sources).as("%s", page).contains(onOneLine(code.group(1)));
                    compared++;
                }
            }
        }
        assertThat(compared).isGreaterThan(10);
    }
}
