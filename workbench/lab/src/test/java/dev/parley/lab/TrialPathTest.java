package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The list of files that a trial crosses, which ARCHITECTURE.md has, is held against the code. */
class TrialPathTest {
    private static final int MAX_FILES = 20;

    /** A step is read in one go. */
    private static final int MAX_LINES = 250;

    private static final Pattern ITEM = Pattern.compile("(?m)^\\d+\\. `([a-z]+/[A-Za-z]+)`: \\S");

    /** What the steps work on, and no step. */
    private static final Set<Class<?>> NO_STEPS = Set.of(Plan.Boot.class, LabListener.class, Deployment.class);

    /** Such as {@code lab/Booting}. */
    private static List<String> listed() throws IOException {
        String text = Files.readString(TinyRun.home().resolve("ARCHITECTURE.md"));
        return ITEM.matcher(text.substring(text.indexOf("## The path of one trial")))
                .results()
                .map(item -> item.group(1))
                .toList();
    }

    private static Path source(String file) {
        String module = file.substring(0, file.indexOf('/'));
        return TinyRun.home()
                .resolve("workbench")
                .resolve(module)
                .resolve("src/main/java/dev/parley")
                .resolve(file + ".java");
    }

    private static String name(String file) {
        return file.substring(file.indexOf('/') + 1);
    }

    /** Names of the classes that take a step each, in the order in which the methods of {@link TrialPath} call them. */
    private static List<String> steps() throws IOException {
        String source = Files.readString(source("lab/TrialPath"));
        String methods =
                source.substring(source.indexOf("List<FigureRow> boot()")).replaceAll("(?s)/\\*.*?\\*/", "");
        return Stream.concat(
                        Arrays.stream(TrialPath.class.getDeclaredFields())
                                .map(Field::getType)
                                .filter(type -> !NO_STEPS.contains(type))
                                .map(Class::getSimpleName),
                        Stream.of("Confinement", "TrialRows"))
                .sorted(Comparator.comparingInt(step -> firstCall(step, methods)))
                .toList();
    }

    private static int firstCall(String step, String methods) {
        Matcher call = Pattern.compile("(?i)\\b" + step + "\\b\\s*[.(]").matcher(methods);
        assertThat(call.find()).as("a call of " + step + " in TrialPath").isTrue();
        return call.start();
    }

    @Test
    void aTrialCrossesAtMostTwentyFilesAndEachExists() throws IOException {
        assertThat(listed())
                .hasSizeBetween(10, MAX_FILES)
                .doesNotHaveDuplicates()
                .allSatisfy(file -> assertThat(source(file)).isRegularFile());
    }

    @Test
    void theStepsAreListedInTheOrderInWhichThePathTakesThem() throws IOException {
        List<String> steps = steps();
        assertThat(listed().stream().map(TrialPathTest::name).filter(steps::contains))
                .containsExactlyElementsOf(steps);
    }

    @Test
    void planComesFirstAndStoreLast() throws IOException {
        List<String> listed = listed();
        assertThat(listed.indexOf("lab/Plan")).isNotNegative().isLessThan(listed.indexOf("lab/Booting"));
        assertThat(listed.getLast()).isEqualTo("store/RunStore");
    }

    @Test
    void aStepCanBeReadAlone() throws IOException {
        List<String> steps = steps();
        for (String file : listed()) {
            if (steps.contains(name(file))) {
                assertThat(Files.readAllLines(source(file))).as(file).hasSizeLessThanOrEqualTo(MAX_LINES);
            }
        }
    }
}
