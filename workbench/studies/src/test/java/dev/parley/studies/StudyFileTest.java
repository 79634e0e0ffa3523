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
import dev.parley.model.LoadForm;
import dev.parley.model.LoadForm.Parameter;
import dev.parley.model.MessageSpec;
import dev.parley.model.Quantity;
import dev.parley.model.Study;
import dev.parley.model.Target;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
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
        assertThat(StudyText.title("study: \"say: \\\"a\\\"\"\ntechnologies: [unheard-of]\n"))
                .contains("say: \"a\"");
        assertThat(StudyText.title(SHORTEST)).isEmpty();
    }

    @Test
    void aStudyWrittenOutIsTheSameStudy() {
        for (String text : List.of(
                example(),
                SHORTEST,
                SHORTEST + "call-limit: 90s\n",
                SHORTEST + "study: 'say: \"a\\b\"'\nwindow: 1500ms\n",
                SHORTEST + "target: {p50: 0.25ms, p95: 1s, p99: 1s, p999: 1000ms, success: 99.95%}\n")) {
            Study study = read(text);
            Study again = StudyText.read(StudyText.of(study), TECHNOLOGIES);
            assertThat(again).isEqualTo(study);
            assertThat(StudyText.digest(again)).isEqualTo(StudyText.digest(study));
        }
        assertThat(StudyText.digest(read(SHORTEST))).isNotEqualTo(StudyText.digest(read(SHORTEST + "seed: 2\n")));
    }

    /** Runs are gone on with by the digest of this text. */
    @Test
    void aStudyWithoutATargetIsWrittenWithoutOne() {
        assertThat(StudyText.of(read(SHORTEST))).isEqualTo("""
                study: "a study"
                technologies: [rest]
                topologies: ["line:5"]
                work: messages
                messages: ["text:10"]
                loads:
                  - "closed:1"
                effort: standard
                restarts: 10
                rehearsal: 180s
                warm-up: {least: 15s, most: 60s}
                window: 30s
                success-within: 1s
                seed: 1
                """);
        assertThat(StudyText.digest(read(SHORTEST)))
                .isEqualTo("704ce0a61bd9fefc7d2c6946434f5222722774052fdeae5f1bf225c148bcbc33")
                .isNotEqualTo(StudyText.digest(read(SHORTEST + "target: {p99: 20ms}\n")));
    }

    @Test
    void aTargetIsReadWithItsRateAndItsBounds() {
        Target target = read("technologies: rest\nmessages: text:10\nloads: [closed:1, open:200:even]\n"
                        + "target: {success: 99.9%, rate: 200, p99: 20 ms}\n")
                .target()
                .orElseThrow();
        assertThat(target.rate()).contains(200.0);
        assertThat(target.conditions())
                .containsExactly(
                        new Target.Condition(Target.Figure.P99, 20), new Target.Condition(Target.Figure.SUCCESS, 99.9));
        assertThat(read(SHORTEST).target()).isEmpty();
    }

    @Test
    void aStudysTargetIsCarriedOutAtEveryScale() {
        Study asked = read(SHORTEST + "target: {p99: 20ms}\n");
        for (Scale scale : Scale.values()) {
            assertThat(scale.of(asked).withRestarts(3).study().target()).isEqualTo(asked.target());
        }
    }

    /** A report of a stored run is made where its technologies, works and messages may not be known. */
    @Test
    void theTargetOfAStoredStudyIsReadAlone() {
        assertThat(StudyText.target("technologies: [soap]\nmessages: letters:5\ntarget: {rate: 200, p99: 20ms}\n"))
                .hasValueSatisfying(target -> assertThat(target).hasToString("rate 200, p99 20ms"));
        assertThat(StudyText.target("study: made up\n")).isEmpty();
        assertThat(StudyText.target("")).isEmpty();
        assertThatThrownBy(() -> StudyText.target("target: {p99: 20}\n"))
                .isInstanceOf(BadStudy.class)
                .hasMessageContaining("1: target.p99: 20 (expected: a time above 0, such as 20ms or 0.5ms)");
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
                "technologies: [rest, grcp] | technologies[1]: grcp (did you mean grpc? expected: one of rest, grpc",
                "technologies: [rest, rest] | technologies[1]: rest twice (expected: each once)",
                "topologies: ring:3         | topologies: ring:3 (expected: line:n",
                "topologies: lien:3         | topologies: lien:3 (did you mean line:n? expected: line:n",
                "work: mesages              | work: mesages (did you mean messages? expected: one of ",
                "work: soap                 | work: soap (expected:",
                "messages: [text:10, types:7] | messages[1]: ",
                "messages: []               | messages: [] (expected:",
                "loads: closed:none         | loads: closed:none (expected: closed:{clients} where clients is a whole",
                "loads: closd:5             | ; did you mean closed?)",
                "loads: [{closed: {clients: 0}}] | loads[0].closed: clients: 0 (expected: 1 to 100000)",
                "loads: [{closed: {clients: many}}] | loads[0].closed.clients: many (expected: a whole number)",
                "loads: [{staircase: {from: 1, to: 2, step: 1}}] | loads[0].staircase: every is missing",
                "loads: [{open: {per-second: 5, arrival: even}}] | loads[0].open.arrival: unknown key (did you mean"
                        + " arrivals? expected: one of per-second, arrivals)",
                "loads: ['ramp:1-2:99999999h:even'] | where length is a time such as 30s, at most 720h",
                "loads: [{ramp: {from: 1, to: 2, length: 721h}}] | loads[0].ramp.length: 721h (expected: at most 720h)",
                "loads: [{open: {per-second: 5, arrivals: odd}}] | loads[0].open.arrivals: odd (expected: even or poisson)",
                "loads: [{closed: 5}]       | loads[0].closed: 5 (expected: keys with values: clients)",
                "loads: [{trickle: {rate: 5}}] | loads[0].trickle: unknown key (expected: one of closed,",
                "loads: [{staircse: {from: 1}}] | loads[0].staircse: unknown key (did you mean staircase? expected: one of closed",
                "loads: [{burst: {at-one: 5}}] | loads[0].burst.at-one: unknown key (did you mean at-once? expected: one of at-once",
                "loads: [{burst: {iterations: 5}}] | loads[0].burst: at-once is missing (expected: at-once, iterations)",
                "loads: [{staircase: {from: 1, to: 2, step: 1.5, every: 1s}}] | loads[0].staircase.step: 1.5 (expected:"
                        + " so many more, such as 10,",
                "loads: [{grid: {threads: {from: 9, to: 5}, requests: 5}}] | loads[0].grid.threads: range: 9-5 (",
                "loads: [{grid: {threads: {to: 5}, requests: 5}}] | loads[0].grid.threads: from is missing (expected: from,"
                        + " to, step)",
                "loads: [{grid: {threads: {from: a}, requests: 5}}] | loads[0].grid.threads.from: a (expected: a whole",
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
                "windows: 5s                | windows: unknown key (did you mean window? expected: one of study, tech",
                "Success_Within: 5s         | Success_Within: unknown key (did you mean success-within? expected:",
                "window: 99999999h          | window: 99999999h (expected: at most 720h)",
                "rehearsal: 99999999h       | rehearsal: 99999999h (expected: at most 720h)",
                "limits: {cores: 0}         | limits.cores: 0.0 (expected: 0.01 to 1024)",
                "limits: {memory: 512}      | limits.memory: 512 (expected: a size such as 512MB",
                "limits: {services: {m9: {cores: 1}}} | limits: service: m9 (expected: a service of line:5)",
                "limits: {bandwidth: 1MB/s} | limits.bandwidth: 1MB/s (expected: a rate such as 1Mbit/s",
                "limits: {hosts: {A: m1}}   | limits: host: A (expected: a lower-case letter",
                "limits: {proxy: {delay: -1s}} | limits.proxy.delay: -1s (expected: a time such as",
                "target: 20ms               | target: 20ms (expected: keys with values: rate, p50, p95,",
                "target: {}                 | target: nothing (expected: a rate, or a bound of",
                "target: {p90: 20ms}        | target.p90: unknown key (did you mean p50? expected: one of rate, p50, p95,",
                "target: {p99: 20}          | target.p99: 20 (expected: a time above 0, such as 20ms or 0.5ms)",
                "target: {p99: -1ms}        | target.p99: -1ms (expected: a time above 0",
                "target: {success: 99.9}    | target.success: 99.9 (expected: a share above 0, up to 100%",
                "target: {rate: 0}          | target.rate: 0.0 (expected: 0.000001 to 10000000)",
                "target: {rate: abc}        | target.rate: abc (expected: requests a second, such as 200)",
                "target: {p50: 20ms, p99: 10ms} | target: p99: 10ms (expected: not under that of p50 20ms)",
                "target: {p99: 2s}          | target: p99 2000ms (expected: at most the time within which a reply",
                "target: {rate: 200}        | target: rate 200 (expected: an open load of that rate among the loads",
                "loads: ['staircase:1-100000:+1:720h'] | loads: staircase:1-100000:+1:2592000s with a window of 72000000h"
                        + " (expected: at most 720h)",
                "study: \"a\\a\"              | (expected: one line)",
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

    /** Each load by name means what its short form means, with the same studies, texts and digests. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "closed: {clients: 16}                                      | closed:16",
                "staircase: {from: 10, to: 200, step: 10, every: 30s}       | staircase:10-200:+10:30s",
                "staircase: {from: 10, to: 200, step: +10, every: 0.5m}     | staircase:10-200:+10:30s",
                "staircase: {from: 10, to: 200, step: x2, every: 3 s}       | staircase:10-200:x2:3s",
                "open: {per-second: 0.5}                                    | open:0.5:even",
                "open: {per-second: 300, arrivals: poisson}                 | open:300:poisson",
                "ramp: {from: 100, to: 1200, length: 60s}                   | ramp:100-1200:60s:even",
                "rates: {from: 200, to: 2000, step: 200, every: 10s}        | rates:200-2000:+200:10s",
                "rates: {from: 1.5, to: 48, step: x2, every: 5s, arrivals: poisson} | rates:1.5-48:x2:5s:poisson",
                "users: {from: 300, length: 1m}                             | users:300:60s:1:even:shared",
                "users: {from: 3, to: 9, length: 1s, iterations: 2, client: per-user} | users:3-9:1s:2:even:per-user",
                "held: {from: 100, length: 60s, iterations: 2}              | held:100:60s:2",
                "held: {from: 2, to: 100, length: 60s, client: per-call}    | held:2-100:60s:1:per-call",
                "burst: {at-once: 500}                                      | burst:500:1",
                "rounds: {threads: 10, requests: 100}                       | rounds:10x100:10:600s:shared",
                "highest: {from: 100, to: 20000, latency: 50ms}             | highest:100-20000:p99:50ms:5s",
                "grid: {threads: 10-50+20, requests: 10, rounds: 3}         | grid:10-50+20:10-10+1:3:600s:shared",
                "grid: {threads: {from: 10, to: 50, step: 20}, requests: {from: 10}} | grid:10-50+20:10:10:600s:shared"
            })
    void aLoadByNameIsTheSameAsInShort(String byName, String inShort) {
        String head = "technologies: rest\nmessages: text:10\nloads:\n  - ";
        Study named = read(head + byName + "\n");
        Study brief = read(head + "\"" + inShort + "\"\n");
        assertThat(named.loads()).isEqualTo(Load.parseAll(inShort));
        assertThat(StudyText.of(named)).isEqualTo(StudyText.of(brief));
        assertThat(StudyText.digest(StudyText.read(StudyText.of(named), TECHNOLOGIES)))
                .isEqualTo(StudyText.digest(brief));
        assertThat(schema().validate(head + byName + "\n", InputFormat.YAML)).isEmpty();
        assertThat(schema().validate(head + "\"" + inShort + "\"\n", InputFormat.YAML))
                .isEmpty();
    }

    /** A study of one load, by name with those of its parts. */
    private static String study(LoadForm form, Predicate<Parameter> parts) {
        return "technologies: rest\nmessages: text:10\nloads:\n  - " + form.name() + ": "
                + form.parameters().stream()
                        .filter(parts)
                        .map(part -> part.name() + ": " + sample(part))
                        .collect(Collectors.joining(", ", "{", "}\n"));
    }

    private static String sample(Parameter part) {
        return switch (part.kind()) {
            case COUNT, NUMBER -> "5";
            case TIME -> "5s";
            case ARRIVALS, CLIENT -> part.kind().choices().getLast();
            case COUNT_STEP, RATE_STEP -> "x2";
            case RANGE -> "1-5+2";
        };
    }

    @Test
    void everyLoadThatIsDescribedIsReadByNameAndTakenByTheSchemaUnlessAPartIsMissing() {
        for (LoadForm form : Load.forms()) {
            for (String text : List.of(study(form, part -> true), study(form, Parameter::isNeeded))) {
                assertThat(read(text).loads()).as(text).isNotEmpty();
                assertThat(schema().validate(text, InputFormat.YAML)).as(text).isEmpty();
            }
            for (Parameter missing :
                    form.parameters().stream().filter(Parameter::isNeeded).toList()) {
                String text = study(form, part -> !part.equals(missing));
                assertThatThrownBy(() -> read(text)).as(text).hasMessageContaining(missing.name() + " is missing");
                assertThat(schema().validate(text, InputFormat.YAML)).as(text).isNotEmpty();
            }
        }
    }

    /** A run is resumed by this text and its digest: a load written in another way makes another study. */
    @Test
    void eachLoadOfAStoredStudyHasOneText() {
        assertThat(StudyText.of(read(example())))
                .contains("""
                loads:
                  - "closed:16"
                  - "staircase:10-200:+10:30s"
                  - "open:300:poisson"
                  - "ramp:100-1200:60s:even"
                  - "users:300:60s:10:even:shared"
                  - "held:2-100:60s:5:per-user"
                  - "burst:100:10"
                  - "rounds:10x10:10:600s:per-call"
                """)
                .contains("  - \"highest:100-20000:p99:50ms:5s\"\n  - \"open:10:even\"\n");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/additionalProperties                             | false",
                "/required                                         | [\"technologies\",\"messages\",\"loads\"]",
                "/properties/technologies/oneOf/0/$ref             | \"#/$defs/name\"",
                "/properties/technologies/oneOf/1/uniqueItems      | true",
                "/properties/more/items/required                   | [\"messages\",\"loads\"]",
                "/properties/effort/enum                           | [\"quick\",\"standard\"]",
                "/properties/restarts/$ref                         | \"#/$defs/whole\"",
                "/properties/window/oneOf/1/properties/requests/maximum | 10000",
                "/properties/seed/type                             | [\"integer\",\"string\"]",
                "/properties/alone/type                            | \"boolean\"",
                "/properties/target/minProperties                  | 1",
                "/properties/target/properties/p999/$ref           | \"#/$defs/latency\"",
                "/properties/limits/additionalProperties           | false",
                "/properties/limits/properties/cores/$ref          | \"#/$defs/number\"",
                "/properties/limits/properties/services/additionalProperties/properties/memory/$ref | \"#/$defs/size\"",
                "/properties/limits/properties/hosts/propertyNames/pattern | \"^[a-z][a-z0-9]{0,7}$\"",
                "/properties/limits/properties/proxy/properties/delay/$ref | \"#/$defs/time\"",
                "/$defs/time/oneOf/1/const                         | 0",
                "/$defs/whole/minimum                              | 1",
                "/$defs/number/exclusiveMinimum                    | 0",
                "/$defs/range/oneOf/2/required                     | [\"from\"]",
                "/$defs/load/oneOf/1/maxProperties                 | 1",
                "/$defs/load/oneOf/1/properties/staircase/required | [\"from\",\"to\",\"step\",\"every\"]",
                "/$defs/load/oneOf/1/properties/users/required     | [\"from\",\"length\"]",
                "/$defs/load/oneOf/1/properties/ramp/required      | [\"from\",\"to\",\"length\"]",
                "/$defs/load/oneOf/1/properties/held/properties/client/enum | [\"shared\",\"per-user\",\"per-call\"]",
                "/$defs/load/oneOf/1/properties/open/properties/arrivals/default | \"even\"",
                "/$defs/load/oneOf/1/properties/grid/properties/threads/$ref | \"#/$defs/range\"",
                "/$defs/load/oneOf/1/properties/highest/required   | [\"from\",\"to\",\"latency\"]",
                "/$defs/messages/oneOf/1/items/oneOf/1/items/type  | \"string\"",
                "/$defs/loads/oneOf/1/minItems                     | 1"
            })
    void theSchemaSaysWhatAStudyIs(String place, String json) {
        assertThat(JsonMapper.shared().readTree(StudyFile.schema()).at(place).toString())
                .isEqualTo(json);
    }

    /** Each name that the schema refers to has its definition. */
    @Test
    void theSchemaRefersToNothingThatItDoesNotDefine() {
        String schema = StudyFile.schema();
        Set<String> defined =
                Set.copyOf(JsonMapper.shared().readTree(schema).at("/$defs").propertyNames());
        assertThat(Pattern.compile("#/\\$defs/([a-z-]+)")
                        .matcher(schema)
                        .results()
                        .map(found -> found.group(1)))
                .isNotEmpty()
                .isSubsetOf(defined);
    }

    @Test
    void theSchemaTakesWhatTheReaderTakes() {
        for (String text : List.of(example(), SHORTEST, StudyText.of(read(example())))) {
            assertThat(schema().validate(text, InputFormat.YAML)).isEmpty();
        }
    }

    /** The studies among the examples and of the papers; a paper's own file is none. */
    static Stream<Path> studies() throws IOException {
        List<Path> found = new ArrayList<>();
        for (String folder : List.of("docs/examples", "workbench/studies/src/main/resources")) {
            try (Stream<Path> files = Files.walk(home().resolve(folder))) {
                files.filter(file -> file.toString().endsWith(".yaml"))
                        .filter(file -> !file.endsWith("paper.yaml"))
                        .forEach(found::add);
            }
        }
        return found.stream().sorted();
    }

    @ParameterizedTest
    @MethodSource("studies")
    void theSchemaTakesEachStudyThatThereIs(Path study) throws IOException {
        assertThat(schema().validate(Files.readString(study), InputFormat.YAML)).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "colour: red",
                "restarts: 0",
                "window: 5",
                "effort: huge",
                "target: {}",
                "target: {p90: 20ms}",
                "target: {p99: 20}",
                "target: {success: 99.9}",
                "target: {rate: abc}",
                "alone: maybe",
                "limits: {memory: 512}",
                "limits: {proxy: {speed: 1}}",
                "limits: {services: {m1: {core: 1}}}",
                "limits: {hosts: {A: m1}}",
                "limits: {bandwidth: 1MB/s}",
                "rehearsal: {low: 1s}",
                "more: [{messages: text:10}]",
                "more: [{messages: text:10, loads: mixed:4}]",
                "more: [{messages: text:10, loads: {closed: {clients: 0}}}]",
                "more: [{messages: text:10, loads: {closed: {}}}]",
                "more: [{messages: text:10, loads: {closed: {clients: 1, servers: 2}}}]",
                "more: [{messages: text:10, loads: {closed: {clients: 1}, burst: {at-once: 2}}}]",
                "more: [{messages: text:10, loads: {open: {per-second: 5, arrivals: odd}}}]",
                "more: [{messages: text:10, loads: {staircase: {from: 1, to: 9, every: 1s}}}]",
                "more: [{messages: text:10, loads: {staircase: {from: 1, to: 9, step: y2, every: 1s}}}]",
                "more: [{messages: text:10, loads: {ramp: {from: 1, length: 1s}}}]",
                "more: [{messages: text:10, loads: {users: {from: 1, length: 1}}}]",
                "topologies: ring:3"
            })
    void theSchemaRefusesWhatTheReaderRefuses(String line) {
        assertThatThrownBy(() -> read(SHORTEST + line)).isInstanceOf(BadStudy.class);
        assertThat(schema().validate(SHORTEST + line, InputFormat.YAML)).isNotEmpty();
    }

    /** {@code ./parley validate --loads} prints what the guide has to have. */
    @Test
    void theGuideHasTheLoadsAsTheyAreDescribed() throws IOException {
        assertThat(Files.readString(home().resolve("docs/specs.md"))).contains(LoadHelp.table());
    }

    private static Schema schema() {
        return SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12)
                .getSchema(StudyFile.schema(), InputFormat.JSON);
    }

    /** Each number of the guide that is a default, beside a study that leaves the key out. */
    @Test
    void theDefaultsOfTheGuideAreThoseOfTheReader() {
        Study study = read(SHORTEST);
        Study.Effort quick = read(SHORTEST + "effort: quick\n").effort();
        Study.Effort standard = study.effort();
        assertThat(row("study")).endsWith("| `" + study.title() + "` |");
        assertThat(row("topologies")).endsWith("| `" + study.topologies().getFirst() + "` |");
        assertThat(row("work")).endsWith("| `" + study.work() + "` |");
        assertThat(row("effort")).endsWith("| `" + standard.name() + "` |");
        assertThat(row("seed")).endsWith("| `" + study.seed() + "` |");
        assertThat(row("alone")).endsWith("| `" + study.isAlone() + "` |");
        assertThat(row("restarts"))
                .contains("1 to " + Study.MAX_RESTARTS + " |")
                .endsWith("| quick " + quick.restarts() + ", standard " + standard.restarts() + " |");
        assertThat(row("rehearsal")).endsWith(both(quick.rehearsal(), standard.rehearsal()));
        assertThat(row("window")).endsWith(both(quick.window(), standard.window()));
        assertThat(quick.warmUpMost()).isEqualTo(quick.warmUpLeast());
        assertThat(row("warm-up"))
                .endsWith(both(quick.warmUpLeast(), standard.warmUpLeast())
                        .replace(" |", " to " + Quantity.text(standard.warmUpMost()) + " |"));
        assertThat(row("success-within")).endsWith("| `" + Quantity.text(study.limit()) + "` |");
        assertThat(row("call-limit"))
                .contains("at most `30m` |")
                .endsWith("| `success-within`, but at least "
                        + Quantity.text(Study.defaultCallLimit(Duration.ofMillis(1))) + " and at most "
                        + Quantity.text(Study.defaultCallLimit(Duration.ofHours(1))) + " |");
        assertThat(read(SHORTEST + "call-limit: 30m\n").callLimit()).isEqualTo(Duration.ofMinutes(30));
        assertThatThrownBy(() -> read(SHORTEST + "call-limit: 1801s\n")).isInstanceOf(BadStudy.class);
        assertThat(guide()).contains("none is longer than `" + Study.MAX_TIME.toHours() + "h`");
    }

    private static String both(Duration quick, Duration standard) {
        return "| quick " + Quantity.text(quick) + ", standard " + Quantity.text(standard) + " |";
    }

    /** The line of the guide's tables that begins with a key or a load. */
    private static String row(String name) {
        return guide().lines()
                .filter(line -> line.startsWith("| `" + name + "` |"))
                .findFirst()
                .orElseThrow(() -> new AssertionError(name + " is in no table of the guide"));
    }

    /** The YAML of the guide. */
    private static String example() {
        String guide = guide();
        return guide.substring(guide.indexOf("```yaml\n") + 8, guide.lastIndexOf("```"));
    }

    private static String guide() {
        try {
            return Files.readString(home().resolve("docs/specs.md"));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static Path home() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("docs/specs.md"))) {
            folder = folder.getParent();
        }
        return folder;
    }
}
