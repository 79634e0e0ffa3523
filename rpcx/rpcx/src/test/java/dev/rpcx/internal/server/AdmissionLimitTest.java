package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.LongForm;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests the admission limit with services of known capacity, in simulated time. So the result depends only on
 * arithmetic, and not on the load of this machine.
 */
class AdmissionLimitTest {
    private static final int HONEST_ADDRESSES = 8;

    private static final int MAX = 10_000;
    private static final int MAX_CONNECTIONS = 16;
    private static final int NONE = -1;

    /**
     * Simulates handlers that share workers. Calls arrive at random, and are served in the order of their arrival. When
     * the time of a waiting call is over, {@code isInterrupted} decides what happens. Either the call gives up its
     * place in the queue, as it does if its handler is interrupted, or the handler later works for nobody.
     */
    private static final class Service {
        /** @param kind null for good traffic */
        private record Job(
                long beganNanos,
                long deadlineNanos,
                @Nullable Attack kind,
                int connection,
                AdmissionLimit.Group of) {}

        private record Event(long atNanos, Job ending) {}

        final AdmissionLimit limits = new AdmissionLimit(MAX, new AtomicInteger(), 0);

        /** Attackers have one address. */
        final AdmissionLimit.Group limit = limits.group(HONEST_ADDRESSES);

        /** The address of the next good call is this number modulo {@code HONEST_ADDRESSES}. */
        private int address;

        private final Random random = new Random(1);
        private final PriorityQueue<Event> ends = new PriorityQueue<>((a, b) -> Long.compare(a.atNanos(), b.atNanos()));
        private final ArrayDeque<Job> waiting = new ArrayDeque<>();
        private final long callersMillis;
        private final boolean isInterrupted;
        private int workers;

        /** Whether the working times of handlers are exponentially distributed. */
        private boolean isVaried;

        /** Whether calls that wait for a worker have not begun. */
        private boolean isPool;

        private double workMillis;

        /** Whether calls of {@link Attack#ABOUT_AS_LONG_AS_IT_TAKES} end with their time, whatever handlers do. */
        private boolean isHastyCutOff;

        /** Whether good calls end with their time too. */
        private boolean isCutOff;

        /** {@link Attack#ABOUT_AS_LONG_AS_IT_TAKES} gives this fraction of the time that the handler works. */
        private double hastyShare = 1;

        /** So many calls a second sleep until they are cancelled. They come beside the calls of any attack. */
        private double sleepersPerSecond;

        /** So many calls a second wait for news for thirty seconds, and their callers give them more time than that. */
        private double pollsPerSecond;

        /** Whether each call works exactly as long as any other. */
        private boolean isExact;

        /** So many calls, of the attack if there is one, arrive at once every two seconds. */
        private int bunch;

        private long nextBunchNanos;

        private int busy;
        private long nowNanos;
        private int good;
        private int late;
        private int refused;

        /** Counts the handlers that each connection runs. {@code goodOf} counts its calls that ended in time. */
        private final int[] own = new int[MAX_CONNECTIONS];

        private final int[] goodOf = new int[MAX_CONNECTIONS];

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
            return offer(perSecond, 0, null, seconds);
        }

        /** Offers so many calls a second beside an attacker's calls. */
        Service offer(double perSecond, double attackPerSecond, @Nullable Attack attack, double seconds) {
            good = 0;
            late = 0;
            refused = 0;
            long until = nowNanos + (long) (seconds * 1e9);
            while (true) {
                if (bunch > 0 && nowNanos >= nextBunchNanos) {
                    nextBunchNanos = nowNanos + TimeUnit.SECONDS.toNanos(2);
                    for (int i = 0; i < bunch; i++) {
                        arrive(attack);
                    }
                }
                double all = perSecond + attackPerSecond + sleepersPerSecond + pollsPerSecond;
                long arrival = nowNanos + (long) (-Math.log(1 - random.nextDouble()) * 1e9 / all);
                endUntil(Math.min(arrival, until));
                if (arrival >= until) {
                    return this;
                }
                double chosen = random.nextDouble() * all;
                Attack kind = chosen < attackPerSecond
                        ? attack
                        : chosen < attackPerSecond + sleepersPerSecond
                                ? Attack.SLEEPS
                                : chosen < all - perSecond ? Attack.POLLS : null;
                arrive(kind);
            }
        }

