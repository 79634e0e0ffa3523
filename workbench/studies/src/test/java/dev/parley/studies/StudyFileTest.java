package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.networknt.schema.InputFormat;
import com.networknt.schema.Schema;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import dev.parley.model.BadInput;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Study;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class StudyFileTest {
    private static final List<String> TECHNOLOGIES = List.of("rest", "grpc", "rpcx");
    private static final String SHORTEST = "technologies: rest\nmessages: text:10\nloads: closed:1\n";

    private static Study read(String text) {
        return StudyFile.parse("study.yaml", text, TECHNOLOGIES);
    }

    @Test
    void whatIsLeftOutHasItsDefault() {
        Study study = read(SHORTEST);
        assertThat(study.topologies()).hasToString("[line:5]");
        assertThat(study.effort()).isEqualTo(Study.Effort.STANDARD);
        assertThat(study.restarts()).isEqualTo(10);
        assertThat(study.limit()).isEqualTo(Duration.ofSeconds(1));
        assertThat(study.limits()).isEqualTo(Limits.NONE);
    }

    @Test
    void theTitleIsReadWithoutTheTechnologies() {
        assertThat(StudyText.title("study: \"say: \\\"a\\\"\"\ntechnologies: [unheard-of]\n")).contains("say: \"a\"");
        assertThat(StudyText.title(SHORTEST)).isEmpty();
    }

    @Test
    void aStudyWrittenOutIsTheSameStudy() {
        for (String text : List.of(
                example(),
                SHORTEST,
                SHORTEST + "call-limit: 90s\n",
                SHORTEST + "study: 'say: \"a\\b\"'\nwindow: 1500ms\n")) {
            Study study = read(text);
            Study again = StudyText.read(StudyText.of(study), TECHNOLOGIES);
            assertThat(again).isEqualTo(study);
            assertThat(StudyText.digest(again)).isEqualTo(StudyText.digest(study));
        }
        assertThat(StudyText.digest(read(SHORTEST))).isNotEqualTo(StudyText.digest(read(SHORTEST + "seed: 2\n")));
    }

    /**
     * A technology that takes minutes for what others do in seconds is measured, where a study says that it waits so
     * long.
     */
    @Test
    void aCallIsGivenTheTimeThatTheStudySays() {
        assertThat(read(SHORTEST).callLimit()).isEqualTo(Duration.ofSeconds(5));
        assertThat(read(SHORTEST + "success-within: 30s\n").callLimit()).isEqualTo(Duration.ofSeconds(30));
        assertThat(read(SHORTEST + "success-within: 180s\n").callLimit()).isEqualTo(Duration.ofSeconds(60));
        Study patient = read(SHORTEST + "success-within: 180s\ncall-limit: 180s\n");
        assertThat(patient.callLimit()).isEqualTo(Duration.ofSeconds(180));
        assertThat(StudyText.of(patient)).contains("call-limit: 180s\n");
        assertThat(StudyText.of(read(SHORTEST + "call-limit: 5s\n"))).isEqualTo(StudyText.of(read(SHORTEST)));
        assertThat(patient.of(List.of("grpc")).callLimit()).isEqualTo(Duration.ofSeconds(180));
        for (Scale scale : Scale.values()) {
            assertThat(scale.of(patient).withRestarts(3).study().callLimit()).isEqualTo(Duration.ofSeconds(180));
        }
    }

    @Test
    void aWindowMayWaitForTheRequestsOfAnOpenLoad() {
        String text = "technologies: rest\nmessages: text:10\nloads: closed:1\nwindow: ";
        Study study = read(text + "{least: 5s, requests: 20}\n");
        assertThat(study.effort().window(Load.parse("open:2:even"))).isEqualTo(Duration.ofSeconds(10));
        assertThat(study.effort().window(Load.parse("open:3:even"))).isEqualTo(Duration.ofSeconds(7));
        assertThat(study.effort().window(Load.parse("open:900:even"))).isEqualTo(Duration.ofSeconds(5));
        assertThat(study.effort().window(Load.parse("held:5:2s:1"))).isEqualTo(Duration.ofSeconds(2));
        assertThat(StudyText.of(study)).contains("window: {least: 5s, requests: 20}\n");
        assertThat(read(StudyText.of(study))).isEqualTo(study);
        assertThatThrownBy(() -> read(text + "{least: 5s, requests: 20000}\n"))
                .isInstanceOf(BadStudy.class)
                .hasMessageContaining("20000 (expected: 0 to 10000)");
    }

    @Test
    void theGuidesExampleIsReadInFull() {
        Study study = read(example());
        assertThat(study.messages()).hasToString("[text:1000, types:100, text:10>text:1000, types:1000]");
        assertThat(study.loads())
                .hasSize(8 + 3 * 2 + 1 + 1)
                .contains(
                        Load.parse("staircase:10-200:+10:30s"),
                        Load.parse("open:300:poisson"),
                        Load.parse("users:300:60s:10"),
                        Load.parse("held:2-100:60s:5:per-user"),
                        Load.parse("rounds:30x100:10:600s:per-call"),
                        Load.parse("highest:100-20000:p99:50ms:5s"));
        assertThat(study.has(MessageSpec.parse("types:1000"), Load.parse("open:5:even")))
                .isTrue();
        assertThat(study.has(MessageSpec.parse("types:1000"), Load.parse("closed:16")))
                .isFalse();
        assertThat(study.has(MessageSpec.parse("types:100"), Load.parse("open:5:even")))
                .isFalse();
        assertThat(study.limits().of("m3")).isEqualTo(new Limits.Share(Optional.of(0.5), Optional.of(1_000_000_000L)));
        assertThat(study.limits().bandwidth()).contains(new Limits.Bandwidth(1_000_000));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "technologies: [rest, soap] | technologies[1]: soap (expected: one of rest, grpc, rpcx",
                "technologies: [rest, rest] | technologies[1]: rest twice (expected: each once)",
                "topologies: ring:3         | topologies: ring:3 (expected: line:n",
                "work: soap                 | work: soap (expected:",
                "messages: [text:10, types:7] | messages[1]: ",
                "messages: []               | messages: [] (expected:",
                "loads: closed:none         | loads: closed:none (expected: closed:n,",
                "loads: [{closed: {clients: 0}}] | loads[0].closed: clients: 0 (expected: 1 to 100000)",
                "loads: [{closed: {clients: many}}] | loads[0].closed.clients: many (expected: a whole number)",
                "loads: [{staircase: {from: 1, to: 2, step: 1}}] | loads[0].staircase: every is missing",
                "loads: [{open: {per-second: 5, arrival: even}}] | loads[0].open.arrival: unknown key (expected: arrivals)",
                "loads: [{open: {per-second: 5, arrivals: odd}}] | loads[0].open.arrivals: odd (expected: even or poisson)",
                "loads: [{closed: 5}]       | loads[0].closed: 5 (expected: keys with values: clients)",
                "loads: [{trickle: {rate: 5}}] | loads[0].trickle: unknown key (expected: one of closed,",
                "more: [{messages: text:10}] | more[0]: loads is missing",
                "more: [{messages: text:10, loads: closed:1}] | more: message and load: ",
                "effort: huge               | effort: huge (expected: quick or standard)",
                "restarts: 0                | restarts: 0 (expected: 1 to 1000)",
                "restarts: 1.5              | restarts: 1.5 (expected: a whole number)",
                "window: 5                  | window: 5 (expected: a time such as 30s",
                "call-limit: 0s             | call-limit: 0s (expected: longer than nothing)",
                "call-limit: 2h             | call-limit: call limit: PT2H (expected: longer than nothing, and at most"
                        + " PT30M)",
                "window: 0s                 | window: 0s (expected: longer than nothing)",
                "rehearsal: {least: 5s, most: 1s} | rehearsal: most 1s (expected: not under the least, 5s)",
                "warm-up: {least: 5s, most: 1s} | warm-up: most 1s (expected: not under the least, 5s)",
                "success-within: 0          | success-within: 0 (expected: longer than nothing)",
                "seed: x                    | seed: x (expected: a whole number)",
                "windows: 5s                | windows: unknown key (expected: window)",
                "limits: {cores: 0}         | limits.cores: 0.0 (expected: 0.01 to 1024)",
                "limits: {memory: 512}      | limits.memory: 512 (expected: a size such as 512MB",
                "limits: {services: {m9: {cores: 1}}} | limits: service: m9 (expected: a service of line:5)",
                "limits: {bandwidth: 1MB/s} | limits.bandwidth: 1MB/s (expected: a rate such as 1Mbit/s",
                "limits: {hosts: {A: m1}}   | limits: host: A (expected: a lower-case letter",
                "limits: {proxy: {delay: -1s}} | limits.proxy.delay: -1s (expected: a time such as",
                "study: [a, b]              | study: a list (expected: a title of one line)",
                "loads: [closed:1           | (expected: YAML)"
            })
    void aMistakeIsToldWithItsLineKeyValueAndWhatWasExpected(String line, String said) {
        List<String> lines = new ArrayList<>(SHORTEST.lines().toList());
        lines.removeIf(l -> l.startsWith(line.substring(0, line.indexOf(':') + 1)));
        lines.add(line);
        assertThatThrownBy(() -> read(String.join("\n", lines)))
                .isInstanceOf(BadStudy.class)
                .hasMessageStartingWith("study.yaml:" + lines.size() + ": ")
                .hasMessageContaining(said);
    }

    @Test
    void allMistakesOfAFileAreToldInItsOrder() {
        BadStudy bad = catchThrowableOfType(BadStudy.class, () -> read("""
                technologies: soap
                loads:
                  - closed: {clients: none}
                  - open: {per-second: -1}
                colour: red
                restarts: 0
                """));
        assertThat(bad.mistakes())
                .extracting(m -> m.line() + " " + m.key())
                .containsExactlyInAnyOrder(
                        "1 technologies",
                        "1 ",
                        "3 loads[0].closed.clients",
                        "4 loads[1].open",
                        "5 colour",
                        "6 restarts");
        assertThat(bad.mistakes()).extracting(BadStudy.Mistake::line).isSorted();
    }

    @Test
    void aKeyTwiceIsAMistake() {
        assertThatThrownBy(() -> read(SHORTEST + "seed: 1\nseed: 2\n"))
                .isInstanceOf(BadStudy.class)
                .hasMessage("study.yaml:5: seed: twice (expected: each key once)");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "just words", "- a list", "a: *b", "&a [*a]", "\u0001", "? {a: b}\n: c"})
    void whatIsNoStudyAtAllIsRefused(String text) {
        assertThatThrownBy(() -> read(text)).isInstanceOf(BadStudy.class).hasMessageContaining("expected: ");
    }

    @Test
    void aFileThatIsNotThereIsNamed() {
        assertThatThrownBy(() -> StudyFile.read(Path.of("none.yaml"), TECHNOLOGIES))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("none.yaml");
    }

    @Test
    void theSchemaKnowsEveryKeyThatIsReadAndNoOther() {
        JsonNode schema = JsonMapper.shared().readTree(StudyFile.schema());
        assertThat(names(schema.at("/properties"))).isEqualTo(StudyFile.KEYS);
        assertThat(names(schema.at("/properties/limits/properties"))).isEqualTo(StudyFile.LIMIT_KEYS);
        assertThat(names(schema.at("/properties/window/oneOf/1/properties"))).isEqualTo(StudyFile.WINDOW_KEYS);
        assertThat(names(schema.at("/properties/limits/properties/proxy/properties")))
                .isEqualTo(StudyFile.PROXY_KEYS);
        JsonNode loads = schema.at("/$defs/load/oneOf/1/properties");
        assertThat(names(loads)).isEqualTo(LoadValue.PARTS.keySet());
        LoadValue.PARTS.forEach((load, parts) -> {
            assertThat(names(loads.at("/" + load + "/properties")))
                    .containsExactlyInAnyOrderElementsOf(
                            parts.stream().map(p -> p.replace("?", "")).toList());
            List<String> required = new ArrayList<>();
            loads.at("/" + load + "/required").forEach(name -> required.add(name.asString()));
            assertThat(required)
                    .containsExactlyInAnyOrderElementsOf(
                            parts.stream().filter(p -> !p.endsWith("?")).toList());
        });
    }

    @Test
    void theSchemaTakesWhatTheReaderTakes() {
        for (String text : List.of(example(), SHORTEST, StudyText.of(read(example())))) {
            assertThat(schema().validate(text, InputFormat.YAML)).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "colour: red",
                "restarts: 0",
                "window: 5",
                "effort: huge",
                "limits: {memory: 512}",
                "limits: {proxy: {speed: 1}}",
                "topologies: ring:3"
            })
    void theSchemaRefusesWhatTheReaderRefuses(String line) {
        assertThatThrownBy(() -> read(SHORTEST + line)).isInstanceOf(BadStudy.class);
        assertThat(schema().validate(SHORTEST + line, InputFormat.YAML)).isNotEmpty();
    }

    private static Set<String> names(JsonNode object) {
        return Set.copyOf(object.propertyNames());
    }

    private static Schema schema() {
        return SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12)
                .getSchema(StudyFile.schema(), InputFormat.JSON);
    }

    /** The YAML of the guide. */
    private static String example() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("docs/specs.md"))) {
            folder = folder.getParent();
        }
        try {
            String guide = Files.readString(folder.resolve("docs/specs.md"));
            return guide.substring(guide.indexOf("```yaml\n") + 8, guide.lastIndexOf("```"));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
