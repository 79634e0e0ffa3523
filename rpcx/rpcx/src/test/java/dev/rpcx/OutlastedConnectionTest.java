package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A server that stops just after a connection has gone whose handler's future has not ended. */
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
        await().until(() -> server.connections() == 0);
        server.stop(Duration.ZERO);
        assertThat(server.ledger().held(Resource.CALLS)).isZero();
        assertThat(Stages.waiting(service.result)).isZero();
        service.result.complete("late");
        assertThat(server.ledger().audit()).isEmpty();
    }

    /** Connections that end while the server stops, each at another moment of its end. */
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
            // a handler may have begun a moment ago, and brings its future now
            await("round " + i).until(() -> server.ledger().held(Resource.CALLS) == 0);
            await("round " + i).until(() -> Stages.waiting(service.result) == 0);
            service.result.complete("late");
            assertThat(server.ledger().audit()).as("round %d", i).isEmpty();
        }
    }
}
