package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.BoundFuture;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.ledger.Resource;
import java.security.Principal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests the call context in which later code of a handler runs, such as the dependents of futures. It also tests on
 * which thread a handler runs if it begins later.
 */
@Timeout(60)
class CarriedContextTest {
    private static String current() {
        return CallContext.current()
                .flatMap(CallContext::principal)
                .map(Principal::getName)
                .orElse("nobody");
    }

    private record Named(String name) implements Principal {
        @Override
        public String getName() {
            return name;
        }
    }

    @RPCXServer("down")
    static final class Down {
        final CountDownLatch may = new CountDownLatch(1);

        @Method
        String slow(String text) throws InterruptedException {
            may.await();
            return text;
        }

        @Method
        boolean check(String text) {
            return true;
        }

        @Method
        CompletableFuture<Integer> count(Flow.Publisher<String> items) {
            CompletableFuture<Integer> all = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                private int count;
                private Flow.Subscription subscription;

                @Override
                public void onSubscribe(Flow.Subscription given) {
                    subscription = given;
                    given.request(1);
                }

                @Override
                public void onNext(String item) {
                    count++;
                    subscription.request(1);
                }

                @Override
                public void onError(Throwable thrown) {
                    all.completeExceptionally(thrown);
                }

                @Override
                public void onComplete() {
                    all.complete(count);
                }
            });
            return all;
        }
    }

    @RPCXClient(remoteServerName = "down")
    interface DownCalls {
        RPCXFuture<String> slow(String text);

        RPCXFuture<Boolean> check(String text);

        @Method("check")
        boolean checkBlocking(String text);

        RPCXFuture<Integer> count(Flow.Publisher<String> items);
    }

    /** Collects the items of a stream, and its failure if it fails. */
    private static final class Seen implements Flow.Subscriber<String> {
        final List<String> items = new ArrayList<>();
        final CountDownLatch over = new CountDownLatch(1);

        @Override
        public void onSubscribe(Flow.Subscription given) {
            given.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(String item) {
            items.add(item);
        }

        @Override
        public void onError(Throwable thrown) {
            items.add(thrown.toString());
            over.countDown();
        }

        @Override
        public void onComplete() {
            over.countDown();
        }
    }

    @RPCXServer("front")
    static final class Front {
        final DownCalls down;
        final CompletableFuture<String> plain = new CompletableFuture<>();
        final AtomicInteger entered = new AtomicInteger();
        final AtomicInteger ended = new AtomicInteger();
        volatile Function<RPCXFuture<String>, CompletionStage<String>> hang = future -> future;
        volatile RPCXFuture<String> shared;

        Front(DownCalls down) {
            this.down = down;
        }

        @Method
        CompletionStage<String> depend(String who) {
            CompletionStage<String> made = hang.apply(shared);
            entered.incrementAndGet();
            return made;
        }

        @Method
        CompletableFuture<String> carried(String who) {
            CallContext context = CallContext.current().orElseThrow();
            CompletableFuture<String> made = plain.thenApplyAsync(v -> current(), context.on(Runnable::run))
                    .thenCombine(plain, (a, b) -> a + " " + context.call(CarriedContextTest::current));
            entered.incrementAndGet();
            return made;
        }

        @Method
        String completing(String who) {
            plain.complete("x");
            return current();
        }

        private Flow.Publisher<String> items() {
            return subscriber -> {
                String subscribing = current();
                subscriber.onSubscribe(new Flow.Subscription() {
                    private int asked;

                    @Override
                    public void request(long items) {
                        asked++;
                        if (asked == 1) {
                            subscriber.onNext(subscribing);
                        } else if (asked == 2) {
                            subscriber.onNext(current());
                            subscriber.onComplete();
                        }
                    }

                    @Override
                    public void cancel() {}
                });
            };
        }

        @Method
        Flow.Publisher<String> publish() {
            return items();
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        Flow.Publisher<String> publishOnLoop() {
            return items();
        }

        private static CompletableFuture<String> seen(Flow.Publisher<String> items) {
            CompletableFuture<String> all = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                private final StringBuilder said = new StringBuilder();

                @Override
                public void onSubscribe(Flow.Subscription given) {
                    given.request(10);
                }

                @Override
                public void onNext(String item) {
                    said.append(item).append(' ').append(current()).append(' ');
                }

                @Override
                public void onError(Throwable thrown) {
                    all.completeExceptionally(thrown);
                }

                @Override
                public void onComplete() {
                    all.complete(said + "end " + current());
                }
            });
            return all;
        }

        @Method
        CompletableFuture<String> take(Flow.Publisher<String> items) {
            return seen(items);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> takeOnLoop(Flow.Publisher<String> items) {
            return seen(items);
        }

        @Method
        String where(String text) {
            // this call blocks, and would be refused on an event loop
            return text + " " + down.checkBlocking(text) + " " + current();
        }

        @Method
        CompletableFuture<String> whereLater(String text) {
            return CompletableFuture.completedFuture(where(text));
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String onLoop(String text) {
            return Thread.currentThread().getName();
        }

        @Method
        String block(String text) {
            entered.incrementAndGet();
            try {
                new CountDownLatch(1).await();
                return text;
            } catch (InterruptedException e) {
                return "interrupted";
            } finally {
                ended.incrementAndGet();
            }
        }
    }

    /** Has only methods that both wires can carry. */
    @RPCXClient(remoteServerName = "front")
    interface UnaryCalls {
        CompletableFuture<String> where(String text);

        CompletableFuture<String> whereLater(String text);

        CompletableFuture<String> onLoop(String text);

        CompletableFuture<String> block(String text);
    }

    @RPCXClient(remoteServerName = "front")
    interface FrontCalls {
        CompletableFuture<String> depend(String who);

        CompletableFuture<String> carried(String who);

        String completing(String who);

        Flow.Publisher<String> publish();

        Flow.Publisher<String> publishOnLoop();

        CompletableFuture<String> take(Flow.Publisher<String> items);

        CompletableFuture<String> takeOnLoop(Flow.Publisher<String> items);
    }

    private final Down behind = new Down();
    private final Server downServer =
            Server.builder(RegistryServer.registry(behind)).build().start();
    private final Client ofFront = Client.builder().build();
    private final DownCalls down = ofFront.create(DownCalls.class, "127.0.0.1", downServer.port());
    private final Front front = new Front(down);
    private final List<Client> clients = new ArrayList<>();
    private Server server;

    @BeforeEach
    void connect() {
        assertThat(down.checkBlocking("there")).isTrue();
    }

    @AfterEach
    void stop() {
        behind.may.countDown();
        clients.forEach(Client::close);
        ofFront.close();
        if (server != null) {
            server.stop(Duration.ofMillis(200));
        }
        downServer.stop(Duration.ofMillis(200));
    }

    private void serving(boolean isClassic, Interceptor... interceptors) {
        Server.Builder builder = Server.builder(RegistryServer.registry(front)).classic(isClassic);
        for (Interceptor each : interceptors) {
            builder.interceptor(each);
        }
        server = builder.build().start();
    }

    /** Authenticates the caller by the metadata that it sends. A real interceptor would use a token. */
    private static Object naming(Interceptor.Invocation call, Interceptor.Next next) throws Throwable {
        String who = call.metadata().get("who");
        CallContext.current().orElseThrow().authenticate(new Named(who == null ? "nobody" : who));
        return next.proceed(call);
    }

    private <T> T calls(Class<T> type, boolean isClassic, String who) {
        Client.Builder builder = isClassic
                ? Client.builder().classic()
                : Client.builder().interceptor((call, next) -> next.proceed(call.with("who", who)));
        Client client = builder.build();
        clients.add(client);
        return client.create(type, "127.0.0.1", server.port());
    }

    private FrontCalls calls(String who) {
        return calls(FrontCalls.class, false, who);
    }

    static List<Function<RPCXFuture<String>, CompletionStage<String>>> dependents() {
        return List.of(
                future -> future.thenApply(v -> current()),
                future -> future.thenApplyAsync(v -> current()),
                future -> future.thenApplyAsync(v -> current(), Runnable::run),
                future -> future.thenApply(v -> v).thenApply(v -> v).thenApply(v -> current()),
                future -> future.copy().thenApply(v -> current()),
                future -> future.orTimeout(30, TimeUnit.SECONDS).thenApply(v -> current()),
                future -> future.thenCompose(v -> CompletableFuture.completedFuture(current())),
                future -> future.thenComposeAsync(v -> CompletableFuture.completedFuture(current())),
                future -> future.handle((v, thrown) -> current()),
                future -> future.handleAsync((v, thrown) -> current()),
                future -> future.thenCombine(new CompletableFuture<>().completeAsync(() -> "x"), (a, b) -> current()),
                future -> future.applyToEither(new CompletableFuture<>(), v -> current()),
                future -> {
                    CompletableFuture<String> said = new CompletableFuture<>();
                    return future.whenComplete((v, thrown) -> said.complete(current()))
                            .thenCompose(v -> said);
                },
                future -> {
                    CompletableFuture<String> said = new CompletableFuture<>();
                    return future.thenAccept(v -> said.complete(current())).thenCompose(v -> said);
                },
                future -> {
                    CompletableFuture<String> said = new CompletableFuture<>();
                    return future.thenRun(() -> said.complete(current())).thenCompose(v -> said);
                },
                future -> future.thenCompose(v -> CompletableFuture.<String>failedFuture(new IllegalStateException()))
                        .exceptionally(thrown -> current()),
                future -> future.thenCompose(v -> CompletableFuture.<String>failedFuture(new IllegalStateException()))
                        .exceptionallyCompose(thrown -> CompletableFuture.completedFuture(current())));
    }

    /** The shared call to the service behind was made in no context, and its future completes on an event loop. */
    @ParameterizedTest
    @MethodSource("dependents")
    void whatDependsOnACallsFutureRunsInTheContextInWhichItWasAttached(
            Function<RPCXFuture<String>, CompletionStage<String>> hang) {
        serving(false, CarriedContextTest::naming);
        front.hang = hang;
        front.shared = down.slow("x");
        List<CompletableFuture<String>> all = new ArrayList<>();
        for (String who : List.of("alice", "bob", "carol")) {
            all.add(calls(who).depend(who));
        }
        await().until(() -> front.entered.get() == 3);
        behind.may.countDown();
        assertThat(all.stream().map(CompletableFuture::join)).containsExactly("alice", "bob", "carol");
    }

    /**
     * Credit arrives on an event loop, where no call is current. Without the carried context, the publisher would be
     * asked in nobody's name.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theStreamThatACallTakesIsAskedInTheContextOfThatCall(boolean isConnected) {
        Client client = isConnected ? ofFront : Client.standard();
        clients.add(client);
        DownCalls calls = client.create(DownCalls.class, "127.0.0.1", downServer.port());
        List<String> said = Collections.synchronizedList(new ArrayList<>());
        TimedContext alices = new TimedContext(
                Long.MAX_VALUE / 2, Metadata.EMPTY, new Named("alice"), io.netty.util.concurrent.Ticker.systemTicker());
        RPCXFuture<Integer> counted = alices.call(() -> calls.count(subscriber -> {
            said.add("subscribed by " + current());
            subscriber.onSubscribe(new Flow.Subscription() {
                private int made;

                @Override
                public void request(long items) {
                    said.add("asked by " + current());
                    made += (int) items;
                    subscriber.onNext("x");
                    if (made == 3) {
                        subscriber.onComplete();
                    }
                }

                @Override
                public void cancel() {
                    said.add("cancelled by " + current());
                }
            });
        }));
        assertThat(counted.join()).isEqualTo(3);
        // the service asks once more after the last item, and may do so before the publisher completes
        assertThat(said)
                .startsWith("subscribed by alice", "asked by alice", "asked by alice", "asked by alice")
                .containsOnly("subscribed by alice", "asked by alice");
    }

    /**
     * A dependent that is attached where no call is handled does not run in the context of the call whose thread
     * completes the future.
     */
    @Test
    void whatWasAttachedInNoCallRunsInNone() {
        BoundFuture<String> future = new BoundFuture<>();
        CompletableFuture<String> dependent = future.thenApply(v -> current());
        TimedContext alices = new TimedContext(
                Long.MAX_VALUE / 2, Metadata.EMPTY, new Named("alice"), io.netty.util.concurrent.Ticker.systemTicker());
        alices.run(() -> {
            assertThat(current()).isEqualTo("alice");
            future.complete("x");
            assertThat(current()).isEqualTo("alice");
        });
        assertThat(dependent.join()).isEqualTo("nobody");
        assertThat(CallContext.current()).isEmpty();
    }

    @Test
    void whoeverCompletesAPlainFutureAContextCanBeCarriedThere() {
        serving(false, CarriedContextTest::naming);
        CompletableFuture<String> bobs = calls("bob").carried("bob");
        await().until(() -> front.entered.get() == 1);
        assertThat(calls("alice").completing("alice")).isEqualTo("alice");
        assertThat(bobs.join()).isEqualTo("bob bob");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPublisherRunsInTheContextOfItsCall(boolean isOnLoop) throws Exception {
        serving(false, CarriedContextTest::naming);
        FrontCalls calls = calls("bob");
        Seen seen = new Seen();
        (isOnLoop ? calls.publishOnLoop() : calls.publish()).subscribe(seen);
        seen.over.await();
        assertThat(seen.items).containsExactly("bob", "bob");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void soDoesASubscriber(boolean isOnLoop) {
        serving(false, CarriedContextTest::naming);
        FrontCalls calls = calls("bob");
        CompletableFuture<String> said;
        try (SubmissionPublisher<String> items = new SubmissionPublisher<>()) {
            said = isOnLoop ? calls.takeOnLoop(items) : calls.take(items);
            await().until(items::hasSubscribers);
            items.submit("1");
        }
        assertThat(said.join()).isEqualTo("1 bob end bob");
    }

    // ---- an interceptor whose check is a call of RPCX

    private static CompletionStage<Object> goOn(Interceptor.Invocation call, Interceptor.Next next) {
        try {
            @SuppressWarnings("unchecked")
            CompletionStage<Object> stage =
                    next.proceed(call) instanceof CompletionStage<?> made ? (CompletionStage<Object>) made : null;
            return stage == null ? CompletableFuture.failedFuture(new IllegalStateException("no stage")) : stage;
        } catch (Throwable t) {
            return CompletableFuture.failedFuture(t);
        }
    }

    private Object checking(Interceptor.Invocation call, Interceptor.Next next) {
        return down.slow("x").thenCompose(ok -> goOn(call, next));
    }

    private static Object sneaky(Interceptor.Invocation call, Interceptor.Next next) {
        try {
            return next.proceed(call);
        } catch (Throwable t) {
            throw new IllegalStateException(t);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aHandlerBehindACallRunsWhereItsMethodsHandlersDo(boolean isClassic) {
        serving(isClassic, this::checking, CarriedContextTest::naming);
        UnaryCalls calls = calls(UnaryCalls.class, isClassic, "bob");
        CompletableFuture<String> at = calls.where("1");
        CompletableFuture<String> later = calls.whereLater("2");
        CompletableFuture<String> onLoop = calls.onLoop("3");
        await().until(() -> server.core().ledger().held(Resource.CALLS) >= 2);
        behind.may.countDown();
        String who = isClassic ? "nobody" : "bob";
        assertThat(at.join()).isEqualTo("1 true " + who);
        assertThat(later.join()).isEqualTo("2 true " + who);
        assertThat(onLoop.join()).startsWith("rpcx-server");
    }

    /** What the handler returns is the interceptor's result, whether or not that is a stage. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatAnInterceptorGivesOnIsTheResultHoweverDeepItIs(boolean isClassic) {
        serving(isClassic, (call, next) -> down.slow("x").thenApply(ok -> sneaky(call, next)));
        UnaryCalls calls = calls(UnaryCalls.class, isClassic, "bob");
        CompletableFuture<String> at = calls.where("1");
        CompletableFuture<String> later = calls.whereLater("2");
        await().until(() -> server.core().ledger().held(Resource.CALLS) >= 2);
        behind.may.countDown();
        assertThat(at.join()).isEqualTo("1 true nobody");
        assertThat(later.join()).isEqualTo("2 true nobody");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void suchAHandlerIsInterruptedWithItsCall(boolean isClassic) {
        serving(isClassic, this::checking);
        UnaryCalls calls = calls(UnaryCalls.class, isClassic, "bob");
        CompletableFuture<String> blocked = calls.block("1");
        behind.may.countDown();
        await().until(() -> front.entered.get() == 1);
        if (isClassic) {
            clients.get(0).close();
        } else {
            blocked.cancel(true);
        }
        await().until(() -> front.ended.get() == 1 && server.core().running() == 0);
        await().until(() -> server.core().ledger().held(Resource.HANDLERS) == 0);
    }
}
