package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.client.Health.Outcome;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests when an instance is ejected because of how its calls have ended, and for how long. */
class HealthTest {
    @Test
    void failuresOfLongAgoAreForgotten() {
        MockTicker clock = Ticker.newMockTicker();
        Health health = new Health(clock);
        for (int i = 0; i < 20; i++) {
            assertThat(health.ended(Outcome.FAILED)).isFalse();
            clock.advance(1, TimeUnit.MINUTES);
        }
        for (int i = 0; i < 4; i++) {
            assertThat(health.ended(Outcome.FAILED)).isFalse();
            health.ended(Outcome.UNKNOWN);
        }
        assertThat(health.ended(Outcome.FAILED)).isTrue();
    }

    @Test
    void anInstanceThatWasWellForAWhileIsEjectedAsBrieflyAsTheFirstTime() {
        MockTicker clock = Ticker.newMockTicker();
        Health health = new Health(clock);
        assertThat(secondsOut(health, clock)).isEqualTo(2);
        assertThat(secondsOut(health, clock)).isEqualTo(4);
        assertThat(secondsOut(health, clock)).isEqualTo(6);
        clock.advance(1, TimeUnit.MINUTES);
        assertThat(secondsOut(health, clock)).isEqualTo(2);
    }

    @Test
    void anInstanceThatFailsMostOfItsCallsIsEjectedThoughNeverFiveInARow() {
        Health health = new Health(Ticker.newMockTicker());
        int calls = 0;
        boolean isTooMuch = false;
        while (!isTooMuch && calls < 1000) {
            isTooMuch = health.ended(++calls % 3 == 0 ? Outcome.ANSWERED : Outcome.FAILED);
        }
        // the first one opens the window
        assertThat(calls).isEqualTo(1 + 21);
    }

    @Test
    void anInstanceThatFailsHalfOfItsCallsStaysAndOldFailuresDoNotCount() {
        MockTicker clock = Ticker.newMockTicker();
        Health half = new Health(clock);
        for (int i = 0; i < 1000; i++) {
            assertThat(half.ended(Outcome.FAILED)).isFalse();
            half.ended(Outcome.ANSWERED);
        }
        Health slow = new Health(clock);
        for (int i = 1; i < 1000; i++) {
            assertThat(slow.ended(i % 3 == 0 ? Outcome.ANSWERED : Outcome.FAILED))
                    .isFalse();
            clock.advance(600, TimeUnit.MILLISECONDS);
        }
    }

    private static int secondsOut(Health health, MockTicker clock) {
        health.eject();
        return secondsLeft(health, clock);
    }

    @Test
    void whatThisSideFindsTooLargeSaysNothingOfTheServer() {
        for (RPCXException.Code code : List.of(RPCXException.Code.TOO_LARGE, RPCXException.Code.INVALID)) {
            assertThat(Outcome.of(new RPCXException(code, "here", RPCXException.Executed.MAYBE, null)))
                    .isEqualTo(Outcome.UNKNOWN);
            assertThat(Outcome.of(new RPCXException(code, "there"))).isEqualTo(Outcome.ANSWERED);
            assertThat(Outcome.of(RPCXException.refused(code, "there"))).isEqualTo(Outcome.ANSWERED);
        }
    }

    private static RPCXException error(RPCXException.Code code, RPCXException.Executed executed) {
        return new RPCXException(code, "by the test", executed, null);
    }

    @Test
    void whatTheEndOfACallSaysOfItsInstance() {
        assertThat(Outcome.of(null)).isEqualTo(Outcome.ANSWERED);
        for (RPCXException.Code code : RPCXException.Code.values()) {
            for (RPCXException.Executed executed : RPCXException.Executed.values()) {
                boolean hasRun = executed == RPCXException.Executed.EXECUTED;
                boolean isWord = executed == RPCXException.Executed.NOT_EXECUTED;
                Outcome expected = switch (code) {
                    case DEADLINE_EXCEEDED -> Outcome.FAILED;
                    case OVERLOADED, PROTOCOL, UNAVAILABLE -> hasRun ? Outcome.FAULT : Outcome.FAILED;
                    case CANCELLED -> Outcome.UNKNOWN;
                    case INVALID, TOO_LARGE -> hasRun || isWord ? Outcome.ANSWERED : Outcome.UNKNOWN;
                    case NOT_FOUND, UNAUTHENTICATED -> isWord ? Outcome.REFUSED : Outcome.ANSWERED;
                    case HANDLER_FAILED -> Outcome.FAULT;
                };
                assertThat(Outcome.of(error(code, executed)))
                        .as("%s, %s", code, executed)
                        .isEqualTo(expected);
            }
        }
    }

