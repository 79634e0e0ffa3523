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

    /** Times are counted in these, so that none is rounded. */
    private static final long UNIT = 1 << 16;

    /** 21 ms, an eighth of what callers give. */
    private static final long QUICK = 320 * UNIT;

    /** 84 ms, a half. */
    private static final long SLOW = 1280 * UNIT;

    /** 168 ms. */
    private static final long GIVEN = 2560 * UNIT;

    private final AtomicInteger all = new AtomicInteger();
    private final AdmissionLimit.Group limit = new AdmissionLimit(MAX, all, 0).group(0);
    private long now;

    /** One call runs throughout: no other is ever alone. */
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

    /** So many calls end, the last of them after so long, and the others before a step is due. */
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
        // 84 in their time give 47, and it goes half of the way
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

    /** Of 200 calls, some of which take all that they are given. */
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
        // nor does it endanger anybody to take nearly all of one's time, and one late call in 64 may be chance
        step(2 * STEP, 200, GIVEN - UNIT, GIVEN);
        expect(MAX);
        stepWithLate(3, 2003 * UNIT);
        expect(MAX);
        // above (1 + 9/16) / 2 of their time it is as if calls had been refused
        stepWithLate(4, 1980 * UNIT);
        expect(MAX);
        stepWithLate(4, 2003 * UNIT);
        expect(94);
        // and under a limit above 9/16
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
        // 102 calls of 100 ms
        expect(96);
        refuse();
        step(7, SLOW);
        expect(96);
        end(SLOW, GIVEN, true);
        // eight calls are 13 in their time, of which 9/16 are 7: half of the way
        expect(51);
    }

    @Test
    void aStepWaitsUntilCallsHaveEndedThatCameAfterTheOneBefore() {
        learnQuick();
        refusingStep(100, 2400 * UNIT);
        expect(94);
        // 157 ms
        refuse();
        step(2400 * UNIT - 1, 50, SLOW, GIVEN);
        expect(94);
        now++;
        end(SLOW, GIVEN, true);
        // 51 calls of 157 ms are 54.4 in their time, 9/16 of which are 30.6
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
        // and then left alone until others have ended: for as long as a call takes, and a step
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

    /** 41 run, 60 of 100 are late, and the limit is halved. */
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
        // and is left alone for a while
        for (int i = 0; i < 9; i++) {
            mixedStep(30, 29);
            expect(41);
        }
    }

    /** The last part of a request may come as its time runs out, and a thread begin it by an older look. */
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

    /** As many as before share what is all at work. */
    @Test
    void whereAboutAsManyEndUnderTheHalvedLimitItStands() {
        cut();
        leave(25);
        mixedStep(50, 31);
        mixedStep(50, 31);
        mixedStep(50, 31);
        expect(8);
    }

    /** They wait for each other still. */
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
        // twice as many as run
        expect(76);
    }

    @Test
    void whereTooFewAreToBeExpectedThoseThatAreRefusedWait() {
        learnQuick();
        enter(40);
        // of 3 in a second 16 are to be expected in 5.33 s
        now += 9 * STEP;
        mixedStep(5, 3);
        expect(20);
        now += 5 * STEP;
        limit.refused(now);
        now += 10 * STEP - 1;
        limit.refused(now);
        expect(20);
        // but for as long as a second nobody shuts the others out
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
        // less than five milliseconds: none counts, and nothing is learnt
        step(STEP, 100, 50 * UNIT, 76 * UNIT);
        refuse();
        step(STEP, 100, 50 * UNIT, 76 * UNIT);
        expect(MAX);
        // 77 units are more
        refuse();
        stepWithLate(STEP, 4, 74 * UNIT, 77 * UNIT);
        // 200 in 100 ms are ten in the time of one
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
        // of 4,114 late ones 258: one of the first 256, and 257
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

    /** Otherwise it is checked for the time of a call, which strangers may have chosen. */
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

    /** Refused, and hardly any wait: the goal is a tenth more than the limit and one, and half of the way is gone. */
    @Test
    void aLimitThatRefusesWithoutAWaitRises() {
        learnQuick();
        enter(40);
        step(100, GIVEN);
        expect(20);
        leave(40);
        step(100, QUICK);
        expect(22);
        // 8 calls are 7.5 in time: it is the tenth that counts
        refusingStep(8, QUICK);
        expect(24);
        // 32 calls give 30.2: half of the way up, and the next whole number
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

    /** The limit sinks with the time that calls are given, from 84 to 42, at 100 that end in a step. */
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
        // until 84 ms and a step later it stays
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
        // they need a half: three quarters of 84 may be taken
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
        // calls with ten times as much time: 168 ms become 210, which 100 calls in 100 ms fill with 118
        refuse();
        step(STEP, 100, SLOW, 10 * GIVEN);
        expect(100);
        refuse();
        step(STEP, 40, 480 * UNIT, 960 * UNIT);
        // 63 ms: 40 calls are 25, of which 9/16 are 14
        expect(14);
    }

    @Test
    void theUsualTimeIsFourTimesWhatCallsTakeWhereOthersAreGivenMoreTime() {
        learnQuick();
        // half are given 26 ms, a quarter more than they take: 0.8 and 0.125 of their time, 0.462 in the mean
        now += STEP - 1;
        for (int i = 0; i < 99; i++) {
            end(QUICK, i < 50 ? 400 * UNIT : GIVEN, true);
        }
        now++;
        end(QUICK, GIVEN, true);
        // 1280 units, and a quarter more: 100 calls in 100 ms are 105 in that, of which 0.731 are 76
        refusingStep(100, 960 * UNIT);
        expect(76);
    }

    @Test
    void fewCallsSayALittleOfWhatCallsTake() {
        learnQuick();
        // a quarter of 64: 40 units less than 320
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
        // alone: its end may be followed by nothing
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
        // 84 ms are half of it: twice as many might take all of it
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
            // 101 of 168 ms
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
        // a quarter: five eighths of 168
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

    /** Some end in good time, and more of them late that were given so much. */
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
        // a quarter more than 320 units
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
        // no more than a quarter above what calls take that do not wait: whatever is late, no limit helps
        expect(MAX);
        now += STEP;
        for (int i = 0; i < 8; i++) {
            end(2 * GIVEN, 1920 * UNIT, true);
        }
        expect(AdmissionLimit.MIN_LIMIT);
    }

    /** No result, in more than nine tenths of their time. */
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

    /** However long: they may all have waited. */
    @Test
    void whatIsSeenWhileCallsAreRefusedIsNotWhatHandlersNeed() {
        learnQuick();
        for (int i = 0; i < 240; i++) {
            refuse();
            // a limit that is too low to be halved now and then
            step(STEP * 11 / 10, 8, SLOW, GIVEN);
        }
        // of 12 in their time nine sixteenths
        assertThat(limit.limit()).isBetween(6, 7);
    }

    /** The same calls with less time: what handlers need is more of it. */
    @Test
    void whatHandlersNeedRisesWhereCallersGiveLess() {
        learnQuick();
        step(STEP, 100, QUICK, 2 * QUICK);
        refuse();
        // 42 ms become 52: 26 in their time, of which three quarters are 19
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
        // 8 calls are 13 in their time, of which three quarters are 10: half of the way up
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
        // they need a sixteenth: 17/32 of 84 may be taken
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
        // one runs besides
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
        // from now on what ends is for the other one, also while that runs nothing
        limit.release();
        assertThat(limit.admit(19, 19)).isFalse();
        assertThat(limit.admit(0, 0)).isTrue();
    }

    /** So many calls wait for this time, of which they have so much, and do not begin. */
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
        // a quarter more than 320 units
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
        // 56 of 796/1024 and one of 1: 800/1024 in the mean, which is (1 + 9/16) / 2
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
        // 126 ms: eight calls are ten in that, of which 9/16 are 5
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
        // they need three quarters: ten calls are 16.8 in their time, of which 7/8 are 14.7, and half of the way up
        refusingStep(10, 1920 * UNIT);
        expect(10);
    }

    @Test
    void aLimitOfTwiceTheLeastIsHalvedNowAndThenAsWell() {
        learnQuick();
        for (int i = 0; i < 63; i++) {
            refuse();
            // 16 calls in 9/8 of their time, of which 9/16 are 8
            step(2880 * UNIT, 16, SLOW, GIVEN);
            expect(8);
        }
        refuse();
        step(2880 * UNIT, 16, SLOW, GIVEN);
        expect(AdmissionLimit.MIN_LIMIT);
    }

    /** Eight run under a limit of eight, and the next step is overdue. */
    private void heldByEight() {
        learnQuick();
        enter(15);
        step(100, GIVEN);
        expect(8);
        leave(8);
        now += 3 * STEP;
    }

    /** So many of those that run end, and others come. */
    private void replace(int calls) {
        for (int i = 0; i < calls; i++) {
            limit.release(now - QUICK, now - QUICK + GIVEN, now, true);
            enter(1);
        }
    }

    /** So many time out before they begin, and others come. */
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
        // 12 calls of 157 ms are 12.8 in their time, of which 9/16 are 7.2: half of the way down are 50, of 100
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

    /** Twenty that run and end, and so many quick ones, which end before them; a step. */
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

    /** A few calls with hardly any time, and one of them late. */
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

    /** The same with bursts again and again, in a moment in which none of the others ends. */
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

    /** As much time as all others: then the handler is a quick one, and 23 calls a step need few places. */
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
