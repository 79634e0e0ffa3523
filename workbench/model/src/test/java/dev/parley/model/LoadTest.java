package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.Load.ClientUse;
import dev.parley.model.LoadForm.Parameter;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class LoadTest {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "closed:1",
                "closed:200",
                "open:300:poisson",
                "open:0.5:even",
                "staircase:10-200:+10:30s",
                "ramp:10-1000:60s:even",
                "ramp:0.0001-0.00025:60s:even",
                "rates:200-2000:+200:10s:even",
                "rates:0.5-6.75:x1.5:500ms:poisson",
                "users:300:60s:10:even:shared",
                "users:100-1200:60s:5:poisson:per-user",
                "held:100:60s:2:shared",
                "held:2-100:60s:1:per-call",
                "burst:500:10",
                "rounds:10x900:10:600s:per-call",
                "highest:100-20000:p99.9:50ms:5s"
            })
    void theWrittenFormReadsBackAsItself(String text) {
        assertThat(Load.parse(text)).hasToString(text);
    }

    /** The examples of all forms, one of each at the least. */
    static Stream<String> examples() {
        return Load.forms().stream().flatMap(form -> form.examples().stream());
    }

    @ParameterizedTest
    @MethodSource("examples")
    void anExampleReadsBackAsItself(String example) {
        for (Load load : Load.parseAll(example)) {
            assertThat(Load.parse(load.toString())).isEqualTo(load);
            assertThat(load.title()).contains(load.isOpen() ? "open load" : "closed load");
            assertThat(load.amount()).isPositive();
            assertThat(load.warmUp().warmUp()).as("a warm-up is its own").isEqualTo(load.warmUp());
            assertThat(load.inTime(2).ownLength()).isEqualTo(load.ownLength().map(length -> length.multipliedBy(2)));
        }
    }

    @Test
    void eachFormIsDescribedAndHasExamples() {
        List<Class<?>> described = examples()
                .flatMap(example -> Load.parseAll(example).stream())
                .<Class<?>>map(Object::getClass)
                .distinct()
                .toList();
        assertThat(described).containsExactlyInAnyOrder(Load.class.getPermittedSubclasses());
        for (LoadForm form : Load.forms()) {
            assertThat(form.examples())
                    .isNotEmpty()
                    .allSatisfy(example -> assertThat(example).startsWith(form.name() + ":"));
            assertThat(form.meaning()).endsWith(".");
            assertThat(form.parameters()).extracting(Parameter::meaning).doesNotContain("");
        }
        assertThat(Load.forms()).extracting(LoadForm::name).doesNotHaveDuplicates();
    }

    @Test
    void partsThatAreLeftOutHaveTheirStandard() {
        LoadForm users = Load.forms().stream()
                .filter(form -> form.name().equals("users"))
                .findFirst()
                .orElseThrow();
        Map<String, Object> given = new LinkedHashMap<>();
        given.put("from", 300.0);
        given.put("length", Duration.ofMinutes(1));
        assertThat(users.loads(given)).hasToString("[users:300:60s:1:even:shared]");
        given.put("to", 1200.0);
        assertThat(users.loads(given)).hasToString("[users:300-1200:60s:1:even:shared]");
    }

    @ParameterizedTest
    @CsvSource({
        "ramp:10:60s:even, ramp:10-10:60s:even",
        "highest:100:p99:50ms:5s, highest:100-100:p99:50ms:5s",
        "users:300:1m:10, users:300:60s:10:even:shared",
        "users:300:60s:10:POISSON, users:300:60s:10:poisson:shared",
        "held:100-100:60s:2, held:100:60s:2:shared",
        "held:5:60s:2:PER_USER, held:5:60s:2:per-user",
        "open:1e3:even, open:1000:even",
        "'  closed:7 ', closed:7"
    })
    void whatMayBeWrittenInSeveralWaysHasOneForm(String text, String form) {
        assertThat(Load.parse(text)).hasToString(form);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "closd:16 | load: closd:16 (expected: one of closed:16, ",
                "closd:16 | ; did you mean closed?)",
                "stair:16 | highest:100-20000:p99:50ms:5s)",
                "closed:none | load: closed:none (expected: closed:{clients} where clients is a whole number, for"
                        + " example closed:16)",
                "open:3 | load: open:3 (expected: open:{per-second}:{arrivals}, for example open:300:poisson)",
                "open:3:odd | where arrivals is even or poisson, for example",
                "ramp:1-2:30:even | where length is a time such as 30s, at most 720h, for example",
                "closed:0 | clients: 0 (expected: 1 to 100000)",
                "grid:10-990 | for example grid:10-990+100:10-900+200:10:600s:shared)"
            })
    void aMistakeIsToldWithWhatWasExpectedOfThatForm(String text, String said) {
        assertThatThrownBy(() -> Load.parseAll(text))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining(said);
    }

    @Test
    void oneLoadIsNotSeveral() {
        assertThatThrownBy(() -> Load.parse("grid:10-990+980:100-900+800:10:600s:shared"))
                .isInstanceOf(BadInput.class)
                .hasMessageEndingWith("(expected: one load and not 4)");
    }

    /** What a form is, fact by fact: whoever measures, plans or reports a load goes by these. */
    @ParameterizedTest
    @CsvSource({
        "closed:4, steady keeps-clients",
        "staircase:1-4:+1:1s, stepped keeps-clients",
        "open:5:even, open steady",
        "ramp:5-9:1s:even, open",
        "rates:5-9:+1:1s, open stepped counted",
        "users:5:1s:2, open users",
        "held:5:1s:2, users keeps-clients",
        "burst:5:2, counted one-number",
        "rounds:2x5:3:1s:shared, counted one-number",
        "highest:5-9:p99:50ms:1s, open counted search"
    })
    void aFormIsWhatItsTraitsSay(String text, String facts) {
        Load load = Load.parse(text);
        Map<String, Boolean> is = new LinkedHashMap<>();
        is.put("open", load.isOpen());
        is.put("steady", load.isSteady());
        is.put("stepped", load.isStepped());
        is.put("users", load.hasUsers());
        is.put("counted", load.isCounted());
        is.put("one-number", load.isOfOneNumber());
        is.put("search", load.isSearch());
        is.put("keeps-clients", load.keepsClients());
        is.values().removeIf(fact -> !fact);
        assertThat(String.join(" ", is.keySet())).isEqualTo(facts);
    }

    @Test
    void aStretchIsAStepOrATryOrAllOfALoad() {
        assertThat(Load.parse("staircase:1-4:+1:1s").stretch()).contains(Duration.ofSeconds(1));
        assertThat(Load.parse("rates:1-4:+1:1s").stretch()).contains(Duration.ofSeconds(1));
        assertThat(Load.parse("highest:5-9:p99:50ms:2s").stretch()).contains(Duration.ofSeconds(2));
        assertThat(Load.parse("ramp:5-9:3s:even").stretch()).contains(Duration.ofSeconds(3));
        assertThat(Load.parse("closed:4").stretch()).isEmpty();
    }

    @Test
    void onlyUsersCarryTheScenarioOutSeveralTimes() {
        assertThat(Load.parse("users:5:1s:3").scenariosEach()).isEqualTo(3);
        assertThat(Load.parse("held:5:1s:4").scenariosEach()).isEqualTo(4);
        assertThat(Load.parse("burst:5:2").scenariosEach()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "closed",
                "closed:x",
                "closed:0",
                "open:3",
                "open:3:odd",
                "open:-1:even",
                "mixed:4",
                "staircase:10-200:10:30s",
                "staircase:200-10:+10:30s",
                "staircase:10:+10:30s",
                "ramp:1-2:30:even",
                "users:300:60s:0",
                "held:0:60s:1",
                "burst:500",
                "rounds:10x10:1:600s:shared",
                "rounds:10:10:600s:shared",
                "highest:200-100:p99:50ms:5s",
                "highest:1-100:99:50ms:5s"
            })
    void aBadFormIsRefusedWithWhatWasExpected(String text) {
        assertThatThrownBy(() -> Load.parse(text)).isInstanceOf(BadInput.class).hasMessageContaining("expected");
    }

    @Test
    void noTimeIsLongerThanAMonth() {
        assertThat(Load.parse("ramp:1-2:720h:even").ownLength()).contains(Study.MAX_TIME);
        assertThatThrownBy(() -> Load.parse("ramp:1-2:99999999h:even"))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("ramp:1-2:99999999h:even")
                .hasMessageContaining("at most 720h");
    }

    @Test
    void aGridGivesItsCellsWithItsEndsAmongThem() {
        List<Load> cells = Load.parseAll("grid:10-990+100:10-900+200:10:600s:shared");
        assertThat(cells)
                .hasSize(11 * 6)
                .contains(
                        new Load.Rounds(10, 10, 10, Duration.ofMinutes(10), ClientUse.SHARED),
                        new Load.Rounds(990, 900, 10, Duration.ofMinutes(10), ClientUse.SHARED));
        assertThat(Load.parseAll("closed:3")).containsExactly(new Load.Closed(3));
        assertThatThrownBy(() -> Load.parseAll("grid:10-990")).hasMessageContaining("grid:10-990+100");
    }

    @Test
    void aStepBeyondAnIntIsTheLastOne() {
        assertThat(((Load.Staircase) Load.parse("staircase:10-200:x2147483647:1s")).steps())
                .containsExactly(10, 200);
        assertThat(((Load.Staircase) Load.parse("staircase:10-200:+2147483647:1s")).steps())
                .containsExactly(10, 200);
        assertThat(new Load.Range(10, 100_000, Integer.MAX_VALUE).values()).containsExactly(10, 100_000);
    }

    @Test
    void aGridOfMoreLoadsThanAStudyMayHaveIsRefusedBeforeTheyAreMade() {
        assertThatThrownBy(() -> Load.parseAll("grid:1-100000+1:1-100000+1:10:600s:shared"))
                .isInstanceOf(BadInput.class)
                .hasMessage("grid: 1-100000+1:1-100000+1 of 10000000000 loads (expected: at most 1000000)");
    }

    @Test
    void theStaircaseOfThePaperTakesTenMinutesAndItsScaledFormHasTheSameSteps() {
        Load.Staircase full = new Load.Staircase(10, 200, 10, Duration.ofSeconds(30));
        assertThat(full.ownLength()).contains(Duration.ofMinutes(10));
        Load.Staircase scaled = (Load.Staircase) full.inTime(0.01);
        assertThat(scaled.steps()).isEqualTo(full.steps()).hasSize(20);
        assertThat(scaled.ownLength()).contains(Duration.ofSeconds(6));
    }

    @Test
    void aStaircaseMayMultiplyItsClientsInPlaceOfAddingSome() {
        Load.Staircase doubling = new Load.Staircase(10, 200, 0, 2, Duration.ofSeconds(3));
        assertThat(doubling).hasToString("staircase:10-200:x2:3s");
        assertThat(Load.parse("staircase:10-200:x2:3s")).isEqualTo(doubling);
        assertThat(doubling.steps()).containsExactly(10, 20, 40, 80, 160, 200);
        assertThat(doubling.inTime(2)).hasToString("staircase:10-200:x2:6s");
        assertThat(doubling.ownLength()).contains(Duration.ofSeconds(18));
        for (String wrong : List.of("staircase:10-200:x1:3s", "staircase:10-200:x0:3s", "staircase:10-200:+0:3s")) {
            assertThatThrownBy(() -> Load.parse(wrong)).as(wrong).isInstanceOf(BadInput.class);
        }
        assertThatThrownBy(() -> new Load.Staircase(10, 200, 10, 2, Duration.ofSeconds(3)))
                .hasMessage("staircase: x2+10 (expected: either more clients a step or times as many)");
    }

    @Test
    void aScenarioReadsBackAsItself() {
        MessageSpec scenario = MessageSpec.parse("list>add:1k>delete");
        assertThat(scenario).hasToString("list>add:1000>delete");
        assertThat(scenario.messages())
                .containsExactly(
                        new MessageSpec("list", 0), new MessageSpec("add", 1000), new MessageSpec("delete", 0));
        assertThat(MessageSpec.parse("text:10").messages()).containsExactly(new MessageSpec("text", 10));
        assertThatThrownBy(() -> MessageSpec.parse("list>>delete")).isInstanceOf(BadInput.class);
    }

    @ParameterizedTest
    @ValueSource(strings = {"highest:1e-300-100:p99:50ms:5s", "highest:0.0000001-100:p99:50ms:5s"})
    void aSearchFromARateThatNothingCanBePlannedWithIsRefused(String text) {
        assertThatThrownBy(() -> Load.parse(text)).isInstanceOf(BadInput.class).hasMessageContaining("(expected: ");
        assertThatThrownBy(() -> new Load.HighestRate(4.9e-324, 100, 99, Duration.ofMillis(50), Duration.ofSeconds(5)))
                .hasMessage("from: 4.9E-324 (expected: 0.000001 to 10000000)");
        assertThatThrownBy(() -> new Load.HighestRate(0.0002, 0.0001, 99, Duration.ofMillis(50), Duration.ofSeconds(5)))
                .hasMessage("to: 0.0001 (expected: not under from, 0.0002)");
    }
}