    @Test
    void aHandlersWordOfAnotherCallsTimeIsNoWantOfAnAnswer() {
        AnswerTimes times = new AnswerTimes(1_000);
        RPCXException executed = error(RPCXException.Code.DEADLINE_EXCEEDED, RPCXException.Executed.EXECUTED);
        RPCXException maybe = error(RPCXException.Code.DEADLINE_EXCEEDED, RPCXException.Executed.MAYBE);
        assertThat(Outcome.of(executed, times, 1_000, 500)).isEqualTo(Outcome.FAULT);
        assertThat(Outcome.of(executed, times, 1_000, 10)).isEqualTo(Outcome.FAILED);
        assertThat(Outcome.of(executed, times, 500, 0)).isEqualTo(Outcome.UNKNOWN);
        assertThat(Outcome.of(maybe, times, 1_000, 500)).isEqualTo(Outcome.FAILED);
    }

    @Test
    void faultsAreAnswersAndMakeNoRowOfFailures() {
        Health health = new Health(Ticker.newMockTicker());
        for (int i = 0; i < 1000; i++) {
            assertThat(health.ended(Outcome.FAULT)).isFalse();
            assertThat(health.ended(i % 2 == 0 ? Outcome.FAILED : Outcome.FAULT))
                    .isFalse();
        }
    }

    @Test
    void aCallThatHasNotBeenSentSaysNothingOfItsInstance() {
        for (RPCXException unsent : List.of(
                LocalFailure.notSent(RPCXException.Code.UNAVAILABLE, "by the test"),
                LocalFailure.full("by the test"),
                LocalFailure.unfit(RPCXException.Code.UNAVAILABLE, "by the test"))) {
            assertThat(Outcome.of(unsent)).isEqualTo(Outcome.UNKNOWN);
        }
    }

