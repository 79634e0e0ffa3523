package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests that the guide shows what is compiled and built, that its pages have the same parts, and that there is
 * something where they point. Other tests hold its commands ({@link ExamplesTest}), its messages
 * ({@link MistakesTest}), its log lines ({@link LogLinesTest}) and its tasks of Gradle ({@link GradleTasksTest}).
 * {@code MavenBuildTest} of the Maven plugin builds a project with the XML of the first pages, and {@code ShopTest} of
 * the sample runs the page on Spring Boot.
 */
class GuideTest {
    private static final Path INDEX = Path.of("README.md");
    private static final Pattern FENCE = Pattern.compile("^```(.*)$", Pattern.MULTILINE);
    private static final Pattern HEADING = Pattern.compile("^#+ (.*)$", Pattern.MULTILINE);
    private static final Pattern LINK = Pattern.compile("]\\(([^)\\s]+)\\)");
    private static final Pattern PAGE_OF_INDEX = Pattern.compile("(?m)^\\d+\\. \\[.+?]\\(guide/([a-z-]+)\\.md\\)");

    /** Files and folders that hold what the blocks of a language show. The build compiles, builds or runs them. */
    private static final Map<String, List<String>> SOURCES = Map.of(
            "java", List.of("src/main/java", "src/test/java", "../rpcx-spring-boot-sample/src/main/java"),
            "kotlin", List.of("src/main/kotlin"),
            "xml", List.of("../pom.xml", "../rpcx-spring-boot-sample/pom.xml", "../consumer/maven/pom.xml"),
            "yaml", List.of("../rpcx-spring-boot-sample/src/main/resources"));

    /** Languages of blocks that other tests hold. */
    private static final List<String> HELD_ELSEWHERE = List.of("sh", "text", "groovy");

    /** Pages whose links are followed: those of the guide, and those that point at them. */
    static List<Path> pages() throws IOException {
        List<Path> pages = new ArrayList<>(List.of(
                INDEX, Path.of("../README.md"), Path.of("../rpcx-cli/README.md"), Path.of("../../docs/README.md")));
        for (String folder : List.of("guide", "../spec")) {
            try (Stream<Path> files = Files.list(Path.of(folder))) {
                files.filter(file -> file.toString().endsWith(".md")).sorted().forEach(pages::add);
            }
        }
        return pages;
    }

    private static String sources(String language) throws IOException {
        List<String> texts = new ArrayList<>();
        for (String source : SOURCES.get(language)) {
            try (Stream<Path> files = Files.walk(Path.of(source))) {
                for (Path file : files.filter(Files::isRegularFile).toList()) {
                    texts.add(GuidePages.onOneLine(Files.readString(file)));
                }
            }
        }
        return String.join("\n", texts);
    }

    @Test
    void theIndexHasAllPagesInTheOrderOfAFirstWeek() throws IOException {
        assertThat(PAGE_OF_INDEX.matcher(Files.readString(INDEX)).results().map(page -> page.group(1)))
                .containsExactlyElementsOf(GuidePages.NAMES);
        try (Stream<Path> files = Files.list(GuidePages.FOLDER)) {
            assertThat(files)
                    .containsExactlyInAnyOrderElementsOf(
                            GuidePages.NAMES.stream().map(GuidePages::file).toList());
        }
    }

    @ParameterizedTest
    @FieldSource("dev.rpcx.examples.GuidePages#NAMES")
    void aPageSaysWhatYouWillHaveThenShowsTheProgramThenWhatGoesWrong(String name) throws IOException {
        String page = GuidePages.text(name);
        assertThat(page).startsWith("# ").contains("\n\nAt the end you have ");
        assertThat(HEADING.matcher(page).results().map(heading -> heading.group(1)))
                .containsSubsequence("The program", "What goes wrong", "Links")
                .endsWith("Links");
    }

    @ParameterizedTest
    @MethodSource("pages")
    void everyLinkLeadsSomewhere(Path page) throws IOException {
        List<String> lost = new ArrayList<>();
        for (MatchResult link : LINK.matcher(Files.readString(page)).results().toList()) {
            String to = link.group(1);
            int hash = to.indexOf('#');
            String path = hash < 0 ? to : to.substring(0, hash);
            Path file = path.isEmpty() ? page : page.resolveSibling(path);
            if (!to.startsWith("http")
                    && (!Files.exists(file) || hash >= 0 && !anchors(file).contains(to.substring(hash + 1)))) {
                lost.add(to);
            }
        }
        assertThat(lost).isEmpty();
    }

    /** Returns the names by which links point at the headings of a page. */
    private static List<String> anchors(Path page) throws IOException {
        return HEADING.matcher(Files.readString(page))
                .results()
                .map(heading -> heading.group(1)
                        .toLowerCase(Locale.ROOT)
                        .replaceAll("[^\\p{L}\\p{N} _-]", "")
                        .replace(' ', '-'))
                .toList();
    }

    @Test
    void thePageOnSpringNamesTheVersionsOfTheBuild() throws IOException {
        String page = GuidePages.text("spring");
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
    void theCodeOfTheGuideIsThatOfFilesThatTheBuildUses() throws IOException {
        int compared = 0;
        for (String language : SOURCES.keySet()) {
            String sources = sources(language);
            for (String name : GuidePages.NAMES) {
                for (String block : GuidePages.blocks(GuidePages.text(name), language)) {
                    assertThat(sources).as(name).contains(GuidePages.onOneLine(block));
                    compared++;
                }
            }
        }
        assertThat(compared).isGreaterThan(20);
    }

    /** A block without a language, or one that is only indented, would be held by nothing. */
    @Test
    void everyBlockIsHeldByATest() throws IOException {
        for (String name : GuidePages.NAMES) {
            String page = GuidePages.text(name);
            List<String> fences =
                    FENCE.matcher(page).results().map(fence -> fence.group(1)).toList();
            for (int i = 0; i < fences.size(); i += 2) {
                assertThat(fences.get(i))
                        .as(name)
                        .matches(each -> SOURCES.containsKey(each) || HELD_ELSEWHERE.contains(each));
                assertThat(fences.get(i + 1)).as(name).isEmpty();
            }
            String prose = page.replaceAll("(?ms)^```.*?^```$", "");
            assertThat(prose.lines().filter(line -> line.startsWith("    ")))
                    .as(name)
                    .isEmpty();
        }
    }
}
