package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The limit against services of known capacity, in simulated time: what it does is decided by arithmetic, not by this machine's mood. */
class AdmissionLimitTest {
    private static final int MOST = 10_000;

    /**
     * Handlers that share workers, first come first served; calls arrive at random. One whose caller's time is over gives up its place in the
     * queue, as a handler does that is interrupted, or works for nobody.
     */
    private static final class Service {
        private record Job(long beganNanos, long deadlineNanos) {}

        private record Event(long atNanos, Job ending) {}

        final AdmissionLimit limit = new AdmissionLimit(MOST, new AtomicInteger(), 0);
        private final Random random = new Random(1);
        private final PriorityQueue<Event> ends = new PriorityQueue<>((a, b) -> Long.compare(a.atNanos(), b.atNanos()));
        private final ArrayDeque<Job> waiting = new ArrayDeque<>();
        private final long callersMillis;
        private final boolean isInterrupted;
        private int workers;
        private double workMillis;
        private int busy;
        private long nowNanos;
        private int good;
        private int late;
        private int refused;

        Service(int workers, double workMillis, long callersMillis) {
            this(workers, workMillis, callersMillis, true);
        }

        Service(int workers, double workMillis, long callersMillis, boolean isInterrupted) {
            this.isInterrupted = isInterrupted;
            this.workers = workers;
            this.workMillis = workMillis;
            this.callersMillis = callersMillis;
        }

        double capacity() {
            return workers * 1000 / workMillis;
        }

        /** Offers so many calls a second for this time, then forgets what it has counted before. */
        Service offer(double perSecond, double seconds) {
            good = 0;
            late = 0;
            refused = 0;
            long until = nowNanos + (long) (seconds * 1e9);
            while (true) {
                long arrival = nowNanos + (long) (-Math.log(1 - random.nextDouble()) * 1e9 / perSecond);
                endUntil(Math.min(arrival, until));
                if (arrival >= until) {
                    return this;
                }
                if (limit.enter()) {
                    waiting.add(new Job(nowNanos, nowNanos + TimeUnit.MILLISECONDS.toNanos(callersMillis)));
                    startSome();
                } else {
                    refused++;
                }
            }
        }

        private void endUntil(long time) {
            while (true) {
                Event end = ends.peek();
                Job first = isInterrupted ? waiting.peek() : null;
                long endsAt = end == null ? Long.MAX_VALUE : end.atNanos();
                long givesUpAt = first == null ? Long.MAX_VALUE : first.deadlineNanos();
                if (Math.min(endsAt, givesUpAt) > time) {
                    nowNanos = time;
                    return;
                }
                nowNanos = Math.min(endsAt, givesUpAt);
                Job job;
                if (end != null && endsAt <= givesUpAt) {
                    job = end.ending();
                    ends.remove();
                    busy--;
                } else {
                    job = waiting.remove();
                }
                if (nowNanos < job.deadlineNanos()) {
                    good++;
                } else {
                    late++;
                }
                limit.leave(job.beganNanos(), job.deadlineNanos(), nowNanos);
                startSome();
            }
        }

        private void startSome() {
            while (busy < workers && !waiting.isEmpty()) {
                busy++;
                // between 0.7 and 1.3 of the mean
                double millis = workMillis * (0.7 + 0.6 * random.nextDouble());
                ends.add(new Event(nowNanos + (long) (millis * 1e6), waiting.remove()));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        // workers, work ms, callers' ms, whether what is too late is interrupted
        "4, 4, 200, true",
        "4, 4, 200, false",
        "1, 1, 100, true",
        "2, 1, 20, true",
        "64, 50, 1000, true",
        "8, 300, 2000, true",
        "500, 100, 1000, true",
    })
    void inOverloadNearlyAllThatCanBeDoneIsDoneInTime(
            int workers, double workMillis, long callersMillis, boolean isInterrupted) {
        for (int factor : new int[] {2, 5, 10}) {
            Service service = new Service(workers, workMillis, callersMillis, isInterrupted);
            service.offer(0.5 * service.capacity(), 5);
            // what came before the limit was found has to end first
            service.offer(factor * service.capacity(), Math.max(5, 20 * callersMillis / 1000));
            service.offer(factor * service.capacity(), 20);
            assertThat(service.good / 20.0)
                    .as(
                            "of %s/s, at × %s; late %s, limit %s",
                            service.capacity(), factor, service.late, service.limit.limit())
                    .isGreaterThan(0.95 * service.capacity());
        }
    }

    @Test
    void theFirstMomentsOfOverloadCostLessThanASecond() {
        Service service = new Service(4, 4, 200);
        service.offer(500, 5);
        service.offer(5000, 1);
        service.offer(5000, 1);
        assertThat(service.good).isGreaterThan(900);
        assertThat(service.late).isLessThan(50);
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.05, 0.5, 0.7, 0.76})
    void aHandlerThatItselfTakesLongIsNotRefused(double share) {
        // so many workers that nobody ever waits
        Service service = new Service(100_000, 1000 * share, 1000);
        assertThat(service.offer(200, 20).refused).isZero();
        assertThat(service.offer(2000, 20).refused).isZero();
    }

    @ParameterizedTest
    @ValueSource(doubles = {600, 720, 800})
    void aHandlerThatBecomesSlowWithoutAnyWaitIsServedAgainSoon(double workMillis) {
        Service service = new Service(100_000, 100, 1000);
        service.offer(500, 20);
        service.workMillis = workMillis;
        service.offer(500, 10);
        assertThat(service.refused).isLessThan(1000);
        assertThat(service.offer(500, 10).refused).isLessThan(50);
    }

    @Test
    void aCapacityThatSinksAndRisesIsFollowed() {
        Service service = new Service(16, 10, 500);
        service.offer(4000, 5);
        service.workers = 2;
        service.offer(4000, 2);
        assertThat(service.offer(4000, 5).good / 5.0).isGreaterThan(0.95 * 200);
        service.workers = 16;
        service.offer(4000, 2);
        assertThat(service.offer(4000, 5).good / 5.0).isGreaterThan(0.95 * 1600);
    }

    @Test
    void afterOverloadTheLimitIsGone() {
        Service service = new Service(4, 4, 200);
        service.offer(5000, 5);
        assertThat(service.limit.limit()).isLessThan(300);
        service.offer(500, 10);
        assertThat(service.refused).isLessThan(10);
        service.offer(500, 20);
        assertThat(service.limit.limit()).isEqualTo(MOST);
        service.offer(1, 3600);
        assertThat(service.offer(900, 5).refused).isZero();
    }

    @Test
    void methodsShareOneGreatestNumberAndNothingElse() {
        AtomicInteger all = new AtomicInteger();
        AdmissionLimit one = new AdmissionLimit(10, all, 0);
        AdmissionLimit other = new AdmissionLimit(10, all, 0);
        for (int i = 0; i < 6; i++) {
            assertThat(one.enter()).isTrue();
        }
        for (int i = 0; i < 4; i++) {
            assertThat(other.enter()).isTrue();
        }
        assertThat(one.enter()).isFalse();
        assertThat(other.enter()).isFalse();
        one.leave(0, 1, 1);
        assertThat(other.enter()).isTrue();
        assertThat(one.running()).isEqualTo(5);
        assertThat(other.running()).isEqualTo(5);
        assertThat(all).hasValue(10);
    }
}
