package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
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
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Handlers whose stages are of somebody else's class, and do their work when something is hung on them, on the thread
 * that does that: such work is the handler's.
 */
@Timeout(60)
class LazyStagesTest {
    /** Does {@code work} within the first {@code whenComplete}, and has ended then. */
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
            return lazy(new CompletableFuture<>(), () -> {
                lookAtContext();
                working.incrementAndGet();
                try {
                    never.await();
                } catch (InterruptedException e) {
                    interrupted.incrementAndGet();
                } finally {
                    working.decrementAndGet();
                }
            });
        }

        @Method
        CompletionStage<String> fails() {
            CompletionStage<String> stage = lazy(new CompletableFuture<>(), () -> {
                throw new IllegalStateException("on purpose");
            });
            failed.set(new WeakReference<>(stage));
            return stage;
        }

        /** A publisher that is a stage as well, as those of some libraries are. */
        @Method
        Flow.Publisher<String> publishes() {
            class Both extends CompletableFuture<String> implements Flow.Publisher<String> {
                @Override
                public void subscribe(Flow.Subscriber<? super String> to) {
                    new StreamsTest.Made<>(1, i -> "published").subscribe(to);
                }
            }
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
}
