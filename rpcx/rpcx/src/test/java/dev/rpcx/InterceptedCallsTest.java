package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import java.security.Principal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests interceptors of a server that proceed later, on a thread of another call or on a thread of no call. */
@Timeout(60)
class InterceptedCallsTest {
    private record Named(String name) implements Principal {
        @Override
        public String getName() {
            return name;
        }
    }

    @RPCXServer("who")
    static final class Service {
        final AtomicInteger begun = new AtomicInteger();
        final AtomicInteger interrupted = new AtomicInteger();
        final CompletableFuture<String> passed = new CompletableFuture<>();
        final CountDownLatch mayEnd = new CountDownLatch(1);
        final AtomicReference<Asked> asked = new AtomicReference<>();
        final AtomicReference<RPCXFuture<String>> question = new AtomicReference<>();

        /**
         * Contains the futures of {@code never}. They are completed after the test, since what an open future has stays
         * charged.
         */
        final Queue<CompletableFuture<String>> unanswered = new ConcurrentLinkedQueue<>();

        /** An interceptor or a handler calls this method. */
        @Method
        CompletableFuture<String> pass(String text) {
            return passed;
        }

        /** Runs on when it is interrupted. */
        @Method
        String block(String text) {
            begun.incrementAndGet();
            for (boolean isOver = false; !isOver; ) {
                try {
                    mayEnd.await();
                    isOver = true;
                } catch (InterruptedException e) {
                    // its caller is gone
                }
            }
            return text;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled(String text) {
            return block(text);
        }

        /** Ends when it is interrupted. */
        @Method
        String heed(String text) throws InterruptedException {
            begun.incrementAndGet();
            try {
                mayEnd.await();
            } catch (InterruptedException e) {
                interrupted.incrementAndGet();
                throw e;
            }
            return text;
        }

        @Method
        CompletableFuture<String> never(String text) {
            begun.incrementAndGet();
            CompletableFuture<String> unanswered = new CompletableFuture<>();
            this.unanswered.add(unanswered);
            return unanswered;
        }

        /** Makes a call of its own, waits until its own caller is gone, and then returns the future of its call. */
        @Method
        CompletableFuture<String> asks(String text) {
            CallContext call = CallContext.current().orElseThrow();
            RPCXFuture<String> made = asked.get().pass(text);
            question.set(made);
            while (!call.isCancelled()) {
                LockSupport.parkNanos(1_000_000);
            }
            return made;
        }

        @Method
        Flow.Publisher<String> items(String text) {
            begun.incrementAndGet();
            return new Items();
        }

        @Method
        String who(String text) {
            begun.incrementAndGet();
            return CallContext.current()
                    .flatMap(CallContext::principal)
                    .map(Principal::getName)
                    .orElse("nobody");
        }
    }

    @RPCXClient(remoteServerName = "who")
    interface Calls {
        CompletableFuture<String> who(String text);

        CompletableFuture<String> block(String text);

        CompletableFuture<String> heed(String text);

        CompletableFuture<String> never(String text);

        CompletableFuture<String> asks(String text);

        CompletableFuture<String> pooled(String text);
    }

    @RPCXClient(remoteServerName = "who")
    interface Told {
        @OneWay
        void heed(String text);
    }

    @RPCXClient(remoteServerName = "who")
    interface StreamCalls {
        Flow.Publisher<String> items(String text);
    }

    /** Interceptors and handlers call these methods with a client of their own. */
    @RPCXClient(remoteServerName = "who")
    interface Asked {
        RPCXFuture<String> pass(String text);
    }

