package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests an admission limit that has been halved, against the results of its arithmetic. Before the cut, 1,000 calls end
 * in a second, and 400 of them in time. After the cut, fewer calls end, for different reasons. The last tests are about
 * how connections share a limit.
 */
class AdmissionHalvedTest {
    private static final int MAX = 1000;
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long STEP = 100 * MS;

    /** All times are multiples of this unit, so that none is rounded. */
    private static final long UNIT = 1 << 16;

    /** A quick call takes 21 ms. */
    private static final long QUICK = 320 * UNIT;

    /** A slow call takes 84 ms. */
    private static final long SLOW = 1280 * UNIT;

    /** Some calls are given 42 ms, twice what calls take that do not wait. */
    private static final long SHORT = 640 * UNIT;

    /** Most calls are given 168 ms. */
    private static final long GIVEN = 2560 * UNIT;

    private final AdmissionLimit.Group limit = new AdmissionLimit(MAX, new AtomicInteger(), 0).group(0);
    private long now;

    /** One call runs throughout, and calls are known to take 21 ms. */
    @BeforeEach
    void learnQuick() {
        enter(1 + 100);
        for (int i = 1; i <= 100; i++) {
            now = i < 100 ? STEP - 1 : STEP;
            limit.release(now - QUICK, now - QUICK + GIVEN, now, true);
        }
        enter(600);
    }

    private void enter(int calls) {
        for (int i = 0; i < calls; i++) {
            assertThat(limit.admit()).isTrue();
        }
    }

    private void done() {
        limit.release(now - SLOW, now - SLOW + GIVEN, now, true);
    }

    private void late(long given) {
        limit.release(now - given, now, now, false);
    }

    /** Lets this time pass, and then ends so many calls at once, the late ones first. */
    private void step(long time, int done, int late, long lateGiven) {
        now += time;
        // only the last of them makes a step, since no step is due before
        long at = now;
        now = at - time + Math.min(time, STEP) - 1;
        for (int i = done == 0 ? 1 : 0; i < late; i++) {
            late(lateGiven);
        }
        for (int i = 1; i < done; i++) {
            done();
        }
        now = at;
        if (done == 0) {
            late(lateGiven);
        } else {
            done();
        }
    }

    /** Of 601 calls that run, 60 end too late and 40 in time. The limit becomes half of the 501 that are left. */
    private void cut() {
        step(STEP, 40, 60, SHORT);
        assertThat(limit.limit()).isEqualTo(250);
    }

    @ParameterizedTest
    @CsvSource({
        // the columns are: calls in time and late calls in 300 ms (before the cut 120 and 180), the limit
        "60, 60, 501",
        // the limit comes back where fewer than 96 (four fifths) end in time, and fewer than 240 in all
        "95, 96, 501",
        "97, 98, 125",
        "60, 179, 501",
        "60, 181, 125",
        // the limit comes back where more than 36 (three tenths) end in time, or fewer than 90 in all
        "37, 60, 501",
        "35, 60, 125",
        "35, 54, 501",
        "35, 56, 125",
    })
    void aLimitComesBackWhereFewerEndAndFewerBringAResultInAboutTheSameMeasure(int done, int late, int expected) {
        cut();
        step(3 * STEP, done, late, SHORT);
        assertThat(limit.limit()).isEqualTo(expected);
    }

    @ParameterizedTest
    @CsvSource({"60, 60, 501", "60, 61, 125"})
    void itDoesNotWhereMostOfTheTimeThatIsGivenIsThatOfLateCalls(int done, int late, int expected) {
        cut();
        step(3 * STEP, done, late, GIVEN);
        assertThat(limit.limit()).isEqualTo(expected);
    }

    @Test
    void itIsLookedAtWhenCallsHaveEndedThatBeganAfterTheCut() {
        cut();
        // calls took 59 ms in the mean: 60 of them took 42 ms and 40 of them 84 ms
        step(STEP + 58 * MS, 60, 60, SHORT);
        assertThat(limit.limit()).isEqualTo(250);
        step(STEP, 30, 30, SHORT);
        assertThat(limit.limit()).isEqualTo(501);
    }