    /** A callback of this process may hold up the event loop, and the instance may have answered long since. */
    @Test
    void wantOfAWordFromTheEventLoopSaysNothingOfTheInstance() {
        RPCXException unheard = ClientCallErrors.unheard();
        assertThat(unheard.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(unheard.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(Outcome.of(unheard)).isEqualTo(Outcome.UNKNOWN);
        assertThat(Outcome.of(unheard, new AnswerTimes(1_000), 1_000, -5_000)).isEqualTo(Outcome.UNKNOWN);
    }

    @Test
    void wantOfMemoryHereSaysNothingOfTheInstance() {
        assertThat(Outcome.of(LocalFailure.noRoom("by the test"))).isEqualTo(Outcome.UNKNOWN);
    }

    @Test
    void whatAnInstanceRefusesSaysNothingUntilAnotherTakesIt() {
        for (RPCXException.Code code : List.of(RPCXException.Code.NOT_FOUND, RPCXException.Code.UNAUTHENTICATED)) {
            assertThat(Outcome.of(error(code, RPCXException.Executed.NOT_EXECUTED)))
                    .isEqualTo(Outcome.REFUSED);
        }
        Health health = new Health(Ticker.newMockTicker());
        assertThat(fail(health, 4)).isFalse();
        assertThat(health.ended(Outcome.REFUSED)).isFalse();
        assertThat(fail(health, 1)).isTrue();
    }

    private static boolean fail(Health health, int calls) {
        boolean isTooMuch = false;
        for (int i = 0; i < calls; i++) {
            isTooMuch = health.ended(Outcome.FAILED);
        }
        return isTooMuch;
    }

    @Test
    void fiveFailuresInARowAreTooManyAndAnAnswerBeginsAnew() {
        Health health = new Health(Ticker.newMockTicker());
        assertThat(fail(health, 4)).isFalse();
        assertThat(health.ended(Outcome.ANSWERED)).isFalse();
        assertThat(fail(health, 4)).isFalse();
        assertThat(health.ended(Outcome.UNKNOWN)).isFalse();
        assertThat(fail(health, 1)).isTrue();
        assertThat(fail(health, 1)).as("nobody has left it out").isTrue();
    }

    @Test
    void failuresThirtySecondsApartAreARowAndALittleFurtherTheyAreNone() {
        for (long more : new long[] {0, 1}) {
            MockTicker clock = Ticker.newMockTicker();
            clock.advance(1, TimeUnit.HOURS);
            Health health = new Health(clock);
            fail(health, 4);
            clock.advance(TimeUnit.SECONDS.toNanos(30) + more, TimeUnit.NANOSECONDS);
            assertThat(fail(health, 1)).isEqualTo(more == 0);
        }
    }

    /** Returns a health for which one more failure is the last of twenty calls, and the failure that is too many. */
    private static Health almost(MockTicker clock) {
        Health health = new Health(clock);
        assertThat(fail(health, 1)).as("this opens the window").isFalse();
        for (int i = 0; i < 19; i++) {
            assertThat(health.ended(i % 3 == 2 ? Outcome.ANSWERED : Outcome.FAILED))
                    .isFalse();
        }
        return health;
    }

    @Test
    void aShareOfTwentyCallsIsLookedAtAndOfNoFewer() {
        assertThat(almost(Ticker.newMockTicker()).ended(Outcome.FAILED)).isTrue();
    }

    @Test
    void aWindowEndsAfterTenSeconds() {
        for (long early : new long[] {0, 1}) {
            MockTicker clock = Ticker.newMockTicker();
            clock.advance(1, TimeUnit.HOURS);
            Health health = almost(clock);
            clock.advance(TimeUnit.SECONDS.toNanos(10) - early, TimeUnit.NANOSECONDS);
            assertThat(health.ended(Outcome.FAILED)).isEqualTo(early == 1);
        }
    }

    @Test
    void answersOfAWindowThatIsOverDoNotCountInTheNext() {
        MockTicker clock = Ticker.newMockTicker();
        clock.advance(1, TimeUnit.HOURS);
        Health health = new Health(clock);
        fail(health, 1);
        clock.advance(10, TimeUnit.SECONDS);
        for (int i = 0; i < 100; i++) {
            health.ended(Outcome.ANSWERED);
        }
        for (int i = 0; i < 20; i++) {
            assertThat(health.ended(i % 3 == 2 ? Outcome.ANSWERED : Outcome.FAILED))
                    .isFalse();
        }
        assertThat(health.ended(Outcome.FAILED)).isTrue();
    }

    @Test
    void nothingIsTooMuchOfAnInstanceThatIsEjectedAndItComesBackWithoutAPast() {
        MockTicker clock = Ticker.newMockTicker();
        clock.advance(1, TimeUnit.HOURS);
        Health health = new Health(clock);
        assertThat(health.isEjected()).isFalse();
        assertThat(fail(health, 5)).isTrue();
        health.eject();
        assertThat(health.isEjected()).isTrue();
        assertThat(fail(health, 4)).isFalse();
        health.eject();
        assertThat(fail(health, 20)).isFalse();
        health.eject();
        clock.advance(1, TimeUnit.MINUTES);
        assertThat(health.isEjected()).isFalse();
        assertThat(health.ended(Outcome.ANSWERED)).isFalse();
        assertThat(fail(health, 4)).isFalse();
    }

    @Test
    void failuresFromBeforeItWasEjectedAreNotInTheRowBehindIt() {
        MockTicker clock = Ticker.newMockTicker();
        clock.advance(1, TimeUnit.HOURS);
        Health health = new Health(clock);
        assertThat(fail(health, 5)).isTrue();
        health.eject();
        long before = clock.nanoTime();
        clock.advance(2, TimeUnit.SECONDS);
        assertThat(health.isEjected()).isFalse();
        for (int i = 0; i < 4; i++) {
            assertThat(health.ended(Outcome.FAILED, before)).isFalse();
        }
        assertThat(health.ended(Outcome.FAILED, before)).isTrue();
    }

    /** Returns a health that was ejected an hour after the beginning, and that has a trial from now on. */
    private static Health onTrial(MockTicker clock) {
        clock.advance(1, TimeUnit.HOURS);
        Health health = new Health(clock);
        health.eject();
        clock.advance(TimeUnit.SECONDS.toNanos(2) - 1, TimeUnit.NANOSECONDS);
        assertThat(health.isFree()).isFalse();
        assertThat(health.choose()).isFalse();
        clock.advance(1, TimeUnit.NANOSECONDS);
        assertThat(health.isFree()).isTrue();
        return health;
    }

    @Test
    void anInstanceThatComesBackIsChosenForOneCallAtATimeUntilOneIsAnswered() {
        MockTicker clock = Ticker.newMockTicker();
        Health health = onTrial(clock);
        for (Outcome nothing : List.of(Outcome.UNKNOWN, Outcome.REFUSED)) {
            assertThat(health.choose()).isTrue();
            health.begins(clock.nanoTime() + TimeUnit.SECONDS.toNanos(10));
            clock.advance(9, TimeUnit.SECONDS);
            assertThat(health.isFree()).isFalse();
            assertThat(health.choose()).isFalse();
            assertThat(health.isEjected()).isFalse();
            assertThat(health.ended(nothing)).isFalse();
            assertThat(health.isFree()).isTrue();
        }
        assertThat(health.choose()).isTrue();
        assertThat(health.ended(Outcome.FAULT)).isFalse();
        assertThat(health.choose()).isTrue();
        assertThat(health.choose()).isTrue();
        assertThat(fail(health, 4)).isFalse();
        assertThat(health.choose()).isTrue();
    }

    @Test
    void theFirstTrialThatFailsIsOneTooMany() {
        MockTicker clock = Ticker.newMockTicker();
        Health health = onTrial(clock);
        assertThat(health.choose()).isTrue();
        assertThat(health.ended(Outcome.FAILED)).isTrue();
        // the instance stays on trial where half of all instances are ejected already
        assertThat(health.choose()).isTrue();
        assertThat(health.choose()).isFalse();
        assertThat(health.ended(Outcome.FAILED)).isTrue();
        assertThat(secondsOut(health, clock)).isEqualTo(4);
    }

    @Test
    void whatWasSentBeforeItsInstanceWasEjectedIsNoTrialUnlessItIsAnswered() {
        MockTicker clock = Ticker.newMockTicker();
        long before = TimeUnit.HOURS.toNanos(1) + clock.nanoTime();
        Health health = onTrial(clock);
        assertThat(health.choose()).isTrue();
        assertThat(health.ended(Outcome.FAILED, before)).isFalse();
        assertThat(health.ended(Outcome.UNKNOWN, before)).isFalse();
        assertThat(health.choose()).isFalse();
        health.ended(Outcome.ANSWERED, before);
        assertThat(health.choose()).isTrue();
        assertThat(health.choose()).isTrue();
    }

    @Test
    void aTrialThatIsNotSentOrDoesNotEndIsFollowedByAnother() {
        MockTicker clock = Ticker.newMockTicker();
        Health health = onTrial(clock);
        assertThat(health.choose()).isTrue();
        clock.advance(TimeUnit.SECONDS.toNanos(1) - 1, TimeUnit.NANOSECONDS);
        assertThat(health.choose()).isFalse();
        clock.advance(1, TimeUnit.NANOSECONDS);
        assertThat(health.choose()).isTrue();
        // the trial is a call that lasts long, such as a stream
        health.begins(clock.nanoTime() + TimeUnit.DAYS.toNanos(365));
        clock.advance(TimeUnit.SECONDS.toNanos(30) - 1, TimeUnit.NANOSECONDS);
        assertThat(health.choose()).isFalse();
        clock.advance(1, TimeUnit.NANOSECONDS);
        assertThat(health.choose()).isTrue();
    }

    @Test
    void aCallOfTheTimeInWhichItIsEjectedTakesNoTrial() {
        MockTicker clock = Ticker.newMockTicker();
        clock.advance(1, TimeUnit.HOURS);
        Health health = new Health(clock);
        health.eject();
        health.begins(clock.nanoTime() + TimeUnit.SECONDS.toNanos(10));
        clock.advance(2, TimeUnit.SECONDS);
        assertThat(health.choose()).isTrue();
    }

    @Test
    void anInstanceIsEjectedForThirtySecondsAtMost() {
        MockTicker clock = Ticker.newMockTicker();
        clock.advance(1, TimeUnit.HOURS);
        Health health = new Health(clock);
        for (int times = 1; times <= 20; times++) {
            assertThat(secondsOut(health, clock)).isEqualTo(Math.min(2 * times, 30));
        }
    }

    @Test
    void eachTenSecondsOutsideForgiveOneTime() {
        MockTicker clock = Ticker.newMockTicker();
        clock.advance(1, TimeUnit.HOURS);
        Health health = new Health(clock);
        for (int times = 1; times <= 5; times++) {
            secondsOut(health, clock);
        }
        clock.advance(TimeUnit.SECONDS.toNanos(10) - 1, TimeUnit.NANOSECONDS);
        health.eject();
        assertThat(secondsLeft(health, clock)).isEqualTo(12);
        clock.advance(30, TimeUnit.SECONDS);
        health.eject();
        assertThat(secondsLeft(health, clock)).isEqualTo(2 * (6 - 3 + 1));
    }

    @Test
    void whoIsEjectedWhileItIsOutIsForgivenNothing() {
        MockTicker clock = Ticker.newMockTicker();
        clock.advance(1, TimeUnit.HOURS);
        Health health = new Health(clock);
        for (int times = 1; times <= 15; times++) {
            health.eject();
        }
        assertThat(secondsLeft(health, clock)).isEqualTo(30);
    }

    private static int secondsLeft(Health health, MockTicker clock) {
        int seconds = 0;
        while (health.isEjected()) {
            clock.advance(1, TimeUnit.SECONDS);
            seconds++;
        }
        return seconds;
    }

    @Test
    void theOneThatComesBackFirstIsFirst() {
        MockTicker clock = Ticker.newMockTicker();
        clock.advance(1, TimeUnit.HOURS);
        Health first = new Health(clock);
        Health second = new Health(clock);
        first.eject();
        clock.advance(1, TimeUnit.SECONDS);
        second.eject();
        assertThat(first.comesBackBefore(second)).isNegative();
        assertThat(second.comesBackBefore(first)).isPositive();
        assertThat(first.comesBackBefore(first)).isZero();
    }
}