    /** A stream without items, which ends at once. */
    private static final class Items implements Flow.Publisher<String> {
        @Override
        public void subscribe(Flow.Subscriber<? super String> subscriber) {
            subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {}

                @Override
                public void cancel() {}
            });
            subscriber.onComplete();
        }
    }

    private final Service service = new Service();

    /** Contains, for each call that is kept, a task that goes on with it. */
    private final Map<String, Runnable> held = new ConcurrentHashMap<>();

    /** This is counted down when an interceptor learns that nobody waits for a future of {@code never} any more. */
    private final CountDownLatch givenUp = new CountDownLatch(1);

    private final Queue<Throwable> thrown = new ConcurrentLinkedQueue<>();
    private Server server;
    private Client client;

    @AfterEach
    void stop() {
        service.unanswered.forEach(future -> future.complete(""));
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private Calls serving(boolean isClassic, Duration time, Interceptor... interceptors) {
        Server.Builder builder =
                Server.builder(RegistryServer.registry(service)).classic(isClassic);
        for (Interceptor each : interceptors) {
            builder.interceptor(each);
        }
        server = builder.maxCallTime(time).build().start();
        client = client(isClassic);
        return client.create(Calls.class, "127.0.0.1", server.port());
    }

    /** Keeps each call until somebody has it go on, on whatever thread that is. */
    private Object holding(Interceptor.Invocation call, Interceptor.Next next) {
        CompletableFuture<Object> result = new CompletableFuture<>();
        held.put(String.valueOf(call.arguments()[0]), () -> {
            try {
                result.complete(next.proceed(call));
            } catch (Throwable t) {
                thrown.add(t);
                result.completeExceptionally(t);
            }
        });
        return result;
    }

    /** Takes the argument of a call as the name of its caller. A real interceptor finds out by a token who calls. */
    private static Object authenticating(Interceptor.Invocation call, Interceptor.Next next) throws Throwable {
        CallContext.current().orElseThrow().authenticate(new Named(String.valueOf(call.arguments()[0])));
        return next.proceed(call);
    }

    /** The caller may send the call again: what was answered in the handler's place has not executed it. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anInterceptorsOwnAnswerThatCannotBeSentWasNotExecuted(boolean isClassic) {
        Calls calls = serving(
                isClassic, Duration.ofSeconds(30), (call, next) -> switch (String.valueOf(call.arguments()[0])) {
                    case "number" -> 5;
                    case "large" -> "x".repeat(Wire.MAX_MESSAGE_BYTES);
                    case "behind" -> {
                        next.proceed(call);
                        yield 5;
                    }
                    default -> next.proceed(call);
                });
        for (String text : List.of("number", "large", "behind")) {
            assertThatThrownBy(() -> calls.who(text).join())
                    .as(text)
                    .hasCauseInstanceOf(RPCXException.class)
                    .extracting(Throwable::getCause)
                    .extracting(e -> ((RPCXException) e).code(), e -> ((RPCXException) e).executed())
                    .containsExactly(
                            text.equals("large") ? RPCXException.Code.TOO_LARGE : RPCXException.Code.HANDLER_FAILED,
                            text.equals("behind")
                                    ? RPCXException.Executed.EXECUTED
                                    : RPCXException.Executed.NOT_EXECUTED);
        }
        assertThat(service.begun).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anExceptionWithoutATextArrivesWithTheNameOfItsCode(boolean isClassic) {
        Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
            throw new RPCXException(RPCXException.Code.INVALID, null);
        });
        assertThatThrownBy(() -> calls.who("nobody").join())
                .hasCauseInstanceOf(RPCXException.class)
                .extracting(Throwable::getCause)
                .extracting(Throwable::getMessage)
                .isEqualTo("INVALID");
    }

    enum Where {
        /** The call goes on within an interceptor of another call, on the thread of that call. */
        OTHER_CALL,
        NO_CALL,
        /** The call goes on there too, but within a time that the interceptor of the other call has set. */
        OTHER_CALLS_TIME
    }

    @ParameterizedTest
    @EnumSource(Where.class)
    void whoeverGoesOnWithACallTheCallIsItsOwn(Where where) throws Exception {
        Interceptor first = (call, next) -> {
            if (!call.arguments()[0].equals("alice") || where == Where.NO_CALL) {
                return holding(call, next);
            }
            CallContext.current().orElseThrow().authenticate(new Named("alice"));
            if (where == Where.OTHER_CALL) {
                held.get("bob").run();
            } else {
                CallContext.within(Duration.ofSeconds(5), () -> {
                    held.get("bob").run();
                    return null;
                });
            }
            assertThat(CallContext.current().flatMap(CallContext::principal)).contains(new Named("alice"));
            return next.proceed(call);
        };
        Calls calls = serving(false, Duration.ofSeconds(30), first, InterceptedCallsTest::authenticating);
        CompletableFuture<String> bob = calls.who("bob");
        await().until(() -> held.containsKey("bob"));
        if (where == Where.NO_CALL) {
            held.get("bob").run();
            assertThat(CallContext.current()).isEmpty();
        } else {
            assertThat(calls.who("alice").get()).isEqualTo("alice");
        }
        assertThat(bob.get()).isEqualTo("bob");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void noHandlerBeginsWhenTheTimeOfItsCallIsOver(boolean isClassic) throws Exception {
        Calls calls = serving(isClassic, Duration.ofMillis(500), this::holding);
        // the time may be over before the interceptor has begun
        Again.upToFiveTimes(100, () -> {
            RPCXException late = failure(calls.who("bob"));
            assertThat(late.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
            assertThat(held).containsKey("bob");
            // this comes from the server, which knows that the handler has not begun
            assertThat(late.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
        goesOnInVain();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norWhenItsCallerIsGone(boolean isClassic) {
        AtomicInteger behind = new AtomicInteger();
        Calls calls = serving(isClassic, Duration.ofSeconds(30), this::holding, (call, next) -> {
            behind.incrementAndGet();
            return next.proceed(call);
        });
        CompletableFuture<String> bob = calls.who("bob");
        await().until(() -> held.containsKey("bob"));
        client.close();
        assertThat(failure(bob).code()).isIn(RPCXException.Code.UNAVAILABLE, RPCXException.Code.CANCELLED);
        await().until(() -> server.core().connections() == 0);
        goesOnInVain();
        assertThat(behind).as("an interceptor behind the one that goes on").hasValue(0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norWhenAnInterceptorHasAnswered(boolean isClassic) throws Exception {
        Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
            Object ignored = holding(call, next);
            return ignored == null ? "never" : "cached";
        });
        assertThat(calls.who("bob").get()).isEqualTo("cached");
        goesOnInVain();
    }

    private void goesOnInVain() {
        held.get("bob").run();
        assertThat(service.begun).hasValue(0);
        assertThat(thrown).singleElement().satisfies(t -> assertThat(t).hasMessageContaining("the call has ended"));
    }

    /** A handler that has run once does not run again for a call that has ended meanwhile. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norOnceMore(boolean isClassic) throws Exception {
        CountDownLatch answered = new CountDownLatch(1);
        CompletableFuture<Throwable> again = new CompletableFuture<>();
        Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
            Object result = next.proceed(call);
            Thread later = new Thread(() -> {
                try {
                    answered.await();
                    next.proceed(call);
                    again.complete(null);
                } catch (Throwable t) {
                    again.complete(t);
                }
            });
            later.start();
            return result;
        });
        assertThat(calls.who("bob").get()).isEqualTo("nobody");
        answered.countDown();
        assertThat(again.get()).hasMessageContaining("the call has ended");
        assertThat(service.begun).hasValue(1);
    }

    /** The stream is an interceptor's own, so that its end is not that of a handler. */
    @Test
    void norWhenAnInterceptorHasAnsweredWithAStream() {
        Calls calls = serving(false, Duration.ofSeconds(30), (call, next) -> {
            if (!call.method().equals("items")) {
                return next.proceed(call);
            }
            Object ignored = holding(call, next);
            return ignored == null ? "never" : new Items();
        });
        CompletableFuture<Void> ended = new CompletableFuture<>();
        StreamCalls streams = client.create(StreamCalls.class, "127.0.0.1", server.port());
        streams.items("bob").subscribe(new EndOf(ended));
        ended.join();
        // the server has dealt with the end of the stream when it reads what comes next
        assertThat(calls.who("next").join()).isEqualTo("nobody");
        assertThat(service.begun).hasValue(1);
        service.begun.set(0);
        goesOnInVain();
    }

    /**
     * Refuses a call when somebody subscribes, as an interceptor does that asks elsewhere whether the caller may call.
     */
    private static void refuse(Flow.Subscriber<? super Object> subscriber) {
        subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long items) {}

            @Override
            public void cancel() {}
        });
        subscriber.onError(RPCXException.refused(RPCXException.Code.UNAUTHENTICATED, "not with this token"));
    }

    @Test
    void aStreamOfAnInterceptorThatRefusesIsNotExecuted() {
        serving(false, Duration.ofSeconds(30), (call, next) -> (Flow.Publisher<Object>) InterceptedCallsTest::refuse);
        CompletableFuture<Void> ended = new CompletableFuture<>();
        client.create(StreamCalls.class, "127.0.0.1", server.port())
                .items("bob")
                .subscribe(new EndOf(ended));
        assertThatThrownBy(ended::join).cause().isInstanceOfSatisfying(RPCXException.class, refused -> {
            assertThat(refused.code()).isEqualTo(RPCXException.Code.UNAUTHENTICATED);
            assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
        assertThat(service.begun).hasValue(0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatAHandlerHasMadeIsCancelledWithItsOwnAlsoBehindAStageOfAnInterceptor(boolean isClassic) {
        Calls calls = serving(
                isClassic,
                Duration.ofSeconds(30),
                (call, next) ->
                        call.method().equals("asks") ? goOn(call, next).thenApply(value -> value) : next.proceed(call));
        try (Client behind = client(isClassic)) {
            service.asked.set(behind.create(Asked.class, "127.0.0.1", server.port()));
            CompletableFuture<String> bob = calls.asks("bob");
            await().until(() -> service.question.get() != null);
            assertThat(service.question.get()).isNotDone();
            client.close();
            assertThat(failure(bob)).isNotNull();
            await().atMost(Duration.ofSeconds(5))
                    .until(() -> service.question.get().isCancelled());
        } finally {
            service.passed.complete("over");
        }
    }

    // ---- how long a handler counts that an interceptor has begun later

    /**
     * This is counted down when an interceptor waits for the answer that it asked for. If the answer came before that,
     * the interceptor's own thread would run the handler.
     */
    private final CountDownLatch waits = new CountDownLatch(1);

    /**
     * Lets each call of {@code block} go on once a call of RPCX has been answered, on the event loop that reads the
     * answer.
     */
    private Interceptor checking(Supplier<Asked> asked, Map<String, CompletableFuture<Object>> answers) {
        return (call, next) -> {
            if (call.method().equals("never")) {
                return goOn(call, next).whenComplete((value, thrown) -> givenUp.countDown());
            }
            if (!call.method().equals("block")) {
                return next.proceed(call);
            }
            CompletableFuture<Object> answer = new CompletableFuture<>();
            answers.put(String.valueOf(call.arguments()[0]), answer);
            CompletionStage<Object> checked = asked.get().pass("x").thenCompose(ok -> goOn(call, next));
            waits.countDown();
            checked.whenComplete((value, thrown) -> {
                if (thrown == null) {
                    answer.complete(value);
                } else {
                    answer.completeExceptionally(thrown);
                }
            });
            return answer;
        };
    }

    @SuppressWarnings("unchecked") // the rest of the chain runs on another thread, and so returns a stage
    private static CompletionStage<Object> goOn(Interceptor.Invocation call, Interceptor.Next next) {
        try {
            return (CompletionStage<Object>) Objects.requireNonNull(next.proceed(call));
        } catch (Throwable t) {
            return CompletableFuture.failedFuture(t);
        }
    }

    private int counted() {
        return (int) server.core().ledger().held(Resource.HANDLERS);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aHandlerCountsUntilItHasEndedThoughItsCallerIsGone(boolean isClassic) throws Exception {
        AtomicReference<Asked> asked = new AtomicReference<>();
        Calls calls = serving(isClassic, Duration.ofSeconds(30), checking(asked::get, new ConcurrentHashMap<>()));
        CompletableFuture<String> bob;
        CompletableFuture<String> carol;
        try (Client behind = client(isClassic)) {
            asked.set(behind.create(Asked.class, "127.0.0.1", server.port()));
            try (Client another = client(isClassic)) {
                Calls others = another.create(Calls.class, "127.0.0.1", server.port());
                bob = calls.block("bob");
                assertThat(waits.await(10, TimeUnit.SECONDS)).isTrue();
                service.passed.complete("ok");
                await().until(() -> service.begun.get() == 1);
                carol = others.never("carol");
                await().until(() -> service.begun.get() == 2);
                await().until(() -> counted() == 2);
                int connections = server.core().connections();
                client.close();
                await().until(() -> server.core().connections() < connections);
            }
            assertThat(failure(bob).code()).isIn(RPCXException.Code.UNAVAILABLE, RPCXException.Code.CANCELLED);
            assertThat(failure(carol).code()).isIn(RPCXException.Code.UNAVAILABLE, RPCXException.Code.CANCELLED);
            // a second later nobody waits for carol's future, and bob had gone before her
            assertThat(givenUp.await(10, TimeUnit.SECONDS)).isTrue();
            await().until(() -> counted() == 1);
            service.mayEnd.countDown();
            await().until(() -> counted() == 0);
        } finally {
            service.mayEnd.countDown();
        }
    }

    /** The pool has no thread for as long as the test likes. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aStepThatWaitsForAThreadIsTakenBackWithItsCall(boolean isClassic) {
        AtomicReference<Asked> asked = new AtomicReference<>();
        AtomicReference<Throwable> told = new AtomicReference<>();
        AtomicInteger begun = new AtomicInteger();
        Interceptor waiting = (call, next) -> {
            if (!call.arguments()[0].equals("bob")) {
                return next.proceed(call);
            }
            CompletionStage<Object> later = asked.get().pass("x").thenCompose(ok -> goOn(call, next));
            waits.countDown();
            return later.whenComplete((value, thrown) -> told.set(thrown));
        };
        Interceptor inner = (call, next) -> {
            begun.incrementAndGet();
            return next.proceed(call);
        };
        server = Server.builder(RegistryServer.registry(service))
                .classic(isClassic)
                .poolSize(1)
                .interceptor(waiting)
                .interceptor(inner)
                .maxCallTime(Duration.ofSeconds(2))
                .build()
                .start();
        client = client(isClassic);
        Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
        try (Client behind = client(isClassic);
                Client another = client(isClassic)) {
            asked.set(behind.create(Asked.class, "127.0.0.1", server.port()));
            CompletableFuture<String> bob = calls.pooled("bob");
            await().until(() -> waits.getCount() == 0 && counted() == 2);
            CompletableFuture<String> holder =
                    another.create(Calls.class, "127.0.0.1", server.port()).pooled("holder");
            await().until(() -> service.begun.get() == 1 && begun.get() == 2);
            service.passed.complete("ok");
            await().until(() -> bob.isDone());
            assertThat(failure(bob).executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            // only the handler that has the thread still counts
            await().until(() -> counted() == 1);
            await().until(() -> told.get() != null);
            assertThat(told.get()).rootCause().hasMessageContaining("the call has ended");
            assertThat(holder).isNotNull();
            assertThat(begun).hasValue(2);
            client.close();
            // one place is the other handler's, and a native connection keeps one for the next call of an interceptor
            await().until(() -> held(Resource.CALLS) == (isClassic ? 1 : 2));
            service.mayEnd.countDown();
            await().until(() -> counted() == 0);
            assertThat(begun).hasValue(2);
        } finally {
            service.mayEnd.countDown();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aHandlerCountsUntilItHasEndedThoughAnInterceptorHasAnswered(boolean isClassic) throws Exception {
        AtomicReference<Asked> asked = new AtomicReference<>();
        Map<String, CompletableFuture<Object>> answers = new ConcurrentHashMap<>();
        Calls calls = serving(isClassic, Duration.ofSeconds(30), checking(asked::get, answers));
        try (Client behind = client(isClassic)) {
            asked.set(behind.create(Asked.class, "127.0.0.1", server.port()));
            CompletableFuture<String> bob = calls.block("bob");
            assertThat(waits.await(10, TimeUnit.SECONDS)).isTrue();
            service.passed.complete("ok");
            await().until(() -> service.begun.get() == 1);
            answers.get("bob").complete("early");
            assertThat(bob.join()).isEqualTo("early");
            assertThat(counted()).isEqualTo(1);
            service.mayEnd.countDown();
            await().until(() -> counted() == 0);
        } finally {
            service.mayEnd.countDown();
        }
    }

    /** An interceptor lets a handler begin, and will answer in its place. */
    private CompletableFuture<Object> answering(Duration time, Supplier<Asked> asked) {
        CompletableFuture<Object> answer = new CompletableFuture<>();
        serving(false, time, (call, next) -> {
            if (!call.method().equals("heed")) {
                return next.proceed(call);
            }
            asked.get().pass("x").thenCompose(ok -> goOn(call, next));
            waits.countDown();
            return answer;
        });
        return answer;
    }

    /** Makes a call whose handler runs on after an interceptor has answered in its place. */
    private void heedsBehindAnAnswer(Duration time) {
        AtomicReference<Asked> asked = new AtomicReference<>();
        CompletableFuture<Object> answer = answering(time, asked::get);
        try (Client behind = client(false)) {
            asked.set(behind.create(Asked.class, "127.0.0.1", server.port()));
            client.close();
            // no deadline of the client comes before the server's
            client = Client.builder().callTimeout(time).build();
            CompletableFuture<String> bob =
                    client.create(Calls.class, "127.0.0.1", server.port()).heed("bob");
            await().until(() -> waits.getCount() == 0);
            service.passed.complete("ok");
            await().until(() -> service.begun.get() == 1);
            answer.complete("early");
            assertThat(bob.join()).isEqualTo("early");
            assertThat(service.interrupted).hasValue(0);
        }
    }

    @Test
    void aHandlerBehindAnAnswerIsInterruptedWhenTheTimeOfItsCallIsOver() {
        heedsBehindAnAnswer(Duration.ofSeconds(2));
        await().until(() -> service.interrupted.get() == 1 && counted() == 0);
    }

    @Test
    void aHandlerBehindAnAnswerIsInterruptedWhenItsConnectionEnds() {
        heedsBehindAnAnswer(Duration.ofSeconds(30));
        client.close();
        await().until(() -> service.interrupted.get() == 1 && counted() == 0);
    }

    /** A notice outlives its connection. When its time is over, nobody would look at it any more. */
    @Test
    void aHandlerBehindAnAnswerThatComesAfterTheEndOfItsConnectionIsInterrupted() {
        AtomicReference<Asked> asked = new AtomicReference<>();
        CompletableFuture<Object> answer = answering(Duration.ofSeconds(30), asked::get);
        try (Client behind = client(false)) {
            asked.set(behind.create(Asked.class, "127.0.0.1", server.port()));
            client.create(Told.class, "127.0.0.1", server.port()).heed("bob");
            await().until(() -> waits.getCount() == 0);
            service.passed.complete("ok");
            await().until(() -> service.begun.get() == 1);
            client.close();
            await().until(() -> held(Resource.CONNECTIONS) == 1);
            assertThat(service.interrupted).hasValue(0);
            answer.complete("early");
            await().until(() -> service.interrupted.get() == 1 && counted() == 0);
        }
    }

    @Test
    void aHandlerBehindAnAnswerIsInterruptedWhenItsServerStops() {
        heedsBehindAnAnswer(Duration.ofSeconds(30));
        server.stop(Duration.ofMillis(200));
        await().until(() -> service.interrupted.get() == 1 && counted() == 0);
    }

    /** This text is so long that the codec charges for most of what it is read into. */
    private static final String LARGE = "x".repeat(200_000);

    private long held(Resource resource) {
        return server.core().ledger().held(resource);
    }

    private void nothingIsHeldOnceTheHandlerEnds() {
        service.mayEnd.countDown();
        await().until(() -> counted() == 0 && held(Resource.OBJECT_BYTES) == 0);
        // a connection keeps places for its next calls
        client.close();
        await().until(() -> held(Resource.CALLS) == 0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void argumentsAreChargedUntilTheirHandlerHasEndedThoughAnInterceptorHasAnswered(boolean isClassic)
            throws Exception {
        AtomicReference<Asked> asked = new AtomicReference<>();
        Map<String, CompletableFuture<Object>> answers = new ConcurrentHashMap<>();
        Calls calls = serving(isClassic, Duration.ofSeconds(30), checking(asked::get, answers));
        try (Client behind = client(isClassic)) {
            asked.set(behind.create(Asked.class, "127.0.0.1", server.port()));
            CompletableFuture<String> bob = calls.block(LARGE);
            assertThat(waits.await(10, TimeUnit.SECONDS)).isTrue();
            service.passed.complete("ok");
            await().until(() -> service.begun.get() == 1);
            answers.get(LARGE).complete("early");
            assertThat(bob.join()).isEqualTo("early");
            assertThat(held(Resource.OBJECT_BYTES)).isGreaterThan(LARGE.length() / 2);
            service.mayEnd.countDown();
            await().until(() -> counted() == 0 && held(Resource.OBJECT_BYTES) == 0);
        } finally {
            service.mayEnd.countDown();
        }
    }

    /** The interceptor has a time limit of its own, and so runs the handler on a thread of its own. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aHandlerOnAThreadOfAnInterceptorCountsUntilItHasEnded(boolean isClassic) throws Exception {
        ExecutorService own = Executors.newSingleThreadExecutor();
        try {
            Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
                try {
                    return own.submit(() -> goOnHere(call, next)).get(200, TimeUnit.MILLISECONDS);
                } catch (TimeoutException e) {
                    await().until(() -> service.begun.get() == 1);
                    return "late";
                }
            });
            assertThat(calls.block(LARGE).join()).isEqualTo("late");
            assertThat(counted()).isEqualTo(1);
            assertThat(held(Resource.CALLS)).isEqualTo(1);
            assertThat(held(Resource.OBJECT_BYTES)).isGreaterThan(LARGE.length() / 2);
            nothingIsHeldOnceTheHandlerEnds();
        } finally {
            service.mayEnd.countDown();
            own.shutdown();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCancelInterruptsTheHandlerOnAThreadOfAnInterceptorAndNothingElseThere(boolean isClassic) throws Exception {
        CompletableFuture<Boolean> isStillInterrupted = new CompletableFuture<>();
        ExecutorService own = Executors.newSingleThreadExecutor();
        try {
            Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
                CompletableFuture<Object> result = new CompletableFuture<>();
                own.execute(() -> {
                    try {
                        result.complete(goOnHere(call, next));
                    } catch (Exception e) {
                        result.completeExceptionally(e);
                    } finally {
                        isStillInterrupted.complete(Thread.currentThread().isInterrupted());
                    }
                });
                return result;
            });
            CompletableFuture<String> bob = calls.heed("bob");
            await().until(() -> service.begun.get() == 1);
            client.close();
            assertThat(failure(bob)).isNotNull();
            await().until(() -> service.interrupted.get() == 1);
            assertThat(isStillInterrupted.get(10, TimeUnit.SECONDS)).isFalse();
            nothingIsHeldOnceTheHandlerEnds();
        } finally {
            service.mayEnd.countDown();
            own.shutdown();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCancelInterruptsTheHandlerBeforeItRunsWhatWaitsForThat(boolean isClassic) throws Exception {
        CountDownLatch hasEnded = new CountDownLatch(1);
        ExecutorService own = Executors.newSingleThreadExecutor();
        try {
            Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
                CallContext.current().orElseThrow().onCancel(() -> {
                    try {
                        hasEnded.await();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                });
                CompletableFuture<Object> result = new CompletableFuture<>();
                own.execute(() -> {
                    try {
                        result.complete(goOnHere(call, next));
                    } catch (Exception e) {
                        result.completeExceptionally(e);
                    } finally {
                        hasEnded.countDown();
                    }
                });
                return result;
            });
            CompletableFuture<String> bob = calls.heed("bob");
            await().until(() -> service.begun.get() == 1);
            client.close();
            assertThat(failure(bob)).isNotNull();
            await().until(() -> service.interrupted.get() == 1);
            nothingIsHeldOnceTheHandlerEnds();
        } finally {
            hasEnded.countDown();
            service.mayEnd.countDown();
            own.shutdown();
        }
    }

    /** The thread was interrupted by its owner, and not because of the call. */
    @Test
    void aThreadThatItsOwnerHasInterruptedStaysInterrupted() throws Exception {
        CompletableFuture<Boolean> isStillInterrupted = new CompletableFuture<>();
        Calls calls = serving(false, Duration.ofSeconds(30), (call, next) -> {
            CompletableFuture<Object> result = new CompletableFuture<>();
            new Thread(() -> {
                        Thread.currentThread().interrupt();
                        result.complete(goOn(call, next));
                        isStillInterrupted.complete(Thread.currentThread().isInterrupted());
                    })
                    .start();
            return result;
        });
        CompletableFuture<String> never = calls.never("bob");
        assertThat(isStillInterrupted.get(10, TimeUnit.SECONDS)).isTrue();
        assertThat(never).isNotDone();
    }

    @Test
    void aFutureThatAnInterceptorsFutureBringsIsWaitedForToo() throws Exception {
        serving(false, Duration.ofSeconds(30), (call, next) -> CompletableFuture.completedFuture(next.proceed(call)));
        RPCXFuture<String> passed =
                client.create(Asked.class, "127.0.0.1", server.port()).pass("x");
        service.passed.complete("ok");
        assertThat(passed.get(10, TimeUnit.SECONDS)).isEqualTo("ok");
    }

    private static Object goOnHere(Interceptor.Invocation call, Interceptor.Next next) throws Exception {
        try {
            return next.proceed(call);
        } catch (Exception | Error e) {
            throw e;
        } catch (Throwable t) {
            throw new IllegalStateException(t);
        }
    }

    /** Cancels, answers and connections that end meet the ends of handlers at every moment. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void eachHandlerIsCountedOnce(boolean isClassic) {
        AtomicReference<Asked> asked = new AtomicReference<>();
        Map<String, CompletableFuture<Object>> answers = new ConcurrentHashMap<>();
        serving(isClassic, Duration.ofSeconds(30), checking(asked::get, answers));
        service.passed.complete("ok");
        service.mayEnd.countDown();
        try (Client behind = client(isClassic)) {
            asked.set(behind.create(Asked.class, "127.0.0.1", server.port()));
            for (int round = 0; round < 10; round++) {
                List<CompletableFuture<String>> all = new ArrayList<>();
                try (Client closing = client(isClassic)) {
                    Calls calls = closing.create(Calls.class, "127.0.0.1", server.port());
                    for (int i = 0; i < 60; i++) {
                        String own = round + "-" + i;
                        CompletableFuture<String> call = calls.block(own);
                        all.add(call);
                        CompletableFuture<Object> answer = answers.get(own);
                        if (i % 3 == 0) {
                            call.cancel(true);
                        } else if (i % 3 == 1 && answer != null) {
                            answer.complete("early");
                        }
                    }
                    all.get(round).handle((value, thrown) -> value).join();
                }
                await().until(() -> all.stream().allMatch(CompletableFuture::isDone));
            }
            await().until(() -> server.core().connections() == 1 && counted() == 0);
        }
        await().until(() ->
                server.core().connections() == 0 && server.core().ledger().held(Resource.CALLS) == 0);
        assertThat(counted()).isEqualTo(0);
    }

    private static Client client(boolean isClassic) {
        Client.Builder builder = Client.builder().callTimeout(Duration.ofSeconds(10));
        return (isClassic ? builder.classic() : builder).build();
    }

    private record EndOf(CompletableFuture<Void> ended) implements Flow.Subscriber<String> {
        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            subscription.request(1);
        }

        @Override
        public void onNext(String item) {}

        @Override
        public void onError(Throwable thrown) {
            ended.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            ended.complete(null);
        }
    }

    private static RPCXException failure(CompletableFuture<String> call) {
        try {
            throw new AssertionError(call.join());
        } catch (CompletionException e) {
            return (RPCXException) e.getCause();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void argumentsOfAnInterceptorThatDoNotFitBeginNoHandler(boolean isClassic) throws Exception {
        Map<String, Object[]> others = Map.of(
                "none", new Object[0],
                "two", new Object[] {"a", "b"},
                "another type", new Object[] {5});
        server = Server.builder(RegistryServer.registry(service))
                .classic(isClassic)
                .interceptor((call, next) -> {
                    Object[] instead = others.get(String.valueOf(call.arguments()[0]));
                    return next.proceed(instead == null ? call : call.withArguments(instead));
                })
                .build()
                .start();
        client = client(isClassic);
        Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
        for (String text : others.keySet()) {
            RPCXException refused = failure(calls.who(text));
            assertThat(refused.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
            assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            assertThat(refused).hasMessageContaining("arguments that are not those of the method");
        }
        assertThat(service.begun).hasValue(0);
        assertThat(calls.who("fits").get(10, TimeUnit.SECONDS)).isEqualTo("nobody");
    }
}
