package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.client.CircuitBreaker;
import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.client.ClientCluster;
import dev.rpcx.internal.client.Health;
import dev.rpcx.internal.client.Health.Outcome;
import dev.rpcx.internal.client.RetryBudget;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which calls are made again, how often, and at which instance. */
@Timeout(300)
class RetriesTest {
    /** A circuit has its trial so long after the failure that opened it. */
    private static final long CIRCUIT_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Makes calls with many callers while the link to one of three instances is cut, again and again. */
    private static ConcurrentLinkedQueue<RPCXException> cutUnderLoad(boolean idempotent, AtomicLong calls)
            throws Exception {
        ConcurrentLinkedQueue<RPCXException> failures = new ConcurrentLinkedQueue<>();
        AtomicBoolean stop = new AtomicBoolean();
        try (Instances instances = new Instances(3);
                Link one = new Link(instances.endpoint(0).port());
                Link other = new Link(instances.endpoint(1).port());
                Client client = Client.standard()) {
            instances.services.forEach(s -> s.parkMillis = 5);
            Instances.Who who = client.create(
                    Instances.Who.class,
                    Endpoints.of(
                            new Endpoint("127.0.0.1", one.port()),
                            new Endpoint("127.0.0.1", other.port()),
                            instances.endpoint(2)));
            List<Thread> callers = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                boolean later = i % 2 == 0;
                Thread caller = new Thread(() -> {
                    while (!stop.get()) {
                        try {
                            if (!idempotent) {
                                who.slow("x");
                            } else if (later) {
                                who.slowTwiceLater("x").join();
                            } else {
                                who.slowTwice("x");
                            }
                            calls.incrementAndGet();
                        } catch (java.util.concurrent.CompletionException e) {
                            failures.add((RPCXException) e.getCause());
                        } catch (RPCXException e) {
                            failures.add(e);
                        }
                    }
                });
                caller.start();
                callers.add(caller);
            }
            for (int cut = 0; cut < 6; cut++) {
                Link link = cut % 2 == 0 ? one : other;
                Instances.Counted behind = instances.services.get(cut % 2);
                long before = behind.executed.get();
                await().until(() -> behind.executed.get() > before + 20);
                link.cut();
            }
            stop.set(true);
            for (Thread caller : callers) {
                caller.join();
            }
        }
        return failures;
    }

    @Test
    void idempotentCallsLostWithTheirConnectionAreMadeAgain() throws Exception {
        AtomicLong calls = new AtomicLong();
        assertThat(cutUnderLoad(true, calls)).isEmpty();
        assertThat(calls.get()).isGreaterThan(100);
    }

    @Test
    void otherCallsLostWithTheirConnectionAreToldAsMaybeExecuted() throws Exception {
        AtomicLong calls = new AtomicLong();
        assertThat(cutUnderLoad(false, calls)).isNotEmpty().allSatisfy(e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        });
    }

    @Test
    void inAnOutageTheServersGetATenthMoreCalls() {
        try (Instances instances = new Instances(2);
                Client client = Client.standard()) {
            Instances.Who who = client.create(Instances.Who.class, Endpoints.of(instances.endpoints()));
            int calls = LongForm.of(2000, 50_000);
            for (int i = 0; i < calls; i++) {
                assertThatThrownBy(() -> who.failTwice("x"))
                        .isInstanceOfSatisfying(
                                RPCXException.class,
                                e -> assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED));
            }
            LongForm.figure(7, "in an outage %d calls became %d", calls, instances.executed());
            // these are a tenth of the calls, and the ten retries that a client begins with
            assertThat(instances.executed()).isBetween((long) calls + 100, calls * 11L / 10 + 10);
            long before = instances.executed();
            assertThatThrownBy(() -> who.fail("x")).isInstanceOf(RPCXException.class);
            assertThat(instances.executed()).isEqualTo(before + 1);
        }
    }

    /**
     * A server that drains may say that it did not run a call. That does not show that the call has cost the server
     * nothing.
     */
    @Test
    void aServerThatDrainsAndSaysThatItDidNotRunACallIsCalledAgainOutOfTheBudget() throws Exception {
        try (FakeServer server = new FakeServer(Settings.INITIAL, Unpooled.EMPTY_BUFFER, (request, peer) -> {
                    peer.send(Wire.GOAWAY, 0);
                    peer.error(request.id(), RPCXException.Code.UNAVAILABLE);
                });
                Client client = Client.builder().eventLoops(1).build()) {
            Instances.Who who = client.create(
                    Instances.Who.class,
                    server.endpoint().host(),
                    server.endpoint().port());
            int calls = 200;
            for (int i = 0; i < calls; i++) {
                boolean later = i % 2 == 0;
                assertThatThrownBy(() -> {
                            if (later) {
                                who.whoLater("x").join();
                            } else {
                                who.who("x");
                            }
                        })
                        .isInstanceOf(RuntimeException.class);
            }
            // these are a tenth of the calls, and the ten retries that a client begins with
            assertThat(server.requests.get()).isLessThanOrEqualTo(calls * 11 / 10 + 10);
        }
    }

    @Test
    void aHedgedCallIsAnsweredByTheQuickerInstance() throws Exception {
        try (Instances instances = new Instances(2);
                Client client = Client.standard()) {
            Instances.Who who = client.create(Instances.Who.class, Endpoints.of(instances.endpoints()));
            await().until(() -> who.who("x") == 0);
            await().until(() -> who.who("x") == 1);
            instances.services.get(0).parkMillis = 20_000;
            for (int i = 0; i < 4; i++) {
                assertThat(who.slowHedged("x")).isEqualTo(1);
                assertThat(who.slowHedgedLater("x").get(10, TimeUnit.SECONDS)).isEqualTo(1);
            }
        }
    }

    private static int left(RetryBudget budget) {
        int left = 0;
        while (budget.spend()) {
            left++;
        }
        return left;
    }

    @Test
    void whatAnOpenCircuitRefusesEarnsNoRetry() throws Exception {
        // if the pause of the circuit passes meanwhile, one of the calls may be its trial and close it
        Again.upToFiveTimes(200, RetriesTest::assertTheCircuitIsOpenForFiftyCallsThatEarnNoRetry);
    }

    private static void assertTheCircuitIsOpenForFiftyCallsThatEarnNoRetry() {
        try (Instances instances = new Instances(1);
                Client client = Client.builder().circuitBreaker(0.5).build()) {
            Instances.Who who = client.create(Instances.Who.class, Endpoints.of(instances.endpoints()));
            assertThat(who.who("x")).isZero();
            ClientCluster route = client.core().clusters.values().iterator().next();
            for (int i = 0; i < 40; i++) {
                route.recordOutcome(Health.Outcome.FAILED, CircuitBreaker.PERMITTED);
            }
            left(route.budget());
            int refused = 0;
            for (int i = 0; i < 50; i++) {
                try {
                    who.who("x");
                } catch (RPCXException open) {
                    refused++;
                }
            }
            assertThat(refused).isGreaterThan(40);
            assertThat(left(route.budget())).isZero();
        }
    }

    @Test
    void theCircuitOpensAfterFailuresAndClosesAfterATrial() {
        AtomicLong clock = new AtomicLong();
        CircuitBreaker breaker = new CircuitBreaker(0.5, clock::get);
        fail(breaker, 19);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.PERMITTED);
        fail(breaker, 1);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.REFUSED);
        clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
        long trial = breaker.permit();
        expectTrial(trial);
        assertThat(breaker.permit()).as("the others").isEqualTo(CircuitBreaker.REFUSED);
        breaker.ended(Outcome.FAILED, trial);
        clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(999));
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.REFUSED);
        clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(1));
        trial = breaker.permit();
        expectTrial(trial);
        breaker.ended(Outcome.ANSWERED, trial);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.PERMITTED);
        // half of the calls of ten seconds have to fail; older ones do not count
        for (int i = 0; i < 30; i++) {
            breaker.ended(i % 3 == 0 ? Outcome.FAILED : Outcome.ANSWERED, CircuitBreaker.PERMITTED);
        }
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.PERMITTED);
        clock.addAndGet(TimeUnit.SECONDS.toNanos(11));
        fail(breaker, 20);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.REFUSED);
    }

    private static void fail(CircuitBreaker breaker, int calls) {
        for (int i = 0; i < calls; i++) {
            breaker.ended(Outcome.FAILED, CircuitBreaker.PERMITTED);
        }
    }

    @Test
    void onlyATrialThatIsAnsweredClosesTheCircuit() {
        AtomicLong clock = new AtomicLong();
        CircuitBreaker breaker = new CircuitBreaker(0.5, clock::get);
        fail(breaker, 20);
        breaker.ended(Outcome.ANSWERED, CircuitBreaker.PERMITTED);
        assertThat(breaker.permit()).as("after a call from before").isEqualTo(CircuitBreaker.REFUSED);
        clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
        for (int i = 0; i < 3; i++) {
            long untold = breaker.permit();
            expectTrial(untold);
            assertThat(breaker.permit()).as("beside the trial").isEqualTo(CircuitBreaker.REFUSED);
            // the trial was cancelled or had too little time, so the next call is a trial at once
            breaker.ended(Outcome.UNKNOWN, untold);
        }
        long trial = breaker.permit();
        expectTrial(trial);
        breaker.ended(Outcome.ANSWERED, trial);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.PERMITTED);
    }

    private static void pass(AtomicLong clock, int millis) {
        clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
    }

    /**
     * Returns two trials that are in flight at the same time. The second one began when the pause after the first one
     * was over.
     */
    private static long[] trials(CircuitBreaker breaker, AtomicLong clock) {
        fail(breaker, 20);
        pass(clock, 1000);
        long slow = breaker.permit();
        pass(clock, 1000);
        long next = breaker.permit();
        expectTrial(slow);
        expectTrial(next);
        pass(clock, 500);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.REFUSED);
        return new long[] {slow, next};
    }

    /** Otherwise a service whose calls take longer than a pause would never be called again. */
    @Test
    void ofTrialsThatTakeLongerThanAPauseTheFirstAnswerClosesTheCircuit() {
        AtomicLong clock = new AtomicLong();
        CircuitBreaker breaker = new CircuitBreaker(0.5, clock::get);
        long[] trials = trials(breaker, clock);
        breaker.ended(Outcome.ANSWERED, trials[0]);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.PERMITTED);
        // what the other trials say comes too late to count
        breaker.ended(Outcome.FAILED, trials[1]);
        breaker.ended(Outcome.UNKNOWN, trials[1]);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.PERMITTED);
        pass(clock, 11_000);
        fail(breaker, 20);
        breaker.ended(Outcome.ANSWERED, trials[1]);
        assertThat(breaker.permit()).as("open again").isEqualTo(CircuitBreaker.REFUSED);
    }

    @Test
    void aTrialThatFailsBesideALaterOneNeitherMakesThePauseLongerNorIsHeardAgain() {
        AtomicLong clock = new AtomicLong();
        CircuitBreaker breaker = new CircuitBreaker(0.5, clock::get);
        long[] trials = trials(breaker, clock);
        breaker.ended(Outcome.FAILED, trials[0]);
        breaker.ended(Outcome.ANSWERED, trials[0]);
        breaker.ended(Outcome.UNKNOWN, trials[0]);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.REFUSED);
        pass(clock, 500);
        expectTrial(breaker.permit());
        breaker.ended(Outcome.ANSWERED, trials[1]);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.PERMITTED);
    }

    @Test
    void anAnswerFromBeforeAFailureDoesNotCloseTheCircuit() {
        AtomicLong clock = new AtomicLong();
        CircuitBreaker breaker = new CircuitBreaker(0.5, clock::get);
        long[] trials = trials(breaker, clock);
        breaker.ended(Outcome.FAILED, trials[1]);
        breaker.ended(Outcome.UNKNOWN, trials[1]);
        breaker.ended(Outcome.ANSWERED, trials[0]);
        pass(clock, 999);
        assertThat(breaker.permit()).isEqualTo(CircuitBreaker.REFUSED);
        pass(clock, 1);
        expectTrial(breaker.permit());
    }

    private static void expectTrial(long permit) {
        assertThat(permit).isNotEqualTo(CircuitBreaker.PERMITTED).isNotEqualTo(CircuitBreaker.REFUSED);
    }

    @RPCXServer("sick")
    static final class Sick {
        volatile boolean sick = true;
        final AtomicInteger asked = new AtomicInteger();
        final AtomicInteger taken = new AtomicInteger();

        @Method
        Flow.Publisher<String> items(int n) {
            return new StreamsTest.Made<>(n, i -> "item " + i);
        }

        /** Returns a stream that never has an item. */
        @Method
        Flow.Publisher<String> news() {
            return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {}

                @Override
                public void cancel() {}
            });
        }

        @Method
        int count(int n) {
            return n;
        }

        /** Subscribes to the items, and never answers. */
        @Method
        CompletableFuture<Integer> take(Flow.Publisher<String> items) {
            items.subscribe(new StreamsTest.Collected<>(1));
            taken.incrementAndGet();
            return new CompletableFuture<>();
        }

        /** Starts a server that refuses each call before its handler while {@link #sick} is set. */
        Server server() {
            return Server.builder(RegistryServer.registry(this))
                    .interceptor((call, next) -> {
                        asked.incrementAndGet();
                        if (sick) {
                            throw RPCXException.refused(RPCXException.Code.OVERLOADED, "sick");
                        }
                        return next.proceed(call);
                    })
                    .build()
                    .start();
        }
    }

    @RPCXClient(remoteServerName = "sick")
    interface SickClient {
        Flow.Publisher<String> items(int n);

        Flow.Publisher<String> news();

        int count(int n);

        @Method("count")
        CompletableFuture<Integer> countLater(int n);

        int take(Flow.Publisher<String> items);

        @Method("take")
        CompletableFuture<Integer> takeLater(Flow.Publisher<String> items);
    }

    /** A caller whose call is answered at its second attempt hears of no failure, and neither does the circuit. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void callsAreCountedByTheCircuitAndNotTheirAttempts(boolean isAsync) {
        AtomicInteger attempts = new AtomicInteger();
        AtomicInteger refused = new AtomicInteger();
        Server server = Server.builder(RegistryServer.registry(new Sick()))
                .interceptor((call, next) -> {
                    if (attempts.incrementAndGet() % 2 == 1 && refused.incrementAndGet() <= 9) {
                        throw RPCXException.refused(RPCXException.Code.UNAVAILABLE, "not now");
                    }
                    return next.proceed(call);
                })
                .build()
                .start();
        try (Client client = Client.builder().circuitBreaker(0.4).build()) {
            SickClient calls = client.create(SickClient.class, "127.0.0.1", server.port());
            for (int i = 0; i < 30; i++) {
                assertThat(isAsync ? calls.countLater(3).join() : calls.count(3))
                        .isEqualTo(3);
            }
            assertThat(refused).hasValueGreaterThanOrEqualTo(9);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /**
     * Makes 20 calls that fail, and asserts that the circuit refuses the next one. The circuit opens at the twentieth
     * failure.
     */
    private static void failTwentyTimesAndThenBehindTheCircuit(ThrowingCallable call) {
        long began = 0;
        for (int i = 0; i < 20; i++) {
            began = System.nanoTime();
            assertThatThrownBy(call).hasMessageContaining("sick");
        }
        assertBehindTheCircuit(began, call);
    }

    /**
     * Asserts that the circuit refuses the call. The circuit has opened after {@code began}. If the pause of the open
     * circuit may have passed since, the call may be its trial, which fails and begins another pause. Then the call is
     * made again.
     *
     * @return how the call has ended
     */
    private static Throwable assertBehindTheCircuit(long began, ThrowingCallable call) {
        long opened = began;
        while (true) {
            long again = System.nanoTime();
            Throwable end = catchThrowable(call);
            boolean mayBeTrial = System.nanoTime() - opened >= CIRCUIT_PAUSE_NANOS;
            if (!mayBeTrial || !String.valueOf(end).contains("sick")) {
                assertThat(end).hasMessageContaining("circuit");
                return end;
            }
            opened = again;
        }
    }

    @Test
    void streamsThatFailOpenTheCircuitAndOneThatBringsSomethingClosesIt() throws Exception {
        Sick sick = new Sick();
        Server server = sick.server();
        try (Client client = Client.builder().circuitBreaker(0.5).build()) {
            SickClient calls = client.create(SickClient.class, "127.0.0.1", server.port());
            failTwentyTimesAndThenBehindTheCircuit(() -> collected(calls).all());
            sick.sick = false;
            await().ignoreExceptions().until(() -> collected(calls).all().size() == 3);
            assertThat(collected(calls).all()).hasSize(3);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static boolean isTaken(SickClient calls) {
        StreamsTest.Collected<String> news = new StreamsTest.Collected<>(10);
        calls.news().subscribe(news);
        return !(news.end.isDone() && failure(news).contains("circuit"));
    }

    private static String failure(StreamsTest.Collected<String> ended) {
        return catchThrowable(ended::all).getMessage();
    }

    /**
     * Otherwise a client that only waits for news could begin just one stream a second after a circuit has opened once.
     */
    @Test
    void aStreamWithoutAnItemClosesTheCircuitOnceItsServerIsHeardOf() throws Exception {
        Sick sick = new Sick();
        Server server = sick.server();
        try (Client client = Client.builder().circuitBreaker(0.5).build()) {
            SickClient calls = client.create(SickClient.class, "127.0.0.1", server.port());
            failTwentyTimesAndThenBehindTheCircuit(() -> collected(calls).all());
            // if a pause has passed meanwhile, a stream that is taken then is a trial, which fails
            Again.upToFiveTimes(200, () -> assertThat(isTaken(calls)).isFalse());
            sick.sick = false;
            await().until(() -> isTaken(calls) && isTaken(calls) && isTaken(calls));
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** Otherwise a circuit that has opened once lets one upload a second through, until the first one ends. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anUploadClosesTheCircuitOnceItsServerAsksForItems(boolean isAsync) {
        Sick sick = new Sick();
        Server server = sick.server();
        try (Client client = Client.builder().circuitBreaker(0.5).build()) {
            SickClient calls = client.create(SickClient.class, "127.0.0.1", server.port());
            failTwentyTimesAndThenBehindTheCircuit(() -> calls.count(1));
            sick.sick = false;
            Flow.Publisher<String> endless = to -> {};
            await().until(() -> {
                CompletableFuture<Integer> upload = isAsync
                        ? calls.takeLater(endless)
                        : CompletableFuture.supplyAsync(() -> calls.take(endless), task -> new Thread(task).start());
                await().until(() -> upload.isDone() || sick.taken.get() > 0);
                return sick.taken.get() > 0;
            });
            ClientAddress route = client.core().address("127.0.0.1", server.port());
            // while the circuit is open, this question begins a trial of its own, which never ends here
            await().ignoreExceptions().until(() -> route.calledAgain() == CircuitBreaker.PERMITTED);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** Otherwise a caller that gives each stream up as it begins would keep an open circuit open. */
    @Test
    void aStreamThatIsGivenUpAsItBeginsIsNoTrial() throws Exception {
        Sick sick = new Sick();
        Server server = sick.server();
        try (Client client = Client.builder().circuitBreaker(0.5).build()) {
            SickClient calls = client.create(SickClient.class, "127.0.0.1", server.port());
            failTwentyTimesAndThenBehindTheCircuit(() -> collected(calls).all());
            sick.sick = false;
            await().ignoreExceptions().until(() -> {
                givenUpAtOnce(calls);
                return collected(calls).all().size() == 3;
            });
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static void givenUpAtOnce(SickClient calls) {
        calls.items(3).subscribe(new StreamsTest.Collected<>(0) {
            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                subscription.cancel();
            }
        });
    }

    private static StreamsTest.Collected<String> collected(SickClient calls) {
        StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(10);
        calls.items(3).subscribe(collected);
        return collected;
    }

    @Test
    void behindAnOpenCircuitNothingIsSent() {
        Sick sick = new Sick();
        Server server = sick.server();
        try (Client client = Client.builder().circuitBreaker(0.5).build()) {
            SickClient calls = client.create(SickClient.class, Endpoints.of(new Endpoint("127.0.0.1", server.port())));
            long began = System.nanoTime();
            for (int i = 0; i < 40; i++) {
                assertThatThrownBy(() -> calls.count(1)).isInstanceOf(RPCXException.class);
            }
            assertThat(sick.asked.get()).isLessThan(25);
            assertThat(assertBehindTheCircuit(began, () -> calls.count(1)))
                    .isInstanceOfSatisfying(
                            RPCXException.class,
                            e -> assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED));
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /**
     * Of two instances, the client always chooses the one with fewer calls in flight. This is the one at which a call
     * has just ended.
     */
    @ParameterizedTest
    @ValueSource(strings = {"hedge", "hedge later", "again", "again later"})
    void ofTwoInstancesTheOtherHasTheNextAttempt(String way) throws Exception {
        try (Instances instances = new Instances(2);
                Client client = Client.standard()) {
            Instances.Who who = client.create(Instances.Who.class, Endpoints.of(instances.endpoints()));
            Instances.Counted failing = instances.services.get(0);
            Instances.Counted other = instances.services.get(1);
            other.parkMillis = 60_000;
            List<CompletableFuture<Integer>> held = new ArrayList<>();
            await().until(() -> {
                held.add(who.slowTwiceLater("x"));
                return other.executed.get() > 0;
            });
            await().until(() -> held.stream().filter(call -> !call.isDone()).count() == other.executed.get());
            other.parkMillis = 0;
            failing.parkMillis = 60_000;
            failing.isSick = way.startsWith("again");
            int answered = switch (way) {
                case "hedge" -> who.slowHedged("x");
                case "hedge later" -> who.slowHedgedLater("x").join();
                case "again" -> who.slowTwice("x");
                default -> who.slowTwiceLater("x").join();
            };
            assertThat(answered).isEqualTo(other.instance);
            held.forEach(call -> call.cancel(true));
        }
    }

    @RPCXClient(remoteServerName = "counted")
    interface HedgedButNotIdempotent {
        @Method(hedgeMillis = 5)
        int who(String key);
    }

    @Test
    void hedgingNeedsAnIdempotentMethod() {
        try (Client client = Client.standard()) {
            assertThatThrownBy(() -> client.create(HedgedButNotIdempotent.class, "127.0.0.1", 9))
                    .hasMessageContaining("hedgeMillis");
            assertThatThrownBy(() -> Client.builder().circuitBreaker(0)).hasMessageContaining("circuitBreaker");
        }
    }
}
