package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Tests the admission limit step by step, against the results of its arithmetic. {@link AdmissionLimitTest} tests that
 * these results are good for callers, and this class tests that they are what was meant. A step is 100 ms long, and the
 * last call that ends within it updates the limit.
 */
class AdmissionStepsTest {
    private static final int MAX = 100;
    private static final long STEP = TimeUnit.MILLISECONDS.toNanos(100);

    /** All times are multiples of this unit, so that none is rounded. */
    private static final long UNIT = 1 << 16;

    /** A quick call takes 21 ms, an eighth of what callers give. */
    private static final long QUICK = 320 * UNIT;

    /** A slow call takes 84 ms, half of what callers give. */
    private static final long SLOW = 1280 * UNIT;

    /** Callers give 168 ms. */
    private static final long GIVEN = 2560 * UNIT;

    private final AtomicInteger all = new AtomicInteger();
    private final AdmissionLimit.Group limit = new AdmissionLimit(MAX, all, 0).group(0);
    private long now;

    /** One call runs throughout, so that no other call is ever alone. */
    @BeforeEach
    void begin() {
        assertThat(limit.admit()).isTrue();
    }

    private void enter(int calls) {
        for (int i = 0; i < calls; i++) {
            assertThat(limit.admit()).isTrue();
        }
    }

    private void end(long took, long given, boolean isDone) {
        enter(1);
        limit.release(now - took, now - took + given, now, isDone);
    }

    /** Ends so many calls, the last of them after this time, and the others before a step is due. */
    private void step(long time, int calls, long took, long given) {
        long early = Math.min(time, STEP) - 1;
        now += early;
        for (int i = 1; i < calls; i++) {
            end(took, given, true);
        }
        now += time - early;
        end(took, given, true);
    }

    private void step(int calls, long took) {
        step(STEP, calls, took, GIVEN);
    }

    /** One call is refused. */
    private void refuse() {
        int entered = 0;
        while (limit.admit()) {
            entered++;
        }
        for (int i = 0; i < entered; i++) {
            limit.release();
        }
    }

    private void refusingStep(int calls, long took) {
        refuse();
        step(calls, took);
    }

    private void expect(int expected) {
        assertThat(limit.limit()).isEqualTo(expected);
    }

    /** Handlers need an eighth of their callers' time: so 9/16 of it may be taken, with the wait. */
    private void learnQuick() {
        step(100, QUICK);
        expect(MAX);
    }

    @Test
    void whereNothingIsRefusedAndCallsAreQuickThereIsNoLimit() {
        for (int i = 0; i < 50; i++) {
            step(100, QUICK);
            expect(MAX);
        }
    }

    /** 100 calls in 100 ms are 168 in the time of one, of which 9/16 are 94. */
    @Test
    void whereCallsAreRefusedTheLimitIsWhatEndsInTime() {
        learnQuick();
        refusingStep(100, SLOW);
        expect(94);
        // 84 calls in the time of one give 47, and the limit goes half of the way
        refusingStep(50, SLOW);
        expect(70);
        refusingStep(50, SLOW);
        expect(58);
        refusingStep(50, SLOW);
        expect(52);
    }

    private void stepWithLate(int late, long took) {
        stepWithLate(2 * STEP, late, took, GIVEN);
    }

    /** Ends 200 calls, some of which take all that they are given. */
    private void stepWithLate(long time, int late, long took, long given) {
        stepWithLate(time, 200, late, took, given);
    }

    private void stepWithLate(long time, int calls, int late, long took, long given) {
        now += STEP - 1;
        for (int i = 1; i < calls; i++) {
            end(i <= late ? given : took, given, true);
        }
        now += time - STEP + 1;
        end(took, given, true);
    }

    @Test
    void whereNothingIsRefusedAWaitThatEndangersNobodyIsLeftAlone() {
        learnQuick();
        step(100, SLOW);
        expect(MAX);
        // calls that take nearly all of their time are not in danger either, and one late call in 64 may be chance
        step(2 * STEP, 200, GIVEN - UNIT, GIVEN);
        expect(MAX);
        stepWithLate(3, 2003 * UNIT);
        expect(MAX);
        // calls that take more than (1 + 9/16) / 2 of their time have the same effect as refused ones
        stepWithLate(4, 1980 * UNIT);
        expect(MAX);
        stepWithLate(4, 2003 * UNIT);
        expect(94);
        // under a limit, calls that take more than 9/16 of their time have this effect
        step(2 * STEP, 100, 1440 * UNIT, GIVEN);
        expect(94);
        step(2 * STEP, 100, 1443 * UNIT, GIVEN);
        expect(70);
    }

    @Test
    void noStepIsTakenBeforeItsTimeOrByTooFewCalls() {
        learnQuick();
        refuse();
        now += STEP - 2;
        for (int i = 0; i < 100; i++) {
            end(SLOW, GIVEN, true);
        }
        now++;
        end(SLOW, GIVEN, true);
        expect(MAX);
        now++;
        end(SLOW, GIVEN, true);
        // 102 calls in 100 ms are 171 in the time of one, of which 9/16 are 96
        expect(96);
        refuse();
        step(7, SLOW);
        expect(96);
        end(SLOW, GIVEN, true);
        // eight calls are 13 in the time of one, of which 9/16 are 7, and the limit goes half of the way
        expect(51);
    }

