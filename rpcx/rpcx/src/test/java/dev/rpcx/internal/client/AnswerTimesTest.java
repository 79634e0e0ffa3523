package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests how it is decided whether a call that got no answer had enough time for one. */
class AnswerTimesTest {
    private static final long MILLI = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final AnswerTimes times = new AnswerTimes(SECOND);

    @Test
    void whileNothingWasAnsweredOnlyWhatThisSideGivesByItselfIsEnough() {
        assertThat(times.isEnough(SECOND)).isTrue();
        assertThat(times.isEnough(900 * MILLI)).isTrue();
        assertThat(times.isEnough(899 * MILLI)).isFalse();
    }

    @Test
    void twiceWhatTheLongestAnswerTookIsEnough() {
        times.answered(20 * MILLI, 0);
        times.answered(30 * MILLI, 1);
        times.answered(10 * MILLI, 2);
        times.answered(10 * MILLI, 3);
        assertThat(times.isEnough(60 * MILLI)).isTrue();
        assertThat(times.isEnough(60 * MILLI - 1)).isFalse();
    }

    @Test
    void theLongestIsForgottenWhenShorterOnesHaveComeForLong() {
        times.answered(100 * MILLI, 0);
        times.answered(10 * MILLI, 10 * SECOND);
        assertThat(times.isEnough(199 * MILLI)).isFalse();
        times.answered(10 * MILLI, 20 * SECOND);
        assertThat(times.isEnough(20 * MILLI)).isTrue();
    }

    @Test
    void whileNoAnswerComesTheLongestIsKept() {
        times.answered(100 * MILLI, 0);
        assertThat(times.isEnough(200 * MILLI)).isTrue();
        assertThat(times.isEnough(199 * MILLI)).isFalse();
    }

    @Test
    void theFirstAnswerAndOneInSixteenAreLookedAt() {
        assertThat(times.isSampled(3)).isTrue();
        times.answered(0, 0);
        assertThat(times.isSampled(3)).isFalse();
        assertThat(times.isSampled(32)).isTrue();
        assertThat(times.isEnough(2)).isTrue();
    }
}