        private void arrive(@Nullable Attack kind) {
            AdmissionLimit.Group of = kind == null ? limits.group(address++ % HONEST_ADDRESSES) : limit;
            if (of.admit()) {
                long given = kind == null
                        ? TimeUnit.MILLISECONDS.toNanos(callersMillis)
                        : kind == Attack.ABOUT_AS_LONG_AS_IT_TAKES
                                ? (long) (hastyShare * workMillis * 1e6)
                                : kind.givenMicros * 1000;
                waiting.add(new Job(nowNanos, nowNanos + given, kind, NONE, of));
                startSome();
            } else {
                limit.refused(nowNanos);
                refused += kind == null ? 1 : 0;
            }
        }

        /** Makes so many calls at once, which take nearly no time and are given ten seconds. */
        void quick(int calls) {
            for (int i = 0; i < calls; i++) {
                if (limit.admit()) {
                    long began = nowNanos - TimeUnit.MICROSECONDS.toNanos(200);
                    limit.release(began, began + TimeUnit.SECONDS.toNanos(10), nowNanos, true);
                }
            }
        }

        /** Offers so many calls a second by each of these connections. */
        Service offer(double[] perSecond, double seconds) {
            good = 0;
            late = 0;
            refused = 0;
            Arrays.fill(goodOf, 0);
            double all = Arrays.stream(perSecond).sum();
            long until = nowNanos + (long) (seconds * 1e9);
            while (true) {
                long arrival = nowNanos + (long) (-Math.log(1 - random.nextDouble()) * 1e9 / all);
                endUntil(Math.min(arrival, until));
                if (arrival >= until) {
                    return this;
                }
                double chosen = random.nextDouble() * all;
                int connection = 0;
                while (chosen >= perSecond[connection]) {
                    chosen -= perSecond[connection++];
                }
                if (limits.group(connection % HONEST_ADDRESSES).admit(own[connection], own[connection])) {
                    own[connection]++;
                    long deadline = nowNanos + TimeUnit.MILLISECONDS.toNanos(callersMillis);
                    waiting.add(
                            new Job(nowNanos, deadline, null, connection, limits.group(connection % HONEST_ADDRESSES)));
                    startSome();
                } else {
                    limit.refused(nowNanos);
                    refused++;
                }
            }
        }

