package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.LongForm;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests callbacks for the end of a call. They are the user's code, which can take its time, so the call keeps its place
 * until they have returned.
 */
@Timeout(60)
class ToldCallsTest {
    private static final int PLACES = 8;
    private static final int CANCELS = 5;

    @RPCXServer("told")
    static final class Service {
        final CountDownLatch telling = new CountDownLatch(1);
        final AtomicInteger told = new AtomicInteger();
        final AtomicInteger most = new AtomicInteger();
        final AtomicInteger entered = new AtomicInteger();

        private void tell() {
            most.accumulateAndGet(told.incrementAndGet(), Math::max);
            try {
                telling.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            } finally {
                told.decrementAndGet();
            }
        }

        @Method
        CompletableFuture<String> wait(String text) {
            CallContext.current().orElseThrow().onCancel(this::tell);
            entered.incrementAndGet();
            return new CompletableFuture<>();
        }

        @Method
        String block(String text) throws InterruptedException {
            CallContext.current().orElseThrow().onCancel(this::tell);
            entered.incrementAndGet();
            new CountDownLatch(1).await();
            return text;
        }

        @Method
        String echo(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "told")
    interface Calls {
        CompletableFuture<String> wait(String text);

        CompletableFuture<String> block(String text);

        String echo(String text);
    }

    enum Way {
        FUTURE,
        BLOCKING
    }

    private static CompletableFuture<String> begin(Calls calls, Way way) {
        return way == Way.FUTURE ? calls.wait("x") : calls.block("x");
    }

    @ParameterizedTest
    @EnumSource(Way.class)
    void whoCancelsHasNoMoreThreadsThanPlaces(Way way) {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .maxCalls(PLACES)
                .build()
                .start();
        try (Client client = Client.builder().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            // each call is cancelled after it has begun, so its slot is free again
            for (int i = 0; i < 2 * PLACES; i++) {
                int before = service.entered.get();
                CompletableFuture<String> call = begin(calls, way);
                await().until(() -> service.entered.get() > before || call.isDone());
                call.cancel(true);
            }
            await().until(() -> service.told.get() == PLACES);
            assertThat(service.most).hasValue(PLACES);
            assertThat(Inside.core(server).ledger().held(Resource.CALLS)).isGreaterThanOrEqualTo(PLACES);
            service.telling.countDown();
            await().until(() -> Inside.core(server).ledger().held(Resource.HANDLERS) == 0);
            assertThat(calls.echo("still")).isEqualTo("still");
            assertThat(service.most).hasValue(PLACES);
        } finally {
            service.telling.countDown();
            server.stop(Duration.ofMillis(500));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aConnectionThatIsGoneHasItsPlacesUntilItsHandlersHaveBeenTold(boolean isClassic) {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .classic(isClassic)
                .build()
                .start();
        try {
            Client.Builder builder = Client.builder();
            try (Client client = (isClassic ? builder.classic() : builder).build()) {
                Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
                List<CompletableFuture<String>> all = new ArrayList<>();
                for (int i = 0; i < PLACES; i++) {
                    all.add(begin(calls, i % 2 == 0 ? Way.FUTURE : Way.BLOCKING));
                }
                assertThat(all).hasSize(PLACES);
                await().until(() -> service.entered.get() == PLACES);
            }
            await().until(() ->
                    service.told.get() == PLACES && Inside.core(server).connections() == 0);
            assertThat(Inside.core(server).ledger().held(Resource.CALLS)).isEqualTo(PLACES);
            service.telling.countDown();
            await().until(() -> Inside.core(server).ledger().audit().isEmpty()
                    || Inside.core(server).ledger().held(Resource.CALLS) == 0);
        } finally {
            service.telling.countDown();
            server.stop(Duration.ofMillis(500));
        }
    }

    /** Cancels meet ends of calls at every moment, and each place is given back once. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void everyPlaceComesBackOnce(boolean isClassic) throws Exception {
        Service service = new Service();
        service.telling.countDown();
        Server server = Server.builder(RegistryServer.registry(service))
                .classic(isClassic)
                .build()
                .start();
        try {
            Client.Builder builder = Client.builder().callTimeout(Duration.ofMillis(20));
            try (Client client = (isClassic ? builder.classic() : builder).build()) {
                Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
                List<CompletableFuture<String>> all = new ArrayList<>();
                for (int i = 0; i < LongForm.of(300, 20_000); i++) {
                    CompletableFuture<String> call = begin(calls, i % 2 == 0 ? Way.FUTURE : Way.BLOCKING);
                    all.add(call);
                    if (ThreadLocalRandom.current().nextBoolean()) {
                        call.cancel(true);
                    }
                    if (all.size() == 20) {
                        CompletableFuture.allOf(all.toArray(CompletableFuture[]::new))
                                .handle((done, failure) -> done)
                                .get(10, TimeUnit.SECONDS);
                        all.clear();
                    }
                }
            }
            await().until(() -> Inside.core(server).ledger().held(Resource.CALLS) == 0
                    && Inside.core(server).running() == 0);
        } finally {
            server.stop(Duration.ofMillis(500));
        }
    }

    @RPCXServer("told")
    static final class Failing {
        final AtomicInteger entered = new AtomicInteger();
        final CountDownLatch told = new CountDownLatch(CANCELS);

        @Method
        CompletableFuture<String> wait(String text) {
            CallContext.current().orElseThrow().onCancel(() -> {
                told.countDown();
                throw new IllegalStateException("on purpose, when told of a cancel");
            });
            entered.incrementAndGet();
            return new CompletableFuture<>();
        }
    }

    /** A peer cancels as often as it likes. What its cancels write to the log is limited. */
    @Test
    void whatATaskThrowsThatIsToldOfACancelIsNotWrittenForEachCancel() throws InterruptedException {
        AtomicInteger uncaught = new AtomicInteger();
        Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        Thread.setDefaultUncaughtExceptionHandler((thread, thrown) -> {
            if (String.valueOf(thrown.getMessage()).startsWith("on purpose, when told")) {
                uncaught.incrementAndGet();
            }
        });
        Failing service = new Failing();
        Server server = Server.builder(RegistryServer.registry(service)).build().start();
        try (Client client = Client.builder().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            for (int i = 1; i <= CANCELS; i++) {
                int entered = i;
                CompletableFuture<String> call = calls.wait("x");
                await().until(() -> service.entered.get() == entered);
                call.cancel(true);
            }
            assertThat(service.told.await(10, TimeUnit.SECONDS)).isTrue();
            assertThat(uncaught).hasValue(0);
        } finally {
            server.stop(Duration.ofMillis(200));
            Thread.setDefaultUncaughtExceptionHandler(before);
        }
    }
}
