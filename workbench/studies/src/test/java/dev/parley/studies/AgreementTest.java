package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.studies.Agreement.Pair;
import java.util.List;
import org.junit.jupiter.api.Test;

class AgreementTest {
    @Test
    void theSameOrderIsOneAndTheOppositeMinusOne() {
        assertThat(Agreement.of(List.of(List.of(new Pair(1, 10), new Pair(2, 20), new Pair(3, 30)))))
                .isEqualTo(new Agreement(1, 3));
        assertThat(Agreement.of(List.of(List.of(new Pair(1, 30), new Pair(2, 20), new Pair(3, 10)))))
                .isEqualTo(new Agreement(-1, 3));
    }

    /** Orders 1 2 3 4 and 1 2 4 3: five pairs agree, one does not. */
    @Test
    void oneExchangeOfSixIsTwoThirds() {
        assertThat(Agreement.of(List.of(List.of(new Pair(1, 1), new Pair(2, 2), new Pair(3, 4), new Pair(4, 3))))
                        .tau())
                .isCloseTo(4 / 6.0, within(1e-12));
    }

    @Test
    void tiesCountForNeither() {
        assertThat(Agreement.of(List.of(List.of(new Pair(1, 1), new Pair(1, 2), new Pair(2, 3))))
                        .tau())
                .isCloseTo(2 / Math.sqrt(6), within(1e-12));
        assertThat(Agreement.of(List.of(List.of(new Pair(1, 1), new Pair(1, 2))))
                        .tau())
                .isNaN();
    }

    @Test
    void groupsAreNotMixed() {
        assertThat(Agreement.of(
                        List.of(List.of(new Pair(1, 5), new Pair(2, 6)), List.of(new Pair(8, 1), new Pair(9, 2)))))
                .isEqualTo(new Agreement(1, 2));
    }

    @Test
    void oursMayBeTiedToo() {
        assertThat(Agreement.of(List.of(List.of(new Pair(1, 1), new Pair(2, 1), new Pair(3, 2))))
                        .tau())
                .isCloseTo(2 / Math.sqrt(6), within(1e-12));
        assertThat(Agreement.of(List.of(List.of(new Pair(1, 5), new Pair(2, 5))))
                        .tau())
                .isNaN();
        assertThat(Agreement.of(List.of())).isEqualTo(new Agreement(Double.NaN, 0));
    }
}
