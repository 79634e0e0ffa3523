package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.Load.ClientUse;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
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
                .hasMessage("duration: 99999999h (expected: at most 720h)");
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
        assertThat(scenario.steps())
                .containsExactly(
                        new MessageSpec("list", 0), new MessageSpec("add", 1000), new MessageSpec("delete", 0));
        assertThat(MessageSpec.parse("text:10").steps()).containsExactly(new MessageSpec("text", 10));
        assertThatThrownBy(() -> MessageSpec.parse("list>>delete")).isInstanceOf(BadInput.class);
    }
}