    @ParameterizedTest
    @CsvSource({
        // the columns are: how many of the 120 calls that were expected end in time, the limit
        "0, 1000",
        "35, 932",
        "36, 250",
    })
    void whereHardlyAnyEndsThoseThatAreRefusedBringTheLimitBack(int ends, int expected) {
        cut();
        now += STEP - 1;
        for (int i = 0; i < ends; i++) {
            done();
        }
        now += 2 * STEP;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(250);
        now++;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(expected);
    }

    @Test
    void itIsKnownThatFewEndOnlyWhereManyWereToBeExpected() {
        // 5 calls in 100 ms are 50 a second that end in time
        step(STEP, 5, 95, SHORT);
        assertThat(limit.limit()).isEqualTo(250);
        now += 319 * MS;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(250);
        now += MS;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(1000);
    }

    @Test
    void aLimitThatHasNotBeenHalvedIsNotBroughtBackByThoseThatAreRefused() {
        now += 10 * STEP;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(MAX);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aLimitThatHasComeBackIsNotHalvedForASecond(boolean isByRefusals) {
        cut();
        if (isByRefusals) {
            now += 3 * STEP;
            limit.refused(now);
        } else {
            step(3 * STEP, 60, 60, SHORT);
        }
        int back = limit.limit();
        assertThat(back).isGreaterThan(500);
        step(10 * STEP, 20, 60, SHORT);
        assertThat(limit.limit()).isEqualTo(back);
        // the second and the 52 ms that calls take are over by now
        step(STEP, 20, 60, SHORT);
        assertThat(limit.limit()).isLessThan(200);
    }

    /** Calls that end too late have brought the limit down, and then calls that do not end hold all of it. */
    @Test
    void aLimitThatIsHeldByCallsThatDoNotEndRisesAgainAndAgain() {
        step(STEP, 0, 99, SHORT);
        step(STEP, 0, 99, SHORT);
        step(STEP, 0, 99, SHORT);
        step(STEP, 0, 99, SHORT);
        step(STEP, 0, 99, SHORT);
        step(STEP, 0, 99, SHORT);
        int low = limit.limit();
        assertThat(low).isLessThan(100);
        while (limit.running() > 1) {
            limit.release();
        }
        for (int round = 0; round < 3; round++) {
            while (limit.admit()) {
                // each admitted call holds a place
            }
            int held = limit.limit();
            assertThat(limit.running()).isEqualTo(held);
            // the second counts from the first refused call, however much time has passed before
            now += TimeUnit.SECONDS.toNanos(10);
            limit.refused(now);
            assertThat(limit.limit()).isEqualTo(held);
            now += TimeUnit.SECONDS.toNanos(1) - 1;
            limit.refused(now);
            assertThat(limit.limit()).isEqualTo(held);
            now++;
            limit.refused(now);
            assertThat(limit.limit()).isEqualTo(Math.min(MAX, 2 * held));
        }
    }

    @Test
    void ofALongPollNothingIsLearnt() {
        AdmissionLimit.Group fixed = new AdmissionLimit(MAX, new AtomicInteger(), 0, false, () -> 1).group(0);
        long second = TimeUnit.SECONDS.toNanos(1);
        for (int i = 1; i <= 100; i++) {
            for (int k = 0; k < 40; k++) {
                assertThat(fixed.admit()).isTrue();
            }
            for (int k = 0; k < 20; k++) {
                fixed.release((i - 1) * second, i * second, i * second, false);
                fixed.leaveUnbegun((i - 1) * second, i * second, i * second);
            }
            assertThat(fixed.running()).isZero();
        }
        assertThat(fixed.limit()).isEqualTo(MAX);
    }

    /** 60 of 120 calls end in time where 120 of 300 did before the cut, and the limit is what it was. */
    private void comeBack() {
        cut();
        step(3 * STEP, 60, 60, SHORT);
        assertThat(limit.limit()).isEqualTo(501);
    }

    private void refuse() {
        while (limit.admit()) {
            // each admitted call holds a place
        }
    }

    @Test
    void itIsLookedAtInTheVeryMomentInWhichCallsMayHaveEndedThatBeganAfterTheCut() {
        cut();
        // calls took 896 units in the mean: 60 of them took 640 and 40 of them 1280
        step(STEP + 896 * UNIT, 40, 40, SHORT);
        assertThat(limit.limit()).isEqualTo(501);
    }

    @Test
    void aLimitThatHasComeBackIsNotBroughtHigherByThoseThatAreRefused() {
        comeBack();
        refuse();
        now += 3 * STEP;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(501);
    }

    /** 471 calls run, and 30 have ended in 300 ms: each needs 4.71 s. Four times that is more than ten seconds. */
    @Test
    void whatCallsNeedOfWhichHardlyAnyEndsIsHowLongTheyMayHoldTheLimit() {
        cut();
        now += STEP - 1;
        for (int i = 0; i < 30; i++) {
            done();
        }
        now += 2 * STEP + 1;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(942);
        expectHeldFor(10_000 * MS);
    }

    /** 381 calls run, and 120 have ended in 300 ms: each needs 952.5 ms. */
    @Test
    void whatCallsNeedOfWhichFewerEndIsHowLongTheyMayHoldTheLimit() {
        comeBack();
        expectHeldFor(3_810 * MS);
    }

    /** Expects that calls may hold the limit for this time: four times what they need, or ten seconds. */
    private void expectHeldFor(long time) {
        int before = limit.limit();
        refuse();
        now += 10 * STEP;
        limit.refused(now);
        now += time - MS;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(before);
        now += 2 * MS;
        limit.refused(now);
        assertThat(limit.limit()).isEqualTo(MAX);
    }

    /** What the rate was before an earlier cut says nothing of calls that do not begin. */
    @Test
    void aLimitThatIsHalvedSinceCallsDoNotBeginDoesNotComeBackWhereFewerEnd() {
        comeBack();
        now += 12 * STEP;
        for (int i = 0; i < 8; i++) {
            limit.leaveUnbegun(now - SHORT, now, now);
        }
        // the limit becomes half of the 373 calls that run
        assertThat(limit.limit()).isEqualTo(186);
        // 25 calls in 100 ms are 26.2 in 105 ms; 0.975 of these are 25.6, and the limit goes half of the way down
        step(STEP, 20, 5, SHORT);
        assertThat(limit.limit()).isEqualTo(105);
    }

    /** One call is refused. */
    private void refuseOne() {
        int entered = 0;
        while (limit.admit()) {
            entered++;
        }
        leave(limit, entered);
    }

    /**
     * The usual time is the middle of the times that calls are given, 168 ms, as long as calls are known to need more
     * than a quarter of it. After that it is 84 ms, four times what the quickest calls take.
     */
    @ParameterizedTest
    @CsvSource({"-1, 216", "0, 196"})
    void whatCallsHaveNeededIsKnownForTwentySeconds(long early, int expected) {
        comeBack();
        long forgotten = now + 200 * STEP;
        refuseOne();
        // 84 ms and a quarter more are 105 ms. 66 calls in 200 ms are 34.6 in that time, and 0.975 of these are 33.7.
        // The limit goes half of the way down from 501.
        step(2 * STEP, 60, 6, SHORT);
        assertThat(limit.limit()).isEqualTo(267);
        // the usual time rises, and what handlers need is a smaller part of it
        step(2 * STEP, 60, 6, SHORT);
        step(2 * STEP, 60, 6, SHORT);
        step(forgotten + early - STEP - now, 60, 6, SHORT);
        assertThat(limit.limit()).isEqualTo(354);
        refuseOne();
        // 60 calls in 100 ms are 100.7 in 168 ms and 50.3 in 84 ms. Of these 0.778 may run, and the limit goes half of
        // the way down.
        step(STEP, 40, 20, SHORT);
        assertThat(limit.limit()).isEqualTo(expected);
    }

    /** A clock may begin anywhere, below 0 too, and go over its end. */
    @ParameterizedTest
    @ValueSource(longs = {0, -1_000_000_000_000_000L, -150_000_000, Long.MAX_VALUE - 150_000_000})
    void itDoesNotMatterWhereTheClockBegins(long begin) {
        AdmissionLimit.Group some = new AdmissionLimit(100, new AtomicInteger(), begin).group(0);
        now = begin;
        assertThat(some.admit()).isTrue();
        end(some, 100, QUICK);
        assertThat(some.limit()).isEqualTo(100);
        for (int i = 0; i < 40; i++) {
            assertThat(some.admit()).isTrue();
        }
        end(some, 100, GIVEN);
        assertThat(some.limit()).isEqualTo(20);
        leave(some, 41);
        // this call is alone, and ends in good time
        end(some, 1, QUICK);
        assertThat(some.limit()).isEqualTo(40);
        while (some.admit()) {
            // each admitted call holds a place
        }
        now += 10 * STEP;
        some.refused(now);
        assertThat(some.limit()).isEqualTo(40);
        now += 10 * STEP;
        some.refused(now);
        assertThat(some.limit()).isEqualTo(80);
    }

    /** Has so many calls begin and end, all at once, a tenth of a second later. */
    private void end(AdmissionLimit.Group limit, int calls, long took) {
        now += STEP - 1;
        for (int i = 0; i < calls; i++) {
            now += i == calls - 1 ? 1 : 0;
            assertThat(limit.admit()).isTrue();
            limit.release(now - took, now - took + GIVEN, now, true);
        }
    }

    // ---- connections

    private static AdmissionLimit.Group ofTen() {
        return new AdmissionLimit(10, new AtomicInteger(), 0).group(0);
    }

    /** Admits calls of a connection that runs some already until one is refused, and returns how many it runs then. */
    private static int enterAll(AdmissionLimit.Group limit, int own) {
        int running = own;
        while (limit.admit(0, running)) {
            running++;
        }
        return running;
    }

    @Test
    void aConnectionThatIsAloneHasAllOfALimitAgainAndAgain() {
        AdmissionLimit.Group ten = ofTen();
        assertThat(enterAll(ten, 0)).isEqualTo(10);
        leave(ten, 5);
        assertThat(enterAll(ten, 5)).isEqualTo(10);
    }

    @Test
    void onceAnotherIsRefusedItHasItsShareForTenSteps() {
        AdmissionLimit.Group ten = ofTen();
        assertThat(enterAll(ten, 0)).isEqualTo(10);
        assertThat(ten.admit(0, 0)).isFalse();
        leave(ten, 10);
        for (int steps = 0; steps < 10; steps++) {
            assertThat(enterAll(ten, 0)).as("after %s steps", steps).isEqualTo(6);
            leave(ten, 6);
            quickStep(ten, steps + 1);
        }
        assertThat(enterAll(ten, 0)).isEqualTo(10);
    }

    @Test
    void thatTimeBeginsAgainWithEachCallOfAnother() {
        AdmissionLimit.Group ten = ofTen();
        assertThat(enterAll(ten, 0)).isEqualTo(10);
        assertThat(ten.admit(0, 0)).isFalse();
        leave(ten, 10);
        for (int steps = 0; steps < 9; steps++) {
            quickStep(ten, steps + 1);
        }
        assertThat(enterAll(ten, 0)).isEqualTo(6);
        assertThat(ten.admit(0, 0)).isTrue();
        leave(ten, 7);
        for (int steps = 9; steps < 18; steps++) {
            quickStep(ten, steps + 1);
        }
        assertThat(enterAll(ten, 0)).isEqualTo(6);
        leave(ten, 6);
        quickStep(ten, 20);
        assertThat(enterAll(ten, 0)).isEqualTo(10);
    }

    private static void leave(AdmissionLimit.Group limit, int calls) {
        for (int i = 0; i < calls; i++) {
            limit.release();
        }
    }

    /** Has eight quick calls end at the end of the step with this number, and then removes the two that still run. */
    private static void quickStep(AdmissionLimit.Group limit, int number) {
        long at = number * STEP;
        for (int i = 0; i < 2; i++) {
            assertThat(limit.admit(0, i)).isTrue();
        }
        for (int i = 0; i < 8; i++) {
            limit.release(at - QUICK, at - QUICK + GIVEN, at, true);
            assertThat(limit.admit(0, 1)).isTrue();
        }
        leave(limit, 2);
    }
}
