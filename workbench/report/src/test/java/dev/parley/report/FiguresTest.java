package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Estimate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FiguresTest {
    @ParameterizedTest
    @CsvSource({
        "2.61, 2.6",
        "4, 4.0",
        "0.996, 1.0",
        "12.34, 12",
        "99.6, 100",
        "367.77, 370",
        "1234, 1 200",
        "0.38, 0.38",
        "0.0042, 0.0042",
        "0.5, 0.50",
        "NaN, –",
        "0, –"
    })
    void aRatioHasTwoSignificantDigits(double ratio, String text) {
        assertThat(Figures.ratio(ratio)).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({
        "9.999, 10.0",
        "9.994, 9.99",
        "99.96, 100",
        "0.9996, 1.00",
        "1, 1.00",
        "123.4, 123",
        "999.6, 1 000",
        "12345, 12 300",
        "0.01234, 0.0123",
        "0.00004, 0.0000400",
        "-0.00004, -0.0000400",
        "-9.999, -10.0",
        "0, 0",
        "NaN, –"
    })
    void aFigureHasThreeSignificantDigits(double value, String text) {
        assertThat(Figures.brief(value)).isEqualTo(text);
    }

    @Test
    void anIntervalHasAsManyDigits() {
        assertThat(Figures.interval(new Estimate(2.61, 2.4449, 2.8))).isEqualTo("2.4 to 2.8");
    }

    @ParameterizedTest
    @ValueSource(doubles = {0, 5, 0.1, -13.25, 1.0 / 3, 6.205099999999999, 1e-9, 123456789012.5, 4e21})
    void aFullNumberIsReadBackAsItWas(double value) {
        assertThat(Double.parseDouble(Figures.full(value))).isEqualTo(value);
        assertThat(Figures.full(value)).doesNotContain("E");
        assertThat(Figures.full(Double.NaN)).isEmpty();
    }

    @Test
    void thousandsStandApart() {
        assertThat(Figures.whole(100)).isEqualTo("100");
        assertThat(Figures.whole(1_000_000)).isEqualTo("1 000 000");
    }
}
