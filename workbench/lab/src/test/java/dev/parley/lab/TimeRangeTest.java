package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TimeRangeTest {
    private static TimeRange range(long leastSeconds, long mostSeconds) {
        return new TimeRange(Duration.ofSeconds(leastSeconds), Duration.ofSeconds(mostSeconds));
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0, up to 1 s",
        "12, 12, 12 s",
        "43, 80, 43 to 80 s",
        "43, 95, 1 to 2 min",
        "20, 95, up to 2 min",
        "100, 130, 2 min",
        "108, 298, 2 to 5 min",
        "900, 5400, 0.3 to 1.5 h",
        "14760, 23040, 4.1 to 6.4 h",
        "7200, 7200, 2.0 h",
        "60, 7200, up to 2.0 h"
    })
    void aPersonIsToldOneUnitAndNoMoreThanIsKnown(long leastSeconds, long mostSeconds, String told) {
        assertThat(range(leastSeconds, mostSeconds)).hasToString(told);
    }

    @Test
    void rangesAreAddedShortenedAndJoined() {
        assertThat(range(1, 2).plus(range(3, 5))).isEqualTo(range(4, 7));
        assertThat(range(1, 2).plus(Duration.ofSeconds(3))).isEqualTo(range(4, 5));
        assertThat(range(1, 2).times(3)).isEqualTo(range(3, 6));
        assertThat(range(1, 5).less(Duration.ofSeconds(2))).isEqualTo(range(0, 3));
        assertThat(range(1, 5).less(Duration.ofSeconds(6))).isEqualTo(TimeRange.NONE);
        assertThat(range(2, 3).around(range(1, 4))).isEqualTo(range(1, 4));
        assertThat(range(1, 2).around(range(3, 4))).isEqualTo(range(1, 4));
        assertThat(range(1, 4).atLeast(range(2, 3))).isEqualTo(range(2, 4));
    }

    @Test
    void theLeastIsNotOverTheMost() {
        assertThatThrownBy(() -> range(2, 1)).isInstanceOf(BadInput.class);
        assertThatThrownBy(() -> range(-1, 1)).isInstanceOf(BadInput.class);
    }
}
