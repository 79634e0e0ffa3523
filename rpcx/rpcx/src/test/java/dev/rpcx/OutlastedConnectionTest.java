package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.Stages;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests a server that stops just after a connection has ended, while the future of a handler of that connection has not
 * ended.
 */
@Timeout(60)
class OutlastedConnectionTest {
    @RPCXServer("never")
    static final class Service {
        final CompletableFuture<String> result = new CompletableFuture<>();

        @Method
        CompletableFuture<String> never() {
            return result;
        }
    }

    @RPCXServer("deaf")
    static final class Deaf {
        final NeverCalls down;
        final CountDownLatch mayEnd = new CountDownLatch(1);
        final CompletableFuture<RPCXFuture<String>> made = new CompletableFuture<>();

        Deaf(NeverCalls down) {
            this.down = down;
        }

        /** Ignores interrupts, and returns the future of a call that was made within this one. */
        @Method
        CompletableFuture<String> late() {
            RPCXFuture<String> never = down.never();
            made.complete(never);
            for (boolean isOver = false; !isOver; ) {
                try {
                    mayEnd.await();
                    isOver = true;
                } catch (InterruptedException e) {
                    // the handler is interrupted because its caller is gone
                }
            }
            return never;
        }
    }

    @RPCXClient(remoteServerName = "never")
    interface NeverCalls {
        RPCXFuture<String> never();
    }

    @RPCXClient(remoteServerName = "deaf")
    interface DeafCalls {
        CompletableFuture<String> late();
    }

    /** The loops have ended by then, so the call is given up while its handler's thread hands over the future. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aFutureThatAHandlerBringsBehindTheEndOfItsServerIsCancelled(boolean isClassic) throws Exception {
        Server behind =
                Server.builder(RegistryServer.registry(new Service())).build().start();
        // the call has so much time that only the end of its connection ends it
        Client.Builder builder = Client.builder().callTimeout(Duration.ofMinutes(10));
        try (Client down = Client.standard();
                Client client = (isClassic ? builder.classic() : builder).build()) {
            Deaf deaf = new Deaf(down.create(NeverCalls.class, "127.0.0.1", behind.port()));
            Server server = Server.builder(RegistryServer.registry(deaf))
                    .classic(isClassic)
                    .build()
                    .start();
            CompletableFuture<String> call =
                    client.create(DeafCalls.class, "127.0.0.1", server.port()).late();
            RPCXFuture<String> made = deaf.made.get();
            server.stop(Duration.ZERO);
            assertThat(made).isNotDone();
            deaf.mayEnd.countDown();
            await().until(made::isCancelled);
            await().until(call::isCompletedExceptionally);
            await().until(() -> server.core().ledger().held(Resource.CALLS) == 0);
        } finally {
            behind.stop(Duration.ZERO);
        }
    }

    @RPCXClient(remoteServerName = "never")
    interface NeverClient {
        @Method
        String never();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void itsCallsHoldNothingWhenTheServerHasStopped(boolean isClassic) {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .classic(isClassic)
                .build()
                .start();
        Client.Builder builder = Client.builder().callTimeout(Duration.ofMillis(50));
        try (Client client = (isClassic ? builder.classic() : builder).build()) {
            NeverClient never = client.create(NeverClient.class, "127.0.0.1", server.port());
            assertThatThrownBy(never::never).isInstanceOf(RPCXException.class);
        }
        await().until(() -> server.core().connections() == 0);
        server.stop(Duration.ZERO);
        // the handler may have begun a moment ago, and may return its future only now
        await().until(() -> server.core().ledger().held(Resource.CALLS) == 0);
        await().until(() -> Stages.waiting(service.result) == 0);
        service.result.complete("late");
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    /** The connections end while the server stops, each at another moment of the stop. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void soDoThoseOfConnectionsThatEndMeanwhile(boolean isClassic) {
        for (int i = 0; i < LongForm.of(20, 2_000); i++) {
            Service service = new Service();
            Server server = Server.builder(RegistryServer.registry(service))
                    .classic(isClassic)
                    .build()
                    .start();
            Client.Builder builder = Client.builder().callTimeout(Duration.ofMillis(5));
            Client client = (isClassic ? builder.classic() : builder).build();
            NeverClient never = client.create(NeverClient.class, "127.0.0.1", server.port());
            for (int call = 0; call < 3; call++) {
                assertThatThrownBy(never::never).isInstanceOf(RPCXException.class);
            }
            client.close();
            server.stop(Duration.ofNanos(i % 2 * 200_000_000L));
            // a handler may have begun a moment ago, and may return its future only now
            await("round " + i).until(() -> server.core().ledger().held(Resource.CALLS) == 0);
            await("round " + i).until(() -> Stages.waiting(service.result) == 0);
            service.result.complete("late");
            assertThat(server.core().ledger().audit()).as("round %d", i).isEmpty();
        }
    }
}
