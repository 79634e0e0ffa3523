package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/**
 * A method whose handler gives its work to ten threads of its own, each 100 ms, and returns a future. The work goes on
 * when its caller has gone, and the server waits a second for it. By a clock of the test's own.
 */
class GivenUpFuturesTest {
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final int MOST = 10_000;
    private static final int GIVEN_MILLIS = 500;
    private static final int GRACE_MILLIS = 1_000;

    /** A piece of work ends so often, since ten threads take a tenth of a second each. */
    private static final int EVERY_MILLIS = 10;

    private record Call(int beganMillis) {
        long began() {
            return beganMillis * MS;
        }

        long deadline() {
            return (beganMillis + GIVEN_MILLIS) * MS;
        }
    }

    private final AdmissionLimit limit = new AdmissionLimit(MOST, new AtomicInteger(), 0);
    private final ArrayDeque<Call> work = new ArrayDeque<>();
    private final ArrayDeque<Call> counted = new ArrayDeque<>();

    private void come(int calls, int now) {
        for (int i = 0; i < calls; i++) {
            if (limit.enter()) {
                Call call = new Call(now);
                work.add(call);
                counted.add(call);
            } else {
                limit.refused(now * MS);
            }
        }
    }

    /** @return calls that were answered in time in the last ten seconds */
    private int load(int burst, int seconds) {
        int inTime = 0;
        come(burst, 0);
        for (int now = 1; now <= seconds * 1_000; now++) {
            if (now % 10 < 3) {
                come(1, now);
            }
            for (Call first = counted.peek();
                    first != null && now - first.beganMillis >= GIVEN_MILLIS + GRACE_MILLIS;
                    first = counted.peek()) {
                counted.remove();
                limit.leaveGivenUp(first.began(), first.deadline(), first.deadline(), now * MS);
            }
            Call done = now % EVERY_MILLIS == 0 ? work.poll() : null;
            if (done != null && counted.remove(done)) {
                limit.leave(done.began(), done.deadline(), now * MS, true);
                if (now - done.beganMillis < GIVEN_MILLIS && now > (seconds - 10) * 1_000) {
                    inTime++;
                }
            }
        }
        return inTime;
    }

    @Test
    void threeTimesWhatCanBeDoneIsRefusedAsFarAsItCannotBeDoneInTime() {
        assertThat(load(0, 40)).as("of 1000 that can be done").isGreaterThan(700);
    }

    @Test
    void goodputComesBackBehindABurst() {
        assertThat(load(1_000, 60)).as("of 1000 that can be done").isGreaterThan(700);
    }

    /** Of a call that was given a tenth of a second. */
    private void leaveLate(int now) {
        long deadline = (now - GRACE_MILLIS) * MS;
        limit.leaveGivenUp(deadline - 100 * MS, deadline, deadline, now * MS);
    }

    /** How much time callers give, and when they give up, says nothing of how long others are to be kept out. */
    @Test
    void whoeverGivesUpCallsOfLongAgoKeepsNobodyOut() {
        int held = 70;
        long hour = 3_600_000 * MS;
        for (int i = 0; i < held; i++) {
            assertThat(limit.enter()).isTrue();
        }
        int now = 600_000;
        for (int i = 0; i < 700; i++) {
            assertThat(limit.enter()).isTrue();
        }
        // what calls take that do not wait, and then those that are late
        for (int i = 0; i < 200; i++) {
            now += 2;
            limit.leave((now - 10) * MS, (now + 90) * MS, now * MS, true);
        }
        for (int i = 0; i < 500; i++) {
            now += 4;
            leaveLate(now);
        }
        assertThat(limit.limit()).isLessThan(held);
        int end = now + 30_000;
        for (int left = held; now < end && limit.limit() <= limit.running(); now += 10) {
            limit.refused(now * MS);
            if (now % 9_000 == 0 && left > 0) {
                left--;
                limit.leaveGivenUp(0, hour, (now - GRACE_MILLIS) * MS, now * MS);
            }
        }
        assertThat(limit.limit()).isGreaterThan(limit.running());
    }
}