    @Test
    void aStepWaitsUntilCallsHaveEndedThatCameAfterTheOneBefore() {
        learnQuick();
        refusingStep(100, 2400 * UNIT);
        expect(94);
        // the calls took 157 ms, so that the next step is due only after as long a time
        refuse();
        step(2400 * UNIT - 1, 50, SLOW, GIVEN);
        expect(94);
        now++;
        end(SLOW, GIVEN, true);
        // 51 calls in 157 ms are 54.4 in the time of one, of which 9/16 are 30.6, and the limit goes half of the way
        expect(62);
    }

    @Test
    void callsThatBringNoResultInGoodTimeSayNothing() {
        learnQuick();
        refuse();
        now += STEP;
        for (int i = 0; i < 100; i++) {
            end(2303 * UNIT, GIVEN, false);
        }
        expect(MAX);
        // those that took nine tenths of their time were late
        for (int i = 0; i < 8; i++) {
            end(2304 * UNIT, GIVEN, false);
        }
        expect(AdmissionLimit.MIN_LIMIT);
    }

    @Test
    void whereMostAreLateTheLimitIsHalfOfWhatRuns() {
        learnQuick();
        enter(40);
        step(100, GIVEN);
        expect(20);
        // the limit then stays until other calls have ended, for as long as a call takes and a step
        limit.release();
        for (int i = 0; i < 24; i++) {
            limit.release();
        }
        step(100, GIVEN);
        expect(20);
        step(100, GIVEN);
        expect(20);
        step(100, GIVEN);
        expect(8);
        for (int i = 0; i < 12; i++) {
            limit.release();
        }
        step(100, GIVEN);
        step(100, GIVEN);
        expect(8);
        step(100, GIVEN);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    private void mixedStep(int late, int quick) {
        now += STEP - 1;
        for (int i = 0; i < late; i++) {
            end(GIVEN, GIVEN, true);
        }
        for (int i = 1; i < quick; i++) {
            end(QUICK, GIVEN, true);
        }
        now++;
        end(QUICK, GIVEN, true);
    }

    /** 41 calls run, 60 of 100 that end are late, and the limit is halved. */
    private void cut() {
        learnQuick();
        enter(40);
        mixedStep(60, 40);
        expect(20);
    }

    private void leave(int calls) {
        for (int i = 0; i < calls; i++) {
            limit.release();
        }
    }

    @Test
    void whereFewerEndAndInTimeUnderTheHalvedLimitItComesBack() {
        cut();
        leave(25);
        mixedStep(30, 31);
        mixedStep(30, 31);
        expect(20);
        mixedStep(30, 31);
        expect(41);
        // the limit is then left alone for a while
        for (int i = 0; i < 9; i++) {
            mixedStep(30, 29);
            expect(41);
        }
    }

    /** A request may be complete only as its time runs out, and a thread may begin it by an older look at the clock. */
    @Test
    void aCallThatWasBegunBehindItsTimeSaysNothing() {
        cut();
        leave(25);
        for (int i = 0; i < 3; i++) {
            end(0, -UNIT, true);
            mixedStep(30, 31);
        }
        expect(41);
    }

    @Test
    void whereAboutAsManyBringAResultUnderTheHalvedLimitItStands() {
        cut();
        leave(25);
        mixedStep(3, 32);
        mixedStep(3, 32);
        mixedStep(3, 32);
        expect(22);
    }

    /** As many calls end as before, so that what all of them use is still used to the full. */
    @Test
    void whereAboutAsManyEndUnderTheHalvedLimitItStands() {
        cut();
        leave(25);
        mixedStep(50, 31);
        mixedStep(50, 31);
        mixedStep(50, 31);
        expect(8);
    }

    /** The calls still wait for each other. */
    @Test
    void whereHardlyAnyBringsAResultUnderTheHalvedLimitItSinksFurther() {
        cut();
        leave(25);
        mixedStep(50, 12);
        mixedStep(50, 12);
        mixedStep(50, 12);
        expect(8);
    }

    @Test
    void whereMostOfTheTimeIsThatOfLateCallsTheHalvedLimitStands() {
        cut();
        leave(25);
        mixedStep(32, 31);
        mixedStep(32, 31);
        mixedStep(32, 31);
        expect(8);
    }

    @Test
    void whereHardlyAnyCallEndsThoseThatAreRefusedBringTheLimitBack() {
        cut();
        // none ends in a step that is due 200 ms later, where some 300 were to be expected
        now += 3 * STEP - 1;
        leave(3);
        limit.refused(now);
        expect(20);
        now++;
        limit.refused(now);
        // the limit becomes twice the number of calls that run
        expect(76);
    }

    @Test
    void whereTooFewAreToBeExpectedThoseThatAreRefusedWait() {
        learnQuick();
        enter(40);
        // at 3 calls in a second, 16 are to be expected in 5.33 s
        now += 9 * STEP;
        mixedStep(5, 3);
        expect(20);
        now += 5 * STEP;
        limit.refused(now);
        now += 10 * STEP - 1;
        limit.refused(now);
        expect(20);
        // running calls do not shut the others out for longer than a second
        now++;
        limit.refused(now);
        expect(82);
    }

    @Test
    void whereHalfAreLateTheLimitStands() {
        learnQuick();
        now += STEP - 1;
        for (int i = 0; i < 50; i++) {
            end(GIVEN, GIVEN, true);
            if (i < 49) {
                end(QUICK, GIVEN, true);
            }
        }
        now++;
        end(QUICK, GIVEN, true);
        expect(MAX);
        now += STEP - 1;
        for (int i = 0; i < 51; i++) {
            end(GIVEN, GIVEN, true);
            if (i < 48) {
                end(QUICK, GIVEN, true);
            }
        }
        now++;
        end(QUICK, GIVEN, true);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    @Test
    void callsThatTakeNoLongerThanEverLowerNoLimitHoweverLate() {
        learnQuick();
        for (int i = 0; i < 10; i++) {
            step(STEP, 100, QUICK, QUICK);
            expect(MAX);
        }
    }

    @Test
    void callsThatAreGivenLittleSayNothingOfShares() {
        // calls with less than five milliseconds do not count, and nothing is learnt from them
        step(STEP, 100, 50 * UNIT, 76 * UNIT);
        refuse();
        step(STEP, 100, 50 * UNIT, 76 * UNIT);
        expect(MAX);
        // 77 units are more than five milliseconds
        refuse();
        stepWithLate(STEP, 4, 74 * UNIT, 77 * UNIT);
        // 200 calls in 100 ms are ten in the time of one
        expect(9);
    }

    @Test
    void ofManyCallsOneInSixteenSaysEnough() {
        learnQuick();
        now += STEP - 1;
        for (int i = 0; i < 256; i++) {
            end(QUICK, GIVEN, true);
        }
        // of 4,000 late ones 250 count
        for (int i = 0; i < 3_999; i++) {
            end(GIVEN, GIVEN, true);
        }
        now++;
        end(GIVEN, GIVEN, true);
        expect(MAX);
        now += STEP - 1;
        for (int i = 0; i < 255; i++) {
            end(QUICK, GIVEN, true);
        }
        // of 4,114 late ones 258 count: one of the first 256 calls, and 257 of the others
        for (int i = 0; i < 4_113; i++) {
            end(GIVEN, GIVEN, true);
        }
        now += STEP + 1;
        end(GIVEN, GIVEN, true);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    @Test
    void aLimitThatIsNotNeededRisesByATenth() {
        learnQuick();
        enter(40);
        step(100, GIVEN);
        expect(20);
        leave(40);
        step(100, QUICK);
        expect(22);
        step(100, QUICK);
        expect(24);
        for (int i = 0; i < 20; i++) {
            step(100, QUICK);
        }
        expect(MAX);
    }

    /** Otherwise the limit is checked for the time of a call, which strangers may have chosen. */
    @Test
    void aHalvedLimitRisesAtOnceWhereAllEndLongBeforeTheirTimeIsOver() {
        learnQuick();
        enter(40);
        step(100, GIVEN);
        expect(20);
        leave(40);
        stepWithLate(STEP, 100, 1, QUICK, GIVEN);
        expect(20);
        step(100, QUICK);
        expect(22);
    }

    /** Calls are refused and hardly wait. The goal is the limit, a tenth of it and one, and half of the way is gone. */
    @Test
    void aLimitThatRefusesWithoutAWaitRises() {
        learnQuick();
        enter(40);
        step(100, GIVEN);
        expect(20);
        leave(40);
        step(100, QUICK);
        expect(22);
        // 8 calls give 7.5, so that the tenth counts instead
        refusingStep(8, QUICK);
        expect(24);
        // 32 calls give 30.2, and the limit goes half of the way up, to the next whole number
        refusingStep(32, QUICK);
        expect(28);
    }

    @Test
    void whereFewerEndUnderHalfOfTheLimitHandlersNeedTheTimeThemselves() {
        learnQuick();
        refusingStep(100, SLOW);
        refusingStep(50, SLOW);
        refusingStep(50, SLOW);
        expect(58);
        // 20 calls give 18.9: 38 is below half of the 84 that ran when it began to sink
        refusingStep(20, SLOW);
        expect(83);
        // from now on handlers need a half: three quarters may be taken
        refusingStep(100, 1600 * UNIT);
        expect(100);
    }

    /** Has the limit sink from 94 to 42 with the time that calls are given, and then ends so many calls in a step. */
    private void sinkingWithTheTimeThatIsGiven(int calls) {
        learnQuick();
        refusingStep(100, SLOW);
        expect(94);
        for (int expected : new int[] {64, 49, 42}) {
            refuse();
            step(STEP, 100, 480 * UNIT, 960 * UNIT);
            expect(expected);
        }
        refuse();
        step(STEP, calls, 480 * UNIT, 960 * UNIT);
    }

    @Test
    void whereAsManyEndUnderHalfOfTheLimitTheyHadWaited() {
        sinkingWithTheTimeThatIsGiven(85);
        expect(36);
    }

    @Test
    void whereFewerEndUnderHalfOfTheLimitItComesBack() {
        sinkingWithTheTimeThatIsGiven(75);
        expect(83);
    }

    @Test
    void nowAndThenTheLimitIsHalvedToSeeWhatThatChanges() {
        learnQuick();
        for (int i = 0; i < 63; i++) {
            refusingStep(50, SLOW);
        }
        expect(47);
        refusingStep(50, SLOW);
        expect(24);
        // the limit stays until 84 ms and a step later
        refusingStep(50, QUICK);
        expect(24);
        // as many end: they had waited for each other
        refusingStep(50, QUICK);
        expect(48);
        refusingStep(50, SLOW);
        expect(47);
    }

    @Test
    void whereFewerEndWhileItIsHalvedHandlersNeedTheirTime() {
        learnQuick();
        for (int i = 0; i < 64; i++) {
            refusingStep(50, SLOW);
        }
        expect(24);
        refusingStep(25, SLOW);
        expect(24);
        refusingStep(39, SLOW);
        expect(48);
        // handlers need half of the time, so that three quarters of 84 calls may run
        refusingStep(50, 1600 * UNIT);
        expect(56);
    }

    @Test
    void aProbeThatMakesCallsLateEndsWithTheLimitThatWas() {
        learnQuick();
        for (int i = 0; i < 64; i++) {
            refusingStep(50, SLOW);
        }
        expect(24);
        enter(20);
        step(STEP, 50, GIVEN, GIVEN);
        expect(10);
        leave(20);
        refusingStep(50, SLOW);
        refusingStep(50, SLOW);
        expect(10);
        refusingStep(50, SLOW);
        expect(29);
    }

    @Test
    void theUsualTimeRisesByAQuarterAStepAndSinksAtOnce() {
        learnQuick();
        refusingStep(100, SLOW);
        expect(94);
        // the calls have ten times as much time: 168 ms become 210, for which 100 calls in 100 ms give 118
        refuse();
        step(STEP, 100, SLOW, 10 * GIVEN);
        expect(100);
        refuse();
        step(STEP, 40, 480 * UNIT, 960 * UNIT);
        // 40 calls in 100 ms are 25 in 63 ms, of which 9/16 are 14
        expect(14);
    }

    @Test
    void theUsualTimeIsFourTimesWhatCallsTakeWhereOthersAreGivenMoreTime() {
        learnQuick();
        // half of the calls are given 26 ms, a quarter more than they take. These take 0.8 of their time, the others
        // 0.125, and the mean is 0.462.
        now += STEP - 1;
        for (int i = 0; i < 99; i++) {
            end(QUICK, i < 50 ? 400 * UNIT : GIVEN, true);
        }
        now++;
        end(QUICK, GIVEN, true);
        // 100 calls in 100 ms are 105 in the time of 1280 units and a quarter more, of which 0.731 are 76
        refusingStep(100, 960 * UNIT);
        expect(76);
    }

    @Test
    void fewCallsSayALittleOfWhatCallsTake() {
        learnQuick();
        // 16 calls are a quarter of 64, so that the time sinks by 40 units from 320
        step(16, 160 * UNIT);
        lateBeside(QUICK, 349 * UNIT);
        expect(MAX);
        lateBeside(QUICK, 350 * UNIT);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    @Test
    void aPauseWithoutCallsSaysNothing() {
        learnQuick();
        refuse();
        limit.release();
        assertThat(limit.running()).isZero();
        // this call is alone, so that a pause may follow its end
        assertThat(limit.admit()).isTrue();
        limit.release(now, now + GIVEN, now + 1, true);
        enter(1);
        step(2 * STEP + 1, 20, SLOW, GIVEN);
        expect(MAX);
        refusingStep(20, SLOW);
        expect(18);
    }

    @Test
    void aShortPauseWithoutCallsSaysWhatASteadyStreamOfThemSays() {
        learnQuick();
        refuse();
        limit.release();
        assertThat(limit.admit()).isTrue();
        limit.release(now, now + GIVEN, now + 1, true);
        enter(1);
        // 40 calls in 200 ms are 33.6 in the time of one
        step(2 * STEP, 40, SLOW, GIVEN);
        expect(18);
    }

    @Test
    void whoIsAloneAndInGoodTimeDoublesTheLimit() {
        learnQuick();
        enter(40);
        step(100, GIVEN);
        expect(20);
        for (int i = 0; i < 41; i++) {
            limit.release();
        }
        assertThat(limit.running()).isZero();
        now += STEP;
        // nine tenths of the usual time are no longer good
        end(2304 * UNIT, GIVEN, true);
        expect(20);
        // 84 ms are half of the usual time, so that twice as many calls might take all of it
        end(SLOW, GIVEN, true);
        expect(25);
        now += STEP - 1;
        end(QUICK, GIVEN, true);
        expect(25);
        now++;
        end(SLOW - 1, GIVEN, true);
        expect(50);
        now += STEP;
        end(QUICK, GIVEN, true);
        expect(MAX);
        assertThat(all).hasValue(0);
        assertThat(limit.admit()).isTrue();
    }

    /** Else batches of calls that take more than half of their time would be refused for ever after one bad moment. */
    @Test
    void batchesWithNothingBetweenThemAreAllTakenAgainAfterAMomentWithoutThreads() {
        learnQuick();
        limit.release();
        while (limit.limit() > AdmissionLimit.MIN_LIMIT) {
            now += 2 * GIVEN;
            expire(limit.limit(), GIVEN, GIVEN);
        }
        int taken = 0;
        for (int batch = 0; batch < 20; batch++) {
            taken = 0;
            while (taken < 20 && limit.admit()) {
                taken++;
            }
            long began = now;
            // the calls take 101 of their 168 ms
            now += 1536 * UNIT;
            for (int i = 0; i < taken; i++) {
                limit.release(began, began + GIVEN, now, true);
            }
            now += STEP;
        }
        assertThat(taken).isEqualTo(20);
    }

    @Test
    void whatHandlersNeedIsTheLeastOfTheLastTenSecondsAndTheTenBefore() {
        learnQuick();
        // now they need more, and nothing is refused
        for (int i = 0; i < 210; i++) {
            step(100, 640 * UNIT);
        }
        refusingStep(100, 1600 * UNIT);
        // handlers need a quarter of the time, so that five eighths of 168 calls may run
        expect(100);
        refuse();
        step(2 * STEP, 100, 1600 * UNIT, GIVEN);
        expect(52);
    }

    @Test
    void tenSecondsAreRememberedWhole() {
        learnQuick();
        for (int i = 0; i < 150; i++) {
            step(100, 640 * UNIT);
        }
        refuse();
        step(2 * STEP, 100, SLOW, GIVEN);
        expect(47);
    }

    @Test
    void fiveMillisecondsAreEnoughToCount() {
        refuse();
        stepWithLate(STEP, 4, 74 * UNIT, TimeUnit.MILLISECONDS.toNanos(5));
        expect(9);
    }

    @Test
    void calledAtOnceByMoreThanMayRunAndServedInTimeAMethodHasNoLimit() {
        for (int i = 0; i < 10; i++) {
            refuse();
            step(2 * STEP, 200, GIVEN - UNIT, GIVEN);
            expect(MAX);
        }
    }

    /** Ends 40 calls in good time, and then 45 late ones that were given so much. */
    private void lateBeside(long quick, long given) {
        now += STEP - 1;
        for (int i = 0; i < 40; i++) {
            end(quick, GIVEN, true);
        }
        for (int i = 0; i < 44; i++) {
            end(GIVEN, given, true);
        }
        now += STEP;
        end(GIVEN, given, true);
    }

    @Test
    void whoGivesLessThanCallsTakeThatDoNotWaitSaysNothing() {
        learnQuick();
        // 400 units are a quarter more than 320
        lateBeside(QUICK, 399 * UNIT);
        expect(MAX);
        lateBeside(QUICK, 400 * UNIT);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    @Test
    void whoGivesThreeQuartersOfTheUsualTimeCountsInAnyCase() {
        long own = 2048 * UNIT;
        step(2 * STEP, 100, own, GIVEN);
        lateBeside(own, 1919 * UNIT);
        expect(MAX);
        lateBeside(own, 1920 * UNIT);
        // the late calls take no more than a quarter above what calls take that do not wait, so that no limit helps
        expect(MAX);
        now += STEP;
        for (int i = 0; i < 8; i++) {
            end(2 * GIVEN, 1920 * UNIT, true);
        }
        expect(AdmissionLimit.MIN_LIMIT);
    }

    /** Ends 100 calls without a result, in more than nine tenths of their time. */
    private void lateWithoutResult(long took, long given) {
        now += STEP - 1;
        for (int i = 0; i < 99; i++) {
            end(took, given, false);
        }
        now++;
        end(took, given, false);
    }

    @Test
    void whatTakesAQuarterMoreThanEverHasWaited() {
        learnQuick();
        lateWithoutResult(399 * UNIT, 430 * UNIT);
        expect(MAX);
        lateWithoutResult(400 * UNIT, 430 * UNIT);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    @Test
    void whatCallsTakeThatDoNotWaitIsForgottenAfterTenSecondsAndTenMore() {
        learnQuick();
        for (int i = 0; i < 210; i++) {
            step(100, 640 * UNIT);
        }
        lateWithoutResult(760 * UNIT, 820 * UNIT);
        expect(MAX);
    }

    @Test
    void whatCallsTakeWhileSomeAreRefusedSaysNothingOfThoseThatDoNotWait() {
        learnQuick();
        for (int i = 0; i < 210; i++) {
            refusingStep(100, 640 * UNIT);
        }
        lateWithoutResult(760 * UNIT, 820 * UNIT);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    /** This holds however long it lasts, since all of the calls may have waited. */
    @Test
    void whatIsSeenWhileCallsAreRefusedIsNotWhatHandlersNeed() {
        learnQuick();
        for (int i = 0; i < 240; i++) {
            refuse();
            // this limit is too low to be halved now and then
            step(STEP * 11 / 10, 8, SLOW, GIVEN);
        }
        // the limit is 9/16 of the 12 calls in the time of one
        assertThat(limit.limit()).isBetween(6, 7);
    }

    /** The same calls have less time, so that handlers need a greater part of it. */
    @Test
    void whatHandlersNeedRisesWhereCallersGiveLess() {
        learnQuick();
        step(STEP, 100, QUICK, 2 * QUICK);
        refuse();
        // the usual time rises from 42 to 52 ms. 26 calls end in that, of which three quarters are 19
        step(STEP, 50, 480 * UNIT, 960 * UNIT);
        expect(19);
    }

    @Test
    void underTheLeastLimitWhatIsSeenIsWhatHandlersNeed() {
        learnQuick();
        for (int i = 0; i < 8; i++) {
            step(8, GIVEN);
        }
        expect(AdmissionLimit.MIN_LIMIT);
        step(8, SLOW);
        step(8, SLOW);
        // 8 calls are 13 in the time of one, of which three quarters are 10, and the limit goes half of the way up
        refusingStep(8, SLOW);
        expect(8);
    }

    @Test
    void aProbeLastsAStepLongerThanACall() {
        learnQuick();
        for (int i = 0; i < 64; i++) {
            refusingStep(50, SLOW);
        }
        expect(24);
        refuse();
        step(STEP + SLOW, 92, QUICK / 2, GIVEN);
        expect(48);
        // handlers need a sixteenth of the time, so that 17/32 of 84 calls may run
        refusingStep(50, SLOW);
        expect(46);
    }

    @Test
    void aConnectionRunsAsManyAsAreFreeAndOneMore() {
        AdmissionLimit.Group fresh = new AdmissionLimit(10, new AtomicInteger(), 0).group(0);
        int own = 0;
        while (fresh.admit(own, 0)) {
            own++;
        }
        assertThat(own).isEqualTo(6);
        assertThat(fresh.running()).isEqualTo(6);
        assertThat(fresh.admit(4, 0)).isTrue();
        assertThat(fresh.admit(4, 0)).isFalse();
        assertThat(fresh.admit(3, 0)).isTrue();
        assertThat(fresh.admit(3, 0)).isFalse();
        assertThat(fresh.admit(0, 0)).isTrue();
        assertThat(fresh.admit(2, 0)).isFalse();
        assertThat(fresh.admit(1, 0)).isTrue();
        assertThat(fresh.admit(0, 0)).isFalse();
        assertThat(fresh.running()).isEqualTo(10);
    }

    /**
     * The limit is 94. A connection may run as many calls of the method as are still free below the limit, and one
     * more. What the connection runs of other methods makes no difference.
     */
    @Test
    void aConnectionRunsAsManyOfAMethodAsAreFreeBelowItsLimitAndOneMore() {
        learnQuick();
        refusingStep(100, SLOW);
        expect(94);
        int own = 0;
        while (limit.admit(own, own)) {
            own++;
        }
        // the call that runs throughout counts too
        assertThat(own).isEqualTo(47);
        assertThat(limit.admit(47, 47)).isFalse();
        assertThat(limit.admit(40, 0)).isTrue();
        for (int other = 1; limit.admit(other, other); other++) {}
        assertThat(limit.running()).isEqualTo(72);
    }

    @Test
    void whoIsRefusedOverItsShareDoesNotSayThatTheLimitIsUsedUp() {
        learnQuick();
        enter(59);
        assertThat(limit.admit(41, 41)).isFalse();
        step(100, SLOW);
        expect(MAX);
    }

    @Test
    void aConnectionThatIsAloneRunsAsManyAsTheLimitSaysUntilAnotherIsRefused() {
        learnQuick();
        enter(40);
        step(100, GIVEN);
        expect(20);
        for (int i = 0; i < 41; i++) {
            limit.release();
        }
        int own = 0;
        while (limit.admit(own, own)) {
            own++;
        }
        assertThat(own).isEqualTo(20);
        assertThat(limit.admit(0, 0)).isFalse();
        // from now on a place that becomes free is for the other connection, even while that runs nothing
        limit.release();
        assertThat(limit.admit(19, 19)).isFalse();
        assertThat(limit.admit(0, 0)).isTrue();
    }

    /** Has so many calls, which are given so much time, wait for a part of it and not begin. */
    private void expire(int calls, long waited, long given) {
        enter(calls);
        for (int i = 0; i < calls; i++) {
            limit.leaveUnbegun(now - waited, now - waited + given, now);
        }
    }

    @Test
    void whereMostCallsDoNotBeginTheLimitIsHalfOfWhatRuns() {
        learnQuick();
        enter(40);
        now += STEP - 1;
        for (int i = 0; i < 8; i++) {
            end(QUICK, GIVEN, true);
        }
        expire(8, GIVEN, GIVEN);
        expect(MAX);
        now++;
        expire(1, GIVEN, GIVEN);
        expect(20);
        assertThat(limit.running()).isEqualTo(41);
    }

    @Test
    void whereNoCallBeginsTheLimitIsHalvedOnceInTheTimeOfACall() {
        learnQuick();
        enter(80);
        now += STEP;
        expire(8, GIVEN, GIVEN);
        expect(40);
        for (int i = 0; i < 60; i++) {
            limit.release();
        }
        now += GIVEN - 1;
        expire(8, GIVEN, GIVEN);
        expect(40);
        now += STEP;
        expire(8, GIVEN, GIVEN);
        expect(10);
        assertThat(limit.running()).isEqualTo(21);
    }

    @Test
    void whoGaveUpBeforeItBeganOrHadNoTimeSaysNothing() {
        learnQuick();
        now += STEP;
        expire(20, GIVEN / 2, GIVEN);
        // a quarter more than 320 units is what a call needs that does not wait
        expire(20, 399 * UNIT, 399 * UNIT);
        expect(MAX);
        step(100, QUICK);
        expect(MAX);
    }

    @Test
    void whoWaitedForNineTenthsOfTheirTimeAndDidNotBeginWasLate() {
        learnQuick();
        enter(40);
        now += STEP;
        expire(8, 2304 * UNIT - 1, GIVEN);
        expect(MAX);
        expire(8, 2304 * UNIT, GIVEN);
        expect(20);
    }

    @Test
    void whoDidNotBeginInAsMuchAsACallTakesThatDoesNotWaitWasLate() {
        learnQuick();
        enter(40);
        now += STEP;
        // 400 units are a quarter more than 320
        expire(8, 400 * UNIT, 400 * UNIT);
        expect(20);
    }

    @Test
    void whereHalfDoNotBeginTheLimitStands() {
        learnQuick();
        enter(40);
        now += STEP - 1;
        for (int i = 0; i < 20; i++) {
            end(QUICK, GIVEN, true);
        }
        expire(19, GIVEN, GIVEN);
        now++;
        expire(1, GIVEN, GIVEN);
        expect(MAX);
    }

    @Test
    void theLimitIsHalvedAgainWhenTheTimeOfACallIsOver() {
        learnQuick();
        enter(80);
        now += STEP;
        expire(8, GIVEN, GIVEN);
        expect(40);
        leave(60);
        now += GIVEN;
        expire(8, GIVEN, GIVEN);
        expect(10);
    }

    @Test
    void aPauseBehindALoneCallThatDidNotBeginSaysNothing() {
        learnQuick();
        refuse();
        limit.release();
        expire(1, QUICK, GIVEN);
        assertThat(limit.running()).isZero();
        enter(1);
        step(2 * STEP + 1, 20, SLOW, GIVEN);
        expect(MAX);
    }

    @Test
    void aCallThatDidNotBeginWhileOthersRunIsNoPause() {
        learnQuick();
        refuse();
        expire(1, QUICK, GIVEN);
        // 40 calls in 200 ms are 33.6 in the time of one, of which 9/16 are 18
        step(2 * STEP + 1, 40, SLOW, GIVEN);
        expect(18);
    }

    @Test
    void oneLateCallIn64IsEnoughToSeeThatCallsAreInDanger() {
        learnQuick();
        // 192 calls in 200 ms are 161 in the time of one, of which 9/16 are 90
        stepWithLate(2 * STEP, 192, 3, 2003 * UNIT, GIVEN);
        expect(90);
    }

    @Test
    void whereCallsTakeJustTheTimeThatEndangersNobodyThereIsNoLimit() {
        learnQuick();
        // 56 calls take 796/1024 of their time and one takes all: the mean is 800/1024, which is (1 + 9/16) / 2
        stepWithLate(2 * STEP, 57, 1, 1990 * UNIT, GIVEN);
        expect(MAX);
        // 57 calls in 200 ms are 47.8 in the time of one, of which 9/16 are 26
        stepWithLate(2 * STEP, 57, 1, 1993 * UNIT, GIVEN);
        expect(26);
    }

    @Test
    void aLimitThatIsNotNeededRisesOnlyWhereHardlyAnyWait() {
        learnQuick();
        enter(40);
        step(100, GIVEN);
        expect(20);
        leave(40);
        step(100, QUICK);
        expect(22);
        // a quarter of the way from 1/8 to 9/16 is 15/64
        step(100, 600 * UNIT);
        expect(22);
        step(100, 597 * UNIT);
        expect(24);
    }

    @Test
    void eightCallsSayWhatTheUsualTimeIs() {
        learnQuick();
        refuse();
        // eight calls in 100 ms are ten in 126 ms, of which 9/16 are 5
        step(STEP, 8, 480 * UNIT, 1920 * UNIT);
        expect(5);
    }

    @Test
    void aLimitThatHasComeBackSinceFewerEndIsNotHalvedForASecond() {
        sinkingWithTheTimeThatIsGiven(75);
        expect(83);
        enter(80);
        for (int i = 0; i < 10; i++) {
            step(STEP, 100, 960 * UNIT, 960 * UNIT);
            expect(83);
        }
        step(STEP, 100, 960 * UNIT, 960 * UNIT);
        expect(40);
    }

    @Test
    void underTheLeastLimitOnlyWhatIsSeenWhileCallsAreRefusedIsWhatHandlersNeed() {
        learnQuick();
        for (int i = 0; i < 8; i++) {
            step(8, GIVEN);
        }
        expect(AdmissionLimit.MIN_LIMIT);
        step(8, SLOW);
        step(8, SLOW);
        // handlers need three quarters of the time. Ten calls are 16.8 in the time of one, of which 7/8 are 14.7, and
        // the limit goes half of the way up.
        refusingStep(10, 1920 * UNIT);
        expect(10);
    }

    @Test
    void aLimitOfTwiceTheLeastIsHalvedNowAndThenAsWell() {
        learnQuick();
        for (int i = 0; i < 63; i++) {
            refuse();
            // 16 calls end in 9/8 of the time of one, which is 14.2 calls in that time, and 9/16 of these are 8
            step(2880 * UNIT, 16, SLOW, GIVEN);
            expect(8);
        }
        refuse();
        step(2880 * UNIT, 16, SLOW, GIVEN);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    /** Eight calls run under a limit of eight, and the next step is overdue. */
    private void heldByEight() {
        learnQuick();
        enter(15);
        step(100, GIVEN);
        expect(8);
        leave(8);
        now += 3 * STEP;
    }

    /** Ends so many of the calls that run, and has others come. */
    private void replace(int calls) {
        for (int i = 0; i < calls; i++) {
            limit.release(now - QUICK, now - QUICK + GIVEN, now, true);
            enter(1);
        }
    }

    /** Has so many calls time out before they begin, and has others come. */
    private void replaceUnbegun(int calls) {
        for (int i = 0; i < calls; i++) {
            limit.leaveUnbegun(now - GIVEN, now, now);
            enter(1);
        }
    }

    private void expectHeldForASecond() {
        limit.refused(now);
        now += 10 * STEP - 1;
        limit.refused(now);
        expect(8);
        now++;
        limit.refused(now);
        expect(16);
    }

    @Test
    void whatEndedBeforeTheFirstIsRefusedDoesNotSayThatTheLimitIsNotHeld() {
        heldByEight();
        replace(3);
        expectHeldForASecond();
    }

    @Test
    void aLimitIsNotHeldWhereHalfOfThoseThatRunEndInASecond() {
        heldByEight();
        limit.refused(now);
        now += 10 * STEP;
        replace(4);
        expectHeldForASecond();
    }

    @Test
    void aLimitIsHeldWhereFewerThanHalfOfThoseThatRunEndInASecond() {
        heldByEight();
        limit.refused(now);
        now += 10 * STEP;
        replace(3);
        limit.refused(now);
        expect(16);
    }

    @Test
    void callsThatTimeOutBeforeTheyBeginCountAmongThoseThatDoNotHoldALimit() {
        heldByEight();
        limit.refused(now);
        now += 10 * STEP;
        replaceUnbegun(4);
        limit.refused(now);
        expect(8);
        // three more are fewer than half
        now += 10 * STEP;
        replaceUnbegun(3);
        limit.refused(now);
        expect(16);
    }

    @Test
    void noStepIsDueBehindThatByWhichThoseThatAreRefusedHaveRaisedTheLimit() {
        heldByEight();
        expectHeldForASecond();
        now += STEP - 1;
        for (int i = 0; i < 20; i++) {
            end(GIVEN, GIVEN, true);
        }
        expect(16);
        now++;
        end(GIVEN, GIVEN, true);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    @Test
    void aLimitThatHasSunkToJustHalfComesBackWhereFewerEnd() {
        learnQuick();
        refusingStep(100, 2400 * UNIT);
        expect(94);
        refuse();
        // 12 calls in 157 ms are 12.8 in the time of one, of which 9/16 are 7.2. Half of the way down is 50, of 100
        step(2400 * UNIT, 12, SLOW, GIVEN);
        expect(MAX);
    }

    /** What was the least until 15 s is known until 30 s, also where it has always been the same. */
    @Test
    void whatHandlersHaveAlwaysNeededIsRememberedForTenSecondsAndMore() {
        for (int i = 0; i < 150; i++) {
            step(100, QUICK);
        }
        for (int i = 0; i < 110; i++) {
            step(100, 640 * UNIT);
        }
        refuse();
        step(2 * STEP, 100, SLOW, GIVEN);
        expect(47);
    }

    // ---- a stranger's quick calls beside others that take 100 ms of ten seconds

    private static final long LONG = 1520 * UNIT;
    private static final long PATIENT = 100 * LONG;

    /** Makes a step in which so many quick calls end, and after them twenty that run. */
    private void patientStep(int quick, long took, long given) {
        now += STEP - 1;
        for (int i = 0; i < quick; i++) {
            end(took, given, true);
        }
        for (int i = 0; i < 20; i++) {
            now += i == 19 ? 1 : 0;
            limit.release(now - LONG, now - LONG + PATIENT, now, true);
            limit.admit();
        }
    }

    /** Makes a step with a few calls that have hardly any time, of which one is late. */
    private void hastyStep() {
        end(92 * UNIT, 92 * UNIT, false);
        patientStep(2, 3 * UNIT, 84 * UNIT);
    }

    @Test
    void aMomentOfQuickCallsDoesNotLetTheHastyDecideForTheOthers() {
        enter(20);
        for (int i = 0; i < 20; i++) {
            patientStep(0, 0, 0);
        }
        patientStep(3000, 3 * UNIT, PATIENT);
        for (int i = 0; i < 300; i++) {
            hastyStep();
            expect(MAX);
        }
    }

    /** The bursts of quick calls come again and again, in moments in which none of the others ends. */
    @Test
    void momentsInWhichOnlyQuickCallsEndDoNotLetTheHastyDecideForTheOthers() {
        enter(20);
        patientStep(0, 0, 0);
        for (int i = 0; i < 300; i++) {
            step(STEP, 100, 3 * UNIT, PATIENT);
            hastyStep();
            expect(MAX);
        }
    }

    /** Where quick calls take as much time as all others, the handler is quick, and 23 calls a step need few places. */
    @Test
    void quickCallsThatTakeMostOfTheTimeDecide() {
        enter(20);
        patientStep(0, 0, 0);
        patientStep(12_000, 3 * UNIT, PATIENT);
        hastyStep();
        hastyStep();
        assertThat(limit.limit()).isLessThan(MAX / 2);
    }

    /** A few callers who give hardly more than the handler takes do not decide for the others then. */
    @Test
    void underTheLeastLimitWhatMostOfTheTimeGoesToIsWhatHandlersNeed() {
        learnQuick();
        for (int i = 0; i < 8; i++) {
            refusingStep(8, GIVEN);
        }
        expect(AdmissionLimit.MIN_LIMIT);
        for (int i = 0; i < 10; i++) {
            refuse();
            now += STEP - 1;
            end(SLOW, 1536 * UNIT, true);
            end(SLOW, 1536 * UNIT, true);
            for (int k = 0; k < 20; k++) {
                end(SLOW, 2 * GIVEN, true);
            }
            now++;
            end(SLOW, 2 * GIVEN, true);
        }
        // 23 calls are 77 in the time of most, and 34 in that of the few
        assertThat(limit.limit()).isGreaterThan(40);
    }
}
