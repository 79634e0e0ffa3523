package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what an admission limit remembers of how long calls took, and for how long, under a simulated clock. */
class AdmissionMemoryTest {
    private static final long MILLIS = 1_000_000;
    private static final long STEP = 100 * MILLIS;

    /** Times are learnt in this unit. */
    private static final long UNIT = 1 << 16;

    private static final long QUICK = 320 * UNIT;
    private static final long GIVEN = 2_560 * UNIT;

    private final AdmissionLimit.Group limit = new AdmissionLimit(100, new AtomicInteger(), 0).group(0);
    private long now;

    private void enter(int calls) {
        for (int i = 0; i < calls; i++) {
            assertThat(limit.admit()).isTrue();
        }
    }

    private void leave(int calls) {
        for (int i = 0; i < calls; i++) {
            limit.release();
        }
    }

    private void call(long took) {
        enter(1);
        limit.release(now - took, now - took + GIVEN, now, true);
    }

    /** Makes so many quick calls within a step, of which the last ends with the step. */
    private void step(int calls) {
        now += STEP - 1;
        for (int i = 0; i < calls; i++) {
            now += i == calls - 1 ? 1 : 0;
            call(QUICK);
        }
    }

    /** Fills the limit, and ends the new calls when their time is over. */
    private void stepOfLateCalls() {
        leave(Math.max(0, limit.running() - Math.max(1, limit.limit() - 10)));
        int calls = limit.limit() - limit.running();
        enter(calls);
        for (int i = 0; i < calls; i++) {
            limit.release(now - GIVEN, now, now, true);
        }
    }

    /** The limit once stood still after a pause of the memory's length, as what calls had needed was forgotten. */
    @ParameterizedTest
    @ValueSource(longs = {6_000, 9_700, 12_000, 30_000})
    void whatCallsNeedByThemselvesIsKnownForTenSecondsOfCalls(long millis) {
        enter(1);
        for (int i = 0; i < 50; i++) {
            step(100);
        }
        now = millis * MILLIS;
        enter(40);
        for (int i = 0; i < 8; i++) {
            now += 2 * STEP;
            stepOfLateCalls();
        }
        assertThat(limit.limit()).isLessThanOrEqualTo(10);
    }

    /** Such a need was once held against waiting callers for as long as the server lived. */
    @ParameterizedTest
    @ValueSource(longs = {25, 100})
    void whatCallsThatDidNotEndHaveNeededIsForgotten(long seconds) {
        enter(1);
        step(99);
        step(99);
        enter(60);
        now += STEP - 1;
        for (int i = 0; i < 61; i++) {
            now += i == 60 ? 1 : 0;
            call(i < 40 ? GIVEN : QUICK);
        }
        now += 3 * STEP;
        limit.refused(now);
        leave(60);
        long until = now + seconds * 10 * STEP;
        while (now < until) {
            step(7);
            step(1);
        }
        now += 20 * STEP;
        stepOfLateCalls();
        leave(limit.running() - 1);
        while (limit.admit()) {
            assertThat(limit.running()).isPositive();
        }
        now += 30 * STEP;
        limit.refused(now);
        int held = limit.limit();
        long began = now;
        while (limit.limit() == held && now - began < 100 * 10 * STEP) {
            now += 10 * MILLIS;
            limit.refused(now);
        }
        assertThat((now - began) / MILLIS)
                .as("until those that are refused raise it")
                .isLessThan(3_000);
    }
}
