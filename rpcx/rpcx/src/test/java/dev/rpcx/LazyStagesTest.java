package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.DetachableStage;
import dev.rpcx.internal.server.Stages;
import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests handlers that return stages of other libraries' classes. Such a stage may do its work only when a dependent is
 * attached to it, on the thread that attaches it. This work counts as the handler's.
 */
@Timeout(60)
class LazyStagesTest {
    /** Returns a stage that does {@code work} within {@code whenComplete}, and then has ended. */
    @SuppressWarnings("unchecked")
    private static CompletionStage<String> lazy(CompletableFuture<String> end, Runnable work) {
        return (CompletionStage<String>) Proxy.newProxyInstance(
                LazyStagesTest.class.getClassLoader(),
                new Class<?>[] {CompletionStage.class},
                (self, method, given) -> {
                    if (method.getName().equals("whenComplete") && given[0] instanceof BiConsumer<?, ?>) {
                        work.run();
                        end.complete("worked");
                    }
                    try {
                        return method.invoke(end, given);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    @RPCXServer("lazy")
    static final class Service {
        final CountDownLatch never = new CountDownLatch(1);
        final AtomicInteger working = new AtomicInteger();
        final AtomicInteger interrupted = new AtomicInteger();
        final AtomicInteger withoutContext = new AtomicInteger();
        final AtomicReference<WeakReference<CompletionStage<String>>> failed = new AtomicReference<>();

        @Method
        CompletionStage<String> works() {
            return lazy(new CompletableFuture<>(), this::lookAtContext);
        }

        @Method
        CompletionStage<String> hangs() {
            return lazy(new CompletableFuture<>(), this::hang);
        }

        void hang() {
            lookAtContext();
            working.incrementAndGet();
            try {
                never.await();
            } catch (InterruptedException e) {
                interrupted.incrementAndGet();
            } finally {
                working.decrementAndGet();
            }
        }

        @Method
        CompletionStage<String> fails() {
            CompletionStage<String> stage = lazy(new CompletableFuture<>(), () -> {
                throw new IllegalStateException("on purpose");
            });
            failed.set(new WeakReference<>(stage));
            return stage;
        }

        /** Returns a publisher that is a stage as well, as those of some libraries are. */
        @Method
        Flow.Publisher<String> publishes() {
            return new Both();
        }

        private void lookAtContext() {
            if (CallContext.current().isEmpty()) {
                withoutContext.incrementAndGet();
            }
        }
    }

    @RPCXClient(remoteServerName = "lazy")
    interface LazyClient {
        String works();

        CompletableFuture<String> hangs();

        CompletableFuture<String> fails();

        Flow.Publisher<String> publishes();
    }

    private final Service service = new Service();
    private final Server server =
            Server.builder(RegistryServer.registry(service)).host("127.0.0.1").build();
    private final Client client = Client.standard();
    private LazyClient calls;

    @BeforeEach
    void start() {
        server.start();
        calls = client.create(LazyClient.class, "127.0.0.1", server.port());
    }

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    @Test
    void theWorkOfAStageHasTheContextOfItsCall() {
        assertThat(calls.works()).isEqualTo("worked");
        assertThat(service.withoutContext).hasValue(0);
    }

    @Test
    void aCancelInterruptsTheWorkOfAStage() {
        CompletableFuture<String> hanging = calls.hangs();
        await().until(() -> service.working.get() == 1);
        hanging.cancel(true);
        await().until(() -> service.interrupted.get() == 1 && service.working.get() == 0);
        assertThat(service.withoutContext).hasValue(0);
        assertThat(calls.works()).isEqualTo("worked");
    }

    @Test
    void aStageThatCannotBeWaitedForIsAFailureOfItsHandler() {
        assertThat(calls.fails())
                .failsWithin(Duration.ofSeconds(10))
                .withThrowableOfType(ExecutionException.class)
                .havingCause()
                .isInstanceOfSatisfying(RPCXException.class, error -> {
                    assertThat(error.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
                    assertThat(error.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
                });
        await().until(() -> {
            System.gc();
            return service.failed.get().refersTo(null);
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPublisherMayBeAStageAsWell(boolean isIntercepted) throws Exception {
        Server own = isIntercepted
                ? Server.builder(RegistryServer.registry(service))
                        .host("127.0.0.1")
                        .interceptor((call, next) -> next.proceed(call))
                        .build()
                        .start()
                : server;
        StreamsTest.Collected<String> items = new StreamsTest.Collected<>(1);
        client.create(LazyClient.class, "127.0.0.1", own.port()).publishes().subscribe(items);
        assertThat(items.all()).containsExactly("published");
        own.stop(Duration.ZERO);
    }

    // ---- stages of interceptors, behind an interceptor that goes on later

    @RPCXServer("checked")
    static final class Checked {
        final CompletableFuture<String> passed = new CompletableFuture<>();
        final CompletableFuture<String> joined = new CompletableFuture<>();

        /** An interceptor calls this method. The test completes the future, on a thread that is no event loop's. */
        @Method
        CompletableFuture<String> pass() {
            return passed;
        }

        @Method
        String read(String text) {
            return text;
        }

        @Method
        CompletableFuture<String> join(String text) {
            return joined;
        }

        @Method
        Flow.Publisher<String> publishes() {
            return new Both();
        }
    }

    @RPCXClient(remoteServerName = "checked")
    interface CheckedCalls {
        RPCXFuture<String> pass();

        CompletableFuture<String> read(String text);

        CompletableFuture<String> join(String text);
    }

    @RPCXClient(remoteServerName = "checked")
    interface CheckedStreams {
        Flow.Publisher<String> publishes();
    }

    /** A publisher that is a stage as well. The stage never ends. */
    private static final class Both extends CompletableFuture<String> implements Flow.Publisher<String> {
        @Override
        public void subscribe(Flow.Subscriber<? super String> to) {
            new StreamsTest.Made<>(1, i -> "published").subscribe(to);
        }
    }

    private final Checked checked = new Checked();

    /** Counts the calls for which the outer interceptor waits for the answer that it asked for. */
    private final AtomicInteger asking = new AtomicInteger();

    /** Says how the outer interceptor goes on: once it has its answer, or on another thread of its own. */
    enum GoesOn {
        COMPOSED,
        /** The stage of the call is the result of another stage. */
        APPLIED,
        ON_A_THREAD,
        /** The result that comes on an event loop is the interceptor's own stage, which does work. */
        WITH_A_STAGE_OF_ITS_OWN
    }

    @SuppressWarnings("unchecked") // the rest of the chain returns a stage
    private static <T> CompletionStage<T> goOn(Interceptor.Invocation call, Interceptor.Next next) {
        try {
            return (CompletionStage<T>) Objects.requireNonNull(next.proceed(call));
        } catch (Throwable t) {
            return CompletableFuture.failedFuture(t);
        }
    }

    private Server serving(boolean isClassic, Interceptor outer, Interceptor inner) {
        Interceptor others =
                (call, next) -> call.method().equals("pass") ? next.proceed(call) : inner.intercept(call, next);
        return Server.builder(RegistryServer.registry(checked))
                .host("127.0.0.1")
                .classic(isClassic)
                .interceptor(
                        (call, next) -> call.method().equals("pass") ? next.proceed(call) : outer.intercept(call, next))
                .interceptor(others)
                .build()
                .start();
    }

    private static Client client(boolean isClassic) {
        Client.Builder builder = Client.builder().callTimeout(Duration.ofSeconds(20));
        return (isClassic ? builder.classic() : builder).build();
    }

    private Interceptor goingOn(GoesOn how, AtomicReference<CheckedCalls> asked, Runnable work) {
        return (call, next) -> {
            CompletionStage<String> answer = asked.get().pass();
            CompletionStage<?> later = switch (how) {
                case COMPOSED -> answer.thenCompose(ok -> goOn(call, next));
                case APPLIED -> answer.thenApply(ok -> goOn(call, next));
                case ON_A_THREAD -> checked.passed.thenApplyAsync(ok -> goOn(call, next), LazyStagesTest::onOwnThread);
                case WITH_A_STAGE_OF_ITS_OWN -> answer.thenApply(ok -> lazy(new CompletableFuture<>(), work));
            };
            // from here on, it is an event loop that goes on
            asking.incrementAndGet();
            return later;
        };
    }

    private static void onOwnThread(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
    }

    @ParameterizedTest
    @CsvSource({
        "COMPOSED, false", "APPLIED, false", "ON_A_THREAD, false", "WITH_A_STAGE_OF_ITS_OWN, false",
        "COMPOSED, true", "APPLIED, true", "ON_A_THREAD, true", "WITH_A_STAGE_OF_ITS_OWN, true"
    })
    void theWorkOfAnInterceptorsStageHasTheContextOfItsCallHoweverItsChainGoesOn(GoesOn how, boolean isClassic) {
        AtomicReference<CheckedCalls> asked = new AtomicReference<>();
        AtomicReference<CallContext> seen = new AtomicReference<>();
        AtomicInteger works = new AtomicInteger();
        AtomicInteger onLoops = new AtomicInteger();
        Runnable work = () -> {
            works.incrementAndGet();
            seen.set(CallContext.current().orElse(null));
            onLoops.addAndGet(Thread.currentThread() instanceof LoopThread ? 1 : 0);
        };
        AtomicReference<CallContext> own = new AtomicReference<>();
        Server here = serving(
                isClassic,
                (call, next) -> {
                    own.set(CallContext.current().orElseThrow());
                    return goingOn(how, asked, work).intercept(call, next);
                },
                (call, next) -> lazy(new CompletableFuture<>(), work));
        try (Client another = client(isClassic);
                Client behind = client(isClassic)) {
            asked.set(behind.create(CheckedCalls.class, "127.0.0.1", here.port()));
            CompletableFuture<String> read =
                    another.create(CheckedCalls.class, "127.0.0.1", here.port()).read("a");
            await().until(() -> asking.get() == 1);
            checked.passed.complete("ok");
            assertThat(read).succeedsWithin(Duration.ofSeconds(10)).isEqualTo("worked");
            assertThat(works).hasValue(1);
            assertThat(seen.get()).isNotNull().isSameAs(own.get());
            assertThat(onLoops).hasValue(0);
        } finally {
            here.stop(Duration.ofMillis(200));
        }
    }

    @ParameterizedTest
    @CsvSource({
        "COMPOSED, false", "APPLIED, false", "WITH_A_STAGE_OF_ITS_OWN, false",
        "COMPOSED, true", "APPLIED, true", "WITH_A_STAGE_OF_ITS_OWN, true"
    })
    void aCancelInterruptsTheWorkOfAnInterceptorsStageWhichCountsUntilThen(GoesOn how, boolean isClassic) {
        AtomicReference<CheckedCalls> asked = new AtomicReference<>();
        Server here = serving(
                isClassic,
                goingOn(how, asked, service::hang),
                (call, next) -> lazy(new CompletableFuture<>(), service::hang));
        Client another = client(isClassic);
        try (Client behind = client(isClassic)) {
            asked.set(behind.create(CheckedCalls.class, "127.0.0.1", here.port()));
            CompletableFuture<String> read =
                    another.create(CheckedCalls.class, "127.0.0.1", here.port()).read("a");
            await().until(() -> asking.get() == 1);
            checked.passed.complete("ok");
            await().until(() -> service.working.get() == 1);
            await().until(() -> here.core().ledger().held(Resource.HANDLERS) == 1);
            another.close();
            await().until(read::isCompletedExceptionally);
            await().until(() ->
                    service.interrupted.get() == 1 && here.core().ledger().held(Resource.HANDLERS) == 0);
            assertThat(service.withoutContext).hasValue(0);
        } finally {
            service.never.countDown();
            another.close();
            here.stop(Duration.ofMillis(200));
        }
    }

    /** This text is so long that the codec charges for most of what it is read into. */
    private static final String LARGE = "x".repeat(200_000);

    /**
     * The first call attaches the one dependent to the stage, and what its request was read into stays charged with
     * that.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aStageOfAnInterceptorThatManyCallsShareKeepsNothingOfThoseThatAreGivenUp(boolean isClassic) {
        AtomicReference<CheckedCalls> asked = new AtomicReference<>();
        CompletableFuture<String> shared = new CompletableFuture<>();
        Server here = serving(isClassic, goingOn(GoesOn.COMPOSED, asked, () -> {}), (call, next) -> shared);
        Client another = client(isClassic);
        try (Client behind = client(isClassic)) {
            asked.set(behind.create(CheckedCalls.class, "127.0.0.1", here.port()));
            CheckedCalls calls = another.create(CheckedCalls.class, "127.0.0.1", here.port());
            checked.passed.complete("ok");
            List<CompletableFuture<String>> begun = new ArrayList<>(List.of(calls.read(LARGE)));
            // two calls that come at once may attach one dependent each
            await().until(() -> shared.getNumberOfDependents() == 1);
            for (int i = 2; i <= 4; i++) {
                begun.add(calls.read(LARGE));
            }
            await().atMost(Duration.ofSeconds(60)).untilAsserted(() -> {
                // A server of a busy machine may refuse a call, or answer too late: such a call is begun again.
                begun.replaceAll(call -> call.isDone() ? calls.read(LARGE) : call);
                assertThat(Stages.waiting(shared)).as("%s", begun).isEqualTo(4);
            });
            assertThat(shared.getNumberOfDependents()).isEqualTo(1);
            another.close();
            await().until(() -> Stages.waiting(shared) == 0);
            await().until(() -> here.core().ledger().held(Resource.OBJECT_BYTES) < 2L * LARGE.length());
            shared.complete("over");
            await().until(() -> here.core().ledger().held(Resource.OBJECT_BYTES) == 0);
        } finally {
            shared.complete("over");
            another.close();
            here.stop(Duration.ofMillis(200));
        }
    }

    /** An interceptor has equal calls wait for what the first of them has begun. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theStageOfAnotherCallKeepsNothingOfThoseThatAreGivenUp(boolean isClassic) {
        AtomicReference<CheckedCalls> asked = new AtomicReference<>();
        AtomicReference<CompletableFuture<String>> first = new AtomicReference<>();
        Interceptor joining = (call, next) -> {
            if (first.get() == null) {
                first.set(LazyStagesTest.<String>goOn(call, next).toCompletableFuture());
            }
            return first.get();
        };
        Interceptor outer = (call, next) -> first.get() == null
                ? next.proceed(call)
                : goingOn(GoesOn.COMPOSED, asked, () -> {}).intercept(call, next);
        Server here = serving(isClassic, outer, joining);
        Client another = client(isClassic);
        try (Client behind = client(isClassic)) {
            asked.set(behind.create(CheckedCalls.class, "127.0.0.1", here.port()));
            CompletableFuture<String> begins = asked.get().join("a");
            await().until(() -> first.get() != null && Stages.waiting(first.get()) == 1);
            CompletableFuture<String> shared = first.get();
            assertThat(shared).isInstanceOf(DetachableStage.class);
            CheckedCalls calls = another.create(CheckedCalls.class, "127.0.0.1", here.port());
            for (int i = 1; i <= 3; i++) {
                calls.join("a");
            }
            CompletableFuture<String> stays = asked.get().join("a");
            await().until(() -> asking.get() == 4);
            checked.passed.complete("ok");
            await().until(() -> Stages.waiting(shared) == 5);
            assertThat(shared.getNumberOfDependents()).isEqualTo(1);
            another.close();
            await().until(() -> Stages.waiting(shared) == 2);
            checked.joined.complete("over");
            assertThat(begins).succeedsWithin(Duration.ofSeconds(10)).isEqualTo("over");
            assertThat(stays).succeedsWithin(Duration.ofSeconds(10)).isEqualTo("over");
        } finally {
            checked.joined.complete("over");
            another.close();
            here.stop(Duration.ofMillis(200));
        }
    }

    /** The interceptor goes on later, like one that asks elsewhere whether the caller may have the stream. */
    @Test
    void aPublisherThatIsAStageAsWellComesToAnInterceptorThatGoesOnOnAnEventLoop() throws Exception {
        AtomicReference<CheckedCalls> asked = new AtomicReference<>();
        Interceptor later = (call, next) -> (Flow.Publisher<String>) to -> {
            asked.get()
                    .pass()
                    .thenCompose(ok -> LazyStagesTest.<Flow.Publisher<String>>goOn(call, next))
                    .thenAccept(publisher -> publisher.subscribe(to));
            asking.incrementAndGet();
        };
        Server here = serving(false, later, (call, next) -> next.proceed(call));
        try (Client another = client(false);
                Client behind = client(false)) {
            asked.set(behind.create(CheckedCalls.class, "127.0.0.1", here.port()));
            StreamsTest.Collected<String> items = new StreamsTest.Collected<>(1);
            another.create(CheckedStreams.class, "127.0.0.1", here.port())
                    .publishes()
                    .subscribe(items);
            await().until(() -> asking.get() == 1);
            checked.passed.complete("ok");
            assertThat(items.all()).containsExactly("published");
        } finally {
            here.stop(Duration.ofMillis(200));
        }
    }
}
