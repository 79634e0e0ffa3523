package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.Study.Effort;
import dev.parley.model.Target.Condition;
import dev.parley.model.Target.Figure;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TargetTest {
    private static Condition of(Figure figure, String text) {
        return Condition.parse(figure.key(), figure, text);
    }

    private static Target target(Optional<Double> rate, Condition... conditions) {
        return new Target(rate, List.of(conditions));
    }

    private static Study study(Load load) {
        return new Study(
                "a test",
                List.of("rest"),
                List.of(Topology.parse("line:2")),
                "messages",
                List.of(MessageSpec.parse("text:10")),
                List.of(load),
                Effort.QUICK,
                3,
                Duration.ofSeconds(1),
                1,
                Limits.NONE);
    }

    @ParameterizedTest
    @CsvSource({
        "P50, 5ms, 5, 5ms",
        "P95, 0.25ms, 0.25, 0.25ms",
        "P99, 20 ms, 20, 20ms",
        "P999, 1.5s, 1500, 1500ms",
        "SUCCESS, 99.9%, 99.9, 99.9%",
        "SUCCESS, 100 %, 100, 100%"
    })
    void aConditionIsReadWithItsUnit(Figure figure, String text, double limit, String written) {
        Condition condition = of(figure, text);
        assertThat(condition.bound()).isEqualTo(limit);
        assertThat(condition.text()).isEqualTo(written);
        assertThat(of(figure, written)).isEqualTo(condition);
    }

    @ParameterizedTest
    @CsvSource({
        "P99, 20",
        "P99, -1ms",
        "P99, 0ms",
        "P99, 20%",
        "P99, 2m",
        "P99, soon",
        "SUCCESS, 99.9",
        "SUCCESS, 0%",
        "SUCCESS, 100.1%",
        "SUCCESS, 99ms"
    })
    void whatIsNoBoundOfItsFigureIsRefusedWithItsPlace(Figure figure, String text) {
        assertThatThrownBy(() -> Condition.parse("--" + figure.key(), figure, text))
                .isInstanceOf(BadInput.class)
                .hasMessage("--" + figure.key() + ": " + text + " (expected: " + figure.expected() + ")");
    }

    @Test
    void aLimitThatIsNoneIsRefused() {
        assertThatThrownBy(() -> new Condition(Figure.P99, Double.NaN)).hasMessageStartingWith("p99: NaN (expected: ");
        assertThatThrownBy(() -> new Condition(Figure.P50, Double.POSITIVE_INFINITY))
                .isInstanceOf(BadInput.class);
        assertThatThrownBy(() -> new Condition(Figure.SUCCESS, 101)).isInstanceOf(BadInput.class);
    }

    @Test
    void aRateIsANumberWithinTheBounds() {
        assertThat(Target.parseRate("--rate", "0.5")).isEqualTo(0.5);
        assertThatThrownBy(() -> Target.parseRate("--rate", "abc"))
                .hasMessage("--rate: abc (expected: requests a second, such as 200)");
        assertThatThrownBy(() -> Target.parseRate("--rate", "-3"))
                .hasMessage("--rate: -3.0 (expected: 0.000001 to 10000000)");
        assertThatThrownBy(() -> target(Optional.of(0.0))).hasMessageStartingWith("rate: 0.0 (expected: 0.000001 to ");
    }

    @Test
    void aFartherPercentileIsNotBoundMoreTightlyThanANearerOne() {
        assertThatThrownBy(() -> target(Optional.empty(), of(Figure.P99, "10ms"), of(Figure.P50, "20ms")))
                .isInstanceOf(BadInput.class)
                .hasMessage("p99: 10ms (expected: not under that of p50 20ms)");
        assertThat(target(Optional.empty(), of(Figure.P99, "20ms"), of(Figure.P50, "20ms"))
                        .conditions())
                .extracting(Condition::figure)
                .containsExactly(Figure.P50, Figure.P99);
    }

    @Test
    void nothingAndAFigureTwiceAreNoTarget() {
        assertThatThrownBy(() -> target(Optional.empty())).hasMessageStartingWith("target: nothing (expected: a rate");
        assertThatThrownBy(() -> target(Optional.empty(), of(Figure.P99, "10ms"), of(Figure.P99, "20ms")))
                .isInstanceOf(BadInput.class);
    }

    @Test
    void itIsWrittenAsAStudyHasItAndInWords() {
        Target all =
                target(Optional.of(200.0), of(Figure.SUCCESS, "99.9%"), of(Figure.P999, "0.1s"), of(Figure.P50, "5ms"));
        assertThat(all.byKey()).isEqualTo(Map.of("rate", "200", "p50", "5ms", "p999", "100ms", "success", "99.9%"));
        assertThat(all.byKey().keySet()).containsExactly("rate", "p50", "p999", "success");
        assertThat(all).hasToString("rate 200, p50 5ms, p999 100ms, success 99.9%");
        assertThat(all.title())
                .isEqualTo("200 requests/s, p50 at most 5 ms, p99.9 at most 100 ms, success at least 99.9 %");
    }

    @Test
    void aRateIsAskedOfTheOpenLoadThatOffersIt() {
        Target rate = target(Optional.of(200.0), of(Figure.P99, "20ms"));
        assertThat(rate.isAskedOf(Load.parse("open:200:poisson"))).isTrue();
        assertThat(rate.isAskedOf(Load.parse("open:200:even"))).isTrue();
        assertThat(rate.isAskedOf(Load.parse("open:100:even"))).isFalse();
        assertThat(rate.isAskedOf(Load.parse("closed:16"))).isFalse();
        Target latency = target(Optional.empty(), of(Figure.P99, "20ms"));
        assertThat(latency.isAskedOf(Load.parse("open:100:even"))).isTrue();
        assertThat(latency.isAskedOf(Load.parse("closed:16"))).isTrue();
        assertThat(latency.isAskedOf(Load.parse("staircase:10-200:+10:30s"))).isFalse();
    }

    @Test
    void aStudyHasALoadThatItsTargetIsAskedOfAndCountsRepliesForThatLong() {
        Target rate = target(Optional.of(200.0), of(Figure.P99, "20ms"));
        assertThat(study(Load.parse("open:200:poisson")).target()).isEmpty();
        Study asked = study(Load.parse("open:200:poisson")).with(rate);
        assertThat(asked.target()).contains(rate);
        assertThat(asked.of(List.of("grpc")).target()).contains(rate);
        assertThatThrownBy(() -> study(Load.parse("closed:16")).with(rate))
                .isInstanceOf(BadInput.class)
                .hasMessageStartingWith("target: rate 200, p99 20ms (expected: an open load of that rate");
        assertThatThrownBy(() -> study(Load.parse("burst:5:2")).with(target(Optional.empty(), of(Figure.P99, "20ms"))))
                .isInstanceOf(BadInput.class)
                .hasMessageStartingWith("target: p99 20ms (expected: a closed or an open load");
        assertThatThrownBy(() ->
                        study(Load.parse("closed:16")).with(target(Optional.empty(), of(Figure.P99, "1001ms"))))
                .isInstanceOf(BadInput.class)
                .hasMessage("target: p99 1001ms (expected: at most the time within which a reply counts, 1s)");
        assertThat(study(Load.parse("closed:16"))
                        .with(target(Optional.empty(), of(Figure.P99, "1s")))
                        .target())
                .isPresent();
    }

    @Test
    void onlyALoadThatSaysItsRateHasOne() {
        assertThat(Load.parse("open:300:poisson").hasRate()).isTrue();
        assertThat(Load.parse("ramp:10-1000:60s:even").hasRate()).isTrue();
        assertThat(Load.parse("users:300:60s:10").hasRate()).isTrue();
        assertThat(Load.parse("highest:100-20000:p99:50ms:5s").hasRate()).isFalse();
        assertThat(Load.parse("closed:16").hasRate()).isFalse();
    }
}
