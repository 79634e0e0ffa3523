package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which time counts as the usual time that calls are given. */
class GivenTimesTest {
    private static final long MILLI = 1_000_000;
    private static final long MIN = 5 * MILLI;
    private static final long MAX = 60_000 * MILLI;

    private final GivenTimes given = new GivenTimes(MIN, MAX);

    private void add(int calls, long nanos) {
        for (int i = 0; i < calls; i++) {
            given.add(nanos);
        }
    }

    private void expectUsual(double nanos) {
        // times are summed up in units of 2^16 ns
        assertThat(given.usualNanos()).isCloseTo(nanos, within(65_536.0));
    }

    @Test
    void whereNothingWasGivenNothingIsUsual() {
        given.take(20);
        assertThat(given.count()).isZero();
        assertThat(given.usualNanos()).isZero();
    }

    @ParameterizedTest
    @ValueSource(longs = {MIN, 7 * MILLI, 100 * MILLI, (1 << 27) - 1, 1 << 27, MAX})
    void theTimeThatAllAreGivenIsUsual(long nanos) {
        add(3, nanos);
        given.take(20);
        assertThat(given.count()).isEqualTo(3);
        expectUsual(nanos);
    }

    @Test
    void theTimeOfATwentiethIsUsualAndThatOfFewerIsNot() {
        add(5, 10 * MILLI);
        add(95, 1000 * MILLI);
        given.take(20);
        expectUsual(10 * MILLI);
        add(4, 10 * MILLI);
        add(96, 1000 * MILLI);
        given.take(20);
        expectUsual(1000 * MILLI);
        assertThat(given.count()).isEqualTo(100);
    }

    @Test
    void shorterTimesCountTowardsTheTwentieth() {
        add(2, 10 * MILLI);
        add(3, 40 * MILLI);
        add(95, 1000 * MILLI);
        given.take(20);
        expectUsual(40 * MILLI);
    }

    @Test
    void timesWithinAFifthAreOneClassAndTheirMeanIsUsual() {
        // the bucket begins at 2^27 ns, a bit below 135 ms, and ends a quarter above that
        add(1, 135 * MILLI);
        add(1, 165 * MILLI);
        add(2, 170 * MILLI);
        given.take(2);
        expectUsual(150 * MILLI);
        add(1, 135 * MILLI);
        add(1, 169 * MILLI);
        given.take(2);
        expectUsual(135 * MILLI);
    }

    @Test
    void ofTwoTimesOneTwiceTheOtherTheShorterIsUsual() {
        add(1, 70 * MILLI);
        add(1, 140 * MILLI);
        given.take(2);
        expectUsual(70 * MILLI);
        add(1, 140 * MILLI);
        add(1, 280 * MILLI);
        given.take(2);
        expectUsual(140 * MILLI);
    }

    @Test
    void theMiddleIsOfTheTimeThatWasGivenAndNotOfTheCalls() {
        add(1000, 10 * MILLI);
        add(11, 1000 * MILLI);
        given.take(20);
        expectUsual(10 * MILLI);
        assertThat(given.middleNanos()).isCloseTo(1000 * MILLI, within(65_536.0));
        add(1000, 10 * MILLI);
        add(9, 1000 * MILLI);
        given.take(20);
        assertThat(given.middleNanos()).isCloseTo(10 * MILLI, within(65_536.0));
    }

    @Test
    void whatWasTakenIsForgotten() {
        add(10, 10 * MILLI);
        given.take(20);
        given.take(20);
        assertThat(given.count()).isZero();
        assertThat(given.usualNanos()).isZero();
    }

    @Test
    void inTheMiddleIsWhatJustHalfOfTheTimeIsGivenAtMost() {
        add(4, 1 << 24);
        add(1, 1 << 26);
        given.take(20);
        assertThat(given.middleNanos()).isEqualTo(1 << 24);
    }
}