        private void leave(Job job) {
            if (job.connection() != NONE) {
                own[job.connection()]--;
            }
            if (job.kind() == null || job.kind() == Attack.ALL_THE_TIME_THERE_IS) {
                // a caller that waits longer than it has time cancels its call, which then brings no result
                job.of().release(job.beganNanos(), job.deadlineNanos(), nowNanos, nowNanos < job.deadlineNanos());
            } else if (job.kind().begins) {
                boolean isCutOff = isHastyCutOff && nowNanos >= job.deadlineNanos();
                job.of().release(job.beganNanos(), job.deadlineNanos(), nowNanos, job.kind().isDone && !isCutOff);
            } else {
                job.of().leaveUnbegun(job.beganNanos(), job.deadlineNanos(), nowNanos);
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
                    if (isPool) {
                        late++;
                        job.of().leaveUnbegun(job.beganNanos(), job.deadlineNanos(), nowNanos);
                        continue;
                    }
                }
                if (job.kind() == null) {
                    if (nowNanos < job.deadlineNanos()) {
                        good++;
                        if (job.connection() != NONE) {
                            goodOf[job.connection()]++;
                        }
                    } else {
                        late++;
                    }
                }
                leave(job);
                startSome();
            }
        }

        private void startSome() {
            while (busy < workers && !waiting.isEmpty()) {
                busy++;
                Job job = waiting.remove();
                double mean = job.kind() == null ? workMillis : job.kind().workShare * workMillis;
                // a time that is neither exact nor varied lies between 0.7 and 1.3 of the mean
                double millis = mean
                        * (isExact
                                ? 1
                                : isVaried ? -Math.log(1 - random.nextDouble()) : 0.7 + 0.6 * random.nextDouble());
                long end = nowNanos
                        + (job.kind() == Attack.SLEEPS
                                ? TimeUnit.MICROSECONDS.toNanos(Attack.SLEEPS.givenMicros / 20 * 19)
                                : job.kind() == Attack.POLLS ? TimeUnit.SECONDS.toNanos(30) : (long) (millis * 1e6));
                boolean endsWithItsTime = isHastyCutOff && job.kind() == Attack.ABOUT_AS_LONG_AS_IT_TAKES
                        || isCutOff && job.kind() == null;
                ends.add(new Event(
                        endsWithItsTime ? Math.min(end, Math.max(nowNanos, job.deadlineNanos())) : end, job));
            }
        }
    }

    /**
     * The kinds of calls that an attacker can make. Each call is harmless by itself: it makes no more work for the
     * service than a good call.
     */
    private enum Attack {
        /** The time of the call is over before the handler begins. */
        NO_TIME(1, 0, false, false),
        /** The time of the call is over when the handler ends, which does not look at the time. */
        TOO_LITTLE_TIME(3_000, 1, true, true),
        LITTLE_TIME(6_000, 1, true, true),
        ABOUT_AS_LONG_AS_IT_TAKES(0, 1, true, true),
        /** The caller gives half of what good callers give. A handler that works for 120 ms needs more. */
        HALF_THE_TIME(100_000, 1, true, true),
        /** The call makes a twentieth of the work of a good call, and its caller gives little time. */
        HARDLY_ENOUGH_FOR_A_CHEAP_CALL(5_100, 0.05, true, true),
        CANCELS_AT_ONCE(200_000, 0.01, true, false),
        CANCELS_LATE(200_000, 0.85, true, false),
        FAILS_AT_ONCE(200_000, 0.01, true, false),
        /** The call sleeps for nearly all of its ten seconds; see {@link Service#sleepersPerSecond}. */
        SLEEPS(10_000_000, 1, true, false),
        /** The call waits for thirty of its thirty-five seconds; see {@link Service#pollsPerSecond}. */
        POLLS(35_000_000, 1, true, true),
        /** The caller gives 2^50 µs. */
        ALL_THE_TIME_THERE_IS(1L << 50, 1, true, true);

        private final long givenMicros;
        private final double workShare;
        private final boolean begins;
        private final boolean isDone;

        Attack(long givenMicros, double workShare, boolean begins, boolean isDone) {
            this.givenMicros = givenMicros;
            this.workShare = workShare;
            this.begins = begins;
            this.isDone = isDone;
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"SLEEPS", "POLLS"}) // so many calls of these kinds would take all places
    void whatOthersGiveTheirCallsDoesNotSteerTheLimit(Attack attack) {
        for (double workMillis : new double[] {4, 120}) {
            for (int factor = 1; factor <= LongForm.of(9, 81); factor *= 3) {
                // there are so many workers that no call has to wait
                Service service = new Service(100_000, workMillis, 200, false);
                service.offer(1000, 25);
                service.offer(1000, factor * 1000, attack, 5);
                service.offer(1000, factor * 1000, attack, 15);
                assertThat(service.good / 15.0)
                        .as(
                                "in time a second, %s ms of work beside %s × as many; limit %s",
                                workMillis, factor, service.limit.limit())
                        .isGreaterThan(0.95 * 1000);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"SLEEPS", "POLLS"}) // so many calls of these kinds would take all places
    void inOverloadGoodCallsKeepTheirPartWhateverTheOthersGive(Attack attack) {
        for (int factor : new int[] {1, 3, 9}) {
            Service service = new Service(4, 4, 200, false);
            service.offer(500, 10);
            double cost = 1 + factor * attack.workShare;
            service.offer(2000, factor * 2000, attack, 5);
            service.offer(2000, factor * 2000, attack, 30);
            assertThat(service.good / 30.0)
                    .as(
                            "in time a second beside %s × as many; late %s, limit %s",
                            factor, service.late, service.limit.limit())
                    .isGreaterThan(0.9 * Math.min(2000, service.capacity() / cost));
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.5, 0.8, 1, 1.5, 2.5, 4, 8})
    void callersWhoGiveHardlyAsMuchAsItTakesCostTheOthersNothing(double hastyShare) {
        for (int hastyPerSecond : new int[] {50, 250, 1000}) {
            Service service = new Service(100_000, 20, 1000, false);
            service.isVaried = true;
            service.hastyShare = hastyShare;
            service.offer(500, 10);
            service.offer(500, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 30);
            assertThat(service.good / 30.0)
                    .as("in time a second beside %s hasty ones; limit %s", hastyPerSecond, service.limit.limit())
                    .isGreaterThan(0.95 * 500);
        }
    }

    /**
     * The first that end after a start, or after a cut, are the quick ones: those that take long have not ended yet. A
     * few callers with less time than a handler takes are late all the time.
     */
    @ParameterizedTest
    @CsvSource({
        // the columns are: work ms, good calls a second, hasty ones, the fraction of the work that these give
        "300, 500, 20, 0.8",
        "300, 500, 100, 0.3",
        "100, 500, 20, 0.8",
        "1000, 50, 20, 0.8",
        "300, 500, 1000, 0.8",
        "300, 500, 1000, 0.3",
        "30, 500, 20, 0.5",
        "30, 500, 1000, 0.5",
        "300, 100, 20, 1.5",
        "300, 100, 300, 2.5",
        "2000, 50, 50, 0.5",
    })
    void hastyCallersOfAHandlerWhoseTimesVaryCostTheOthersNothing(
            double workMillis, int perSecond, int hastyPerSecond, double hastyShare) {
        for (int begin = 0; begin < 6; begin++) {
            Service service = new Service(100_000, workMillis, 10_000, false);
            service.isHastyCutOff = begin >= 3;
            service.isVaried = true;
            service.hastyShare = hastyShare;
            if (begin % 3 == 1) {
                service.offer(perSecond, 10);
            } else if (begin % 3 == 2) {
                // the service was overloaded before, so that there is a limit
                service.workers = (int) (0.3 * perSecond * workMillis / 1000) + 1;
                service.offer(perSecond, 60);
                service.workers = 100_000;
                service.offer(perSecond, 30);
            }
            service.offer(perSecond, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 15);
            int first = service.good;
            service.offer(perSecond, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 45);
            assertThat(first / 15.0)
                    .as("in time a second; begin %s, limit %s", begin, service.limit.limit())
                    // fewer calls end in time until the limit has learnt that a call takes seconds
                    .isGreaterThan((workMillis < 1500 ? 0.7 : 0.35) * perSecond);
            assertThat(service.good / 45.0)
                    .as("in time a second; begin %s, limit %s", begin, service.limit.limit())
                    .isGreaterThan((workMillis < 1500 ? 0.9 : 0.75) * perSecond);
        }
    }

    /** Many quick calls in one moment would decide a mean over all calls, such as that of their times, for long. */
    @ParameterizedTest
    @CsvSource({
        // the columns are: work ms, good calls a second, hasty ones of 6 ms
        "100, 200, 15",
        "20, 400, 30",
        "300, 50, 6",
    })
    void aMomentOfQuickCallsDoesNotLetTheHastyDecideForTheOthers(double workMillis, int perSecond, int hastyPerSecond) {
        for (int bursts = 1; bursts <= 6; bursts += 5) {
            Service service = new Service(100_000, workMillis, 10_000, false);
            service.isHastyCutOff = true;
            service.hastyShare = 6 / workMillis;
            service.offer(perSecond, 5);
            int good = 0;
            for (int i = 0; i < 6; i++) {
                if (i < bursts) {
                    service.quick(3000);
                }
                service.offer(perSecond, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 5);
                good += service.good;
            }
            assertThat(good / 30.0)
                    .as("in time a second; %s bursts, limit %s", bursts, service.limit.limit())
                    .isGreaterThan(0.9 * perSecond);
        }
    }

    /** The hasty callers come first, and nothing is known of the others' calls as these begin. */
    @ParameterizedTest
    @CsvSource({"100, 200, 15", "20, 400, 30"})
    void whereOnlyQuickCallsCameBeforeTheHastyDoNotDecideForLong(double workMillis, int perSecond, int hastyPerSecond) {
        Service service = new Service(100_000, workMillis, 10_000, false);
        service.isHastyCutOff = true;
        service.hastyShare = 6 / workMillis;
        for (int i = 0; i < 30; i++) {
            service.quick(100);
            service.offer(0, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 0.1);
        }
        service.offer(perSecond, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 10);
        service.offer(perSecond, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 30);
        assertThat(service.good / 30.0)
                .as("in time a second; limit %s", service.limit.limit())
                .isGreaterThan(0.9 * perSecond);
    }

    /**
     * The arguments of the method decide how long a call takes. Some calls sleep for ten seconds, and quick ones, which
     * are given hardly any time, come in bunches.
     */
    @ParameterizedTest
    @CsvSource({
        // the columns are: work ms, good calls a second, sleepers, hasty ones, the fraction of the work that these
        // give, how many of these come at once every 2 s, the fraction of good ones that is kept
        "5, 100, 20, 150, 1.1, 0, 0.9",
        "5, 100, 20, 1000, 1.1, 0, 0.9",
        "5, 500, 20, 20, 1.1, 0, 0.9",
        "50, 100, 20, 150, 1.1, 0, 0.9",
        "5, 100, 5, 5, 3, 0, 0.9",
        "5, 100, 20, 0, 1.05, 300, 0.8",
        "5, 100, 20, 0, 0.8, 300, 0.8",
        "50, 100, 20, 0, 0.6, 300, 0.8",
        "5, 100, 20, 0, 1.5, 300, 0.8",
        "10, 20, 5, 0, 0.6, 300, 0.6",
        "10, 500, 20, 0, 0.6, 1000, 0.8",
        // 950 calls sleep beside one good call at a time
        "5, 100, 100, 150, 1.1, 0, 0.4",
    })
    void thoseThatSleepAndThoseInAHurryCostTheOthersNothing(
            double workMillis,
            int perSecond,
            int sleepersPerSecond,
            int hastyPerSecond,
            double hastyShare,
            int bunch,
            double leastKept) {
        for (int begin = 0; begin < 2; begin++) {
            Service service = new Service(100_000, workMillis, 10_000, false);
            service.isHastyCutOff = true;
            service.hastyShare = hastyShare;
            if (begin == 1) {
                service.offer(perSecond, 10);
            }
            service.sleepersPerSecond = sleepersPerSecond;
            service.bunch = bunch;
            service.offer(perSecond, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 15);
            assertThat(service.good / 15.0)
                    .as("in time a second; begin %s, limit %s", begin, service.limit.limit())
                    .isGreaterThan(leastKept * perSecond);
            service.offer(perSecond, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 45);
            assertThat(service.good / 45.0)
                    .as("in time a second; begin %s, limit %s", begin, service.limit.limit())
                    .isGreaterThan(leastKept * perSecond);
        }
    }

    /** A handler that polls knows when its caller's time is over, and answers just before it. */
    @ParameterizedTest
    @CsvSource({
        // the columns are: work ms, callers' ms, calls a second, how many come at once every 2 s
        "2990, 3000, 100, 0",
        "9990, 10000, 30, 0",
        "1985, 2000, 2, 200",
        "29990, 30000, 10, 0",
    })
    void callsThatEndJustBeforeTheirTimeNeedNoLimit(double workMillis, long callersMillis, int perSecond, int bunch) {
        Service service = new Service(100_000, workMillis, callersMillis, false);
        service.isExact = true;
        service.bunch = bunch;
        service.offer(perSecond, 0, null, 120);
        assertThat(service.refused).isZero();
        assertThat(service.late).isZero();
    }

    /** A process that is not warm yet answers the first of these calls too late. */
    @ParameterizedTest
    @CsvSource({
        // the columns are: work ms, callers' ms, calls a second, how many come at once every 2 s, factor of the work
        // of the first calls
        "2990, 3000, 100, 0, 1.01",
        "2990, 3000, 100, 0, 1.5",
        "9990, 10000, 30, 0, 1.01",
        "29990, 30000, 10, 0, 1.01",
    })
    void callsThatEndJustBeforeTheirTimeAreServedAgainAfterSomeWereLate(
            double workMillis, long callersMillis, int perSecond, int bunch, double first) {
        for (boolean isInterrupted : new boolean[] {true, false}) {
            Service service = new Service(100_000, first * workMillis, callersMillis, isInterrupted);
            service.isExact = true;
            service.isCutOff = isInterrupted;
            service.bunch = bunch;
            service.offer(perSecond, 0, null, 2 * callersMillis / 1000.0);
            service.workMillis = workMillis;
            service.offer(perSecond, 0, null, 60 + 12 * callersMillis / 1000.0);
            service.offer(perSecond, 0, null, 60);
            // as many as run have to end before the limit rises a little
            assertThat(service.refused).as("limit %s", service.limit.limit()).isLessThan(6 * perSecond);
            assertThat(service.late).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {1, 7, 50})
    void quickCallsBesideLongPollsOfTheSameMethodAreAllServed(double pollsPerSecond) {
        Service service = new Service(100_000, 20, 1000, false);
        service.pollsPerSecond = pollsPerSecond;
        service.offer(50, 0, null, 180);
        assertThat(service.refused).isZero();
        assertThat(service.late).isZero();
    }

    /** A service meets this when the cache before it is lost. Little is known of what its calls take without a wait. */
    @ParameterizedTest
    @CsvSource({
        // the columns are: quiet calls a second, work ms, callers' ms, how many times the capacity is offered
        "0, 100, 500, 3",
        "5, 100, 500, 3",
        "20, 100, 500, 6",
        "0, 20, 200, 3",
        "5, 20, 200, 6",
        "5, 50, 200, 3",
    })
    void anOverloadThatComesAtOnceIsCut(int perSecond, double workMillis, long callersMillis, double times) {
        for (boolean isExact : new boolean[] {false, true}) {
            Service service = new Service(10, workMillis, callersMillis);
            service.isExact = isExact;
            service.offer(perSecond + 0.001, 30);
            service.offer(times * service.capacity(), 10);
            service.offer(times * service.capacity(), 30);
            assertThat(service.good / 30.0)
                    .as("in time a second; exact %s, limit %s", isExact, service.limit.limit())
                    .isGreaterThan(0.8 * service.capacity());
            assertThat(service.refused).isPositive();
        }
    }

    /** Nothing has been learnt of what calls take that do not wait. */
    @ParameterizedTest
    @ValueSource(doubles = {0.01, 0.05, 0.3, 1})
    void inOverloadFromTheFirstCallThePatientDoNotDecideForTheOthers(double patientShare) {
        for (boolean isVaried : new boolean[] {false, true}) {
            Service service = new Service(4, 4, 200, false);
            service.isVaried = isVaried;
            service.offer(2000, patientShare * 2000, Attack.ALL_THE_TIME_THERE_IS, 10);
            service.offer(2000, patientShare * 2000, Attack.ALL_THE_TIME_THERE_IS, 30);
            assertThat(service.good / 30.0)
                    .as("in time a second; varied %s, late %s, limit %s", isVaried, service.late, service.limit.limit())
                    .isGreaterThan(0.9 * service.capacity() / (1 + patientShare));
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.5, 0.8, 1, 1.5, 2.5, 4, 8})
    void callersWhoGiveHardlyAsMuchAsItTakesLeaveTheOthersTheirPartOfAnOverload(double hastyShare) {
        for (int hastyPerSecond : new int[] {100, 1000}) {
            Service service = new Service(16, 20, 1000, false);
            service.isVaried = true;
            service.hastyShare = hastyShare;
            service.offer(500, 10);
            service.offer(1600, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 5);
            service.offer(1600, hastyPerSecond, Attack.ABOUT_AS_LONG_AS_IT_TAKES, 30);
            double part = 1600.0 / (1600 + hastyPerSecond);
            assertThat(service.good / 30.0)
                    .as(
                            "in time a second beside %s hasty ones; late %s, limit %s",
                            hastyPerSecond, service.late, service.limit.limit())
                    .isGreaterThan(0.9 * part * service.capacity());
        }
    }

    @ParameterizedTest
    @CsvSource({
        // the columns are: workers, work ms, callers' ms, whether calls that are too late are interrupted
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
            // the calls that came before the first one was late have to end first
            service.offer(factor * service.capacity(), Math.max(8, 20 * callersMillis / 1000));
            service.offer(factor * service.capacity(), 20);
            assertThat(service.good / 20.0)
                    .as(
                            "of %s/s, at × %s; late %s, limit %s",
                            service.capacity(), factor, service.late, service.limit.limit())
                    .isGreaterThan(0.95 * service.capacity());
        }
    }

    /** A call that its connection's share refuses leaves the limit partly free, and counts for the limit as refused. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 8, MAX_CONNECTIONS})
    void anOverloadByManyConnectionsIsServedAsWellAsByOne(int connections) {
        for (int seed = 1; seed <= 3; seed++) {
            Service service = new Service(28, 78.3, 1355);
            service.isVaried = true;
            service.random.setSeed(seed);
            double[] perSecond = new double[connections];
            Arrays.fill(perSecond, 0.5 * service.capacity() / connections);
            service.offer(perSecond, 30);
            Arrays.fill(perSecond, 3.1 * service.capacity() / connections);
            service.offer(perSecond, 30);
            service.offer(perSecond, 60);
            assertThat(service.good / 60.0)
                    .as("in time a second; late %s, limit %s", service.late, service.limit.limit())
                    .isGreaterThan(0.92 * service.capacity());
        }
    }

    @Test
    void whereALimitHasSunkConnectionsShareItAndNotRequests() {
        for (int greedy : new int[] {1, 3, 8}) {
            Service service = new Service(4, 4, 200);
            double[] perSecond = new double[greedy + 1];
            Arrays.fill(perSecond, 10 * service.capacity());
            double modest = service.capacity() / (4 * greedy);
            perSecond[greedy] = modest;
            service.offer(perSecond, 5);
            service.offer(perSecond, 100);
            // this holds also where the modest connection is of the same group as a greedy one
            assertThat(service.goodOf[greedy] / 100.0)
                    .as("in time a second beside %s greedy connections; limit %s", greedy, service.limit.limit())
                    .isGreaterThan(0.85 * modest);
            assertThat(service.good / 100.0).isGreaterThan(0.95 * service.capacity());
        }
    }

    @ParameterizedTest
    @CsvSource({
        // the columns are: workers, work ms, callers' ms
        "4, 4, 200",
        "1, 1, 100",
        "64, 50, 1000",
        "8, 300, 2000",
        "500, 100, 1000",
        "500, 350, 1000",
        "500, 500, 1000",
    })
    void aConnectionThatIsAloneGetsNearlyAllThatCanBeDone(int workers, double workMillis, long callersMillis) {
        for (int factor : new int[] {2, 10}) {
            Service service = new Service(workers, workMillis, callersMillis);
            double[] perSecond = {factor * service.capacity()};
            service.offer(perSecond, Math.max(5, 20 * callersMillis / 1000));
            service.offer(perSecond, 20);
            assertThat(service.good / 20.0)
                    .as(
                            "of %s/s, at × %s; late %s, limit %s",
                            service.capacity(), factor, service.late, service.limit.limit())
                    .isGreaterThan(0.9 * service.capacity());
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
        // there are so many workers that no call ever waits
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
        assertThat(service.limit.limit()).isEqualTo(MAX);
        service.offer(1, 3600);
        assertThat(service.offer(900, 5).refused).isZero();
    }

    private static Service pool(int workers, double workMillis, long callersMillis) {
        Service service = new Service(workers, workMillis, callersMillis);
        service.isPool = true;
        return service;
    }

    @ParameterizedTest
    @CsvSource({
        // the columns are: workers, work ms, callers' ms
        "4, 4, 200",
        "1, 1, 100",
        "64, 50, 1000",
        "8, 300, 2000",
        "500, 100, 1000",
    })
    void inOverloadOfAPoolNearlyAllThatCanBeDoneIsDoneInTime(int workers, double workMillis, long callersMillis) {
        for (int factor : new int[] {2, 10}) {
            Service service = pool(workers, workMillis, callersMillis);
            service.offer(0.5 * service.capacity(), 5);
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
    void aPoolWhoseThreadsOthersHaveIsWaitedForByFewAndServesAgainWhenTheyAreBack() {
        Service service = pool(16, 10, 200);
        service.offer(800, 5);
        service.workers = 0;
        service.offer(800, 5);
        assertThat(service.limit.limit()).isEqualTo(AdmissionLimit.MIN_LIMIT);
        assertThat(service.offer(800, 5).late).isLessThan(200);
        service.workers = 16;
        service.offer(800, 5);
        assertThat(service.offer(800, 5).good / 5.0).isGreaterThan(0.95 * 800);
    }

    /** Once 3,000 calls a second that had hardly any time left cut 1,000 good ones to 79. */
    @Test
    void callsWhoseTimeIsNearlyOverDoNotCloseTheMethodToTheOthers() {
        Service service = new Service(100_000, 4, 10_000, false);
        service.offer(1000, 25);
        assertThat(service.offer(1000, 3000, Attack.TOO_LITTLE_TIME, 10).good / 10.0)
                .isGreaterThan(0.95 * 1000);
        // they do not do so either where no good call has ever been seen
        Service fresh = new Service(100_000, 4, 10_000, false);
        fresh.offer(0, 3000, Attack.LITTLE_TIME, 10);
        assertThat(fresh.offer(1000, 3000, Attack.LITTLE_TIME, 10).good / 10.0).isGreaterThan(0.95 * 1000);
    }

    @Test
    void aServerThatIsOverloadedFromItsFirstCallFindsItsLimit() {
        for (boolean isInterrupted : new boolean[] {true, false}) {
            Service service = new Service(4, 4, 200, isInterrupted);
            service.offer(5000, 5);
            assertThat(service.offer(5000, 20).good / 20.0).isGreaterThan(0.95 * service.capacity());
        }
    }

    /**
     * The process stood still for a moment. After that, calls come together and end soon, and the method is idle
     * between them.
     */
    @ParameterizedTest
    @ValueSource(ints = {10, 100, 250, 1000})
    void aMethodThatCatchesUpWithWhatComesTogetherIsOpenAgainSoon(int burstMillis) {
        AdmissionLimit.Group limit = new AdmissionLimit(MAX, new AtomicInteger(), 0).group(0);
        long now = 0;
        for (int i = 0; i < 100; i++) {
            together(limit, now, 100_000);
            now += TimeUnit.MILLISECONDS.toNanos(10);
        }
        int open = enter(limit);
        for (int i = 0; i < 20 && limit.limit() >= 20; i++) {
            now += TimeUnit.MILLISECONDS.toNanos(500);
            // the method is never idle: the next calls are there before the last ones end
            int next = enter(limit);
            leave(limit, open, now - TimeUnit.MILLISECONDS.toNanos(400), now);
            open = next;
        }
        leave(limit, open, now - TimeUnit.MILLISECONDS.toNanos(400), now);
        assertThat(limit.limit()).isLessThan(20);
        int refused = 0;
        int bursts = 10_000 / burstMillis;
        for (int i = 0; i < bursts; i++) {
            int some = together(limit, now, 100_000);
            refused += i >= bursts / 2 ? some : 0;
            now += TimeUnit.MILLISECONDS.toNanos(burstMillis);
        }
        assertThat(refused).isZero();
    }

    /** Has forty calls with 200 ms each begin at once and end after this time, and returns how many were refused. */
    private static int together(AdmissionLimit.Group limit, long now, long tookNanos) {
        int entered = enter(limit);
        leave(limit, entered, now, now + tookNanos);
        return 40 - entered;
    }

    private static int enter(AdmissionLimit.Group limit) {
        int entered = 0;
        for (int i = 0; i < 40; i++) {
            entered += limit.admit() ? 1 : 0;
        }
        return entered;
    }

    private static void leave(AdmissionLimit.Group limit, int count, long began, long now) {
        for (int i = 0; i < count; i++) {
            limit.release(began, began + TimeUnit.MILLISECONDS.toNanos(200), now, true);
        }
    }

    @Test
    void methodsShareOneGreatestNumberAndNothingElse() {
        AtomicInteger all = new AtomicInteger();
        AdmissionLimit.Group one = new AdmissionLimit(10, all, 0).group(0);
        AdmissionLimit.Group other = new AdmissionLimit(10, all, 0).group(0);
        for (int i = 0; i < 6; i++) {
            assertThat(one.admit()).isTrue();
        }
        for (int i = 0; i < 4; i++) {
            assertThat(other.admit()).isTrue();
        }
        assertThat(one.admit()).isFalse();
        assertThat(other.admit()).isFalse();
        one.release(0, 1, 1, true);
        assertThat(other.admit()).isTrue();
        assertThat(one.running()).isEqualTo(5);
        assertThat(other.running()).isEqualTo(5);
        assertThat(all).hasValue(10);
    }
}
