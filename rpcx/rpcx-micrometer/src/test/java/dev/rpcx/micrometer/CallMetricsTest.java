package dev.rpcx.micrometer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Interceptor;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class CallMetricsTest {
    @RPCXServer("greeter")
    static final class Greetings {
        @Method
        String hello(String name) {
            if (name.isEmpty()) {
                throw new IllegalArgumentException("nobody to greet");
            }
            return "Hello " + name;
        }

        private final CountDownLatch begun = new CountDownLatch(1);

        @Method
        String waits() throws InterruptedException {
            begun.countDown();
            Thread.sleep(60_000);
            return "too late";
        }

        @Method
        String nothing() {
            return null;
        }

        @Method
        CompletableFuture<String> nothingLater() {
            return CompletableFuture.supplyAsync(() -> null);
        }

        @Method
        String givesUp() {
            throw new CancellationException("by the handler itself");
        }

        @Method
        CompletableFuture<String> givesUpLater() {
            CompletableFuture<String> never = new CompletableFuture<>();
            never.cancel(true);
            return never;
        }
    }

    @RPCXClient(remoteServerName = "greeter")
    interface Greeter {
        String hello(String name);

        @Method("hello")
        CompletableFuture<String> later(String name);

        String unknown();

        CompletableFuture<String> waits();

        String givesUp();

        String givesUpLater();

        String nothing();

        String nothingLater();
    }

    private final SimpleMeterRegistry atClient = new SimpleMeterRegistry();
    private final SimpleMeterRegistry atServer = new SimpleMeterRegistry();

    private static long count(SimpleMeterRegistry registry, String name, String outcome) {
        return registry.get(name)
                .tags("service", "greeter", "method", "hello", "outcome", outcome)
                .timer()
                .count();
    }

    @Test
    void everyCallIsTimedByMethodAndOutcomeOnBothSides() {
        try (Server server = Server.builder(RegistryServer.registry(new Greetings()))
                        .interceptor(CallMetrics.ofServer(atServer))
                        .build()
                        .start();
                Client client = Client.builder()
                        .interceptor(CallMetrics.ofClient(atClient))
                        .build()) {
            Greeter greeter = client.create(Greeter.class, "127.0.0.1", server.port());
            greeter.hello("one");
            greeter.hello("two");
            greeter.later("three").join();
            assertThatThrownBy(() -> greeter.hello("")).isInstanceOf(RPCXException.class);
            assertThatThrownBy(() -> greeter.later("").join()).hasCauseInstanceOf(RPCXException.class);
            assertThatThrownBy(greeter::unknown).isInstanceOf(RPCXException.class);
            assertThat(count(atServer, "rpcx.server.calls", "OK")).isEqualTo(3);
            assertThat(count(atServer, "rpcx.server.calls", "HANDLER_FAILED")).isEqualTo(2);
            await().until(() -> count(atClient, "rpcx.client.calls", "OK") == 3);
            await().until(() -> count(atClient, "rpcx.client.calls", "HANDLER_FAILED") == 2);
            assertThat(atClient.get("rpcx.client.calls")
                            .tag("outcome", "NOT_FOUND")
                            .timers())
                    .hasSize(1);
            // a name that is not published reaches no meter of the server
            assertThat(atServer.getMeters()).hasSize(2);
        }
    }

    @Test
    void aResultThatIsNullCountsAsWhatItsCallerReads() {
        try (Server server = Server.builder(RegistryServer.registry(new Greetings()))
                        .interceptor(CallMetrics.ofServer(atServer))
                        .build()
                        .start();
                Client client = Client.standard()) {
            Greeter greeter = client.create(Greeter.class, "127.0.0.1", server.port());
            for (ThrowingCallable call : List.<ThrowingCallable>of(greeter::nothing, greeter::nothingLater)) {
                assertThatThrownBy(call)
                        .isInstanceOf(RPCXException.class)
                        .hasMessageContaining("the result cannot be sent");
            }
        }
        assertThat(atServer.getMeters())
                .map(meter -> meter.getId().getTag("outcome"))
                .containsExactly("HANDLER_FAILED", "HANDLER_FAILED");
    }

    /** Else callers who give up could raise the fraction of failures of a server that is well. */
    @Test
    void aServersCallIsCancelledByItsCallerAlone() throws Exception {
        Greetings greetings = new Greetings();
        try (Server server = Server.builder(RegistryServer.registry(greetings))
                        .interceptor(CallMetrics.ofServer(atServer))
                        .build()
                        .start();
                Client client = Client.standard()) {
            Greeter greeter = client.create(Greeter.class, "127.0.0.1", server.port());
            for (ThrowingCallable call : List.<ThrowingCallable>of(greeter::givesUp, greeter::givesUpLater)) {
                assertThatThrownBy(call)
                        .isInstanceOfSatisfying(
                                RPCXException.class,
                                e -> assertThat(e.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED));
            }
            CompletableFuture<String> waits = greeter.waits();
            greetings.begun.await();
            waits.cancel(true);
            await().until(() -> atServer.getMeters().size() == 3);
        }
        assertThat(atServer.getMeters())
                .map(meter ->
                        meter.getId().getTag("method") + " " + meter.getId().getTag("outcome"))
                .containsExactlyInAnyOrder("givesUp HANDLER_FAILED", "givesUpLater HANDLER_FAILED", "waits CANCELLED");
    }

    @Test
    void aStageThatTakesNothingIsTheResultAllTheSame() throws Throwable {
        CompletableFuture<String> stage = new CompletableFuture<>() {
            @Override
            public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> then) {
                throw new IllegalStateException("injected");
            }
        };
        AtomicReference<Interceptor.Invocation> had = new AtomicReference<>();
        try (Client client = Client.standard();
                Server server = Server.builder(RegistryServer.registry(new Greetings()))
                        .interceptor((call, next) -> {
                            had.set(call);
                            return next.proceed(call);
                        })
                        .build()
                        .start()) {
            client.create(Greeter.class, "127.0.0.1", server.port()).hello("one");
        }
        assertThat(CallMetrics.ofServer(atServer).intercept(had.get(), next -> stage))
                .isSameAs(stage);
    }
}
