package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Estimate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

    @Test
    void anIntervalHasAsManyDigits() {
        assertThat(Figures.interval(new Estimate(2.61, 2.4449, 2.8))).isEqualTo("2.4 to 2.8");
    }

    @Test
    void thousandsStandApart() {
        assertThat(Figures.whole(100)).isEqualTo("100");
        assertThat(Figures.whole(1_000_000)).isEqualTo("1 000 000");
    }
}
