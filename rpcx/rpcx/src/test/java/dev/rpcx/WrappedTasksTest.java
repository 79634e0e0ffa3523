package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.call.TimedContext;
import io.netty.util.concurrent.Ticker;
import java.lang.reflect.Proxy;
import java.security.Principal;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that deadline, metadata and caller of a call go on with a wrapped task, on whichever thread it runs. */
@Timeout(60)
class WrappedTasksTest {
    private static final Duration TIME = Duration.ofSeconds(50);

    private final ExecutorService pool = Executors.newSingleThreadExecutor();
    private final CallContext alices = new TimedContext(
            Ticker.systemTicker().nanoTime() + TIME.toNanos(),
            Metadata.EMPTY.with("city", "Paris"),
            () -> "alice",
            Ticker.systemTicker());

    @AfterEach
    void end() {
        pool.shutdown();
    }

    /** Describes the context of the calling thread. */
    private static String current() {
        return CallContext.current()
                .map(context -> context.principal().map(Principal::getName).orElse("nobody") + " in "
                        + context.metadata().get("city") + " with "
                        + (context.remainingNanos() <= TIME.toNanos() ? "her time" : "more time"))
                .orElse("no call");
    }

    private String onPool(Callable<String> task) throws Exception {
        return pool.submit(task).get(30, TimeUnit.SECONDS);
    }

    @Test
    void aTaskRunsInTheContextInWhichItWasWrapped() throws Exception {
        CompletableFuture<String> ran = new CompletableFuture<>();
        Runnable task = alices.call(() -> CallContext.wrap(() -> {
            ran.complete(current());
        }));
        Callable<String> other = alices.call(() -> CallContext.wrap(WrappedTasksTest::current));
        assertThat(onPool(WrappedTasksTest::current)).isEqualTo("no call");
        pool.execute(task);
        assertThat(ran.get(30, TimeUnit.SECONDS)).isEqualTo("alice in Paris with her time");
        assertThat(onPool(other)).isEqualTo("alice in Paris with her time");
        assertThat(onPool(WrappedTasksTest::current))
                .as("the thread's own again")
                .isEqualTo("no call");
    }

    @Test
    void aTaskThatThrowsLeavesTheThreadAsItWas() {
        Callable<String> failing = alices.call(() -> CallContext.wrap((Callable<String>) () -> {
            throw new IllegalStateException(current());
        }));
        assertThatThrownBy(failing::call).hasMessage("alice in Paris with her time");
        assertThat(current()).isEqualTo("no call");
    }

    @Test
    void aTaskThatWasWrappedOutsideOfCallsRunsInNone() throws Exception {
        Callable<String> task = CallContext.wrap(WrappedTasksTest::current);
        String within = alices.call(() -> {
            try {
                return task.call() + ", " + current();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
        assertThat(within).isEqualTo("no call, alice in Paris with her time");
    }

    @Test
    void oneExecutorGivesEachTaskTheContextOfItsCaller() throws Exception {
        Executor carrying = CallContext.wrap(pool);
        CompletableFuture<String> alice =
                alices.call(() -> CompletableFuture.supplyAsync(WrappedTasksTest::current, carrying));
        CompletableFuture<String> nobody = CompletableFuture.supplyAsync(WrappedTasksTest::current, carrying);
        assertThat(alice.get(30, TimeUnit.SECONDS)).isEqualTo("alice in Paris with her time");
        assertThat(nobody.get(30, TimeUnit.SECONDS)).isEqualTo("no call");
    }

    @Test
    void aContextIsSetUntilAnotherOneIs() {
        CallContext.set(alices);
        try {
            assertThat(current()).isEqualTo("alice in Paris with her time");
        } finally {
            CallContext.set(null);
        }
        assertThat(current()).isEqualTo("no call");
        CallContext foreign = (CallContext) Proxy.newProxyInstance(
                CallContext.class.getClassLoader(), new Class<?>[] {CallContext.class}, (proxy, method, args) -> null);
        assertThatThrownBy(() -> CallContext.set(foreign))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("expected: one of CallContext.current");
    }

    @RPCXServer("behind")
    static final class Behind {
        @Method
        String seen() {
            return current();
        }
    }

    @RPCXClient(remoteServerName = "behind")
    interface BehindClient {
        @Method(timeoutMillis = 3_000_000)
        String seen();
    }

    @RPCXServer("front")
    static final class Front {
        private final BehindClient behind;
        private final Executor place;

        Front(BehindClient behind, Executor place) {
            this.behind = behind;
            this.place = place;
        }

        @Method
        CompletableFuture<String> seen() {
            return CompletableFuture.supplyAsync(() -> current() + "; then " + behind.seen(), place);
        }
    }

    @RPCXClient(remoteServerName = "front")
    interface FrontClient {
        @Method(timeoutMillis = 50_000)
        String seen();
    }

    /** Authenticates the caller by the metadata that it sends. A real interceptor would use a token. */
    private static Object named(Interceptor.Invocation call, Interceptor.Next next) throws Throwable {
        String who = call.metadata().get("who");
        CallContext.current().orElseThrow().authenticate(() -> who == null ? "nobody" : who);
        return next.proceed(call);
    }

    @Test
    void aHandlersCallOnAnotherThreadHasTheTimeAndTheCallerOfItsOwnCall() {
        Server last = Server.builder(RegistryServer.registry(new Behind()))
                .interceptor(WrappedTasksTest::named)
                .build()
                .start();
        // passes on who calls, as Tokens.forwarding does
        Client within = Client.builder()
                .interceptor((call, next) -> next.proceed(call.with(
                                "who",
                                CallContext.current()
                                        .flatMap(CallContext::principal)
                                        .map(Principal::getName)
                                        .orElse("nobody"))
                        .with("city", "Oslo")))
                .build();
        BehindClient behind = within.create(BehindClient.class, "127.0.0.1", last.port());
        Server first = Server.builder(RegistryServer.registry(new Front(behind, CallContext.wrap(pool))))
                .interceptor(WrappedTasksTest::named)
                .build()
                .start();
        Client client = Client.builder()
                .interceptor(
                        (call, next) -> next.proceed(call.with("who", "alice").with("city", "Paris")))
                .build();
        try {
            FrontClient front = client.create(FrontClient.class, "127.0.0.1", first.port());
            assertThat(front.seen()).isEqualTo("alice in Paris with her time; then alice in Oslo with her time");
        } finally {
            client.close();
            first.stop(Duration.ofMillis(200));
            within.close();
            last.stop(Duration.ofMillis(200));
        }
    }
}
